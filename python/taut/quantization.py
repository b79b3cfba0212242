"""Simulated quantisation, for training with it: `tf.quantization`. Values are rounded to those of 8 bits and stay floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _namespace, _raw_ops as raw
from ._common import cast_to, check_choice, refuse
from ._native import Tensor, as_tensor
from ._ops.checks import check_holds
from .custom_gradient import custom_gradient
from .dtypes import float32

__all__ = [
    "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient",
    "quantize_and_dequantize",
    "quantize_and_dequantize_v2",
]


def _levels(name: str, num_bits: int, narrow_range: bool) -> tuple[float, float]:
    if not 2 <= num_bits <= 16:
        refuse(name, f"num_bits must be in [2, 16], got {num_bits}")
    return float(bool(narrow_range)), float(2**num_bits - 1)


def _nudged(low: Tensor, high: Tensor, least: float, most: float) -> tuple[Tensor, Tensor, Tensor]:
    """The interval, moved so that 0 is one of the levels, and the distance of levels."""
    scale = (high - low) / (most - least)
    exact = least - low / scale
    zero = raw.clip_by_value(raw.floor(exact + 0.5), least, most)
    return (least - zero) * scale, (most - zero) * scale, scale


def _rounded(x: Tensor, low: Tensor, high: Tensor, scale: Tensor) -> Tensor:
    inverse = 1.0 / scale
    zero = raw.floor(-low * inverse + 0.5)
    inside = raw.minimum(raw.maximum(x, low), high) - low
    return raw.floor(inside * inverse - zero + 0.5) * scale


def _backward(upstream: Tensor, x: Tensor, low: Tensor, high: Tensor, axes: list[int] | None) -> tuple:
    """The gradients for the values and for the limits: a value outside of the interval has the limit's."""
    inside = raw.logical_and(raw.greater_equal(x, low), raw.less_equal(x, high))
    zeros = raw.zeros_like(upstream)
    parts = raw.where(raw.less(x, low), upstream, zeros), raw.where(raw.greater(x, high), upstream, zeros)
    return (raw.where(inside, upstream, zeros), *(raw.sum(part, axes) for part in parts))


def _interval(name: str, low: Any, high: Any, num_bits: int, narrow_range: bool) -> tuple[Tensor, Tensor, Tensor]:
    least, most = _levels(name, num_bits, narrow_range)
    low, high = cast_to(as_tensor(low), float32), cast_to(as_tensor(high), float32)
    if not low.is_symbolic and not high.is_symbolic and np.any(low.numpy() >= high.numpy()):
        refuse(name, f"min must be smaller than max, got {low.numpy()} and {high.numpy()}")
    return _nudged(low, high, least, most)


def fake_quant_with_min_max_args(
    inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """Rounds values to `2**num_bits` levels in [min, max]; the gradient passes inside of the interval."""
    name = "fake_quant_with_min_max_args"
    low, high, scale = _interval(name, float(min), float(max), num_bits, narrow_range)

    @custom_gradient
    def work(x: Tensor) -> Any:
        return _rounded(x, low, high, scale), lambda upstream: _backward(upstream, x, low, high, None)[0]

    return work(cast_to(as_tensor(inputs), float32))


def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """The gradient of `fake_quant_with_min_max_args` for its inputs."""
    low, high, _ = _interval("fake_quant_with_min_max_args_gradient", float(min), float(max), num_bits, narrow_range)
    return _backward(as_tensor(gradients), as_tensor(inputs), low, high, None)[0]


def _with_variables(name: str, inputs: Any, low: Any, high: Any, bits: int, narrow: bool, channels: bool) -> Tensor:
    levels = _levels(name, bits, narrow)
    x, low, high = (cast_to(as_tensor(one), float32) for one in (inputs, low, high))
    _check_limits(name, x, low, high, channels)
    axes = list(range(x.ndim - 1)) if channels else None

    @custom_gradient
    def work(x: Tensor, low: Tensor, high: Tensor) -> Any:
        # An interval without values, as before training, gives zeros.
        empty = raw.logical_and(raw.equal(low, 0.0), raw.equal(high, 0.0))
        first, last, scale = _nudged(raw.where(empty, -1.0, low), raw.where(empty, 1.0, high), *levels)
        made = raw.where(empty, raw.zeros_like(x), _rounded(x, first, last, scale))

        def gradient(upstream: Tensor) -> tuple:
            parts = _backward(upstream, x, first, last, axes)
            none = raw.logical_and(empty, True)
            return (
                raw.where(none, upstream, parts[0]),
                raw.where(none, raw.zeros_like(low), parts[1]),
                raw.where(none, raw.zeros_like(high), parts[2]),
            )

        return made, gradient

    return work(x, low, high)


def _check_limits(name: str, x: Tensor, low: Tensor, high: Tensor, channels: bool) -> None:
    shape = tuple(x.shape[-1:]) if channels else ()
    if (channels and not x.ndim) or tuple(low.shape) != shape or tuple(high.shape) != shape:
        refuse(name, f"min and max must have shape {shape}, got {tuple(low.shape)} and {tuple(high.shape)}")


def fake_quant_with_min_max_vars(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """Rounds values to `2**num_bits` levels in [min, max], two scalars that have gradients."""
    return _with_variables("fake_quant_with_min_max_vars", inputs, min, max, num_bits, narrow_range, False)


def fake_quant_with_min_max_vars_per_channel(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """As `fake_quant_with_min_max_vars`, with an interval for each index of the last axis."""
    return _with_variables("fake_quant_with_min_max_vars_per_channel", inputs, min, max, num_bits, narrow_range, True)


def _gradients(
    name: str, gradients: Any, inputs: Any, low: Any, high: Any, bits: int, narrow: bool, all_axes: bool
) -> tuple:
    x, low, high = (cast_to(as_tensor(one), float32) for one in (inputs, low, high))
    _check_limits(name, x, low, high, not all_axes)
    first, last, _ = _interval(name, low, high, bits, narrow)
    return _backward(as_tensor(gradients), x, first, last, None if all_axes else list(range(x.ndim - 1)))


def fake_quant_with_min_max_vars_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `fake_quant_with_min_max_vars` for its inputs, min and max."""
    name = "fake_quant_with_min_max_vars_gradient"
    return _gradients(name, gradients, inputs, min, max, num_bits, narrow_range, True)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `fake_quant_with_min_max_vars_per_channel` for its inputs, min and max."""
    name = "fake_quant_with_min_max_vars_per_channel_gradient"
    return _gradients(name, gradients, inputs, min, max, num_bits, narrow_range, False)


def quantize_and_dequantize_v2(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """Rounds values to levels whose distance follows from the largest value, or from the given range.

    The gradient passes unchanged where values are in [input_min, input_max], also if the range is not used for rounding.
    """
    name = "quantize_and_dequantize_v2"
    check_choice(name, "round_mode", round_mode, ("HALF_TO_EVEN", "HALF_UP"))
    if not 1 <= num_bits <= 62:
        refuse(name, f"num_bits must be in [1, 62], got {num_bits}")
    x = as_tensor(input)
    if axis is not None and not -x.ndim <= axis < x.ndim:
        refuse(name, f"axis must be in [{-x.ndim}, {x.ndim}), got {axis}")
    axes = None if axis is None else [one for one in range(x.ndim) if one != axis % x.ndim]
    low, high = (cast_to(as_tensor(one), x.dtype) for one in (input_min, input_max))
    for parameter, bound in (("input_min", low), ("input_max", high)):
        if range_given and axes is not None and tuple(bound.shape) != (x.shape[axis % x.ndim],):  # type: ignore[operator]
            refuse(name, f"{parameter} must have one element per index of axis {axis}, got shape {bound.shape}")
    if range_given:
        rising = raw.all(low <= high)
        check_holds(name, rising, lambda: f"input_min must be <= input_max, got {input_min} and {input_max}")
    if axes is not None and low.ndim:
        shape = [-1 if one == axis % x.ndim else 1 for one in range(x.ndim)]  # type: ignore[operator]
        low, high = raw.reshape(low, shape), raw.reshape(high, shape)
    given_low, given_high = low, high
    if not range_given:
        low, high = raw.min(x, axes, axes is not None), raw.max(x, axes, axes is not None)
    low, high = raw.stop_gradient(low), raw.stop_gradient(high)
    half = 2 ** (num_bits - 1)
    least = float(-half + bool(narrow_range)) if signed_input else 0.0
    most = float(half - 1) if signed_input else float(2**num_bits - 1)
    # The scale that covers the larger side; a side without a sign of its own does not count.
    largest = float(np.finfo(np.float32).max)
    by_low = raw.where(raw.greater(least * low, 0.0), raw.div_no_nan(raw.full(low.shape, least, x.dtype), low), largest)
    by_high = raw.where(
        raw.greater(most * high, 0.0), raw.div_no_nan(raw.full(high.shape, most, x.dtype), high), largest
    )
    from_low = raw.less(by_low, by_high)
    scale = raw.minimum(by_low, by_high)
    inverse = raw.where(from_low, low / (least or 1.0), high / most)
    first, last = raw.where(from_low, low, least * inverse), raw.where(from_low, most * inverse, high)

    @custom_gradient
    def work(x: Tensor) -> Any:
        value = raw.minimum(raw.maximum(x, first), last) if range_given else x
        scaled = value * scale
        whole = raw.round(scaled) if round_mode == "HALF_TO_EVEN" else raw.minimum(raw.floor(scaled + 0.5), most)
        made = cast_to(whole * inverse, x.dtype)

        def gradient(upstream: Tensor) -> Tensor:
            inside = raw.logical_and(raw.greater_equal(x, given_low), raw.less_equal(x, given_high))
            return raw.where(inside, upstream, raw.zeros_like(upstream))

        return made, gradient

    return work(x)


def quantize_and_dequantize(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """As `quantize_and_dequantize_v2`, with a gradient that passes unchanged everywhere."""
    x = as_tensor(input)
    made = quantize_and_dequantize_v2(
        raw.stop_gradient(x),
        input_min,
        input_max,
        signed_input,
        num_bits,
        range_given,
        round_mode,
        name,
        narrow_range,
        axis,
    )

    @custom_gradient
    def passed(x: Tensor) -> Any:
        return raw.identity(made), lambda upstream: upstream

    return passed(x)


__getattr__, __dir__ = _namespace.plain(__name__)
