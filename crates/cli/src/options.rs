//! What subcommands have in common: a model, its data, its optimizer.

use crate::Outcome;
use crate::models::{Kind, Rule};
use clap::Args;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use taut::data::{self, ImageFolder, Shuffle, Split};
use taut::{DType, Result, Tensor, s};

/// The size of a folder's images, if nobody says otherwise.
const SIZE: usize = 32;

/// What is trained, and on what: all that decides what a step needs.
#[derive(Args, Clone, Debug)]
pub struct Setup {
    /// The model
    #[arg(long, value_enum, default_value_t = Kind::Convnet)]
    pub model: Kind,
    /// `digits` (in this program), `fashion-mnist` (Debian's package dataset-fashion-mnist), or a folder with a sub-folder of images for each class
    #[arg(long, default_value = "digits")]
    pub data: Source,
    /// Height and width that images of a folder are brought to: 32 if nothing is said
    #[arg(long, value_parser = positive)]
    pub size: Option<usize>,
    /// How many samples a step looks at
    #[arg(long, default_value_t = 64, value_parser = positive)]
    pub batch: usize,
    /// How variables are updated
    #[arg(long, value_enum, default_value_t = Rule::Adam)]
    pub optimizer: Rule,
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
    /// The data, all of it in memory. The seed decides which images of a folder are for testing.
    pub fn load(&self, seed: u64) -> Outcome<Split> {
        self.check()?;
        Ok(match &self.data {
            Source::Digits => data::digits()?,
            Source::FashionMnist => data::fashion_mnist(None)?,
            Source::Folder(folder) => self.load_folder(folder, seed)?,
        })
    }

    /// Refuses what cannot apply.
    fn check(&self) -> Outcome {
        match (&self.data, self.size) {
            (Source::Digits | Source::FashionMnist, Some(_)) => {
                Err("--size is for folders of images: the images of this data have their own".into())
            }
            _ => Ok(()),
        }
    }

    /// A fifth of the images is for testing, and one at least.
    fn load_folder(&self, folder: &Path, seed: u64) -> Outcome<Split> {
        let images = self.folder(folder)?;
        let count = images.len();
        if count < 2 {
            let found = if count == 0 { "no images" } else { "one image" };
            return Err(format!(
                "{}: {found} in its sub-folders; one is needed to train on, and another to test on",
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
        self.size.unwrap_or(SIZE)
    }

    fn folder(&self, folder: &Path) -> Outcome<ImageFolder> {
        let size = u32::try_from(self.side())?;
        Ok(ImageFolder::open(folder)?.size(size, size).channels(3))
    }

    /// Height, width and channels of an image, and the number of classes, without reading the images.
    pub fn shape(&self) -> Outcome<([usize; 3], usize)> {
        self.check()?;
        Ok(match &self.data {
            Source::Digits => ([8, 8, 1], 10),
            Source::FashionMnist => ([28, 28, 1], 10),
            Source::Folder(folder) => ([self.side(), self.side(), 3], self.folder(folder)?.classes().len()),
        })
    }
}

/// Height, width and channels of the images of a split.
pub fn image_shape(images: &Tensor) -> Outcome<[usize; 3]> {
    Ok(images.shape()[1..].try_into()?)
}

pub fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a whole number, at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}
