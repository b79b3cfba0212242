"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

class ResizeMethod:
    def __getattr__(self, name: str) -> Any: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def abs(x: TensorLike, *, name: str | None = ...) -> Any:
    """The magnitude of each element; the smallest signed integer has none in its type and stays as it is."""

def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """The picture with `delta` added, as floats from 0 to 1."""

def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """The picture with distances from each channel's mean multiplied."""

def adjust_gamma(image: Any, gamma: Any = ..., gain: Any = ...) -> Tensor:
    """`gain * image ** gamma`, as floats from 0 to 1."""

def adjust_hue(image: Any, delta: Any, name: str | None = ...) -> Tensor:
    """The picture with its colours moved along the circle of hues; 1 is all the way round."""

def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = ...) -> Tensor:
    """The picture with the saturation of its colours multiplied."""

def central_crop(image: Any, central_fraction: float) -> Tensor:
    """The middle of the picture: this fraction of its height and width."""

def convert_image_dtype(image: Any, dtype: Any, saturate: bool = ..., name: str | None = ...) -> Tensor:
    """The picture in another type, scaled: floats go from 0 to 1, integers up to their largest value."""

from .boxes import crop_and_resize as crop_and_resize
def crop_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> Tensor:
    """The part of this size whose upper left corner is at the offsets."""

def divide_no_nan(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """`x / y`, or 0 where y is 0."""

def equal(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is equal to y; NaN is equal to nothing."""

from .patches import extract_patches as extract_patches
def flip_left_right(image: Any) -> Tensor:
    """The picture, mirrored left to right."""

def flip_up_down(image: Any) -> Tensor:
    """The picture, upside down."""

from .indexing import gather as gather
def grayscale_to_rgb(images: Any, name: str | None = ...) -> Tensor:
    """A gray channel three times."""

def hsv_to_rgb(images: Any, name: str | None = ...) -> Tensor:
    """Red, green and blue of pixels given by hue, saturation and value."""

def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """How much each pixel of a batch differs from the one below and the one to the right; 0 at the ends."""

def log(x: TensorLike, *, name: str | None = ...) -> Any:
    """The natural logarithm of each element; NaN below zero."""

def maximum(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The larger of x and y; NaN if either is."""

def minimum(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The smaller of x and y; NaN if either is."""

from .boxes import non_max_suppression as non_max_suppression
from .boxes import non_max_suppression_with_scores as non_max_suppression_with_scores
def pad_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> Tensor:
    """A black picture of this size with the picture at the offsets."""

def per_image_standardization(image: Any) -> Tensor:
    """Each picture with mean 0 and deviation 1, float32 unless it has a floating type."""

def psnr(a: Any, b: Any, max_val: Any, name: str | None = ...) -> Tensor:
    """How near pictures are, in decibels: the largest value, squared, over the mean squared difference."""

def random_brightness(image: Any, max_delta: float, seed: int | None = ...) -> Tensor:
    """The picture with a random number between `-max_delta` and `max_delta` added."""

def random_contrast(image: Any, lower: float, upper: float, seed: int | None = ...) -> Tensor:
    """The picture with its contrast multiplied by a random number from `lower` up to `upper`."""

def random_crop(value: Any, size: Any, seed: int | None = ..., name: str | None = ...) -> Tensor:
    """A part of this size from a random place."""

def random_flip_left_right(image: Any, seed: int | None = ...) -> Tensor:
    """Each picture, mirrored left to right with probability one half."""

def random_flip_up_down(image: Any, seed: int | None = ...) -> Tensor:
    """Each picture, upside down with probability one half."""

def random_hue(image: Any, max_delta: float, seed: int | None = ...) -> Tensor:
    """The picture with its hues moved by a random number between `-max_delta` and `max_delta`."""

def random_saturation(image: Any, lower: float, upper: float, seed: int | None = ...) -> Tensor:
    """The picture with its saturation multiplied by a random number from `lower` up to `upper`."""

from .math import reduce_mean as reduce_mean
from .math import reduce_std as reduce_std
from .math import reduce_sum as reduce_sum
def resize(images: Any, size: Any, method: str = ..., preserve_aspect_ratio: bool = ..., antialias: bool = ..., name: str | None = ...) -> Tensor:
    """Pictures of another size `[height, width]`: float32, but for "nearest", which keeps the type."""

def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """The middle of the picture, or the picture in the middle of black, as the size asks for."""

def resize_with_pad(image: Any, target_height: Any, target_width: Any, method: str = ..., antialias: bool = ...) -> Tensor:
    """The picture as large as fits, in the middle of black, in a picture of this size."""

def rgb_to_grayscale(images: Any, name: str | None = ...) -> Tensor:
    """The lightness of each pixel, in one channel and the picture's own type."""

def rgb_to_hsv(images: Any, name: str | None = ...) -> Tensor:
    """Hue, saturation and value of each pixel, all from 0 to 1."""

def rgb_to_yiq(images: Any) -> Tensor:
    """The light of each pixel, and its colour between blue and orange and between green and purple."""

def rgb_to_yuv(images: Any) -> Tensor:
    """The light of each pixel, and how much bluer and redder than that it is."""

def rot90(image: Any, k: Any = ..., name: str | None = ...) -> Tensor:
    """The picture, turned counter-clockwise by `k` quarter turns."""

from .ops import saturate_cast as saturate_cast
from .patches import sobel_edges as sobel_edges
def squared_difference(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """`(x - y) * (x - y)`; integers wrap."""

from .patches import ssim as ssim
from .patches import ssim_multiscale as ssim_multiscale
def stateless_random_brightness(image: Any, max_delta: float, seed: Any) -> Tensor:
    """As `random_brightness`, by a seed of two numbers."""

def stateless_random_contrast(image: Any, lower: float, upper: float, seed: Any) -> Tensor:
    """As `random_contrast`, by a seed of two numbers."""

def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = ...) -> Tensor:
    """As `random_crop`, by a seed of two numbers."""

def stateless_random_flip_left_right(image: Any, seed: Any) -> Tensor:
    """As `random_flip_left_right`, by a seed of two numbers."""

def stateless_random_flip_up_down(image: Any, seed: Any) -> Tensor:
    """As `random_flip_up_down`, by a seed of two numbers."""

def stateless_random_hue(image: Any, max_delta: float, seed: Any) -> Tensor:
    """As `random_hue`, by a seed of two numbers."""

def stateless_random_saturation(image: Any, lower: float, upper: float, seed: Any) -> Tensor:
    """As `random_saturation`, by a seed of two numbers."""

def total_variation(images: Any, name: str | None = ...) -> Tensor:
    """The sum of the differences between neighbouring pixels of each picture."""

def transpose(image: Any, name: str | None = ...) -> Tensor:
    """The picture with rows and columns exchanged."""

def yiq_to_rgb(images: Any) -> Tensor:
    """Red, green and blue of pixels given by `rgb_to_yiq`."""

def yuv_to_rgb(images: Any) -> Tensor:
    """Red, green and blue of pixels given by `rgb_to_yuv`."""
