//! Allocators. In a process of its own, because the ledger and the pool are global.
#![allow(unsafe_code)]

mod common;

use common::{exclusive, tensor};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use taut_memory::{
    Allocator, Arena, Buffer, Category, OutOfMemoryCause, Pool, System, allocations, allocator, idle_bytes,
    limit, live_bytes, peak_bytes, reset_peak, set_allocator, thread_live_bytes, trim,
};

/// A user's allocator: counts the blocks of the system.
#[derive(Default)]
struct Counting {
    blocks: AtomicIsize,
    bytes: AtomicIsize,
    largest: Option<usize>,
}

// SAFETY: blocks come from `System`, which keeps the contract.
unsafe impl Allocator for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        if self.largest.is_some_and(|largest| bytes > largest) {
            return None;
        }
        self.blocks.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as isize, Relaxed);
        System.allocate(bytes)
    }

    unsafe fn release(&self, block: NonNull<u8>, bytes: usize) {
        self.blocks.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(bytes as isize, Relaxed);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.release(block, bytes) }
    }
}

#[test]
fn every_block_is_aligned_and_disjoint() {
    exclusive(|| {
        let arena: Arc<dyn Allocator> = Arc::new(Arena::new(32 << 20, Category::Arena).unwrap());
        let allocators: [Arc<dyn Allocator>; 4] =
            [Pool::shared(), Arc::new(Pool::with_cap(1 << 20)), Arc::new(System), arena];
        for allocator in &allocators {
            let sizes = [1, 2, 63, 64, 65, 1000, 4096, 65_536, 65_537, 300_000, 5 << 20];
            // Twice, so that the second round reuses blocks.
            for round in 0..2u8 {
                let mut held = Vec::new();
                for (i, bytes) in sizes.iter().copied().cycle().take(3 * sizes.len()).enumerate() {
                    let mut buffer = Buffer::new_in(allocator, bytes, Category::Tensor).unwrap();
                    assert_eq!(buffer.as_ptr() as usize % 64, 0);
                    assert_eq!(buffer.len(), bytes);
                    buffer.as_mut_slice().fill(i as u8 + round);
                    held.push(buffer);
                    if allocator.name() == "arena" && i == sizes.len() {
                        break;
                    }
                }
                for (i, buffer) in held.iter().enumerate() {
                    assert!(
                        buffer.as_slice().iter().all(|&byte| byte == i as u8 + round),
                        "{}",
                        allocator.name()
                    );
                }
            }
        }
    });
}

#[test]
fn zeroed_buffers_are_zero_on_reused_blocks() {
    exclusive(|| {
        for bytes in [1, 100, 5000, 70_000, 600_000, 5 << 20] {
            for _ in 0..3 {
                let mut buffer = Buffer::zeroed(bytes, Category::Tensor).unwrap();
                assert!(buffer.as_slice().iter().all(|&byte| byte == 0));
                buffer.as_mut_slice().fill(0xFF);
            }
        }
    });
}

#[test]
fn the_pool_reuses_blocks() {
    exclusive(|| {
        trim();
        // 100 and 128 share a class, as do 9 and 10 MiB.
        for (first, second) in [(100, 128), (70_000, 80_000), (9 << 20, 10 << 20)] {
            let buffer = tensor(first);
            let address = buffer.as_ptr();
            drop(buffer);
            let idle = idle_bytes();
            assert!(idle >= second);
            assert_eq!(tensor(second).as_ptr(), address);
            assert_eq!(idle_bytes(), idle);
        }
        let idle = idle_bytes();
        assert_eq!(idle, 128 + 81_920 + (10 << 20));
        assert_eq!(trim(), idle);
        assert_eq!((idle_bytes(), trim()), (0, 0));
    });
}

#[test]
fn blocks_beyond_the_cache_are_reused_from_the_store() {
    exclusive(|| {
        trim();
        let held: Vec<_> = (0..100).map(|_| tensor(1000)).collect();
        let mut addresses: Vec<_> = held.iter().map(|buffer| buffer.as_ptr() as usize).collect();
        drop(held);
        assert_eq!(idle_bytes(), 100 * 1024);
        let held: Vec<_> = (0..100).map(|_| tensor(1000)).collect();
        let mut again: Vec<_> = held.iter().map(|buffer| buffer.as_ptr() as usize).collect();
        addresses.sort_unstable();
        again.sort_unstable();
        assert_eq!(addresses, again);
        assert_eq!(idle_bytes(), 0);
        drop(held);
        trim();
    });
}

#[test]
fn the_pool_keeps_no_more_than_its_cap() {
    exclusive(|| {
        trim();
        let pool = Pool::shared();
        let cap = pool.set_cap(3 << 20);
        assert_eq!(pool.cap(), 3 << 20);
        let held = [tensor(1 << 20), tensor(2 << 20), tensor(1 << 20), tensor(4 << 20)];
        let [a, b, c, d] = held;
        drop((a, b));
        assert_eq!(idle_bytes(), 3 << 20);
        // The least recently used class is evicted: the class of both 1 MiB blocks was just used.
        drop(c);
        assert_eq!(idle_bytes(), 2 << 20);
        // Larger than the cap: it is not kept, and evicts no other.
        drop(d);
        assert_eq!(idle_bytes(), 2 << 20);
        pool.set_cap(0);
        assert_eq!(idle_bytes(), 0);
        drop(tensor(64));
        drop(tensor(1 << 20));
        assert_eq!(idle_bytes(), 0);
        pool.set_cap(cap);
    });
}

#[test]
fn separate_pools_keep_their_own_blocks() {
    exclusive(|| {
        trim();
        let pool = Arc::new(Pool::with_cap(1 << 20));
        let allocator: Arc<dyn Allocator> = pool.clone();
        let buffer = Buffer::new_in(&allocator, 1000, Category::Tensor).unwrap();
        let address = buffer.as_ptr();
        drop(buffer);
        assert_eq!((pool.idle_bytes(), idle_bytes()), (1024, 0));
        assert_eq!(Buffer::new_in(&allocator, 1000, Category::Tensor).unwrap().as_ptr(), address);
        assert_eq!(pool.trim(), 1024);
        assert_eq!(pool.idle_bytes(), 0);
    });
}

#[test]
fn a_users_allocator_gets_every_block_back() {
    exclusive(|| {
        let counting = Arc::new(Counting::default());
        let (live, made) = (live_bytes(), allocations());
        let pool = set_allocator(counting.clone());
        assert_eq!((pool.name(), allocator().name()), ("pool", "counting"));

        let a = tensor(100);
        let b = Buffer::zeroed(2000, Category::Gradient).unwrap();
        assert!(b.as_slice().iter().all(|&byte| byte == 0));
        assert_eq!((counting.blocks.load(Relaxed), counting.bytes.load(Relaxed)), (2, 2100));
        assert_eq!((live_bytes() - live, allocations() - made), (2100, 2));
        drop(a);
        // Back to the pool; live buffers are still released to the allocator that they came from.
        let own = set_allocator(pool);
        assert_eq!(own.name(), "counting");
        let c = tensor(100);
        assert_eq!(counting.blocks.load(Relaxed), 1);
        drop(b);
        assert_eq!((counting.blocks.load(Relaxed), counting.bytes.load(Relaxed)), (0, 0));
        drop((c, own));
        assert_eq!(live_bytes(), live);
        assert_eq!(Arc::strong_count(&counting), 1);
    });
}

#[test]
fn a_users_allocator_obeys_the_limit_and_may_fail() {
    exclusive(|| {
        let counting: Arc<dyn Allocator> = Arc::new(Counting { largest: Some(1000), ..Counting::default() });
        let live = live_bytes();
        let error = Buffer::new_in(&counting, 1001, Category::Tensor).unwrap_err();
        assert_eq!(error.cause, OutOfMemoryCause::Allocator("counting".to_owned()));
        assert!(error.to_string().contains("could not be allocated by the counting allocator"), "{error}");
        limit(live + 500);
        assert_eq!(
            Buffer::new_in(&counting, 501, Category::Tensor).unwrap_err().cause,
            OutOfMemoryCause::Limit
        );
        assert!(Buffer::new_in(&counting, 500, Category::Tensor).is_ok());
        limit(None);
        assert_eq!(live_bytes(), live);
    });
}

#[test]
fn an_arena_is_counted_once() {
    exclusive(|| {
        reset_peak();
        let (live, made) = (live_bytes(), allocations());
        let arena = Arc::new(Arena::new(1000, Category::Arena).unwrap());
        let allocator: Arc<dyn Allocator> = arena.clone();
        limit(live + 1000);
        let first = Buffer::new_in(&allocator, 10, Category::Tensor).unwrap();
        let mut second = Buffer::new_in(&allocator, 100, Category::Tensor).unwrap();
        limit(None);
        second.recategorize(Category::Gradient);
        assert_eq!((live_bytes() - live, peak_bytes() - live, allocations() - made), (1000, 1000, 1));
        assert_eq!(thread_live_bytes(), 1000);
        assert_eq!(second.as_ptr() as usize - first.as_ptr() as usize, 64);
        assert_eq!((arena.capacity(), arena.used(), arena.high_water()), (1000, 192, 192));

        // Up to the last byte.
        assert!(Buffer::new_in(&allocator, 809, Category::Tensor).is_err());
        let third = Buffer::new_in(&allocator, 808, Category::Tensor).unwrap();
        let error = Buffer::new_in(&allocator, 1, Category::Tensor).unwrap_err();
        assert_eq!(error.cause, OutOfMemoryCause::Allocator("arena".to_owned()));
        assert!(Buffer::new_in(&allocator, usize::MAX, Category::Tensor).is_err());

        // Bytes are reused only after all pieces are released.
        drop((first, third));
        assert!(Buffer::new_in(&allocator, 900, Category::Tensor).is_err());
        assert_eq!(arena.reset(), Err(1));
        drop(second);
        assert_eq!((arena.used(), arena.high_water()), (0, 1024));
        assert_eq!((arena.reset(), arena.high_water()), (Ok(()), 0));
        let whole = Buffer::new_in(&allocator, 1000, Category::Tensor).unwrap();

        // The block is live as long as one of its pieces.
        drop((arena, allocator));
        assert_eq!(live_bytes() - live, 1000);
        drop(whole);
        assert_eq!(live_bytes(), live);
    });
}

#[test]
fn empty_arenas_allocate_nothing() {
    exclusive(|| {
        let arena: Arc<dyn Allocator> = Arc::new(Arena::new(0, Category::Arena).unwrap());
        assert!(Buffer::new_in(&arena, 1, Category::Tensor).is_err());
        assert!(Buffer::new_in(&arena, 0, Category::Tensor).is_ok());
    });
}

#[test]
fn threads_share_an_arena() {
    exclusive(|| {
        let arena: Arc<dyn Allocator> = Arc::new(Arena::new(64 * 40, Category::Arena).unwrap());
        std::thread::scope(|scope| {
            for i in 0..4u8 {
                let arena = &arena;
                scope.spawn(move || {
                    for _ in 0..300 {
                        let held: Vec<_> = (0..10)
                            .filter_map(|_| {
                                let mut buffer = Buffer::new_in(arena, 64, Category::Tensor).ok()?;
                                buffer.as_mut_slice().fill(i);
                                Some(buffer)
                            })
                            .collect();
                        assert!(held.iter().all(|buffer| buffer.as_slice().iter().all(|&byte| byte == i)));
                    }
                });
            }
        });
        assert!(Buffer::new_in(&arena, 64 * 40, Category::Tensor).is_ok());
    });
}

#[test]
fn a_buffer_may_be_dropped_on_another_thread() {
    exclusive(|| {
        trim();
        let (live, here) = (live_bytes(), thread_live_bytes());
        let (send, receive) = channel::<Buffer>();
        let there = std::thread::spawn(move || {
            for mut buffer in receive {
                buffer.as_mut_slice().fill(1);
            }
            thread_live_bytes()
        });
        for i in 0..1000 {
            send.send(tensor(64 * (1 + i % 20))).unwrap();
        }
        drop(send);
        let total = (0..1000).map(|i| 64 * (1 + i % 20)).sum::<isize>();
        assert_eq!(there.join().unwrap(), -total);
        assert_eq!(thread_live_bytes() - here, total);
        assert_eq!(live_bytes(), live);
        // The other thread has exited, so a trim reaches all blocks.
        trim();
        assert_eq!(idle_bytes(), 0);
    });
}

#[test]
fn the_cache_of_an_exited_thread_is_reused() {
    exclusive(|| {
        trim();
        let address = std::thread::spawn(|| tensor(3000).as_ptr() as usize).join().unwrap();
        assert_eq!(idle_bytes(), 3072);
        assert_eq!(tensor(3000).as_ptr() as usize, address);
        trim();
    });
}

#[test]
fn a_trim_reaches_other_threads_at_their_next_release() {
    exclusive(|| {
        trim();
        let (go, wait) = channel::<()>();
        let (done, answer) = channel::<usize>();
        let other = std::thread::spawn(move || {
            drop(tensor(3000));
            done.send(idle_bytes()).unwrap();
            wait.recv().unwrap();
            drop(tensor(64));
            done.send(idle_bytes()).unwrap();
        });
        assert_eq!(answer.recv().unwrap(), 3072);
        assert_eq!(trim(), 0);
        assert_eq!(idle_bytes(), 3072);
        go.send(()).unwrap();
        assert_eq!(answer.recv().unwrap(), 64);
        other.join().unwrap();
        trim();
    });
}

/// Allocates and frees buffers when its thread exits.
struct Late(Option<Buffer>);

impl Drop for Late {
    fn drop(&mut self) {
        let more = tensor(200);
        drop((self.0.take(), more));
    }
}

#[test]
fn buffers_may_outlive_the_state_of_their_thread() {
    exclusive(|| {
        let live = live_bytes();
        thread_local!(static LATE: std::cell::RefCell<Late> = const { std::cell::RefCell::new(Late(None)) });
        // Registered before or after the thread's first buffer registers its destructor: both orders of destruction.
        for first in [true, false] {
            std::thread::spawn(move || {
                if first {
                    LATE.with(|_| ());
                }
                let buffer = tensor(100);
                LATE.with(|late| late.borrow_mut().0 = Some(buffer));
            })
            .join()
            .unwrap();
        }
        assert_eq!(live_bytes(), live);
        assert!(taut_memory::report().by_category.iter().all(|row| row.count == 0));
    });
}

#[test]
fn concurrent_threads_leak_nothing() {
    exclusive(|| {
        let live = live_bytes();
        let shared: Mutex<Vec<Buffer>> = Mutex::new(Vec::new());
        let made = allocations();
        let asked = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let threads = [1, 2, 3, 4, 5, 6u64].map(|seed| {
                let (shared, asked) = (&shared, &asked);
                scope.spawn(move || {
                    // A linear congruential generator is random enough here.
                    let mut state = seed;
                    let mut random = move |below: u64| {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        (state >> 33) % below
                    };
                    let mut own: Vec<Buffer> = Vec::new();
                    for step in 0..3000 {
                        let scale = random(18);
                        let bytes = 1 + random(1 << scale) as usize;
                        match random(8) {
                            0..=3 => {
                                let category = Category::ALL[random(8) as usize];
                                let mut buffer = Buffer::new(bytes, category).unwrap();
                                asked.fetch_add(1, Relaxed);
                                buffer.as_mut_slice()[bytes - 1] = seed as u8;
                                own.push(buffer);
                            }
                            4 => own.truncate(own.len() / 2),
                            5 => {
                                if let Some(mut buffer) = own.pop() {
                                    assert_eq!(buffer.as_slice()[buffer.len() - 1], seed as u8);
                                    buffer.recategorize(Category::ALL[random(8) as usize]);
                                    shared.lock().unwrap().push(buffer);
                                }
                            }
                            6 => drop(shared.lock().unwrap().pop()),
                            _ if step % 100 == 0 => drop(trim()),
                            _ => {}
                        }
                    }
                })
            });
            // The end of a scope does not wait for thread-local destructors; joining does.
            for thread in threads {
                thread.join().unwrap();
            }
        });
        assert_eq!(allocations() - made, asked.load(Relaxed) as u64);
        drop(shared);
        assert_eq!(live_bytes(), live);
        let report = taut_memory::report();
        assert!(report.by_category.iter().all(|row| row.count == 0 && row.live == 0), "{report}");
        trim();
        assert_eq!(idle_bytes(), 0);
    });
}
