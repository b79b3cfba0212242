//! Sets of data: one that is always there, and one that a package brings.

use super::idx::{load_idx, read_idx};
use crate::draws::Draws;
use std::path::Path;
use taut_core::ops::binary::div;
use taut_core::ops::index::gather;
use taut_core::ops::shape::{expand_dims, slice};
use taut_core::ops::unary::cast;
use taut_core::{DType, Error, ErrorKind, Result, Tensor, s, with_source_location};
use taut_memory::Location;

const IMAGES: &[u8] = include_bytes!("../../assets/digits/images-idx3-ubyte.gz");
const LABELS: &[u8] = include_bytes!("../../assets/digits/labels-idx1-ubyte.gz");

/// Where Debian's package puts Fashion-MNIST.
const FASHION_MNIST: &str = "/usr/share/datasets/fashion-mnist";
/// Names another folder.
const FASHION_MNIST_VARIABLE: &str = "TAUT_FASHION_MNIST";

/// Images and their labels, to train with and to test with.
#[derive(Clone, Debug)]
pub struct Split {
    /// Images `[count, height, width, 1]`, `float32` from 0 to 1; labels `[count]`, `int64`.
    pub train: (Tensor, Tensor),
    /// The same, none of which is in `train`.
    pub test: (Tensor, Tensor),
    /// Labels are less than this.
    pub classes: usize,
}

/// The UCI handwritten digits, which are part of the program: 1797 images of 8x8, 1437 to train with and 360 to test with. They
/// were put in a fixed random order before they were split.
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
        let mut draws = Draws::new(0, 0);
        for last in (1..count).rev() {
            order.swap(last, draws.below(last as u64, last + 1));
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

/// Fashion-MNIST: 28x28 images of ten kinds of clothes, 60000 to train with and 10000 to test with.
///
/// It is read from `folder`, or else from where the environment variable `TAUT_FASHION_MNIST` says, or else from where Debian's package
/// `dataset-fashion-mnist` puts it. If it is not there, the error says how to get it.
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

/// Images from 0 to 1 with an axis for their one channel, and labels as `int64`.
fn scaled(images: Tensor, most: f32, labels: Tensor) -> Result<(Tensor, Tensor)> {
    let fits = images.rank() == 3 && labels.rank() == 1 && images.shape()[0] == labels.shape()[0];
    if !fits {
        let message = format!("images {} and labels {} are not a set", images.spec(), labels.spec());
        return Err(Error::new(ErrorKind::Format, message));
    }
    let images = div(cast(expand_dims(images, -1)?, DType::F32)?, most)?;
    Ok((images, cast(labels, DType::I64)?))
}
