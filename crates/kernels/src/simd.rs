//! Run-time choice of instruction set.
//!
//! Kernels are branch-free scalar Rust; [`multiversion!`](crate::multiversion) compiles each one for every level
//! and calls the best one this machine has. LLVM then vectorises the loop at the level's full width. Only
//! explicit `mul_add` fuses, so a value does not depend on the level.

use std::sync::atomic::{AtomicU8, Ordering};

/// An instruction-set level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// What the compilation target guarantees (SSE2 on x86-64, NEON on `AArch64`).
    Baseline = 1,
    /// AVX2 and FMA.
    Avx2 = 2,
    /// AVX-512 F, BW, CD, DQ, VL.
    Avx512 = 3,
}

static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level kernels run at: the machine's best, unless [`restrict`] lowered it.
#[inline]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        3 => Level::Avx512,
        2 => Level::Avx2,
        1 => Level::Baseline,
        _ => restrict(Level::Avx512),
    }
}

/// Lowers the level to at most `limit` (or raises it again), and returns the level now in force. For tests that
/// compare levels, and for measuring.
pub fn restrict(limit: Level) -> Level {
    let level = detect().min(limit);
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    macro_rules! has { ($($f:tt),*) => { $(std::arch::is_x86_feature_detected!($f))&&* } }
    let avx2 = has!("avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "popcnt");
    if avx2 && has!("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl") {
        Level::Avx512
    } else if avx2 {
        Level::Avx2
    } else {
        Level::Baseline
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Baseline
}

/// Compiles a function once per instruction-set level and dispatches at run time.
///
/// Generics go in square brackets: `multiversion! { pub fn scale[T: Element](x: &mut [T], by: T) { … } }`. What the
/// body calls must be `#[inline(always)]` to be compiled at the level too.
#[macro_export]
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $([$($generics:tt)*])?
     ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            fn avx512 $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            fn avx2 $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }

            #[cfg(target_arch = "x86_64")]
            match $crate::simd::level() {
                // SAFETY: `level` returns only what this machine has.
                $crate::simd::Level::Avx512 => return unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                $crate::simd::Level::Avx2 => return unsafe { avx2($($arg),*) },
                $crate::simd::Level::Baseline => {}
            }
            #[allow(unreachable_code)]
            { body($($arg),*) }
        }
    };
}
