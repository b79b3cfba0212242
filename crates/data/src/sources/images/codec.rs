//! Encoded images: bytes to pixels and back.

use super::format_error;
use image::codecs::gif::GifDecoder;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{
    AnimationDecoder, ColorType, DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageReader,
    Limits,
};
use std::io::Cursor;
use taut_core::{DType, Error, Result, Spec, Tensor, source_location};
use taut_memory::{Buffer, Category, Location, list_with_capacity};
use taut_strings::StringTensor;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// A format of image files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// BMP.
    Bmp,
    /// GIF.
    Gif,
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// WebP.
    Webp,
}

/// The format of an image, by its first bytes.
pub fn image_format(bytes: &[u8]) -> Option<ImageFormat> {
    match bytes {
        [0xff, 0xd8, 0xff, ..] => Some(ImageFormat::Jpeg),
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some(ImageFormat::Png),
        [b'G', b'I', b'F', b'8', ..] => Some(ImageFormat::Gif),
        [b'B', b'M', ..] => Some(ImageFormat::Bmp),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(ImageFormat::Webp),
        _ => None,
    }
}

#[cold]
fn unreadable(error: image::ImageError) -> Error {
    format_error(error.to_string())
}

/// The most bytes of pixels per byte of an encoded image: beyond it, the header is taken to be damaged.
const MOST_PIXEL_BYTES: u64 = 1 << 12;

/// The pixels of a BMP, JPEG, PNG or WebP image, or of the first frame of a GIF: `[height, width, channels]`, `uint8`, or
/// `uint16` if `wide`. With 0 channels, as many as are stored.
///
/// Memory: the pixels, three times at most, and no more than 4096 times the bytes of the image.
#[track_caller]
pub fn decode_image(bytes: &[u8], channels: usize, wide: bool) -> Result<Tensor> {
    let at = source_location(Location::caller());
    if ![0, 1, 2, 3, 4].contains(&channels) {
        return Err(Error::value(format!("channels must be 0, 1, 2, 3 or 4, got {channels}")).at(at));
    }
    decode(bytes, channels, wide, at).map_err(|error| error.at(at))
}

fn decode(bytes: &[u8], channels: usize, wide: bool, at: Location) -> Result<Tensor> {
    let Some(format) = image_format(bytes) else {
        return Err(format_error("the bytes must be a BMP, GIF, JPEG, PNG or WebP image"));
    };
    if format == ImageFormat::Jpeg {
        if !has_end_marker(bytes) {
            return Err(format_error("the picture ends early: it has no end marker"));
        }
        if !wide && let Some(image) = decode_jpeg(bytes, channels, at)? {
            return Ok(image);
        }
    }
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
    reader.limits(limits(bytes.len()));
    let decoder = reader.into_decoder().map_err(unreadable)?;
    let (width, height) = decoder.dimensions();
    let _reserved = reserve([height, width], decoder.total_bytes(), bytes.len(), at)?;
    let stored = match decoder.color_type() {
        ColorType::L8 => Some(1),
        ColorType::La8 => Some(2),
        ColorType::Rgb8 => Some(3),
        ColorType::Rgba8 => Some(4),
        _ => None,
    };
    if let Some(stored) = stored.filter(|&stored| !wide && [0, stored].contains(&channels)) {
        // Pixels as they are stored are decoded into the memory of the tensor.
        let spec = Spec::new(DType::U8, [height as usize, width as usize, stored]);
        let mut pixels = Buffer::new_at(spec.bytes(), Category::Dataset, at)?;
        decoder.read_image(pixels.as_mut_slice()).map_err(unreadable)?;
        return Tensor::from_buffer(spec, pixels);
    }
    let image = DynamicImage::from_decoder(decoder).map_err(unreadable)?;
    let (height, width) = (image.height() as usize, image.width() as usize);
    let channels = if channels == 0 { image.color().channel_count() as usize } else { channels };
    if wide {
        let pixels = wide_pixels(image, channels);
        let spec = Spec::new(DType::U16, [height, width, channels]);
        return Tensor::build(spec, Category::Dataset, at, |out| out.slice::<u16>().copy_from_slice(&pixels));
    }
    let has_color = matches!(image.color(), ColorType::Rgb16 | ColorType::Rgba16);
    let is_deep = has_color || matches!(image.color(), ColorType::L16 | ColorType::La16);
    let pixels = match channels {
        // The upper bytes, as libpng has them.
        _ if is_deep && !(has_color && channels <= 2) => {
            wide_pixels(image, channels).into_iter().map(|value| (value >> 8) as u8).collect()
        }
        1 => grey(image, format == ImageFormat::Png),
        2 => image.into_luma_alpha8().into_raw(),
        3 => image.into_rgb8().into_raw(),
        _ => image.into_rgba8().into_raw(),
    };
    let spec = Spec::new(DType::U8, [height, width, channels]);
    Tensor::build(spec, Category::Dataset, at, |out| out.bytes().copy_from_slice(&pixels))
}

/// Decodes a JPEG image into the memory of its tensor, without a copy of either; `None` if its colours are not stored as that many
/// channels, or as luminance and chroma: the caller converts them.
fn decode_jpeg(bytes: &[u8], channels: usize, at: Location) -> Result<Option<Tensor>> {
    let damaged = |error: zune_jpeg::errors::DecodeErrors| format_error(format!("{error:?}"));
    // As the crate `image` does.
    let options =
        DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(damaged)?;
    let (colors, depth) = match (decoder.input_colorspace(), channels) {
        (Some(ColorSpace::Luma), 0 | 1) => (ColorSpace::Luma, 1),
        (Some(ColorSpace::Luma | ColorSpace::YCbCr | ColorSpace::RGB), 3) => (ColorSpace::RGB, 3),
        (Some(ColorSpace::YCbCr | ColorSpace::RGB), 0) => (ColorSpace::RGB, 3),
        // The luminance is what is stored.
        (Some(ColorSpace::YCbCr), 1) => (ColorSpace::Luma, 1),
        _ => return Ok(None),
    };
    let Some((width, height)) = decoder.dimensions() else { return Ok(None) };
    decoder.set_options(options.jpeg_set_out_colorspace(colors));
    let spec = Spec::new(DType::U8, [height, width, depth]);
    let _reserved = reserve([height as u32, width as u32], spec.bytes() as u64, bytes.len(), at)?;
    let mut pixels = Buffer::new_at(spec.bytes(), Category::Dataset, at)?;
    decoder.decode_into(pixels.as_mut_slice()).map_err(damaged)?;
    Tensor::from_buffer(spec, pixels).map(Some)
}

/// Whether the coded pixels of a JPEG image are followed by the marker of its end, which cannot occur within them. The decoder would fill
/// what is missing of a picture that ends early.
fn has_end_marker(bytes: &[u8]) -> bool {
    const PIXELS: [u8; 2] = [0xff, 0xda];
    const END: [u8; 2] = [0xff, 0xd9];
    let coded = || bytes.windows(2).rposition(|marker| marker == PIXELS).unwrap_or(0);
    // Few pictures have anything behind the marker.
    bytes.ends_with(&END) || bytes[coded()..].windows(2).any(|marker| marker == END)
}

/// The pixels with 16 bits each.
fn wide_pixels(image: DynamicImage, channels: usize) -> Vec<u16> {
    match channels {
        1 => image.into_luma16().into_raw(),
        2 => image.into_luma_alpha16().into_raw(),
        3 => image.into_rgb16().into_raw(),
        _ => image.into_rgba16().into_raw(),
    }
}

/// Grey pixels, with the weights of JPEG's luminance; rounded down for PNG, as libpng does.
fn grey(image: DynamicImage, round_down: bool) -> Vec<u8> {
    if matches!(image.color(), ColorType::L8 | ColorType::L16 | ColorType::La8 | ColorType::La16) {
        return image.into_luma8().into_raw();
    }
    let pixels = image.into_rgb8();
    let half = if round_down { 0 } else { 1 << 15 };
    let weighted =
        |[r, g, b]: [u8; 3]| (u32::from(r) * 19595 + u32::from(g) * 38470 + u32::from(b) * 7471 + half) >> 16;
    pixels.pixels().map(|pixel| weighted(pixel.0) as u8).collect()
}

/// The most bytes of pixels of an image of this many bytes.
fn most_pixel_bytes(encoded: usize) -> u64 {
    (encoded as u64).saturating_mul(MOST_PIXEL_BYTES).max(1 << 20)
}

/// What a decoder may allocate beside its result: frames of a GIF, for example, can be larger than the image.
pub(super) fn limits(encoded: usize) -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = Some(2 * most_pixel_bytes(encoded));
    limits
}

/// Reserves the bytes of an image for as long as it is decoded, so that the ledger counts them and the limit holds.
fn reserve([height, width]: [u32; 2], bytes: u64, encoded: usize, at: Location) -> Result<Buffer> {
    let most = most_pixel_bytes(encoded);
    if bytes > most {
        return Err(format_error(format!(
            "an image of {encoded} bytes must have at most {most} bytes of pixels, got {height}x{width}"
        )));
    }
    Ok(Buffer::new_at(2 * bytes as usize, Category::Dataset, at)?)
}

/// The frames of a GIF: `[frames, height, width, 3]`, `uint8`.
#[track_caller]
pub fn decode_gif(bytes: &[u8]) -> Result<Tensor> {
    let at = source_location(Location::caller());
    let decode = || -> Result<Tensor> {
        let mut decoder = GifDecoder::new(Cursor::new(bytes)).map_err(unreadable)?;
        decoder.set_limits(limits(bytes.len())).map_err(unreadable)?;
        let (width, height) = decoder.dimensions();
        let _reserved = reserve([height, width], decoder.total_bytes(), bytes.len(), at)?;
        let most = most_pixel_bytes(bytes.len()) as usize;
        let mut pixels = Vec::new();
        let mut frames = 0;
        for frame in decoder.into_frames() {
            let frame = frame.map_err(unreadable)?;
            frames += 1;
            pixels.extend(frame.buffer().pixels().flat_map(|pixel| [pixel.0[0], pixel.0[1], pixel.0[2]]));
            if pixels.len() > most {
                return Err(format_error(format!(
                    "a GIF of {} bytes must have at most {most} bytes of pixels",
                    bytes.len()
                )));
            }
        }
        let shape = [frames, height as usize, width as usize, 3];
        Tensor::build(Spec::new(DType::U8, shape), Category::Dataset, at, |out| {
            out.bytes().copy_from_slice(&pixels);
        })
    };
    decode().map_err(|error| error.at(at))
}

/// Pixels `[height, width, channels]` as bytes, with their sizes.
fn pixels(image: &Tensor, channels: &[usize], wide: bool) -> Result<(Vec<u8>, u32, u32, usize)> {
    let [height, width, depth] = image.shape()[..] else {
        return Err(Error::shape(format!("expected [height, width, channels], got {}", image.shape())));
    };
    if !channels.contains(&depth) {
        return Err(Error::shape(format!(
            "channels must be one of {channels:?}, got shape {}",
            image.shape()
        )));
    }
    let bytes = match image.dtype() {
        DType::U8 => image.to_vec::<u8>()?,
        DType::U16 if wide => {
            let mut bytes = list_with_capacity(image.spec().bytes())?;
            image.to_vec::<u16>()?.into_iter().for_each(|value| bytes.extend(value.to_ne_bytes()));
            bytes
        }
        other => return Err(Error::dtype(format!("expected uint8 pixels, got {other}"))),
    };
    Ok((bytes, height as u32, width as u32, depth))
}

/// An image of 1 (grey) or 3 (RGB) channels as JPEG; `quality` is in [1, 100].
#[track_caller]
pub fn encode_jpeg(image: &Tensor, quality: u8) -> Result<StringTensor> {
    if !(1..=100).contains(&quality) {
        return Err(Error::value(format!("quality must be in [1, 100], got {quality}")));
    }
    let (bytes, height, width, depth) = pixels(image, &[1, 3], false)?;
    let color = if depth == 1 { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 };
    let mut out = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut out, quality);
    encoder.write_image(&bytes, width, height, color).map_err(unreadable)?;
    StringTensor::scalar(&out)
}

/// An image of 1 to 4 channels, `uint8` or `uint16`, as PNG.
#[track_caller]
pub fn encode_png(image: &Tensor) -> Result<StringTensor> {
    let (bytes, height, width, depth) = pixels(image, &[1, 2, 3, 4], true)?;
    let color = match (depth, image.dtype() == DType::U16) {
        (1, false) => ExtendedColorType::L8,
        (2, false) => ExtendedColorType::La8,
        (3, false) => ExtendedColorType::Rgb8,
        (_, false) => ExtendedColorType::Rgba8,
        (1, true) => ExtendedColorType::L16,
        (2, true) => ExtendedColorType::La16,
        (3, true) => ExtendedColorType::Rgb16,
        (_, true) => ExtendedColorType::Rgba16,
    };
    let mut out = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut out, CompressionType::Default, FilterType::Adaptive);
    encoder.write_image(&bytes, width, height, color).map_err(unreadable)?;
    StringTensor::scalar(&out)
}
