//! The peak of decoding, in a process of its own: other tests allocate, too.
#![cfg(feature = "images")]

mod common;

use common::Folder;
use taut_data::ImageFolder;
use taut_memory::testing::ledger_check;

/// The memory of the decoder, which is not the engine's, counts: the image as stored, its pixels, and the tensor.
#[test]
fn decoded_images_are_counted() {
    let _ledger = ledger_check();
    let folder = Folder::new("counted-images");
    std::fs::create_dir_all(folder.join("a")).unwrap();
    let image = image::RgbImage::from_pixel(300, 200, image::Rgb([1, 1, 1]));
    image.save(folder.join("a/1.png")).unwrap();
    let images = ImageFolder::open(folder.path()).unwrap();
    let peak = |images: ImageFolder| {
        let dataset = images.dataset().unwrap();
        let mut rows = dataset.iter().unwrap();
        let before = taut_memory::live_bytes();
        taut_memory::reset_peak();
        rows.next().unwrap().unwrap();
        taut_memory::peak_bytes() - before
    };
    let area = 300 * 200;
    assert_eq!(peak(images.clone()), area * 3 * 3);
    assert_eq!(peak(images.size(100, 50)), area * 3 + 100 * 300 * 16 + 100 * 50 * 3 * 3);
}
