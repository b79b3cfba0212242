"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

from .debugging import Assert as Assert
def abs(x: TensorLike, *, name: str | None = ...) -> Any:
    """The magnitude of each element; the smallest signed integer has none in its type and stays as it is."""

def acos(x: TensorLike, *, name: str | None = ...) -> Any:
    """The angle between 0 and pi whose cosine is x; NaN outside -1 to 1."""

def acosh(x: TensorLike, *, name: str | None = ...) -> Any:
    """The inverse hyperbolic cosine of each element; NaN below 1."""

def add(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x + y. Also `x + y` on tensors and numbers."""

from .math import add_n as add_n
from .math import argmax as argmax
from .math import argmin as argmin
from .indexing import argsort as argsort
def asin(x: TensorLike, *, name: str | None = ...) -> Any:
    """The angle between -pi/2 and pi/2 whose sine is x; NaN outside -1 to 1."""

def asinh(x: TensorLike, *, name: str | None = ...) -> Any:
    """The inverse hyperbolic sine of each element."""

from .debugging import assert_equal as assert_equal
from .debugging import assert_greater as assert_greater
from .debugging import assert_less as assert_less
from .debugging import assert_rank as assert_rank
def atan(x: TensorLike, *, name: str | None = ...) -> Any:
    """The angle between -pi/2 and pi/2 whose tangent is x."""

def atan2(y: TensorLike, x: TensorLike, *, name: str | None = ...) -> Any:
    """The angle between -pi and pi of the point at abscissa x and ordinate y."""

def atanh(x: TensorLike, *, name: str | None = ...) -> Any:
    """The inverse hyperbolic tangent of each element; NaN outside -1 to 1."""

def batch_to_space(input: Any, block_shape: Any, crops: Any, name: str | None = ...) -> Tensor:
    """Entries of the batch become blocks of the axes after the first, which are then cropped."""

def bitcast(input: TensorLike, type: DTypeLike, *, name: str | None = ...) -> Any:
    """The same bits as another type, without copying where the layout allows it. A type of half the size adds a last"""

from .indexing import boolean_mask as boolean_mask
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape that tensors of two shapes meet in, as a tensor."""

def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape that tensors of two shapes meet in."""

def broadcast_to(input: TensorLike, shape: int | Sequence[int], *, name: str | None = ...) -> Any:
    """Repeats axes of size one, and adds leading axes, to reach `shape`. Without copying."""

def cast(x: Any, dtype: Any, name: str | None = ...) -> Any:
    """The same values in another element type."""

def clip_by_global_norm(t_list: Sequence, clip_norm: Any, use_norm: Any = ..., name: str | None = ...) -> tuple[list, Tensor]:
    """The tensors, scaled by one factor to a norm of at most `clip_norm` as one vector; and their norm."""

def clip_by_norm(t: Any, clip_norm: Any, axes: Any = ..., name: str | None = ...) -> Any:
    """The tensor, scaled down to a Euclidean norm of at most `clip_norm`, as a whole or along some axes."""

def clip_by_value(t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, *, name: str | None = ...) -> Any:
    """Each element, or the bound that it exceeds; the upper bound wins where the two contradict each other. NaN stays NaN."""

def concat(values: Any, axis: Any, name: str = ...) -> Tensor:
    """The tensors one after the other along an axis that they have."""

def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """What is in the block comes after these: as everything comes after what was written before it."""

def cos(x: TensorLike, *, name: str | None = ...) -> Any:
    """The cosine of each element, an angle in radians."""

def cosh(x: TensorLike, *, name: str | None = ...) -> Any:
    """The hyperbolic cosine of each element."""

from .math import cumsum as cumsum
def device(device_name: Any) -> Iterator[None]:
    """Runs a block on a device. There is one, the processor, and another one is refused."""

def divide(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x / y, in floating point: integers give `float64`. Also `x / y` on tensors and numbers."""

from .indexing import dynamic_partition as dynamic_partition
from .indexing import dynamic_stitch as dynamic_stitch
from .linalg import einsum as einsum
def ensure_shape(x: Any, shape: Any, name: str | None = ...) -> Tensor:
    """The tensor itself, if it has this shape; None stands for any size."""

def equal(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is equal to y; NaN is equal to nothing."""

def exp(x: TensorLike, *, name: str | None = ...) -> Any:
    """e to the power of each element."""

def expand_dims(input: TensorLike, axis: int, *, name: str | None = ...) -> Any:
    """Adds an axis of size one that becomes axis `axis` of the result, without copying."""

from .linalg import eye as eye
def fill(dims: Any, value: Any, name: str | None = ...) -> Tensor:
    """A tensor of one value."""

def floor(x: TensorLike, *, name: str | None = ...) -> Any:
    """The largest whole number that is not above each element."""

def floordiv(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The largest whole number that is not above `x / y`, in the operands' own type; an integer divided by 0 is 0."""

from .indexing import gather as gather
from .indexing import gather_nd as gather_nd
from .linalg import global_norm as global_norm
def greater(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is greater than y. NaN compares as false."""

def greater_equal(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is greater than or equal to y. NaN compares as false."""

def group(*inputs: Any, name: str | None = ...) -> None:
    """Nothing: what was called has been done, or is written into the trace."""

from .indexing import histogram_fixed_width as histogram_fixed_width
from .indexing import histogram_fixed_width_bins as histogram_fixed_width_bins
def identity(input: TensorLike, *, name: str | None = ...) -> Any:
    """A copy in row-major order, with memory of its own: what makes a view independent of the tensor it looks at."""

def identity_n(input: Sequence, name: str | None = ...) -> list[Tensor]:
    """Copies of several tensors."""

def less(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is less than y. NaN compares as false."""

def less_equal(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is less than or equal to y. NaN compares as false."""

def linspace(start: Any, stop: Any, num: Any, name: str | None = ..., axis: int = ...) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, both among them, along a new axis."""

def logical_and(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where both x and y are true."""

def logical_not(x: TensorLike, *, name: str | None = ...) -> Any:
    """True where an element is zero or false."""

def logical_or(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x or y is true."""

from .linalg import matmul as matmul
def maximum(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The larger of x and y; NaN if either is."""

def meshgrid(*args: Any, indexing: str = ..., name: str | None = ...) -> list[Tensor]:
    """The coordinates of every point of a grid, one tensor per axis."""

def minimum(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The smaller of x and y; NaN if either is."""

def multiply(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x * y. Also `x * y` on tensors and numbers."""

def name_scope(name: str | None) -> Iterator[str]:
    """A name for a piece of program. Ops are told apart by their lines; nothing is named."""

def negative(x: TensorLike, *, name: str | None = ...) -> Any:
    """`-x`; integers wrap. Also `-x` on tensors."""

def no_op(name: str | None = ...) -> None:
    """Nothing."""

from .linalg import norm as norm
def not_equal(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is not equal to y; NaN is unequal to everything."""

from .inside import numpy_function as numpy_function
def one_hot(indices: Any, depth: Any, on_value: Any = ..., off_value: Any = ..., axis: int | None = ..., dtype: Any = ..., name: str | None = ...) -> Tensor:
    """A new axis of size `depth`, with `on_value` at each index and `off_value` elsewhere."""

def ones(shape: Any, dtype: Any = ..., name: str | None = ...) -> Tensor:
    """A tensor of ones."""

def ones_like(input: TensorLike, dtype: DTypeLike | None = ..., *, name: str | None = ...) -> Any:
    """Ones in `input`'s shape, and in its type unless another is given."""

def pad(tensor: Any, paddings: Any, mode: str = ..., constant_values: Any = ..., name: str | None = ...) -> Tensor:
    """A margin around a tensor: a constant, or the tensor mirrored with (`SYMMETRIC`) or without its edge."""

def parallel_stack(values: Any, name: str = ...) -> Tensor:
    """The tensors side by side along a new first axis."""

def pow(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x to the power of y. Integers wrap; of a negative power they keep what an integer can: the reciprocal, truncated."""

from .inside import print as print
from .inside import py_function as py_function
def range(start: Any, limit: Any = ..., delta: Any = ..., dtype: Any = ..., name: str = ...) -> Tensor:
    """Numbers from `start` up to `limit`, which is not among them, `delta` apart."""

def realdiv(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x / y, in floating point: integers give `float64`. Also `x / y` on tensors and numbers."""

def reduce_all(input_tensor: TensorLike, axis: int | Sequence[int] | None = ..., keepdims: bool = ..., *, name: str | None = ...) -> Any:
    """Whether all elements are true (not zero), over some axes; over all of them if `axes` is `None`."""

def reduce_any(input_tensor: TensorLike, axis: int | Sequence[int] | None = ..., keepdims: bool = ..., *, name: str | None = ...) -> Any:
    """Whether any element is true (not zero), over some axes; over all of them if `axes` is `None`."""

def reduce_logsumexp(input_tensor: TensorLike, axis: int | Sequence[int] | None = ..., keepdims: bool = ..., *, name: str | None = ...) -> Any:
    """log(sum(exp(x))) over some axes, without overflow; over all of them if `axes` is `None`."""

from .math import reduce_max as reduce_max
from .math import reduce_mean as reduce_mean
from .math import reduce_min as reduce_min
from .math import reduce_prod as reduce_prod
from .math import reduce_sum as reduce_sum
def repeat(input: Any, repeats: Any, axis: int | None = ..., name: str | None = ...) -> Tensor:
    """Elements, each several times; of the flattened tensor unless an axis is given."""

def reshape(tensor: TensorLike, shape: int | Sequence[int], *, name: str | None = ...) -> Any:
    """The same elements in the same order under another shape; one dimension may be -1 and is worked out. Copies only"""

def reverse(tensor: TensorLike, axis: int | Sequence[int], *, name: str | None = ...) -> Any:
    """The elements in reverse order along the given axes, without copying."""

from .indexing import reverse_sequence as reverse_sequence
def roll(input: TensorLike, shift: int | Sequence[int], axis: int | Sequence[int], *, name: str | None = ...) -> Any:
    """Moves elements by `shift[i]` places along `axis[i]`; what leaves at one end comes in at the other. An axis given"""

def round(x: TensorLike, *, name: str | None = ...) -> Any:
    """The nearest whole number; halves go to the even one."""

def saturate_cast(value: Any, dtype: Any, name: str | None = ...) -> Tensor:
    """The same values in another element type; those that it cannot hold become its largest or smallest."""

from .math import scalar_mul as scalar_mul
from .indexing import scatter_nd as scatter_nd
from .indexing import searchsorted as searchsorted
def sequence_mask(lengths: Any, maxlen: Any = ..., dtype: Any = ..., name: str | None = ...) -> Tensor:
    """For each length, that many times true, then false up to `maxlen`, or to the largest length."""

def shape_n(input: Sequence, out_type: Any = ..., name: str | None = ...) -> list[Tensor]:
    """The shapes of several tensors, as tensors."""

def sigmoid(x: TensorLike, *, name: str | None = ...) -> Any:
    """`1 / (1 + exp(-x))`, between 0 and 1."""

def sign(x: TensorLike, *, name: str | None = ...) -> Any:
    """-1, 0 or 1, as each element is below, at or above zero; NaN stays NaN."""

def sin(x: TensorLike, *, name: str | None = ...) -> Any:
    """The sine of each element, an angle in radians."""

def sinh(x: TensorLike, *, name: str | None = ...) -> Any:
    """The hyperbolic sine of each element."""

from .indexing import slice as slice
from .indexing import sort as sort
def space_to_batch(input: Any, block_shape: Any, paddings: Any, name: str | None = ...) -> Tensor:
    """Blocks of the axes after the first, padded, become entries of the batch."""

def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any, name: str | None = ...) -> Tensor:
    """Blocks of the axes after the first, padded, become entries of the batch."""

def split(value: Any, num_or_size_splits: Any, axis: Any = ..., num: int | None = ..., name: str = ...) -> list[Tensor]:
    """Parts of a tensor along an axis: so many equal ones, or of these sizes, of which one may be -1."""

def sqrt(x: TensorLike, *, name: str | None = ...) -> Any:
    """The square root of each element; NaN below zero."""

def square(x: TensorLike, *, name: str | None = ...) -> Any:
    """The square of each element, `x * x`; integers wrap."""

def squeeze(input: TensorLike, axis: int | Sequence[int] | None = ..., *, name: str | None = ...) -> Any:
    """Removes the given axes, which must have size one, or all such axes if none are given. Without copying."""

def stack(values: Any, axis: int = ..., name: str = ...) -> Tensor:
    """The tensors side by side along a new axis. A tensor stands for its slices along the first."""

from .indexing import strided_slice as strided_slice
def subtract(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x - y. Also `x - y` on tensors and numbers."""

def take_along_axis(x: TensorLike, indices: TensorLike, axis: int = ..., *, name: str | None = ...) -> Any:
    """One element per index: `out[.., j, ..] = x[.., indices[.., j, ..], ..]` along the axis. `argsort` makes such"""

def tan(x: TensorLike, *, name: str | None = ...) -> Any:
    """The tangent of each element, an angle in radians."""

def tanh(x: TensorLike, *, name: str | None = ...) -> Any:
    """The hyperbolic tangent of each element, between -1 and 1."""

from .indexing import tensor_scatter_nd_add as tensor_scatter_nd_add
from .indexing import tensor_scatter_nd_max as tensor_scatter_nd_max
from .indexing import tensor_scatter_nd_min as tensor_scatter_nd_min
from .indexing import tensor_scatter_nd_sub as tensor_scatter_nd_sub
from .indexing import tensor_scatter_nd_update as tensor_scatter_nd_update
from .linalg import tensordot as tensordot
def tile(input: TensorLike, multiples: int | Sequence[int], *, name: str | None = ...) -> Any:
    """Copies of the whole tensor side by side, `multiples[i]` of them along axis `i`."""

def transpose(a: Any, perm: Any = ..., conjugate: bool = ..., name: str = ...) -> Tensor:
    """The tensor with its axes in another order: reversed, unless one is given."""

def truediv(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x / y, in floating point: integers give `float64`. Also `x / y` on tensors and numbers."""

def truncatediv(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """`x / y` of integers, rounded toward zero; `x / y` of floats, without its fraction."""

def truncatemod(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """What division that rounds toward zero leaves over, of the sign of x as in C; an integer modulo 0 is 0."""

from .indexing import unique as unique
from .indexing import unique_with_counts as unique_with_counts
from .indexing import unravel_index as unravel_index
def unstack(value: Any, num: int | None = ..., axis: int = ..., name: str = ...) -> list[Tensor]:
    """The slices of a tensor along an axis, which they no longer have."""

from .indexing import where as where
def zeros(shape: Any, dtype: Any = ..., name: str | None = ...) -> Tensor:
    """A tensor of zeros."""

def zeros_like(input: TensorLike, dtype: DTypeLike | None = ..., *, name: str | None = ...) -> Any:
    """Zeros in `input`'s shape, and in its type unless another is given."""
