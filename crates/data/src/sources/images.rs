//! Folders of images, with one subfolder per class.

#[cfg(feature = "images")]
mod codec;
#[cfg(feature = "images")]
mod decode;
#[cfg(feature = "images")]
mod resample;

#[cfg(feature = "images")]
pub use codec::{ImageFormat, decode_gif, decode_image, encode_jpeg, encode_png, image_format};
#[cfg(feature = "images")]
pub use resample::{Taps, resample};

use super::format_error;
use crate::dataset::Dataset;
use crate::stages::Indexed;
use crate::stages::number;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taut_core::{Error, Result, Tensor};
use taut_memory::Location;

/// The extensions of image files.
const EXTENSIONS: [&str; 6] = ["bmp", "gif", "jpeg", "jpg", "png", "webp"];

/// The largest height and width that images are resized to: intermediate images must fit into memory, too.
const MAX_SIDE: u32 = 1 << 14;

/// A folder with one subfolder of images per class.
///
/// Classes are the subfolders' names in alphabetical order, and images are ordered by class: shuffle them. Files with other
/// extensions than those of images are ignored.
#[derive(Clone, Debug)]
pub struct ImageFolder {
    classes: Vec<String>,
    files: Arc<Vec<(PathBuf, i64)>>,
    size: Option<(u32, u32)>,
    channels: usize,
    workers: usize,
    skips_broken: bool,
    at: Location,
}

impl ImageFolder {
    /// Lists the images, without reading them.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> Result<ImageFolder> {
        let (path, at) = (path.as_ref(), Location::caller());
        let find = || {
            if !cfg!(feature = "images") {
                return Err(no_decoders());
            }
            let folders = entries(path, Path::is_dir)?;
            if folders.is_empty() {
                return Err(format_error("it has no subfolders").help("each class is a subfolder of images"));
            }
            let (mut classes, mut files) = (Vec::new(), Vec::new());
            for folder in folders {
                let is_image = |entry: &Path| {
                    let ending = entry.extension().map(|ending| ending.to_string_lossy().to_lowercase());
                    entry.is_file() && ending.is_some_and(|ending| EXTENSIONS.contains(&&*ending))
                };
                let label = classes.len() as i64;
                files.extend(entries(&folder, is_image)?.into_iter().map(|file| (file, label)));
                classes.push(folder.file_name().unwrap_or_default().to_string_lossy().into_owned());
            }
            Ok((classes, files))
        };
        let (classes, files) = find().map_err(|error: Error| error.about(path.display()).at(at))?;
        let files = Arc::new(files);
        Ok(ImageFolder { classes, files, size: None, channels: 3, workers: 0, skips_broken: false, at })
    }

    /// The names of the classes: label `i` is class `i`.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The number of images.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Resizes all images to this height and width, regardless of their proportions: each must be in [1, 16384].
    #[must_use]
    pub fn size(mut self, height: u32, width: u32) -> ImageFolder {
        self.size = Some((height, width));
        self
    }

    /// Converts images to 1 (grey), 3 (RGB, the default) or 4 (RGBA) channels.
    #[must_use]
    pub fn channels(mut self, channels: usize) -> ImageFolder {
        self.channels = channels;
        self
    }

    /// Reads images on this many threads.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> ImageFolder {
        self.workers = workers;
        self
    }

    /// Skips files that are not valid images; by default they are errors that name the file.
    #[must_use]
    pub fn skip_broken(mut self) -> ImageFolder {
        self.skips_broken = true;
        self
    }

    /// The images, `uint8 [height, width, channels]`, and their labels, `int64`.
    #[track_caller]
    pub fn dataset(&self) -> Result<Dataset<(Tensor, Tensor)>> {
        let at = Location::caller();
        let invalid = |message: String| Err(Error::value(message).at(at));
        if ![1, 3, 4].contains(&self.channels) {
            return invalid(format!("channels must be 1, 3 or 4, got {}", self.channels));
        }
        let sides = 1..=MAX_SIDE;
        if let Some((height, width)) = self.size.filter(|(h, w)| !sides.contains(h) || !sides.contains(w)) {
            return invalid(format!("height and width must be in [1, {MAX_SIDE}], got {height} and {width}"));
        }
        let count = self.files.len() as u64;
        let get = Arc::new(|index: u64| Ok(index as usize));
        let indices = Dataset::new(Indexed { name: "image_folder", count, bytes_each: Some(0), get });
        let folder = self.clone();
        if !self.skips_broken {
            return mapped(&indices, self.workers, move |index| folder.load(index));
        }
        let found = mapped(&indices, self.workers, move |index| match folder.load(index) {
            Err(error) if error.kind() == taut_core::ErrorKind::Format => Ok(None),
            loaded => loaded.map(Some),
        });
        let valid = found?.filter(|loaded| Ok(loaded.is_some()));
        Ok(valid.map(|loaded| loaded.ok_or_else(|| format_error("not an image"))))
    }

    fn load(&self, index: usize) -> Result<(Tensor, Tensor)> {
        let (path, label) = &self.files[index];
        let load = || Ok((self.pixels(&fs::read(path)?)?, number(*label, self.at)?));
        load().map_err(|error: Error| error.about(path.display()).at(self.at))
    }

    #[cfg(not(feature = "images"))]
    #[expect(clippy::unused_self, reason = "the same signature as with the feature `images`")]
    fn pixels(&self, _: &[u8]) -> Result<Tensor> {
        Err(no_decoders())
    }
}

#[cold]
fn no_decoders() -> Error {
    Error::value("image files cannot be decoded by this build").help("build with the feature `images`")
}

fn mapped<U: crate::DatasetElement>(
    indices: &Dataset<usize>,
    workers: usize,
    load: impl Fn(usize) -> Result<U> + Send + Sync + 'static,
) -> Result<Dataset<U>> {
    if workers == 0 { Ok(indices.map(load)) } else { indices.map_parallel(workers, load) }
}

/// The selected entries of a folder, in alphabetical order.
fn entries(folder: &Path, is_selected: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if is_selected(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
