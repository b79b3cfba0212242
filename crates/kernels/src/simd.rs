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

impl Level {
    /// Whether `most` includes this level. Unlike `<=`, it can be used in constants.
    #[doc(hidden)]
    pub const fn is_within(self, most: Level) -> bool {
        self as u8 <= most as u8
    }
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

/// Whether this machine has a fused multiply-add, whatever [`restrict`] says; without it, `mul_add` is a function call.
pub(crate) fn fuses_multiply_add() -> bool {
    !cfg!(target_arch = "x86_64") || detect() > Level::Baseline
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
///
/// Each level costs compile time, and the widest is not always the fastest: LLVM makes slower code of many loops over
/// integers, and of sums, for AVX-512 than for AVX2. A constant in `up_to(…)` before the function, which may depend on its
/// types, names the highest level that is compiled; machines beyond it run that one.
#[macro_export]
macro_rules! multiversion {
    ($(#[$meta:meta])* up_to($most:expr) $vis:vis fn $($rest:tt)*) => {
        $crate::multiversion! { @levels ($most) $(#[$meta])* $vis fn $($rest)* }
    };
    (@levels ($most:expr) $(#[$meta:meta])* $vis:vis fn $name:ident $([$($generics:tt)*])?
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

            // Compiled once, like the other levels, and not into every caller.
            #[inline(never)]
            fn baseline $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }

            #[cfg(target_arch = "x86_64")]
            match $crate::simd::level() {
                $crate::simd::Level::Avx512 if const { $crate::simd::Level::Avx512.is_within($most) } => {
                    // SAFETY: `level` returns only what this machine has.
                    return unsafe { avx512($($arg),*) };
                }
                $crate::simd::Level::Avx512 | $crate::simd::Level::Avx2
                    if const { $crate::simd::Level::Avx2.is_within($most) } =>
                {
                    // SAFETY: as above; a machine with AVX-512 has AVX2.
                    return unsafe { avx2($($arg),*) };
                }
                _ => {}
            }
            #[allow(unreachable_code)]
            { baseline($($arg),*) }
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => {
        $crate::multiversion! { @levels ($crate::simd::Level::Avx512) $(#[$meta])* $vis fn $($rest)* }
    };
}
