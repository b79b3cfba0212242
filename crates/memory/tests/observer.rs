//! The observer is called for every counted buffer, and does not affect the ledger.

use std::sync::{Arc, Mutex};
use taut_memory::testing::ledger_check;
use taut_memory::{
    Allocator, Arena, Buffer, BufferObserver, Category, Location, ObservedBuffer, live_bytes, peak_bytes,
    record, reset_peak, set_buffer_observer,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum BufferEvent {
    Allocated(ObservedBuffer),
    Freed(ObservedBuffer),
    Recategorized(ObservedBuffer, Category),
}

static EVENTS: Mutex<Vec<BufferEvent>> = Mutex::new(Vec::new());

struct EventLog;

impl BufferObserver for EventLog {
    fn allocated(&self, block: ObservedBuffer) {
        EVENTS.lock().unwrap().push(BufferEvent::Allocated(block));
    }

    fn freed(&self, block: ObservedBuffer) {
        EVENTS.lock().unwrap().push(BufferEvent::Freed(block));
    }

    fn recategorized(&self, block: ObservedBuffer, to: Category) {
        EVENTS.lock().unwrap().push(BufferEvent::Recategorized(block, to));
    }
}

fn take_events() -> Vec<BufferEvent> {
    std::mem::take(&mut EVENTS.lock().unwrap())
}

/// One test, because observer and ledger are global.
#[test]
fn every_counted_buffer_is_observed() {
    let _ledger = ledger_check();
    let observed = |buffer: &Buffer, location| ObservedBuffer {
        address: buffer.as_ptr().addr(),
        bytes: buffer.len(),
        category: buffer.category(),
        location,
    };
    let early = Buffer::new(100, Category::Variable).unwrap();
    record(true);
    let location = Location::caller();
    let recorded = Buffer::new_at(200, Category::Dataset, location).unwrap();
    record(false);
    assert_eq!(take_events(), []);

    reset_peak();
    let live = live_bytes();
    set_buffer_observer(Some(&EventLog));
    let mut kept = Buffer::new_at(300, Category::Tensor, location).unwrap();
    let nothing = Buffer::new(0, Category::Tensor).unwrap();
    let was = observed(&kept, Some(location));
    assert_eq!(take_events(), [BufferEvent::Allocated(was)]);
    kept.recategorize(Category::Residual);
    assert_eq!(
        take_events(),
        [BufferEvent::Recategorized(ObservedBuffer { location: None, ..was }, Category::Residual)]
    );
    assert_eq!((live_bytes(), peak_bytes()), (live + 300, live + 300));

    // Of earlier buffers, the source location is known if it was recorded.
    let gone = [observed(&early, None), observed(&recorded, Some(location))];
    drop((early, recorded, nothing));
    assert_eq!(take_events(), gone.map(BufferEvent::Freed));

    // Pieces of an arena are not counted, and not observed.
    let arena: Arc<dyn Allocator> = Arc::new(Arena::new(1 << 10, Category::Arena).unwrap());
    assert_eq!(take_events().len(), 1);
    drop(Buffer::new_in(&arena, 64, Category::Tensor).unwrap());
    assert_eq!(take_events(), []);
    drop(arena);
    assert_eq!(take_events().len(), 1);

    // Buffers of other threads are observed.
    let moved = std::thread::spawn(|| Buffer::new(77, Category::Tensor).unwrap()).join().unwrap();
    let address = moved.as_ptr().addr();
    std::thread::spawn(move || drop(moved)).join().unwrap();
    let seen = take_events();
    assert!(
        matches!(seen[..], [BufferEvent::Allocated(a), BufferEvent::Freed(b)] if a.address == address && b.address == address)
    );

    set_buffer_observer(None);
    drop(kept);
    assert_eq!(take_events(), []);
    assert_eq!(live_bytes(), live - 300);
}
