//! What subcommands have in common: a model, its data, its optimizer.

use crate::Outcome;
use crate::models::{Kind, Rule};
use clap::Args;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use taut::data::{self, ImageFolder, Shuffle, Split};
use taut::{DType, Result, Tensor, s};

/// What is trained, and on what.
#[derive(Args, Clone, Debug)]
pub struct Setup {
    /// The model
    #[arg(long, value_enum, default_value_t = Kind::Convnet)]
    pub model: Kind,
    /// `digits` (in this program), `fashion-mnist` (Debian's package dataset-fashion-mnist), or a folder with a sub-folder of images for each class
    #[arg(long, default_value = "digits")]
    pub data: Source,
    /// Height and width that images of a folder are brought to
    #[arg(long, default_value_t = 32, value_parser = positive)]
    pub size: usize,
    /// How many samples a step looks at
    #[arg(long, default_value_t = 64, value_parser = positive)]
    pub batch: usize,
    /// How variables are updated
    #[arg(long, value_enum, default_value_t = Rule::Adam)]
    pub optimizer: Rule,
    /// The learning rate, if not the optimizer's own
    #[arg(long)]
    pub rate: Option<f64>,
    /// The seed of the first weights, of dropout and of the order of the data
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Where images come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Digits,
    FashionMnist,
    Folder(PathBuf),
}

impl FromStr for Source {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Source, Self::Err> {
        Ok(match text {
            "digits" => Source::Digits,
            "fashion-mnist" => Source::FashionMnist,
            folder => Source::Folder(folder.into()),
        })
    }
}

impl Setup {
    /// The data, all of it in memory.
    pub fn load(&self) -> Outcome<Split> {
        Ok(match &self.data {
            Source::Digits => data::digits()?,
            Source::FashionMnist => data::fashion_mnist(None)?,
            Source::Folder(folder) => self.load_folder(folder)?,
        })
    }

    /// A fifth of the images is for testing.
    fn load_folder(&self, folder: &Path) -> Outcome<Split> {
        let images = self.folder(folder)?;
        let count = images.len();
        let all = images.dataset()?.shuffle(Shuffle::new(count).seed(self.seed))?.batch(count.max(1))?;
        let (pixels, labels) = all.iter()?.next().ok_or("the folder has no images")??;
        let pixels = (taut::cast(pixels, DType::F32)? / 255.0)?;
        let test = (count / 5) as isize;
        let part = |range: Range<isize>| -> Result<(Tensor, Tensor)> {
            Ok((taut::slice(&pixels, &s![range.clone()])?, taut::slice(&labels, &s![range])?))
        };
        Ok(Split {
            train: part(test..count as isize)?,
            test: part(0..test)?,
            classes: images.classes().len(),
        })
    }

    fn folder(&self, folder: &Path) -> Outcome<ImageFolder> {
        let size = u32::try_from(self.size)?;
        Ok(ImageFolder::open(folder)?.size(size, size).channels(3))
    }

    /// Height, width and channels of an image, and the number of classes, without reading the images.
    pub fn shape(&self) -> Outcome<([usize; 3], usize)> {
        Ok(match &self.data {
            Source::Digits => ([8, 8, 1], 10),
            Source::FashionMnist => ([28, 28, 1], 10),
            Source::Folder(folder) => ([self.size, self.size, 3], self.folder(folder)?.classes().len()),
        })
    }
}

/// Height, width and channels of the images of a split.
pub fn image_shape(images: &Tensor) -> Outcome<[usize; 3]> {
    Ok(images.shape()[1..].try_into()?)
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a whole number, at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}
