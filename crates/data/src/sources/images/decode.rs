//! Image files decoded by the `image` crate.

use super::{ImageFolder, format_error};
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageError, ImageReader};
use std::io::Cursor;
use taut_core::{DType, Error, Result, Spec, Tensor};
use taut_memory::{Buffer, Category};

impl ImageFolder {
    pub(super) fn pixels(&self, bytes: &[u8]) -> Result<Tensor> {
        let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
        reader.limits(super::codec::limits(bytes.len()));
        let decoder = reader.into_decoder().map_err(unreadable)?;
        // The decoder's memory is not the engine's. As much is reserved, so that the ledger counts it and the limit holds.
        let _reserved = Buffer::new_at(self.decoder_bytes(&decoder)?, Category::Dataset, self.at)?;
        let image = DynamicImage::from_decoder(decoder).map_err(unreadable)?;
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

    /// The bytes that decoding takes: the image as stored; resized, with one intermediate image of floats; and its pixels.
    fn decoder_bytes(&self, decoder: &impl ImageDecoder) -> Result<usize> {
        let (columns, rows) = decoder.dimensions();
        let (height, width) = self.size.unwrap_or((rows, columns));
        let per_pixel = u128::from(decoder.color_type().bytes_per_pixel());
        let area = |a: u32, b: u32| u128::from(a) * u128::from(b);
        let resized = match self.size {
            Some(_) => area(height, columns) * 16 + area(height, width) * per_pixel,
            None => 0,
        };
        let all = area(rows, columns) * per_pixel + resized + area(height, width) * self.channels as u128;
        usize::try_from(all)
            .map_err(|_| format_error(format!("{rows}x{columns} pixels exceed the address space")))
    }
}

#[cold]
fn unreadable(error: ImageError) -> Error {
    format_error(error.to_string())
}
