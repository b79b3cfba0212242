//! Pictures from folders, with augmentation: files are decoded in parallel, and only batches are in memory.

use taut::data::{ImageFolder, MappedElement, Shuffle, encode_jpeg};
use taut::layers::{Activation, Conv2D, Dense, GlobalMaxPooling2D, Sequential};
use taut::losses::SparseCategoricalCrossentropy;
use taut::metrics::SparseCategoricalAccuracy;
use taut::optimizers::{Adam, Optimizer};
use taut::{DType, Layer, Result, Tensor, Trainer, memory};
use taut_examples::{TemporaryFolder, is_quick};

/// Stripes, 4 pixels wide, along rows or columns, with a tint of its own.
fn picture(height: usize, width: usize, is_vertical: bool, tint: usize) -> Result<Tensor> {
    let pixel = |at: usize| {
        let (row, column, channel) = (at / 3 / width, at / 3 % width, at % 3);
        let stripe = if is_vertical { column } else { row } / 4 % 2;
        (40 + 160 * stripe + (tint * (channel + 1)) % 30) as u8
    };
    Tensor::from_vec((0..height * width * 3).map(pixel).collect(), [height, width, 3])
}

fn main() -> Result<()> {
    let (count, size, batch) = if is_quick() { (24, 32, 8) } else { (400, 64, 32) };
    taut::random::set_seed(1);
    // A folder with one subfolder per class.
    let folder = TemporaryFolder::new()?;
    for (name, is_vertical) in [("horizontal", false), ("vertical", true)] {
        std::fs::create_dir_all(folder.join(name))?;
        for number in 0..count {
            let image = encode_jpeg(&picture(size, size + 8, is_vertical, number)?, 90)?;
            std::fs::write(folder.join(name).join(format!("{number}.jpg")), image.item()?)?;
        }
    }

    let images = ImageFolder::open(folder.path())?.size(size as u32, size as u32).workers(2);
    println!("{} pictures of the classes {:?}", images.len(), images.classes());
    // The files are shuffled as pictures: the buffer holds a few of them, not all.
    let batches = images
        .dataset()?
        .shuffle(Shuffle::new(2 * count).seed(1))?
        .map(|(image, label)| {
            // Half of the pictures are mirrored: which ones depends on the epoch and the index alone.
            let flips = MappedElement::current().is_some_and(|one| (one.repetition + one.index) % 2 == 0);
            let image = if flips { taut::reverse(image, &[1])? } else { image };
            Ok(((taut::cast(image, DType::F32)? / 255.0)?, label))
        })
        .batch(batch)?
        .prefetch(1)?;

    let model = Sequential::new()
        .with(Conv2D::new(3, 8, 5).strides(2).activation(Activation::Relu).build()?)
        .with(GlobalMaxPooling2D::new())
        .with(Dense::new(8, 2).build()?);
    let optimizer =
        Optimizer::new(Adam { rate: 0.003.into(), ..Adam::default() }, &model.trainable_variables())?;
    let mut trainer = Trainer::new(model, SparseCategoricalCrossentropy::from_logits(), optimizer)
        .metric_as("accuracy", SparseCategoricalAccuracy::new()?);
    let before = memory::live_bytes();
    memory::reset_peak();
    let losses = trainer.fit(&batches, 8)?.scores("loss");
    let measured = memory::peak_bytes() - before;
    println!("losses {losses:.3?}");
    // The shuffle buffer of bytes, a few batches of floats, and the step.
    let picture = size * size * 3;
    let bound = 2 * count * picture + 12 * batch * picture * 4 + (1 << 20);
    println!("{measured} bytes at most, bound {bound}");
    assert!(measured <= bound);
    assert!(losses[7] < losses[0]);
    Ok(())
}
