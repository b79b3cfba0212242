"""Encoded images. Also the functions of this name in `tf.image`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import refuse_option
from ..errors import DataLossError, InvalidArgumentError
from ..string_tensor import known
from . import _origins


def _decode(
    contents: Any, channels: int | None, dtype: Any = dtypes.uint8, allowed: tuple[int, ...] = (0, 1, 3, 4)
) -> _native.Tensor:
    if (channels or 0) not in allowed:
        raise InvalidArgumentError(f"channels must be one of {', '.join(map(str, allowed))}, got {channels}")
    is_wide = dtype is not dtypes.uint8 and dtypes.as_dtype(dtype) == dtypes.uint16
    try:
        image = _native.decode_image(contents, channels or 0, is_wide)
    except (DataLossError, InvalidArgumentError) as error:
        raise _origins.named(contents, error) from None
    if image is None:
        text = _native.string_tensor(contents)
        if text.ndim:
            raise InvalidArgumentError(f"contents must be a scalar, got shape {text.shape}")
        image = _only_frame(decode_gif(contents), channels or 0)
    return _widened(image) if is_wide and image.dtype == dtypes.uint8 else image


def _only_frame(frames: _native.Tensor, channels: int) -> _native.Tensor:
    """The image of a GIF that has one, which has three channels."""
    if channels not in (0, 3):
        raise InvalidArgumentError(f"channels of a GIF must be 0 or 3, got {channels}")
    if frames.shape[0] != 1:
        raise InvalidArgumentError(
            f"expected one image, got a GIF of {frames.shape[0]}: use decode_gif or decode_image"
        )
    return frames[0]


def _widened(image: _native.Tensor) -> _native.Tensor:
    """Pixels of 8 bits as the upper bytes of 16."""
    return raw.cast(image, dtypes.uint16) * 256


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> _native.Tensor:
    """Decodes a JPEG image: uint8 [height, width, channels], computed as with TensorFlow's `dct_method`
    INTEGER_ACCURATE; other decoders may round differently.
    """
    reason = "the decoder has no such option"
    refuse_option("decode_jpeg", "fancy_upscaling", fancy_upscaling, reason, True)
    refuse_option("decode_jpeg", "try_recover_truncated", try_recover_truncated, reason, False)
    refuse_option("decode_jpeg", "acceptable_fraction", acceptable_fraction, reason, 1)
    if ratio not in (1, 2, 4, 8):
        raise InvalidArgumentError(f"ratio must be 1, 2, 4 or 8, got {ratio}")
    image = _decode(contents, channels, allowed=(0, 1, 3))
    if ratio == 1:
        return image
    height, width = (-(-size // ratio) for size in image.shape[:2])
    from .._ops.image import resize

    small = resize(image, [height, width], method="area")
    return raw.cast(raw.round(small), dtypes.uint8)


def decode_png(contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None) -> _native.Tensor:
    """Decodes a PNG image: uint8 or uint16 [height, width, channels]."""
    if dtypes.as_dtype(dtype) not in (dtypes.uint8, dtypes.uint16):
        raise TypeError(f"dtype must be uint8 or uint16, got {dtypes.as_dtype(dtype).name}")
    return _decode(contents, channels, dtype)


def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> _native.Tensor:
    """Decodes a BMP image: uint8 [height, width, channels]."""
    return _decode(contents, channels, allowed=(0, 3, 4))


def decode_webp(contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None) -> _native.Tensor:
    """Decodes a WebP image that is not animated: uint8 [height, width, channels]."""
    refuse_option("decode_webp", "dtype", dtypes.as_dtype(dtype), "pixels of WebP images have 8 bits", dtypes.uint8)
    return _decode(contents, channels)


def decode_gif(contents: Any, name: str | None = None) -> _native.Tensor:
    """Decodes a GIF: uint8 [frames, height, width, 3]."""
    try:
        return _native.decode_gif(_native.string_tensor(contents))
    except (DataLossError, InvalidArgumentError) as error:
        raise _origins.named(contents, error) from None


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> _native.Tensor:
    """Decodes a BMP, GIF, JPEG, PNG or WebP image. A GIF has frames as its first axis, unless `expand_animations` is
    False. Floats are in [0, 1].
    """
    dtype = dtypes.as_dtype(dtype)
    form = _native.image_format(_native.string_tensor(contents))
    # A float has the bits that a PNG may have; other types are converted from uint16.
    is_wide = dtype not in (dtypes.uint8, dtypes.float32) or (dtype == dtypes.float32 and form == "png")
    if form == "gif":
        if channels not in (None, 0, 1, 3):
            raise InvalidArgumentError(f"channels of a GIF must be 0, 1 or 3, got {channels}")
        frames = decode_gif(contents)
        image = frames if expand_animations else frames[0]
        if channels == 1:
            from .._ops.color import rgb_to_grayscale

            image = rgb_to_grayscale(image)
        if is_wide:
            image = _widened(image)
    else:
        image = _decode(contents, channels, dtypes.uint16 if is_wide else dtypes.uint8)
    if image.dtype == dtype:
        return image
    from .._ops.color import convert_image_dtype

    return convert_image_dtype(image, dtype)


def decode_and_crop_jpeg(contents: Any, crop_window: Any, channels: int = 0, name: str | None = None) -> _native.Tensor:
    """Decodes a JPEG image and crops it to [y, x, height, width]."""
    y, x, height, width = (int(value) for value in np.asarray(crop_window).tolist())
    image = _decode(contents, channels, allowed=(0, 1, 3))
    rows, columns = image.shape[:2]
    if min(y, x) < 0 or min(height, width) < 1 or y + height > rows or x + width > columns:
        raise InvalidArgumentError(f"crop_window must lie within {rows}x{columns}, got {[y, x, height, width]}")
    return image[y : y + height, x : x + width]


def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> _native.Tensor:
    """Encodes uint8 [height, width, 1 or 3] as JPEG."""
    refuse_option("encode_jpeg", "progressive", progressive, "the encoder has no such option", False)
    refuse_option("encode_jpeg", "optimize_size", optimize_size, "the encoder has no such option", False)
    refuse_option("encode_jpeg", "chroma_downsampling", chroma_downsampling, "the encoder has no such option", True)
    refuse_option("encode_jpeg", "xmp_metadata", xmp_metadata, "the encoder has no such option", "")
    tensor = known(_native.as_tensor(image))
    wanted = {"": None, "grayscale": 1, "rgb": 3}.get(format, -1)
    if wanted is not None and (wanted == -1 or tensor.shape[-1] != wanted):
        raise InvalidArgumentError(f"format must be '', 'grayscale' or 'rgb' and match {tensor.shape}, got {format!r}")
    return _native.encode_jpeg(tensor, int(quality))


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> _native.Tensor:
    """Encodes uint8 or uint16 [height, width, 1 to 4] as PNG; of several images, each."""
    refuse_option("encode_png", "compression", compression, "the encoder chooses it", -1)
    tensor = known(_native.as_tensor(image))
    if tensor.ndim <= 3:
        return _native.encode_png(tensor)
    flat = raw.reshape(tensor, [-1, *tensor.shape[-3:]])
    made = raw.stack([_native.encode_png(flat[i]) for i in range(flat.shape[0])], 0)
    return raw.reshape(made, tensor.shape[:-3])


def is_jpeg(contents: Any, name: str | None = None) -> _native.Tensor:
    """Whether a string is a JPEG image, by its first bytes."""
    return _native.own_tensor(_native.image_format(_native.string_tensor(contents)) == "jpeg")


def extract_jpeg_shape(contents: Any, output_type: Any = dtypes.int32, name: str | None = None) -> _native.Tensor:
    """The shape of a JPEG image: [height, width, channels]."""
    return _native.own_tensor(np.array(tuple(_decode(contents, 0).shape)), output_type)
