//! Images per second of a typical training pipeline, and the high-water marks of its buffers.
//!
//! `cargo bench -p taut-data --bench pipeline`, and beside it `benches/peers/pipeline_tensorflow.py`, which does the same with
//! `tf.data`. Images are made up, as many and as large as Fashion-MNIST's.

use std::time::Instant;
use taut_core::ops::binary::mul;
use taut_core::ops::shape::reverse;
use taut_core::ops::unary::cast;
use taut_core::{DType, Result, Tensor};
use taut_data::Dataset;
use taut_memory::Bytes;

const IMAGES: usize = 60_000;
const SIDE: usize = 28;
const BATCH: usize = 128;
const SHUFFLED: usize = 10_000;
const ROUNDS: usize = 5;

/// From bytes to 0..1, mirrored if the label is odd, so that both ways are taken without a random number.
fn prepared((image, label): (Tensor, Tensor)) -> Result<(Tensor, Tensor)> {
    let image = mul(cast(image, DType::F32)?, 1.0 / 255.0)?;
    let mirrored = label.item::<i64>()? % 2 == 1;
    Ok((if mirrored { reverse(image, &[1])? } else { image }, label))
}

fn row(name: &str, dataset: &Dataset<(Tensor, Tensor)>) -> Result<()> {
    let mut rates = Vec::new();
    let mut report = None;
    for _ in 0..ROUNDS {
        let (start, mut images) = (Instant::now(), 0);
        let mut iter = dataset.iter()?;
        for batch in iter.by_ref() {
            images += batch?.0.shape()[0];
        }
        assert_eq!(images, IMAGES);
        rates.push(images as f64 / start.elapsed().as_secs_f64());
        report = Some(iter.report());
    }
    rates.sort_by(f64::total_cmp);
    println!("{name:<44} {:>10.0} images/s", rates[ROUNDS / 2]);
    if std::env::args().any(|arg| arg == "--report")
        && let Some(report) = report
    {
        println!("{report}\n");
    }
    Ok(())
}

fn main() -> Result<()> {
    let pixels: Vec<u8> = (0..IMAGES * SIDE * SIDE).map(|i| (i * 31 % 256) as u8).collect();
    let images = Tensor::from_vec(pixels, [IMAGES, SIDE, SIDE, 1])?;
    let labels = Tensor::from_vec((0..IMAGES).map(|i| (i % 10) as i64).collect::<Vec<_>>(), [IMAGES])?;
    let source = Dataset::from_tensor_slices((images, labels))?;
    let shuffled = source.shuffle(SHUFFLED)?;

    row("batch", &source.batch(BATCH)?)?;
    row("shuffle, batch", &shuffled.batch(BATCH)?)?;
    row("shuffle, map, batch", &shuffled.map(prepared).batch(BATCH)?)?;
    row("shuffle, map, batch, prefetch", &shuffled.map(prepared).batch(BATCH)?.prefetch(2)?)?;
    let parallel = shuffled.map_parallel(2, prepared)?.batch(BATCH)?.prefetch(2)?;
    row("shuffle, map on 2 threads, batch, prefetch", &parallel)?;
    let batches = shuffled
        .batch(BATCH)?
        .map(|(images, labels)| Ok((mul(cast(images, DType::F32)?, 1.0 / 255.0)?, labels)));
    row("shuffle, batch, map of batches, prefetch", &batches.prefetch(2)?)?;

    let buffer_size = 4 << 20;
    let mut iter = source
        .shuffle(Bytes(buffer_size))?
        .map(prepared)
        .batch(BATCH)?
        .prefetch(Bytes(buffer_size))?
        .iter()?;
    assert_eq!(iter.by_ref().count(), IMAGES.div_ceil(BATCH));
    let report = iter.report();
    for stage in report.stages.iter().filter(|stage| stage.buffer.is_some()) {
        println!("{} of {} held {} at most", stage.name, Bytes(buffer_size), Bytes(stage.high_water()));
    }
    Ok(())
}
