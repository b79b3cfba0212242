//! The cores that threads of datasets start on.
//!
//! The system may start both threads of a stage on one core, beside a thread that is about to sleep, and takes tens of milliseconds to
//! move one of them: on two cores, a third of the time of a short epoch.

/// Has threads of datasets start on cores of their own.
pub fn install() {
    #[cfg(target_os = "linux")]
    taut::data::set_worker_start_hook(linux::move_to_core);
}

#[cfg(target_os = "linux")]
mod linux {
    /// A bit for each of 1,024 cores, as the C library has them.
    type CoreSet = [u64; 16];

    // SAFETY: the signatures of the C library. Both access as many bytes of the set as `bytes` says, which is its size in every call.
    unsafe extern "C" {
        safe fn sched_getaffinity(thread: i32, bytes: usize, cores: &mut CoreSet) -> i32;
        safe fn sched_setaffinity(thread: i32, bytes: usize, cores: &CoreSet) -> i32;
    }

    /// Moves this thread to a core, from which the system may move it again. Fewer threads than cores are left to the system, which
    /// finds idle cores for them.
    pub fn move_to_core(index: usize, workers: usize) {
        let mut allowed: CoreSet = [0; 16];
        if sched_getaffinity(0, size_of::<CoreSet>(), &mut allowed) != 0 {
            return;
        }
        let count = allowed.iter().map(|bits| bits.count_ones() as usize).sum();
        if count < 2 || workers < count {
            return;
        }
        let is_allowed = |core: &usize| allowed[core / 64] >> (core % 64) & 1 == 1;
        let Some(core) = (0..1024).filter(is_allowed).nth(index % count) else { return };
        let mut own: CoreSet = [0; 16];
        own[core / 64] = 1 << (core % 64);
        if sched_setaffinity(0, size_of::<CoreSet>(), &own) == 0 {
            sched_setaffinity(0, size_of::<CoreSet>(), &allowed);
        }
    }
}
