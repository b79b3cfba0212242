//! Denormal numbers as zeros.
//!
//! Floats below the normal range (1.2e-38 in `f32`) appear wherever something decays: gradients of long recurrences, moments of
//! optimizers. Many processors compute with them a hundred times slower than with other numbers; a step of an LSTM over 256 steps took 8 times as long for
//! them (Intel Emerald Rapids). While a [`FlushDenormals`] lives, arithmetic on its thread reads denormal operands as zeros and writes
//! zeros for denormal results. Copies and conversions keep bits. [`crate::pool`] runs the chunks of a job in the mode of the thread that
//! submitted it, so results do not depend on the number of threads.

/// Treats denormal numbers as zeros on this thread until it is dropped.
#[derive(Debug)]
pub struct FlushDenormals(#[expect(dead_code, reason = "it restores the mode when it is dropped")] Restore);

/// Computes with denormal numbers on this thread until it is dropped: for code of the user that a kernel calls.
#[derive(Debug)]
pub struct KeepDenormals(#[expect(dead_code, reason = "it restores the mode when it is dropped")] Restore);

impl FlushDenormals {
    /// Begins, if it is not so already. A few nanoseconds.
    #[inline]
    #[must_use]
    pub fn new() -> FlushDenormals {
        FlushDenormals(Restore::after(true))
    }
}

impl Default for FlushDenormals {
    fn default() -> FlushDenormals {
        FlushDenormals::new()
    }
}

impl KeepDenormals {
    /// Begins, if it is not so already.
    #[must_use]
    pub fn new() -> KeepDenormals {
        KeepDenormals(Restore::after(false))
    }
}

impl Default for KeepDenormals {
    fn default() -> KeepDenormals {
        KeepDenormals::new()
    }
}

/// Whether denormal numbers are zeros on this thread.
#[inline]
pub(crate) fn are_flushed() -> bool {
    control::FLUSH != 0 && control::read() & control::FLUSH == control::FLUSH
}

/// Sets the mode of this thread, for good.
#[inline]
pub(crate) fn set(flush: bool) {
    std::mem::forget(Restore::after(flush));
}

/// What is restored when it is dropped: the control word, if it was changed. Not `Send`: the word is the thread's.
#[derive(Debug)]
struct Restore(Option<control::Word>, std::marker::PhantomData<*const ()>);

impl Restore {
    #[inline]
    fn after(flush: bool) -> Restore {
        let old = control::read();
        let new = if flush { old | control::FLUSH } else { old & !control::FLUSH };
        if new != old {
            control::write(new);
        }
        Restore((new != old).then_some(old), std::marker::PhantomData)
    }
}

impl Drop for Restore {
    #[inline]
    fn drop(&mut self) {
        if let Some(old) = self.0 {
            control::write(old);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    pub type Word = u32;

    /// Denormal operands are zeros (bit 6), and denormal results, too (bit 15).
    pub const FLUSH: Word = 1 << 6 | 1 << 15;

    #[inline]
    pub fn read() -> Word {
        let mut word: Word = 0;
        // SAFETY: it stores the four bytes of the control word.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word
    }

    #[inline]
    pub fn write(word: Word) {
        // SAFETY: only the two bits of `FLUSH` differ from a word that was read. They change the values of arithmetic, and
        // nothing else.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    use std::arch::asm;

    pub type Word = u64;

    /// Denormal operands and results are zeros.
    pub const FLUSH: Word = 1 << 24;

    #[inline]
    pub fn read() -> Word {
        let word: Word;
        // SAFETY: it reads the control register.
        unsafe { asm!("mrs {}, fpcr", out(reg) word, options(nostack, preserves_flags)) };
        word
    }

    #[inline]
    pub fn write(word: Word) {
        // SAFETY: only the bit of `FLUSH` differs from a word that was read. It changes the values of arithmetic, and
        // nothing else.
        unsafe { asm!("msr fpcr, {}", in(reg) word, options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod control {
    pub type Word = u32;

    /// This processor has no such mode that is known here.
    pub const FLUSH: Word = 0;

    pub fn read() -> Word {
        0
    }

    pub fn write(_: Word) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool;
    use std::hint::black_box;

    /// Half of the least normal number.
    fn halved() -> f32 {
        black_box(f32::MIN_POSITIVE) * black_box(0.5)
    }

    #[test]
    fn the_mode_nests_and_is_restored() {
        if control::FLUSH == 0 {
            return;
        }
        assert!(halved() > 0.0 && !are_flushed());
        let outer = FlushDenormals::new();
        assert_eq!(halved(), 0.0);
        {
            let _inner = FlushDenormals::new();
            assert!(are_flushed());
            let _user = KeepDenormals::new();
            assert!(halved() > 0.0);
        }
        assert_eq!(halved(), 0.0);
        drop(outer);
        assert!(halved() > 0.0);
    }

    #[test]
    fn chunks_run_in_the_mode_of_their_job() {
        let _turn = pool::tests::with_threads(4);
        for flush in [true, false, true] {
            let _mode = flush.then(FlushDenormals::new);
            let expected = flush && control::FLUSH != 0;
            for _ in 0..50 {
                let mut found = vec![!expected; 64];
                pool::for_each_mut(&mut found, 1, |_, found| found[0] = halved() == 0.0);
                assert!(found.iter().all(|&found| found == expected), "{flush}: {found:?}");
            }
        }
    }
}
