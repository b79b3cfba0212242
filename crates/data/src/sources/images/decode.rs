//! Image files decoded by the `image` crate.

use super::{ImageFolder, format_error};
use image::imageops::FilterType;
use taut_core::{DType, Result, Spec, Tensor};
use taut_memory::Category;

impl ImageFolder {
    pub(super) fn pixels(&self, bytes: &[u8]) -> Result<Tensor> {
        let image = image::load_from_memory(bytes).map_err(|error| format_error(error.to_string()))?;
        let image = match self.size {
            Some((height, width)) if (height, width) != (image.height(), image.width()) => {
                image.resize_exact(width, height, FilterType::Triangle)
            }
            _ => image,
        };
        let (height, width) = (image.height() as usize, image.width() as usize);
        let pixels = match self.channels {
            1 => image.into_luma8().into_raw(),
            3 => image.into_rgb8().into_raw(),
            _ => image.into_rgba8().into_raw(),
        };
        let spec = Spec::new(DType::U8, [height, width, self.channels]);
        Tensor::build(spec, Category::Dataset, self.at, |out| out.bytes().copy_from_slice(&pixels))
    }
}
