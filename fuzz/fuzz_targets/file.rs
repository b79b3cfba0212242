//! Reads files of the format that the environment variable `TAUT_FUZZ_FORMAT` names: no panic, and no more memory than the
//! format's factor of the file's size. The formats are those of the example `mutated_files`.
#![no_main]

#[path = "../../crates/data/examples/mutated_files/mutate.rs"]
#[allow(dead_code)]
mod mutate;
#[path = "../../crates/data/examples/mutated_files/originals.rs"]
#[allow(dead_code)]
mod originals;
#[path = "../../crates/data/examples/mutated_files/readers.rs"]
#[allow(dead_code)]
mod readers;

use libfuzzer_sys::fuzz_target;
use readers::{FORMATS, Format, Reading};
use std::path::PathBuf;
use std::sync::OnceLock;
use taut_testing::{Folder, HeapCounter};

#[global_allocator]
static HEAP: HeapCounter = HeapCounter;

/// The format, and the path that files are written to.
struct Setting {
    format: &'static Format,
    path: PathBuf,
    _folder: Folder,
}

fn setting() -> &'static Setting {
    static SETTING: OnceLock<Setting> = OnceLock::new();
    SETTING.get_or_init(|| {
        // Some readers panic, and the crate turns that into an error: only a panic that escapes ends the process.
        std::panic::set_hook(Box::new(|_| {}));
        let name = std::env::var("TAUT_FUZZ_FORMAT").expect("TAUT_FUZZ_FORMAT names a format");
        let format = FORMATS.iter().find(|format| format.name == name).expect("a known format");
        let folder = Folder::new("fuzz-file");
        Setting { format, path: folder.join("input"), _folder: folder }
    })
}

fuzz_target!(|data: &[u8]| {
    let Setting { format, path, .. } = setting();
    let mut input = data.to_vec();
    // The last byte decides whether checksums are corrected.
    if input.last().is_some_and(|last| last % 2 == 0) {
        (format.repair)(&mut input);
    }
    let reading = Reading::of(format, &input, path);
    if let Some(complaint) = reading.complaint(format, &input) {
        eprintln!("{}: {complaint}", format.name);
        std::process::abort();
    }
});
