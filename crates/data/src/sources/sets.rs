//! Datasets: the digits, which are part of the library, and Fashion-MNIST.

use super::idx::{load_idx, read_idx};
use crate::random::RandomSequence;
use std::path::Path;
use taut_core::ops::binary::div;
use taut_core::ops::index::gather;
use taut_core::ops::shape::{expand_dims, slice};
use taut_core::ops::unary::cast;
use taut_core::{DType, Error, ErrorKind, Result, Tensor, s, with_source_location};
use taut_memory::Location;

const IMAGES: &[u8] = include_bytes!("../../assets/digits/images-idx3-ubyte.gz");
const LABELS: &[u8] = include_bytes!("../../assets/digits/labels-idx1-ubyte.gz");

/// The folder of Debian's package of Fashion-MNIST.
const FASHION_MNIST: &str = "/usr/share/datasets/fashion-mnist";
/// The environment variable that names another folder.
const FASHION_MNIST_VARIABLE: &str = "TAUT_FASHION_MNIST";

/// Images and their labels, split into a training set and a test set.
#[derive(Clone, Debug)]
pub struct Split {
    /// Images `[count, height, width, 1]`, `float32` in [0, 1]; labels `[count]`, `int64`.
    pub train: (Tensor, Tensor),
    /// As `train`, and disjoint from it.
    pub test: (Tensor, Tensor),
    /// The number of classes: labels are in `[0, classes)`.
    pub classes: usize,
}

/// The UCI handwritten digits, which are part of the library: 1797 images of 8x8, 1437 for training and 360 for testing, in
/// a fixed random order.
///
/// Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, CC BY 4.0.
///
/// ```
/// let digits = taut_data::digits()?;
/// assert_eq!(digits.train.0.shape(), &[1437, 8, 8, 1]);
/// assert_eq!(digits.test.1.shape(), &[360]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn digits() -> Result<Split> {
    with_source_location(None, Location::caller(), || {
        let (images, labels) = scaled(read_idx(IMAGES)?, 16.0, read_idx(LABELS)?)?;
        let count = images.shape()[0];
        let mut order: Vec<i64> = (0..count as i64).collect();
        let mut random = RandomSequence::new(0, 0);
        for last in (1..count).rev() {
            order.swap(last, random.below(last as u64, last + 1));
        }
        let order = Tensor::from_vec(order, [count])?;
        let (images, labels) = (gather(images, &order, 0, 0)?, gather(labels, order, 0, 0)?);
        let test = (count / 5 + 1) as isize;
        let split = count as isize - test;
        let part =
            |x: &Tensor, first: bool| if first { slice(x, &s![..split]) } else { slice(x, &s![split..]) };
        Ok(Split {
            train: (part(&images, true)?, part(&labels, true)?),
            test: (part(&images, false)?, part(&labels, false)?),
            classes: 10,
        })
    })
}

/// Fashion-MNIST: 28x28 images of ten kinds of clothes, 60000 for training and 10000 for testing.
///
/// It is read from `folder`, or else from the folder that the environment variable `TAUT_FASHION_MNIST` names, or else from
/// that of Debian's package `dataset-fashion-mnist`. If it does not exist, the error says how to install it.
#[track_caller]
pub fn fashion_mnist(folder: Option<&Path>) -> Result<Split> {
    let at = Location::caller();
    let named = std::env::var_os(FASHION_MNIST_VARIABLE);
    let folder = folder.or(named.as_ref().map(Path::new)).unwrap_or(Path::new(FASHION_MNIST));
    with_source_location(None, at, || {
        let part = |name: &str| {
            let images = load_idx(folder.join(format!("{name}-images-idx3-ubyte.gz")))?;
            let labels = load_idx(folder.join(format!("{name}-labels-idx1-ubyte.gz")))?;
            scaled(images, 255.0, labels)
        };
        Ok(Split { train: part("train")?, test: part("t10k")?, classes: 10 })
    })
    .map_err(|error: Error| match error.kind() {
        ErrorKind::Io => error.help(format!(
            "sudo apt install dataset-fashion-mnist; or put the four files into a folder and name it in {FASHION_MNIST_VARIABLE}"
        )),
        _ => error,
    })
}

/// Images scaled to [0, 1] with a channel axis, and labels as `int64`.
fn scaled(images: Tensor, most: f32, labels: Tensor) -> Result<(Tensor, Tensor)> {
    let fits = images.rank() == 3 && labels.rank() == 1 && images.shape()[0] == labels.shape()[0];
    if !fits {
        let (images, labels) = (images.spec(), labels.spec());
        let message = format!("expected images [n, height, width] and labels [n], got {images} and {labels}");
        return Err(Error::new(ErrorKind::Format, message));
    }
    let images = div(cast(expand_dims(images, -1)?, DType::F32)?, most)?;
    Ok((images, cast(labels, DType::I64)?))
}
