//! Who watches is told of every counted buffer, and the ledger does not notice.

use std::sync::{Arc, Mutex};
use taut_memory::testing::ledger_check;
use taut_memory::{
    Allocator, Arena, Block, Buffer, Category, Location, Watcher, live_bytes, peak_bytes, record, reset_peak,
    watch,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Entered(Block),
    Left(Block),
    Moved(Block, Category),
}

static TOLD: Mutex<Vec<Told>> = Mutex::new(Vec::new());

struct Listener;

impl Watcher for Listener {
    fn entered(&self, block: Block) {
        TOLD.lock().unwrap().push(Told::Entered(block));
    }

    fn left(&self, block: Block) {
        TOLD.lock().unwrap().push(Told::Left(block));
    }

    fn moved(&self, block: Block, to: Category) {
        TOLD.lock().unwrap().push(Told::Moved(block, to));
    }
}

fn told() -> Vec<Told> {
    std::mem::take(&mut TOLD.lock().unwrap())
}

/// One test: there is one watcher, and one ledger.
#[test]
fn every_counted_buffer_is_told_of_while_somebody_watches() {
    let _ledger = ledger_check();
    let block = |buffer: &Buffer, line| Block {
        address: buffer.as_ptr().addr(),
        bytes: buffer.len(),
        category: buffer.category(),
        line,
    };
    let early = Buffer::new(100, Category::Variable).unwrap();
    record(true);
    let line = Location::caller();
    let lined = Buffer::new_at(200, Category::Dataset, line).unwrap();
    record(false);
    assert_eq!(told(), []);

    reset_peak();
    let live = live_bytes();
    watch(Some(&Listener));
    let mut kept = Buffer::new_at(300, Category::Tensor, line).unwrap();
    let nothing = Buffer::new(0, Category::Tensor).unwrap();
    let was = block(&kept, Some(line));
    assert_eq!(told(), [Told::Entered(was)]);
    kept.recategorize(Category::Residual);
    assert_eq!(told(), [Told::Moved(Block { line: None, ..was }, Category::Residual)]);
    assert_eq!((live_bytes(), peak_bytes()), (live + 300, live + 300));

    // Of what came before, the line is known if it was recorded then.
    let gone = [block(&early, None), block(&lined, Some(line))];
    drop((early, lined, nothing));
    assert_eq!(told(), gone.map(Told::Left));

    // Pieces of an arena are not counted, and so not told of.
    let arena: Arc<dyn Allocator> = Arc::new(Arena::new(1 << 10, Category::Arena).unwrap());
    assert_eq!(told().len(), 1);
    drop(Buffer::new_in(&arena, 64, Category::Tensor).unwrap());
    assert_eq!(told(), []);
    drop(arena);
    assert_eq!(told().len(), 1);

    // Another thread's buffers are everybody's business.
    let moved = std::thread::spawn(|| Buffer::new(77, Category::Tensor).unwrap()).join().unwrap();
    let address = moved.as_ptr().addr();
    std::thread::spawn(move || drop(moved)).join().unwrap();
    let seen = told();
    assert!(
        matches!(seen[..], [Told::Entered(a), Told::Left(b)] if a.address == address && b.address == address)
    );

    watch(None);
    drop(kept);
    assert_eq!(told(), []);
    assert_eq!(live_bytes(), live - 300);
}
