"""Functions that make, reduce and rearrange arrays."""

from __future__ import annotations

import builtins
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _native, _raw_ops as raw, dtypes
from ..._native import Tensor
from ...shape import TensorShape
from ._base import cast, floats, numpy_type, promoted, reduction, tensor


def _no_out(name: str, out: Any) -> None:
    if out is not None:
        raise ValueError(f"{name}: out must be None: tensors are immutable")


# Creation.


def array(val: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """A tensor of a value."""
    made = tensor(val, dtype)
    return raw.reshape(made, [1] * (ndmin - made.ndim) + list(made.shape)) if made.ndim < ndmin else made


def asarray(a: Any, dtype: Any = None) -> Tensor:
    """A tensor of a value."""
    return tensor(a, dtype)


def asanyarray(a: Any, dtype: Any = None) -> Tensor:
    """A tensor of a value."""
    return tensor(a, dtype)


def ascontiguousarray(a: Any, dtype: Any = None) -> Tensor:
    """A tensor of a value, with one axis at least."""
    return array(a, dtype, ndmin=1)


def copy(a: Any) -> Tensor:
    """A tensor with the same values."""
    return raw.identity(tensor(a))


def zeros(shape: Any, dtype: Any = float) -> Tensor:
    """Zeros."""
    return raw.full(_shape(shape), 0, _type(dtype))


def ones(shape: Any, dtype: Any = float) -> Tensor:
    """Ones."""
    return raw.full(_shape(shape), 1, _type(dtype))


def _type(dtype: Any) -> Any:
    return tensor(np.zeros((), dtype)).dtype


def _numbers(count: Any) -> Tensor:
    """0 to `count - 1`, in memory that is counted."""
    return raw.range(0, operator.index(count), 1, dtypes.int64)


def _diagonals(N: Any, M: Any) -> Tensor:  # noqa: N803
    """The diagonal on which each element of a matrix is: 0 for the main one, positive ones above it."""
    rows, columns = _numbers(N), _numbers(N if M is None else M)
    return raw.expand_dims(columns, 0) - raw.expand_dims(rows, 1)


def empty(shape: Any, dtype: Any = float) -> Tensor:
    """Zeros: no tensor has unspecified values."""
    return zeros(shape, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """A constant."""
    value = tensor(fill_value, dtype)
    return raw.broadcast_to(value, [shape] if isinstance(shape, int) else list(shape))


def _like(a: Any, value: float, dtype: Any) -> Tensor:
    x = tensor(a)
    made = raw.full(x.shape, value, x.dtype)
    return made if dtype is None else cast(made, dtype)


def zeros_like(a: Any, dtype: Any = None) -> Tensor:
    """Zeros of a tensor's shape."""
    return _like(a, 0, dtype)


def ones_like(a: Any, dtype: Any = None) -> Tensor:
    """Ones of a tensor's shape."""
    return _like(a, 1, dtype)


def empty_like(a: Any, dtype: Any = None) -> Tensor:
    """Zeros of a tensor's shape."""
    return _like(a, 0, dtype)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
) -> Tensor:
    """A constant of a tensor's type, and its shape unless another one is given."""
    x = tensor(a)
    made = cast(tensor(fill_value), dtype) if dtype is not None else raw.cast(tensor(fill_value), x.dtype)
    return raw.broadcast_to(made, list(x.shape if shape is None else shape))


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Numbers from `start` to, and without, `stop`."""
    first, last = (start, stop) if stop is not None else (0, start)
    numbers: Any = np.arange
    return tensor(numbers(first, last, step, dtype))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Tensor:  # noqa: N803
    """Ones on a diagonal."""
    return raw.cast(raw.equal(_diagonals(N, M), operator.index(k)), _type(dtype))


def identity(n: int, dtype: Any = float) -> Tensor:
    """The identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:  # noqa: N803
    """Ones on and below a diagonal."""
    return raw.cast(raw.less_equal(_diagonals(N, M), operator.index(k)), _type(float if dtype is None else dtype))


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = float,
    axis: int = 0,
) -> Any:
    """Numbers at equal distances."""
    first, last = (floats(value) for value in promoted(start, stop))
    steps = raw.cast(_numbers(num), dtypes.float64) / builtins.max(num - 1 if endpoint else num, 1)
    shape = [num] + [1] * builtins.max(first.ndim, last.ndim)
    made = first + (last - first) * raw.cast(raw.reshape(steps, shape), first.dtype)
    made = raw.moveaxis(made, 0, axis) if axis else made
    made = made if dtype is None else cast(made, dtype)
    return (made, (last - first) / builtins.max(num - 1 if endpoint else num, 1)) if retstep else made


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None, axis: int = 0
) -> Tensor:
    """Numbers whose logarithms are at equal distances."""
    made = raw.pow(raw.full([], base, "float64"), linspace(start, stop, num, endpoint, axis=axis))
    return made if dtype is None else cast(made, dtype)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Tensor:
    """Numbers at equal ratios."""
    first, last = (floats(value) for value in promoted(start, stop))
    made = raw.exp(linspace(raw.log(first), raw.log(last), num, endpoint, axis=axis))
    return made if dtype is None else cast(made, dtype)


def meshgrid(*xi: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> list[Tensor]:
    """Coordinate matrices of coordinate vectors."""
    from ..._ops.creation import meshgrid as grid

    if sparse:
        raise ValueError("meshgrid: sparse must be False")
    return list(grid(*map(tensor, xi), indexing=indexing))


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """The indices of the main diagonal."""
    return tuple(tensor(part.astype(np.int32)) for part in np.diag_indices(n, ndim))


def ix_(*args: Any) -> list[Tensor]:
    """Indices of the product of sequences."""
    return [tensor(part) for part in np.ix_(*[tensor(arg).numpy() for arg in args])]


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """Powers of the elements of a vector as columns."""
    value = tensor(x)
    count = value.shape[0] if N is None else N
    powers = _numbers(count)
    powers = powers if increasing else operator.index(count) - 1 - powers
    return raw.pow(raw.expand_dims(value, -1), raw.cast(powers, value.dtype))


# Shapes.


def _shape(newshape: Any) -> Any:
    return [newshape] if np.ndim(newshape) == 0 else list(newshape)


def reshape(a: Any, newshape: Any, order: str = "C") -> Tensor:
    """The elements in another shape."""
    if order != "C":
        raise ValueError(f"reshape: order must be 'C', got {order!r}")
    return raw.reshape(tensor(a), _shape(newshape))


def ravel(a: Any) -> Tensor:
    """The elements as a vector."""
    return raw.reshape(tensor(a), [-1])


flatten = ravel


def transpose(a: Any, axes: Any = None) -> Tensor:
    """The axes in another order; reversed if none is given."""
    x = tensor(a)
    return raw.transpose(x, list(range(x.ndim))[::-1] if axes is None else list(axes))


def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Without axes of size 1."""
    x = tensor(a)
    axes = [i for i, size in enumerate(x.shape) if size == 1] if axis is None else _shape(axis)
    return raw.squeeze(x, axes) if axes else x


def expand_dims(a: Any, axis: int) -> Tensor:
    """With an axis of size 1."""
    return raw.expand_dims(tensor(a), axis)


def swapaxes(a: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    return raw.swapaxes(tensor(a), axis1, axis2)


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Axes at other places."""
    x = tensor(a)
    for axis in [*_shape(source), *_shape(destination)]:
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"axes must be in [{-x.ndim}, {x.ndim}), got {axis}")
    order = [i for i in range(x.ndim) if i not in [axis % x.ndim for axis in _shape(source)]]
    for place, axis in sorted(zip([axis % x.ndim for axis in _shape(destination)], _shape(source))):
        order.insert(place, axis % x.ndim)
    return raw.transpose(x, order)


def broadcast_to(array: Any, shape: Any) -> Tensor:
    """Repeated to a shape."""
    return raw.broadcast_to(tensor(array), _shape(shape))


def broadcast_arrays(*args: Any) -> list[Tensor]:
    """Repeated to a common shape."""
    tensors = [tensor(arg) for arg in args]
    shape = np.broadcast_shapes(*[tuple(one.shape) for one in tensors])
    return [raw.broadcast_to(one, list(shape)) for one in tensors]


def _at_least(rank: int, place: Any, arys: tuple) -> Any:
    made = []
    for one in arys:
        x = tensor(one)
        made.append(raw.reshape(x, place(list(x.shape))) if x.ndim < rank else x)
    return made[0] if len(made) == 1 else made


def atleast_1d(*arys: Any) -> Any:
    """With one axis at least."""
    return _at_least(1, lambda shape: [1], arys)


def atleast_2d(*arys: Any) -> Any:
    """With two axes at least."""
    return _at_least(2, lambda shape: [1] * (2 - len(shape)) + shape, arys)


def atleast_3d(*arys: Any) -> Any:
    """With three axes at least."""
    return _at_least(3, lambda shape: {0: [1, 1, 1], 1: [1, *shape, 1]}.get(len(shape), [*shape, 1]), arys)


def concatenate(arys: Any, axis: int | None = 0) -> Tensor:
    """Joined along an axis; flattened first for None."""
    tensors = promoted(*arys)
    return raw.concat([ravel(one) for one in tensors], 0) if axis is None else raw.concat(tensors, axis)


def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """Joined along an axis; flattened first for None."""
    return concatenate([arr, values], axis)


def stack(arrays: Any, axis: int = 0) -> Tensor:
    """Joined along a new axis."""
    return raw.stack(promoted(*arrays), axis)


def vstack(tup: Any) -> Tensor:
    """Rows below each other."""
    return concatenate([atleast_2d(one) for one in tup], 0)


def hstack(tup: Any) -> Tensor:
    """Columns beside each other."""
    tensors = [atleast_1d(one) for one in tup]
    return concatenate(tensors, 0 if tensors[0].ndim == 1 else 1)


def dstack(tup: Any) -> Tensor:
    """Joined along the third axis."""
    return concatenate([atleast_3d(one) for one in tup], 2)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Parts along an axis: a number of equal ones, or those between indices."""
    x = tensor(ary)
    size = x.shape[axis]
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if size % count:
            raise ValueError(f"split: the size of the axis, {size}, must be a multiple of {count}")
        edges = [size // count * i for i in range(count + 1)]
    else:
        edges = [0, *indices_or_sections, size]
    places = [slice(low, builtins.max(low, high)) for low, high in itertools.pairwise(edges)]
    return [x[tuple([slice(None)] * (axis % x.ndim) + [place])] for place in places]


def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the second axis."""
    return split(ary, indices_or_sections, 0 if tensor(ary).ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the first axis."""
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the third axis."""
    return split(ary, indices_or_sections, 2)


def tile(a: Any, reps: Any) -> Tensor:
    """Repeated as a whole along axes."""
    x, counts = tensor(a), _shape(reps)
    rank = builtins.max(x.ndim, len(counts))
    x = raw.reshape(x, [1] * (rank - x.ndim) + list(x.shape))
    return raw.tile(x, [1] * (rank - len(counts)) + counts)


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element repeated."""
    from ..._ops.shaping import repeat as repeated

    return repeated(tensor(a), repeats, axis)


def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """Elements moved along axes, the last ones to the front."""
    x = tensor(a)
    if axis is None:
        return raw.reshape(raw.roll(ravel(x), _shape(shift), [0]), x.shape)
    return raw.roll(x, _shape(shift), _shape(axis))


def flip(m: Any, axis: Any = None) -> Tensor:
    """Reversed along axes."""
    x = tensor(m)
    return raw.reverse(x, list(range(x.ndim)) if axis is None else _shape(axis))


def fliplr(m: Any) -> Tensor:
    """Reversed along the second axis."""
    return flip(m, 1)


def flipud(m: Any) -> Tensor:
    """Reversed along the first axis."""
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """Rotated by multiples of 90 degrees."""
    x = tensor(m)
    for _ in range(k % 4):
        x = flip(raw.swapaxes(x, *axes), axes[0])
    return x


def pad(array: Any, pad_width: Any, mode: str, **kwargs: Any) -> Tensor:
    """Padded along axes, by "constant" values, "reflect" or "symmetric"."""
    from ..._ops.shaping import pad as padded

    return padded(tensor(array), pad_width, mode.upper(), kwargs.get("constant_values", 0))


def tril(m: Any, k: int = 0) -> Tensor:
    """Without what is above a diagonal."""
    return raw.tril(tensor(m), k)


def triu(m: Any, k: int = 0) -> Tensor:
    """Without what is below a diagonal."""
    return raw.triu(tensor(m), k)


def diag(v: Any, k: int = 0) -> Tensor:
    """The diagonal of a matrix, or a matrix with this diagonal."""
    x = tensor(v)
    return raw.diag(x, k) if x.ndim == 1 else diagonal(x, k)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """A diagonal."""
    x = moveaxis(a, [axis1, axis2], [-2, -1])
    return raw.diag_part(x, offset)


def diagflat(v: Any, k: int = 0) -> Tensor:
    """A matrix with these elements on a diagonal."""
    return raw.diag(ravel(v), k)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """The sum of a diagonal."""
    made = raw.sum(diagonal(a, offset, axis1, axis2), [-1], False)
    return made if dtype is None else cast(made, dtype)


# Reductions.


def _whole(x: Tensor) -> Tensor:
    """Sums of small integers are int64, as NumPy's."""
    kind = numpy_type(x)
    if kind.kind in "bi" and kind.itemsize < 8:
        return cast(x, np.int64)
    return cast(x, np.uint64) if kind.kind == "u" and kind.itemsize < 8 else x


sum = reduction("sum", lambda x, axes, keep: raw.sum(_whole(x), axes, keep), "The sum along axes.")
prod = reduction("prod", lambda x, axes, keep: raw.prod(_whole(x), axes, keep), "The product along axes.")
mean = reduction("mean", lambda x, axes, keep: raw.mean(floats(x), axes, keep), "The mean along axes.")
amax = reduction("amax", lambda x, axes, keep: raw.max(x, axes, keep), "The maximum along axes.")
amin = reduction("amin", lambda x, axes, keep: raw.min(x, axes, keep), "The minimum along axes.")
max = reduction("max", lambda x, axes, keep: raw.max(x, axes, keep), "The maximum along axes.")
min = reduction("min", lambda x, axes, keep: raw.min(x, axes, keep), "The minimum along axes.")
nansum = reduction(
    "nansum", lambda x, axes, keep: raw.sum(_whole(_without_nan(x, 0)), axes, keep), "The sum without NaN."
)
nanprod = reduction(
    "nanprod", lambda x, axes, keep: raw.prod(_whole(_without_nan(x, 1)), axes, keep), "The product without NaN."
)


def _without_nan(x: Tensor, value: int) -> Tensor:
    if not (x.dtype.is_floating or x.dtype.is_complex):
        return x
    return raw.where(_is_nan(x), raw.full([], value, x.dtype), x)


def _is_nan(x: Tensor) -> Tensor:
    """Where an element is NaN. A complex number is if one of its parts is."""
    if x.dtype.is_complex:
        return raw.logical_or(raw.is_nan(raw.real(x)), raw.is_nan(raw.imag(x)))
    return raw.is_nan(x)


def _axes(axis: Any) -> Any:
    return None if axis is None else _shape(axis)


def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The mean without NaN."""
    x = floats(tensor(a, dtype))
    count = raw.sum(raw.cast(raw.logical_not(_is_nan(x)), x.dtype), _axes(axis), keepdims)
    return raw.sum(_without_nan(x, 0), _axes(axis), keepdims) / count


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool | None = None
) -> Tensor:
    """The variance along axes. That of complex numbers is real: the mean of |x - mean(x)|**2."""
    _no_out("var", out)
    x = floats(tensor(a, dtype))
    centred = x - raw.mean(x, _axes(axis), True)
    centred = raw.abs(centred) if x.dtype.is_complex else centred
    total = raw.sum(raw.square(centred), _axes(axis), bool(keepdims))
    count = math.prod(x.shape) if axis is None else math.prod(x.shape[i] for i in _shape(axis))
    return total / (count - ddof)


def std(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """The standard deviation along axes."""
    return raw.sqrt(var(a, axis, keepdims=keepdims))


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """The mean, by weight."""
    x = floats(a)
    share = raw.ones_like(x) if weights is None else raw.cast(tensor(weights), x.dtype)
    if share.shape != x.shape:
        share = raw.broadcast_to(raw.reshape(share, [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]), x.shape)
    total = raw.sum(share, _axes(axis), False)
    found = raw.sum(x * share, _axes(axis), False) / total
    return (found, total) if returned else found


def all(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Whether all are true."""
    return raw.all(cast(tensor(a), bool), _axes(axis), bool(keepdims))


def any(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Whether one is true."""
    return raw.any(cast(tensor(a), bool), _axes(axis), bool(keepdims))


def ptp(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """The range from the minimum to the maximum."""
    return amax(a, axis, keepdims=keepdims) - amin(a, axis, keepdims=keepdims)


def count_nonzero(a: Any, axis: Any = None) -> Tensor:
    """The number of elements that are not zero."""
    return raw.sum(raw.cast(cast(tensor(a), bool), "int64"), _axes(axis), False)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Sums of the elements so far."""
    x = _whole(tensor(a, dtype))
    return raw.cumsum(ravel(x), 0) if axis is None else raw.cumsum(x, axis)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Products of the elements so far."""
    x = _whole(tensor(a, dtype))
    return raw.cumprod(ravel(x), 0) if axis is None else raw.cumprod(x, axis)


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Differences of neighbours."""
    from ...array_api import diff as differences

    return differences(tensor(a), axis=axis, n=n)


# Searching and sorting.


def argmax(a: Any, axis: int | None = None) -> Tensor:
    """The index of the maximum."""
    x = tensor(a)
    return raw.cast(raw.argmax(ravel(x), 0) if axis is None else raw.argmax(x, axis), "int64")


def argmin(a: Any, axis: int | None = None) -> Tensor:
    """The index of the minimum."""
    x = tensor(a)
    return raw.cast(raw.argmin(ravel(x), 0) if axis is None else raw.argmin(x, axis), "int64")


def sort(a: Any, axis: int | None = -1, kind: str = "quicksort", order: Any = None) -> Tensor:
    """Sorted along an axis."""
    if order is not None:
        raise ValueError("sort: order must be None")
    x = tensor(a)
    return raw.sort(ravel(x), 0) if axis is None else raw.sort(x, axis)


def argsort(a: Any, axis: int | None = -1, kind: str = "quicksort", order: Any = None) -> Tensor:
    """The indices that sort."""
    if order is not None:
        raise ValueError("argsort: order must be None")
    x = tensor(a)
    return raw.cast(raw.argsort(ravel(x), 0) if axis is None else raw.argsort(x, axis), "int64")


def nonzero(a: Any) -> list[Tensor]:
    """The indices of elements that are not zero, one tensor per axis; the values must be known."""
    return [tensor(part) for part in np.nonzero(tensor(a).numpy())]


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`x` where a condition holds, else `y`; with the condition alone, the indices of where it holds."""
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("where: x and y must both be given, or neither")
    return raw.where(cast(tensor(condition), bool), *promoted(x, y))


def select(condlist: Sequence, choicelist: Sequence, default: Any = 0) -> Tensor:
    """The choice of the first condition that holds."""
    *choices, made = promoted(*choicelist, default)
    for condition, choice in list(zip(condlist, choices))[::-1]:
        made = raw.where(tensor(condition), choice, made)
    return made


def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "clip") -> Tensor:
    """Elements by index; those out of range are the nearest ones ("clip") or wrap around ("wrap")."""
    _no_out("take", out)
    x = ravel(a) if axis is None else tensor(a)
    place = 0 if axis is None else axis
    size, number = x.shape[place], tensor(indices)
    if mode not in ("clip", "wrap", "raise"):
        raise ValueError(f"take: mode must be 'clip', 'wrap' or 'raise', got {mode!r}")
    if mode == "clip":
        number = raw.clip_by_value(number, 0, size - 1)
    elif mode == "wrap":
        number = raw.mod(number, size)
    return raw.gather(x, number, place)


def take_along_axis(arr: Any, indices: Any, axis: int | None) -> Tensor:
    """Elements by index along an axis."""
    x = ravel(arr) if axis is None else tensor(arr)
    return raw.take_along_axis(x, tensor(indices), 0 if axis is None else axis)


def compress(condition: Any, a: Any, axis: int | None = None) -> Tensor:
    """The elements where a condition, whose value must be known, holds."""
    x = ravel(a) if axis is None else tensor(a)
    return raw.gather(x, tensor(np.flatnonzero(tensor(condition).numpy())), 0 if axis is None else axis)


# Products.


def dot(a: Any, b: Any) -> Tensor:
    """The product along the last axis of `a` and the last but one of `b`."""
    one, other = promoted(a, b)
    if not one.ndim or not other.ndim:
        return one * other
    return tensordot(one, other, [[one.ndim - 1], [builtins.max(other.ndim - 2, 0)]])


def inner(a: Any, b: Any) -> Tensor:
    """The product along the last axes."""
    one, other = promoted(a, b)
    if not one.ndim or not other.ndim:
        return one * other
    return tensordot(one, other, [[one.ndim - 1], [other.ndim - 1]])


def outer(a: Any, b: Any) -> Tensor:
    """The products of all pairs of elements."""
    one, other = promoted(a, b)
    return raw.reshape(one, [-1, 1]) * raw.reshape(other, [1, -1])


def vdot(a: Any, b: Any) -> Tensor:
    """The sum of the products of all elements; those of `a` are conjugated if they are complex."""
    one, other = promoted(a, b)
    one = raw.conj(one) if one.dtype.is_complex else one
    return raw.sum(ravel(one) * ravel(other), [0], False)


def matmul(x1: Any, x2: Any) -> Tensor:
    """The matrix product."""
    one, other = promoted(x1, x2)
    return raw.matmul(one, other)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """The sum of products along axes."""
    from ..._ops.linalg import tensordot as contracted

    one, other = promoted(a, b)
    return contracted(one, other, axes)


def einsum(subscripts: str, *operands: Any, optimize: Any = None) -> Tensor:
    """The sum of products that subscripts describe."""
    from ..._ops.linalg import einsum as contracted

    return contracted(subscripts, *promoted(*operands))


def kron(a: Any, b: Any) -> Tensor:
    """The Kronecker product."""
    one, other = promoted(a, b)
    rank = one.ndim if one.ndim > other.ndim else other.ndim
    left = [1] * (rank - one.ndim) + list(one.shape)
    right = [1] * (rank - other.ndim) + list(other.shape)
    product = raw.reshape(one, [part for size in left for part in (size, 1)]) * raw.reshape(
        other, [part for size in right for part in (1, size)]
    )
    return raw.reshape(product, [x * y for x, y in zip(left, right)])


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """The cross product of vectors of two or three elements. Of two vectors of two elements, it is a number."""
    from ..._ops.linalg import cross as product

    one, other = promoted(a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    one, other = raw.moveaxis(one, axisa, -1), raw.moveaxis(other, axisb, -1)
    if one.shape[-1] == 2 == other.shape[-1]:
        return one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0]
    one, other = (raw.pad(x, [[0, 0]] * (x.ndim - 1) + [[0, 1]]) if x.shape[-1] == 2 else x for x in (one, other))
    return raw.moveaxis(product(one, other), -1, axisc)


# What it is.


def shape(a: Any) -> TensorShape:
    """The shape."""
    return tensor(a).shape


def size(x: Any, axis: int | None = None) -> Tensor:
    """The number of elements, or the size of an axis."""
    found = tensor(x).shape
    return tensor(math.prod(found) if axis is None else found[axis])


def ndim(a: Any) -> int:
    """The number of axes."""
    return tensor(a).ndim


ndarray = _native.Tensor
