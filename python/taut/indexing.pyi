"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

class Unique:
    def __getattr__(self, name: str) -> Any: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class UniqueWithCounts:
    def __getattr__(self, name: str) -> Any: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def argsort(values: Any, axis: int = ..., direction: str = ..., stable: bool = ..., name: str | None = ...) -> Tensor:
    """The indices, int32, that sort the elements along an axis. Equal elements always keep their order."""

def boolean_mask(tensor: Any, mask: Any, axis: Any = ..., name: str = ...) -> Tensor:
    """The slices where a mask of the dimensions from `axis` on is true. Those dimensions become one."""

def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = ...) -> list[Tensor]:
    """The slices of `data` by the number of the part they belong to. Parts may be of any size."""

def dynamic_stitch(indices: Sequence, data: Sequence, name: str | None = ...) -> Tensor:
    """Slices of several tensors, each where its index says; of several for one place, the last stays."""

def gather(params: Any, indices: Any, validate_indices: bool | None = ..., axis: Any = ..., batch_dims: int = ..., name: str | None = ...) -> Tensor:
    """The slices along an axis that `indices` name. An index outside the axis is always an error."""

def gather_nd(params: Any, indices: Any, batch_dims: int = ..., name: str | None = ...) -> Tensor:
    """The slices at the coordinates along the last axis of `indices`."""

def histogram_fixed_width(values: Any, value_range: Any, nbins: Any = ..., dtype: Any = ..., name: str | None = ...) -> Tensor:
    """How many values fall into each of `nbins` bins of equal width."""

def histogram_fixed_width_bins(values: Any, value_range: Any, nbins: Any = ..., dtype: Any = ..., name: str | None = ...) -> Tensor:
    """Which of `nbins` equal bins each value falls into; what lies outside is in the first or the last."""

def reverse_sequence(input: Any, seq_lengths: Any, seq_axis: int | None = ..., batch_axis: int | None = ..., name: str | None = ...) -> Tensor:
    """The first `seq_lengths[i]` elements along `seq_axis` of entry `i` of the batch in reverse order."""

def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = ...) -> Tensor:
    """Zeros of this shape with `updates` added at the coordinates along the last axis of `indices`."""

def searchsorted(sorted_sequence: Any, values: Any, side: str = ..., out_type: Any = ..., name: str | None = ...) -> Tensor:
    """Where each value would go in ascending sequences: before what equals it, or after it ("right")."""

def slice(input_: Any, begin: Any, size: Any, name: str | None = ...) -> Tensor:
    """The part that begins at `begin` and has this size; -1 stands for all that is left of an axis."""

def sort(values: Any, axis: int = ..., direction: str = ..., name: str | None = ...) -> Tensor:
    """The elements in order along an axis."""

def strided_slice(input_: Any, begin: Any, end: Any, strides: Any = ..., begin_mask: int = ..., end_mask: int = ..., ellipsis_mask: int = ..., new_axis_mask: int = ..., shrink_axis_mask: int = ..., var: Any = ..., name: str | None = ...) -> Tensor:
    """`x[begin:end:strides]`, an entry per axis."""

def take_along_axis(x: TensorLike, indices: TensorLike, axis: int = ..., *, name: str | None = ...) -> Any:
    """One element per index: `out[.., j, ..] = x[.., indices[.., j, ..], ..]` along the axis. `argsort` makes such"""

def tensor_scatter_nd_add(tensor: Any, indices: Any, updates: Any, name: str | None = ...) -> Tensor:
    """The tensor with `updates` added to the slices at these coordinates."""

def tensor_scatter_nd_max(tensor: Any, indices: Any, updates: Any, name: str | None = ...) -> Tensor:
    """The tensor with the slices at these coordinates raised to `updates` where those are larger."""

def tensor_scatter_nd_min(tensor: Any, indices: Any, updates: Any, name: str | None = ...) -> Tensor:
    """The tensor with the slices at these coordinates lowered to `updates` where those are smaller."""

def tensor_scatter_nd_sub(tensor: Any, indices: Any, updates: Any, name: str | None = ...) -> Tensor:
    """The tensor with `updates` subtracted from the slices at these coordinates."""

def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: str | None = ...) -> Tensor:
    """The tensor with the slices at these coordinates replaced."""

def unique(x: Any, out_idx: Any = ..., name: str | None = ...) -> Unique:
    """The distinct elements of a vector, as they first occur, and which of them each element is."""

def unique_with_counts(x: Any, out_idx: Any = ..., name: str | None = ...) -> UniqueWithCounts:
    """As `unique`, and how often each element occurs."""

def unravel_index(indices: Any, dims: Any, name: str | None = ...) -> Tensor:
    """Positions in row-major order as coordinates, along a new first axis."""

def where(condition: Any, x: Any = ..., y: Any = ..., name: str | None = ...) -> Tensor:
    """`x` where the condition is true, `y` elsewhere; without them, int64 coordinates of what is true."""
