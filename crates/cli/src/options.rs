//! Options shared by subcommands: model, data, optimizer.

use crate::Outcome;
use crate::models::{ModelName, OptimizerName};
use clap::Args;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use taut::data::{self, ImageFolder, Shuffle, Split};
use taut::{DType, Result, Tensor, s};

/// The default height and width of a folder's images.
const DEFAULT_SIZE: usize = 32;

/// What is trained, and on which data: all that determines the memory of a step.
#[derive(Args, Clone, Debug)]
pub struct TaskOptions {
    /// The model
    #[arg(long, value_enum, default_value_t = ModelName::Convnet)]
    pub model: ModelName,
    /// `digits` (built in), `fashion-mnist` (Debian's package dataset-fashion-mnist), or a folder with one subfolder of images per class
    #[arg(long, default_value = "digits")]
    pub data: DataSource,
    /// Height and width to which the images of a folder are resized [default: 32]
    #[arg(long, value_parser = positive)]
    pub size: Option<usize>,
    /// The batch size
    #[arg(long, default_value_t = 64, value_parser = positive)]
    pub batch: usize,
    /// The optimizer
    #[arg(long, value_enum, default_value_t = OptimizerName::Adam)]
    pub optimizer: OptimizerName,
}

/// The source of the images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataSource {
    Digits,
    FashionMnist,
    Folder(PathBuf),
}

impl FromStr for DataSource {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<DataSource, Self::Err> {
        Ok(match text {
            "digits" => DataSource::Digits,
            "fashion-mnist" => DataSource::FashionMnist,
            folder => DataSource::Folder(folder.into()),
        })
    }
}

impl TaskOptions {
    /// Loads all data into memory. The seed determines which images of a folder are the test set.
    pub fn load(&self, seed: u64) -> Outcome<Split> {
        self.check()?;
        Ok(match &self.data {
            DataSource::Digits => data::digits()?,
            DataSource::FashionMnist => data::fashion_mnist(None)?,
            DataSource::Folder(folder) => self.load_folder(folder, seed)?,
        })
    }

    /// An error for options that do not apply.
    fn check(&self) -> Outcome {
        match (&self.data, self.size) {
            (DataSource::Digits | DataSource::FashionMnist, Some(_)) => {
                Err("--size applies to folders of images only: the images of this dataset have a fixed size"
                    .into())
            }
            _ => Ok(()),
        }
    }

    /// A fifth of the images, and at least one, is the test set.
    fn load_folder(&self, folder: &Path, seed: u64) -> Outcome<Split> {
        let images = self.folder(folder)?;
        let count = images.len();
        if count < 2 {
            let found = if count == 0 { "no images" } else { "one image" };
            return Err(format!(
                "{}: expected at least two images in its subfolders, one for training and one for testing, got {found}",
                folder.display()
            )
            .into());
        }
        let all = images.dataset()?.shuffle(Shuffle::new(count).seed(seed))?.batch(count)?;
        let (pixels, labels) = all.iter()?.next().ok_or("the folder has no images")??;
        let pixels = (taut::cast(pixels, DType::F32)? / 255.0)?;
        let test = (count / 5).max(1) as isize;
        let part = |range: Range<isize>| -> Result<(Tensor, Tensor)> {
            Ok((taut::slice(&pixels, &s![range.clone()])?, taut::slice(&labels, &s![range])?))
        };
        Ok(Split {
            train: part(test..count as isize)?,
            test: part(0..test)?,
            classes: images.classes().len(),
        })
    }

    fn side(&self) -> usize {
        self.size.unwrap_or(DEFAULT_SIZE)
    }

    fn folder(&self, folder: &Path) -> Outcome<ImageFolder> {
        let size = u32::try_from(self.side())?;
        Ok(ImageFolder::open(folder)?.size(size, size).channels(3))
    }

    /// Height, width and channels of an image, and the number of classes, without reading the images.
    pub fn shape(&self) -> Outcome<([usize; 3], usize)> {
        self.check()?;
        Ok(match &self.data {
            DataSource::Digits => ([8, 8, 1], 10),
            DataSource::FashionMnist => ([28, 28, 1], 10),
            DataSource::Folder(folder) => {
                ([self.side(), self.side(), 3], self.folder(folder)?.classes().len())
            }
        })
    }
}

/// Height, width and channels of the images of a split.
pub fn image_shape(images: &Tensor) -> Outcome<[usize; 3]> {
    Ok(images.shape()[1..].try_into()?)
}

pub fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected an integer >= 1".to_owned()),
        Ok(number) => Ok(number),
    }
}
