"""Queues of tensors between threads: `tf.queue`."""

from __future__ import annotations

import bisect
import random
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _namespace, _native, _raw_ops as raw, dtypes
from ._common import refuse
from .errors import CancelledError, InvalidArgumentError, OutOfRangeError
from .shape import TensorShape

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue"]

Element = tuple[_native.Tensor, ...]


class QueueBase:
    """A bounded queue whose elements are tuples of tensors. `enqueue` waits while it is full, `dequeue` while it is empty.

    Queues are used by threads that run op by op; a traced function cannot wait for one.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: Any = None,
        name: str = "queue",
    ) -> None:
        listed = list(dtypes) if isinstance(dtypes, (list, tuple)) else [dtypes]
        self._dtypes = [_dtype(one) for one in listed]
        self._capacity = int(capacity)
        self._name = name
        if shared_name is not None:
            refuse(
                type(self).__name__,
                f"shared_name must be None, got {shared_name!r}: a queue belongs to its object",
                ValueError,
            )
        if shapes is not None:
            # One shape is that of the one component.
            if (
                isinstance(shapes, TensorShape)
                or not len(shapes)
                or not isinstance(shapes[0], (list, tuple, TensorShape))
            ):
                shapes = [shapes]
            shapes = [TensorShape(one) for one in shapes]
            if len(shapes) != len(self._dtypes):
                raise ValueError(f"{type(self).__name__}: expected {len(self._dtypes)} shapes, got {len(shapes)}")
        self._shapes: list[TensorShape] | None = shapes
        self._names: list[str] | None = None if names is None else [names] if isinstance(names, str) else list(names)
        if self._names is not None and len(self._names) != len(self._dtypes):
            raise ValueError(f"{type(self).__name__}: expected {len(self._dtypes)} names, got {len(self._names)}")
        self._elements: list[Any] = []
        self._changed = threading.Condition()
        self._closed = self._cancelled = False

    # How elements are ordered.

    def _put(self, element: Element) -> None:
        self._elements.append(element)

    def _take(self) -> Element:
        return self._elements.pop(0)

    #: How many elements stay in an open queue.
    _kept = 0

    # Properties.

    @property
    def dtypes(self) -> list[_native.DType]:
        """The element types of the components."""
        return list(self._dtypes)

    @property
    def shapes(self) -> list[TensorShape]:
        """The shapes of the components, unknown ones if none were given."""
        return [TensorShape(None) for _ in self._dtypes] if self._shapes is None else list(self._shapes)

    @property
    def names(self) -> list[str] | None:
        """The names of the components: elements are dicts if there are any."""
        return self._names

    @property
    def name(self) -> str:
        """The name it was made with."""
        return self._name

    def size(self, name: str | None = None) -> _native.Tensor:
        """The number of elements."""
        return _native.own_tensor(np.int32(len(self._elements)))

    def is_closed(self, name: str | None = None) -> _native.Tensor:
        """Whether it was closed."""
        return _native.own_tensor(np.bool_(self._closed))

    @staticmethod
    def from_list(index: int, queues: Sequence[QueueBase]) -> QueueBase:
        """One of several queues with equal element types and names."""
        for queue in queues:
            if not isinstance(queue, QueueBase):
                raise TypeError(f"QueueBase.from_list: expected queues, got {queue!r}")
            if queue.dtypes != queues[0].dtypes or queue.names != queues[0].names:
                raise TypeError("QueueBase.from_list: queues must have equal element types and names")
        return queues[int(index)]

    # What users call.

    def enqueue(self, vals: Any, name: str | None = None) -> None:
        """Adds one element, and waits while the queue is full."""
        self._add([self._element(vals, 0)])

    def enqueue_many(self, vals: Any, name: str | None = None) -> None:
        """Adds the rows of tensors as elements, and waits while the queue is full."""
        parts = self._element(vals, 1)
        counts = {part.shape[0] for part in parts}
        if len(counts) != 1:
            raise InvalidArgumentError(
                f"enqueue_many: components must have equal numbers of rows, got {sorted(counts)}"
            )
        self._add([tuple(part[i] for part in parts) for i in range(counts.pop())])

    def dequeue(self, name: str | None = None) -> Any:
        """Removes one element, and waits while there is none."""
        (element,) = self._remove("dequeue", 1, 1)
        return self._structure(element)

    def dequeue_many(self, n: int, name: str | None = None) -> Any:
        """Removes `n` elements and stacks their components, and waits until there are so many."""
        return self._stacked("dequeue_many", int(n), int(n))

    def dequeue_up_to(self, n: int, name: str | None = None) -> Any:
        """Removes `n` elements, or the rest of a closed queue, and stacks their components."""
        return self._stacked("dequeue_up_to", 1, int(n))

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> None:
        """Ends the adding of elements. Waiting calls of `enqueue` go on unless they are cancelled."""
        with self._changed:
            self._closed = True
            self._cancelled = self._cancelled or cancel_pending_enqueues
            self._changed.notify_all()

    def _element(self, vals: Any, rows: int) -> Element:
        """The components of an element, or of several as rows of tensors, checked."""
        kind = type(self).__name__
        if isinstance(vals, dict):
            if self._names is None or sorted(vals) != sorted(self._names):
                raise ValueError(f"{kind}: expected components named {self._names}, got {sorted(vals)}")
            vals = [vals[one] for one in self._names]
        elif self._names is not None:
            raise ValueError(f"{kind}: expected a dict of components named {self._names}, got {type(vals).__name__}")
        elif not isinstance(vals, (list, tuple)) or (len(self._dtypes) == 1 and len(vals) != 1):
            vals = [vals]
        if len(vals) != len(self._dtypes):
            raise ValueError(f"{kind}: expected {len(self._dtypes)} components, got {len(vals)}")
        parts = []
        for value, dtype, shape in zip(vals, self._dtypes, self.shapes):
            part = _native.as_tensor(value, None if isinstance(value, _native.Array) else dtype)
            if part.is_symbolic:
                refuse(kind, "a traced function cannot use a queue: call it op by op", ValueError)
            if part.dtype != dtype:
                raise TypeError(f"{kind}: expected a component of type {dtype.name}, got {part.dtype.name}")
            if part.ndim < rows or not shape.is_compatible_with(part.shape[rows:]):
                raise ValueError(f"{kind}: expected a component of shape {shape}, got {tuple(part.shape[rows:])}")
            parts.append(part)
        return tuple(parts)

    def _structure(self, parts: Element) -> Any:
        if self._names is not None:
            return dict(zip(self._names, parts))
        return parts[0] if len(parts) == 1 else list(parts)

    def _add(self, elements: list[Element]) -> None:
        with self._changed:
            if self._closed:
                raise CancelledError(f"{type(self).__name__} '{self._name}' is closed.")
            for element in elements:
                self._changed.wait_for(lambda: len(self._elements) < self._capacity or self._cancelled)
                if self._cancelled:
                    raise CancelledError(f"{type(self).__name__} '{self._name}': enqueue was cancelled by close.")
                self._put(element)
                self._changed.notify_all()

    def _remove(self, name: str, fewest: int, most: int) -> list[Element]:
        """Removes `most` elements, or at least `fewest` when the queue is closed."""
        with self._changed:
            found: list[Element] = []
            while len(found) < most:
                self._changed.wait_for(lambda: len(self._elements) > self._kept or self._closed)
                if not self._elements:
                    break
                found.append(self._take())
                self._changed.notify_all()
            if len(found) < fewest:
                for element in reversed(found):
                    self._elements.insert(0, element)
                raise OutOfRangeError(
                    f"{type(self).__name__} '{self._name}' is closed and has insufficient elements "
                    f"(requested {fewest}, current size {len(found)})"
                )
            return found

    def _stacked(self, name: str, fewest: int, most: int) -> Any:
        if most < 0:
            raise InvalidArgumentError(f"{name}: n must be >= 0, got {most}")
        if self._shapes is None or not self._stacks():
            raise InvalidArgumentError(f"{name}: the components of {type(self).__name__} must have known shapes")
        if not most:
            return self._structure(
                tuple(raw.zeros([0, *shape], dtype) for shape, dtype in zip(self._shapes, self._dtypes))
            )
        elements = self._remove(name, fewest, most)
        return self._structure(tuple(self._stack(list(parts)) for parts in zip(*elements)))

    def _stacks(self) -> bool:
        return all(shape.is_fully_defined() for shape in self.shapes)

    def _stack(self, parts: list[_native.Tensor]) -> _native.Tensor:
        return raw.stack(parts, 0)


class FIFOQueue(QueueBase):
    """A queue that returns elements in the order in which they were added."""

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        super().__init__(capacity, dtypes, shapes, names, shared_name, name)


class PaddingFIFOQueue(QueueBase):
    """A queue whose elements may differ in sizes that `shapes` leaves open: stacked elements are padded with zeros."""

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        super().__init__(capacity, dtypes, shapes, names, shared_name, name)

    def _stacks(self) -> bool:
        return all(shape.rank is not None for shape in self.shapes)

    def _stack(self, parts: list[_native.Tensor]) -> _native.Tensor:
        sizes = np.max([tuple(part.shape) for part in parts], 0).tolist()
        return raw.stack([_padded(part, sizes) for part in parts], 0)


class PriorityQueue(QueueBase):
    """A queue that returns the element with the smallest priority, an int64 that is its first component."""

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        listed = list(types) if isinstance(types, (list, tuple)) else [types]
        if shapes is None:
            raise ValueError("PriorityQueue: shapes must be given")
        if not len(shapes) or not isinstance(shapes[0], (list, tuple, TensorShape)):
            shapes = [shapes] if len(listed) else []
        super().__init__(capacity, [dtypes.int64, *listed], [[], *shapes], names, shared_name, name)

    def _put(self, element: Element) -> None:
        bisect.insort(self._elements, element, key=lambda one: int(one[0]))


class RandomShuffleQueue(QueueBase):
    """A queue that returns elements in random order, of which `min_after_dequeue` stay in it until it is closed."""

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        super().__init__(capacity, dtypes, shapes, names, shared_name, name)
        if not 0 <= min_after_dequeue < max(capacity, 1):
            raise InvalidArgumentError(
                f"RandomShuffleQueue: min_after_dequeue must be in [0, {capacity}), got {min_after_dequeue}"
            )
        self._kept = int(min_after_dequeue)
        self._random = random.Random(seed)

    def _take(self) -> Element:
        at = self._random.randrange(len(self._elements))
        self._elements[at], self._elements[-1] = self._elements[-1], self._elements[at]
        return self._elements.pop()


def _dtype(dtype: Any) -> _native.DType:
    return dtypes.as_dtype(dtype)


def _padded(part: _native.Tensor, sizes: list[int]) -> _native.Tensor:
    missing = [[0, size - own] for size, own in zip(sizes, part.shape)]
    if not any(after for _, after in missing):
        return part
    if part.dtype == dtypes.string:
        array = np.pad(np.asarray(part), missing, constant_values=b"")
        return _native.as_tensor(array.astype(object))
    return raw.pad(part, missing)


__getattr__, __dir__ = _namespace.plain(__name__)
