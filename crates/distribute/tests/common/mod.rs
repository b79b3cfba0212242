//! Ranks as threads.

use std::time::Duration;
use taut_distribute::{Group, Threads};

/// What `work` returns on each rank.
pub fn on_ranks<T: Send>(ranks: usize, work: impl Fn(&Group) -> T + Sync) -> Vec<T> {
    on(Threads::of(ranks), Duration::from_mins(1), work)
}

/// As [`on_ranks`], on these transports; ranks wait for each other for at most `timeout`.
pub fn on<T: Send>(threads: Vec<Threads>, timeout: Duration, work: impl Fn(&Group) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let spawn = |transport| {
            scope.spawn(move || {
                let group = Group::of(transport).unwrap();
                group.set_timeout(timeout);
                work(&group)
            })
        };
        let handles: Vec<_> = threads.into_iter().map(spawn).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    })
}
