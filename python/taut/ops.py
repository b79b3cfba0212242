"""The ops that TensorFlow has at its top level.

Where the meaning is the op table's, a function is a row of that table under TensorFlow's name and parameter
names. What is mathematics stands in `math`, what is about matrices in `linalg`, and is here as well if
TensorFlow has it here.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import _native, dtypes
from ._common import _alike, _as, _ends, _ints, _refuse, _several, _shape
from .debugging import Assert, assert_equal, assert_greater, assert_less, assert_rank
from .indexing import (  # noqa: A004
    argsort,
    boolean_mask,
    dynamic_partition,
    dynamic_stitch,
    gather,
    gather_nd,
    histogram_fixed_width,
    histogram_fixed_width_bins,
    reverse_sequence,
    scatter_nd,
    searchsorted,
    slice,
    sort,
    strided_slice,
    take_along_axis,
    tensor_scatter_nd_add,
    tensor_scatter_nd_max,
    tensor_scatter_nd_min,
    tensor_scatter_nd_sub,
    tensor_scatter_nd_update,
    unique,
    unique_with_counts,
    unravel_index,
    where,
)
from .inside import numpy_function, print, py_function  # noqa: A004
from .linalg import einsum, eye, global_norm, matmul, norm, tensordot
from .math import (  # noqa: A004
    abs,
    acos,
    acosh,
    add,
    add_n,
    argmax,
    argmin,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    cumsum,
    divide,
    equal,
    exp,
    floor,
    floordiv,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    pow,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    round,
    scalar_mul,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    truediv,
)
from .shape import TensorShape
from .sparse import IndexedSlices
from .tensor import shape as _shape_tensor

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor

bitcast = op("bitcast")
broadcast_to = op("broadcast_to")
clip_by_value = op("clip_by_value")
expand_dims = op("expand_dims")
identity = op("identity")
ones_like = op("ones_like")
realdiv = op("div", "realdiv")
reshape = op("reshape", params=["tensor", "shape"])
reverse = op("reverse")
roll = op("roll")
squeeze = op("squeeze")
tile = op("tile")
truncatemod = op("truncate_mod", "truncatemod")
zeros_like = op("zeros_like")

_cast = op("cast")
_clip_by_global_norm = op("clip_by_global_norm")
_clip_by_norm = op("clip_by_norm")
_concat = op("concat")
_linspace = op("linspace")
_meshgrid = op("meshgrid")
_one_hot = op("one_hot")
_ones = op("ones")
_pad = op("pad")
_range = op("range")
_repeat = op("repeat")
_split = op("split")
_stack = op("stack")
_transpose = op("transpose")
_trunc = op("trunc")
_unstack = op("unstack")
_where = op("where")
_zeros = op("zeros")


# Making tensors.


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> _Tensor:
    """A tensor of zeros."""
    return _zeros(_shape(shape), dtype)


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> _Tensor:
    """A tensor of ones."""
    return _ones(_shape(shape), dtype)


def fill(dims: Any, value: Any, name: str | None = None) -> _Tensor:
    """A tensor of one value."""
    return broadcast_to(reshape(value, []), _shape(dims))


def range(  # noqa: A001
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> _Tensor:
    """Numbers from `start` up to `limit`, which is not among them, `delta` apart."""
    if limit is None:
        start, limit = 0, start
    given = (start, limit, delta)
    numbers = [value.item() if hasattr(value, "item") else value for value in given]
    if dtype is None:
        typed = [dtypes.as_dtype(value.dtype) for value in given if hasattr(value, "dtype")]
        whole = builtins.all(isinstance(number, int) for number in numbers)
        # The widest of the types that are given, as TensorFlow orders them.
        order = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)
        typed.append(dtypes.int32 if whole else dtypes.float32)
        dtype = builtins.max(typed, key=lambda one: order.index(one) if one in order else -1)
    return _range(*numbers, dtype)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> _Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, both among them, along a new axis."""
    numbers = not (isinstance(start, _native.Array) or isinstance(stop, _native.Array))
    start, num = _tensor(start), int(num)
    stop = _tensor(stop, start.dtype) if not isinstance(stop, _native.Array) else stop
    if start.dtype.is_integer:
        start = _cast(start, dtypes.float64)
    stop = _as(stop, start.dtype)
    if num < 1:
        _refuse("linspace", f"num is 1 at least, not {num}")
    if numbers and not (start.ndim or stop.ndim):
        return _linspace(float(start), float(stop), num, True, start.dtype)
    shape = (start + stop).shape
    axis = axis % (len(shape) + 1)
    steps = [num if i == axis else 1 for i in builtins.range(len(shape) + 1)]
    part = reshape(_linspace(0.0, 1.0, num, True, start.dtype), steps)
    start, stop = (expand_dims(broadcast_to(end, shape), axis) for end in (start, stop))
    # The last number is `stop` itself, whatever rounding made of it.
    return _where(equal(part, 1.0), stop, start + (stop - start) * part) if num > 1 else start


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> _Tensor:
    """A new axis of size `depth`, with `on_value` at each index and `off_value` elsewhere."""
    if dtype is None:
        given = [value for value in (on_value, off_value) if value is not None]
        dtype = _tensor(given[0]).dtype if given else dtypes.float32
    on, off = (
        default if value is None else value.item() if hasattr(value, "item") else value
        for value, default in ((on_value, 1), (off_value, 0))
    )
    return _one_hot(indices, depth, on, off, -1 if axis is None else axis, dtype)


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool, name: str | None = None
) -> _Tensor:
    """For each length, that many times true, then false up to `maxlen`, or to the largest length."""
    lengths = _tensor(lengths)
    if maxlen is None:
        maxlen = max(_ends(lengths)[1], 0)
    made = _range(0, int(maxlen), 1, lengths.dtype) < expand_dims(lengths, -1)
    return _as(made, dtypes.as_dtype(dtype))


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[_Tensor]:
    """The coordinates of every point of a grid, one tensor per axis."""
    return list(_several(_meshgrid(list(args), indexing)))


# Types.


def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """The same values in another element type."""
    if isinstance(x, IndexedSlices):
        return IndexedSlices(_cast(x.values, dtype), x.indices, x.dense_shape)
    return _cast(x, dtype)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> _Tensor:
    """The same values in another element type; those that it cannot hold become its largest or smallest."""
    value, dtype = _tensor(value), dtypes.as_dtype(dtype)
    if value.dtype != dtype and not dtype.is_bool and value.dtype != dtypes.bool:
        low, high = value.dtype.min, value.dtype.max
        if low < dtype.min:
            value = maximum(value, _cast(dtype.min, value.dtype))
        if high > dtype.max:
            # Rounded down, where the type has no such number.
            limit = np.array(dtype.max, value.dtype.as_numpy_dtype)
            if float(limit) > float(dtype.max):
                limit = np.nextafter(limit, np.array(0, limit.dtype))
            value = minimum(value, limit)
    return _cast(value, dtype)


def truncatediv(x: Any, y: Any, name: str | None = None) -> _Tensor:
    """`x / y` of integers, rounded toward zero; `x / y` of floats, without its fraction."""
    x, y = _alike([x, y])
    if x.dtype.is_integer and y.dtype.is_integer:
        return floordiv(x - truncatemod(x, y), y)
    return _trunc(divide(x, y))


# Shapes.


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> _Tensor:
    """The tensor with its axes in another order: reversed, unless one is given."""
    return _transpose(a, perm)


def concat(values: Any, axis: Any, name: str = "concat") -> _Tensor:
    """The tensors one after the other along an axis that they have."""
    return _concat(_alike(values) if isinstance(values, (list, tuple)) else [values], axis)


def stack(values: Any, axis: int = 0, name: str = "stack") -> _Tensor:
    """The tensors side by side along a new axis. A tensor stands for its slices along the first."""
    if isinstance(values, (list, tuple)):
        return _stack(_alike(values), axis)
    return _stack(list(_several(_unstack(values, 0))), axis)


def parallel_stack(values: Any, name: str = "parallel_stack") -> _Tensor:
    """The tensors side by side along a new first axis."""
    return stack(values, 0)


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[_Tensor]:
    """The slices of a tensor along an axis, which they no longer have."""
    made = list(_several(_unstack(value, axis)))
    if num is not None and num != len(made):
        _refuse("unstack", f"num={num}, and there are {len(made)} slices along axis {axis}")
    return made


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[_Tensor]:
    """Parts of a tensor along an axis: so many equal ones, or of these sizes, of which one may be -1."""
    value, axis = _tensor(value), int(axis)
    sizes = num_or_size_splits
    if not isinstance(sizes, (int, np.integer)) and not (isinstance(sizes, _native.Array) and not sizes.ndim):
        sizes = _ints(sizes)
        if num is not None and num != len(sizes):
            _refuse("split", f"num={num}, and there are {len(sizes)} sizes")
        if sizes.count(-1) == 1 and -value.ndim <= axis < value.ndim:
            sizes[sizes.index(-1)] = value.shape[axis] - sum(sizes) - 1
    return list(_several(_split(value, sizes, axis)))


def repeat(
    input: Any, repeats: Any, axis: int | None = None, name: str | None = None  # noqa: A002
) -> _Tensor:
    """Elements, each several times; of the flattened tensor unless an axis is given."""
    return _repeat(input, repeats, axis)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> _Tensor:
    """A margin around a tensor: a constant, or the tensor mirrored with (`SYMMETRIC`) or without its edge."""
    mode = mode.upper()
    return _pad(tensor, paddings, mode, constant_values if mode == "CONSTANT" else None)


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> _Tensor:
    """The tensor itself, if it has this shape; None stands for any size."""
    x = _tensor(x)
    if shape is not None and not x.shape.is_compatible_with(shape):
        _refuse("ensure_shape", f"a tensor of shape {x.shape} is not of shape {TensorShape(shape)}")
    return x


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape that tensors of two shapes meet in."""
    x, y = TensorShape(shape_x), TensorShape(shape_y)
    try:
        return TensorShape(np.broadcast_shapes(tuple(x), tuple(y)))
    except ValueError:
        _refuse("broadcast_static_shape", f"shapes {x} and {y} do not broadcast")


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> _Tensor:
    """The shape that tensors of two shapes meet in, as a tensor."""
    dtype = next((one.dtype for one in (shape_x, shape_y) if hasattr(one, "dtype")), dtypes.int32)
    made = broadcast_static_shape(_ints(shape_x), _ints(shape_y))
    return _tensor(list(made), dtype) if made else _zeros([0], dtype)


def shape_n(
    input: Sequence, out_type: Any = dtypes.int32, name: str | None = None  # noqa: A002
) -> list[_Tensor]:
    """The shapes of several tensors, as tensors."""
    return [_shape_tensor(one, out_type) for one in input]


def identity_n(input: Sequence, name: str | None = None) -> list[_Tensor]:  # noqa: A002
    """Copies of several tensors."""
    return [identity(one) for one in input]


def space_to_batch(
    input: Any, block_shape: Any, paddings: Any, name: str | None = None  # noqa: A002
) -> _Tensor:
    """Blocks of the axes after the first, padded, become entries of the batch."""
    x, blocks = _tensor(input), _ints(block_shape)
    margins = [_ints(pair) for pair in (paddings.tolist() if hasattr(paddings, "tolist") else paddings)]
    count = len(blocks)
    rest = x.ndim - 1 - count
    if rest < 0 or len(margins) != count:
        _refuse("space_to_batch", f"blocks {blocks} and paddings {margins} for a tensor of shape {x.shape}")
    x = _pad(x, [[0, 0], *margins, *[[0, 0]] * rest])
    sizes = x.shape[1 : count + 1]
    if builtins.any(size % block for size, block in zip(sizes, blocks)):
        _refuse("space_to_batch", f"blocks {blocks} do not fill the padded sizes {sizes}")
    parts = [part for size, block in zip(sizes, blocks) for part in (size // block, block)]
    x_shape = x.shape
    x = reshape(x, [x_shape[0], *parts, *x_shape[count + 1 :]])
    outer = [1 + 2 * i for i in builtins.range(count)]
    after = builtins.range(1 + 2 * count, 1 + 2 * count + rest)
    x = _transpose(x, [*(axis + 1 for axis in outer), 0, *outer, *after])
    return reshape(x, [x_shape[0] * int(np.prod(blocks)), *(parts[0::2]), *x_shape[count + 1 :]])


def batch_to_space(
    input: Any, block_shape: Any, crops: Any, name: str | None = None  # noqa: A002
) -> _Tensor:
    """Entries of the batch become blocks of the axes after the first, which are then cropped."""
    x, blocks = _tensor(input), _ints(block_shape)
    margins = [_ints(pair) for pair in (crops.tolist() if hasattr(crops, "tolist") else crops)]
    count, total = len(blocks), int(np.prod(blocks))
    if x.ndim < 1 + count or len(margins) != count or x.shape[0] % total:
        _refuse("batch_to_space", f"blocks {blocks} and crops {margins} for a tensor of shape {x.shape}")
    batch, sizes, rest = x.shape[0] // total, x.shape[1 : count + 1], x.shape[count + 1 :]
    x = reshape(x, [*blocks, batch, *sizes, *rest])
    pairs = [axis for i in builtins.range(count) for axis in (count + 1 + i, i)]
    x = _transpose(x, [count, *pairs, *builtins.range(2 * count + 1, x.ndim)])
    x = reshape(x, [batch, *(size * block for size, block in zip(sizes, blocks)), *rest])
    inner = (builtins.slice(low, x.shape[i + 1] - high) for i, (low, high) in enumerate(margins))
    return x[(builtins.slice(None), *inner)]


space_to_batch_nd = space_to_batch


# Norms that are bounded.


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """The tensor, scaled down to a Euclidean norm of at most `clip_norm`, as a whole or along some axes."""
    if isinstance(t, IndexedSlices):
        return IndexedSlices(clip_by_norm(t.values, clip_norm, axes), t.indices, t.dense_shape)
    t = _tensor(t)
    if not isinstance(clip_norm, _native.Array):
        return _clip_by_norm(t, clip_norm, axes)
    size = sqrt(reduce_sum(square(t), axes, True))
    return t * (clip_norm / maximum(size, clip_norm))


def clip_by_global_norm(
    t_list: Sequence, clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list, _Tensor]:
    """The tensors, scaled by one factor to a norm of at most `clip_norm` as one vector; and their norm.

    None stays None. If the norm is not finite, neither are the results.
    """
    if not isinstance(t_list, (list, tuple)):
        _refuse(
            "clip_by_global_norm", f"a list of tensors is needed, not a {type(t_list).__name__}", TypeError
        )
    plain = builtins.all(part is not None and not isinstance(part, IndexedSlices) for part in t_list)
    if plain and t_list and use_norm is None and not isinstance(clip_norm, _native.Array):
        *clipped, size = _clip_by_global_norm(list(t_list), clip_norm)
        return clipped, size
    size = global_norm(t_list) if use_norm is None else _tensor(use_norm)
    # Infinity minus itself is not a number, and neither is a sum with it.
    scale = clip_norm / maximum(size, clip_norm) + (size - size)
    return [None if part is None else scalar_mul(scale, part) for part in t_list], size


# Scopes. There are no names to put things under, and one device.


@contextlib.contextmanager
def name_scope(name: str | None) -> Iterator[str]:
    """A name for a piece of program. Ops are told apart by their lines; nothing is named."""
    yield f"{name}/" if name else ""


@contextlib.contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """What is in the block comes after these: as everything comes after what was written before it."""
    yield


@contextlib.contextmanager
def device(device_name: Any) -> Iterator[None]:
    """Runs a block on a device. There is one, the processor, and another one is refused."""
    if device_name is not None and "cpu" not in str(device_name).lower():
        _refuse(
            "device", f"there is no {device_name}: the processor, '/CPU:0', is the only device", ValueError
        )
    yield


def no_op(name: str | None = None) -> None:
    """Nothing."""


def group(*inputs: Any, name: str | None = None) -> None:
    """Nothing: what was called has been done, or is written into the trace."""


# fmt: off
__all__ = [
    "Assert", "abs", "acos", "acosh", "add", "add_n", "argmax", "argmin", "argsort", "asin", "asinh",
    "assert_equal", "assert_greater", "assert_less", "assert_rank", "atan", "atan2", "atanh",
    "batch_to_space", "bitcast", "boolean_mask", "broadcast_dynamic_shape", "broadcast_static_shape",
    "broadcast_to", "cast", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "concat",
    "control_dependencies", "cos", "cosh", "cumsum", "device", "divide", "dynamic_partition",
    "dynamic_stitch", "einsum", "ensure_shape", "equal", "exp", "expand_dims", "eye", "fill", "floor",
    "floordiv", "gather", "gather_nd", "global_norm", "greater", "greater_equal", "group",
    "histogram_fixed_width", "histogram_fixed_width_bins", "identity", "identity_n", "less", "less_equal",
    "linspace", "logical_and", "logical_not", "logical_or", "matmul", "maximum", "meshgrid", "minimum",
    "multiply", "name_scope", "negative", "no_op", "norm", "not_equal", "numpy_function", "one_hot",
    "ones", "ones_like", "pad", "parallel_stack", "pow", "print", "py_function", "range", "realdiv",
    "reduce_all", "reduce_any", "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min",
    "reduce_prod", "reduce_sum", "repeat", "reshape", "reverse", "reverse_sequence", "roll", "round",
    "saturate_cast", "scalar_mul", "scatter_nd", "searchsorted", "sequence_mask", "shape_n", "sigmoid",
    "sign", "sin", "sinh", "slice", "sort", "space_to_batch", "space_to_batch_nd", "split", "sqrt",
    "square", "squeeze", "stack", "strided_slice", "subtract", "take_along_axis", "tan", "tanh",
    "tensor_scatter_nd_add", "tensor_scatter_nd_max", "tensor_scatter_nd_min", "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update", "tensordot", "tile", "transpose", "truediv", "truncatediv", "truncatemod",
    "unique", "unique_with_counts", "unravel_index", "unstack", "where", "zeros", "zeros_like",
]
# fmt: on
