"""Stages of datasets that run in Python."""

from __future__ import annotations

import bisect
import itertools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import _native, dtypes, nest
from .._ops.random import has_seed
from ..errors import InvalidArgumentError, OpError, OutOfRangeError
from ..spec import TensorSpec
from ..type_spec import DatasetSpec
from . import _composites, _files, _fingerprints, _specs, _stages
from ._epochs import assigns_variables, next_epoch, noted, seed_of
from ._functions import StageFunction, arguments_of, expanding, step_function
from ._iterators import DatasetIterator
from ._joined import INFINITE_CARDINALITY
from ._structures import as_tensors, fill_unknown, flat_shapes, size_of

if TYPE_CHECKING:
    from ._dataset import Dataset


@_fingerprints.noted
class PythonStages:
    """The part of `Dataset` whose stages are generators."""

    _elements: Any
    _native: _native.Dataset
    _options: Any
    _spec: Any
    element_spec: Any
    _from_iterators: Callable[..., Any]
    __iter__: Callable[[], Any]
    unbatch: Callable[..., Any]
    batch: Callable[..., Any]
    skip: Callable[..., Any]
    _uniform: Callable[..., Any]
    #: The epoch in which elements are accessed by their indices.
    _access_epoch: int | None = None

    def _python_stage(
        self,
        elements: Callable[[], Iterator],
        known: Callable[[], _specs.MaybeElements] = lambda: None,
        spec: Callable[[], Any] = lambda: None,
        assigns: bool = False,
    ) -> Dataset:
        made = self._from_iterators(elements, known, spec)
        made._options = self._options
        noted(made._native, assigns or assigns_variables(self._native))
        return made

    def _as_endless(self, made: Dataset) -> Dataset:
        """A stage of an unknown number of elements, or of infinitely many if this dataset has no end."""
        endless = INFINITE_CARDINALITY
        return made._with_cardinality(endless) if self._native.cardinality() == endless else made

    def _holding(self, elements: list) -> Dataset:
        """A dataset of some elements of this one."""
        return self._python_stage(lambda: iter(elements), lambda: _specs.uniform(self._elements), lambda: self._spec)

    def scan(self, initial_state: Any, scan_func: Callable, name: str | None = None) -> Dataset:
        """Maps elements with a state: `scan_func(state, element)` returns the next state and an element."""
        state = as_tensors(initial_state)

        def result(made: Any) -> Any:
            after, element = _stages.scan_pair(made)
            return _stages.in_form(state, after), element

        step = step_function("scan", scan_func, state, self._spec, lambda made: _stages.scan_pair(made)[0], result)
        return self._python_stage(
            lambda: _stages.scanned(self, state, step.run),
            spec=lambda: None if step.spec is None else _stages.scan_pair(step.spec)[1],
            assigns=step.assigns,
        )._with_cardinality(self._native.cardinality())

    def unique(self, name: str | None = None) -> Dataset:
        """Keeps the first occurrence of each element. Elements must be tensors; all distinct ones are kept in memory."""
        return self._python_stage(
            lambda: _stages.distinct(self), lambda: _specs.uniform(self._elements), lambda: self._spec
        )

    def group_by_window(
        self,
        key_func: Callable,
        reduce_func: Callable,
        window_size: int | None = None,
        window_size_func: Callable | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Groups elements by key and maps each window of a group with `reduce_func(key, dataset)` to a dataset.

        A window has `window_size` elements, or `window_size_func(key)`; the last windows may have fewer.
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError("exactly one of window_size and window_size_func must be given")
        of_key = (TensorSpec([], dtypes.int64),)
        sizes = None if window_size_func is None else StageFunction("group_by_window", window_size_func, of_key)

        def size(key: Any) -> Any:
            return window_size if sizes is None else sizes.run(key)

        key = StageFunction("group_by_window", key_func, arguments_of(self._spec)).run
        windows = None if self._spec is None else (TensorSpec([], dtypes.int64), DatasetSpec(self._spec))
        reduced, spec = expanding("group_by_window", reduce_func, windows)
        made = self._python_stage(lambda: _stages.grouped(self, key, reduced, size, self._holding), spec=lambda: spec)
        return self._as_endless(made)

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable,
        bucket_boundaries: list[int],
        bucket_batch_sizes: list[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Batches elements of similar length, with a batch size per bucket of lengths.

        Elements are padded to the longest of their batch or, with `pad_to_bucket_boundary`, to the bucket's boundary in
        the unknown dimensions of `padded_shapes`.
        """
        if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
            raise ValueError(
                f"bucket_batch_sizes must have {len(bucket_boundaries) + 1} elements, one more than the boundaries, "
                f"got {len(bucket_batch_sizes)}"
            )
        if pad_to_bucket_boundary and padded_shapes is None:
            padded_shapes = nest.map_structure(lambda spec: spec.shape, self.element_spec)
        length = StageFunction("bucket_by_sequence_length", element_length_func, arguments_of(self._spec)).run

        def bucket(*element: Any) -> int:
            return bisect.bisect_right(bucket_boundaries, int(length(*element)))

        def batched(key: Any, window: Dataset) -> Dataset:
            number = int(key)
            if no_padding:
                return window.batch(bucket_batch_sizes[number], drop_remainder)
            shapes = padded_shapes
            if pad_to_bucket_boundary:
                if number == len(bucket_boundaries):
                    raise InvalidArgumentError(
                        f"elements must be shorter than the last boundary, {bucket_boundaries[-1]}"
                    )
                shapes = fill_unknown(shapes, bucket_boundaries[number] - 1)
            return window.padded_batch(bucket_batch_sizes[number], shapes, padding_values, drop_remainder)

        def spec() -> Any:
            if no_padding:
                return _specs.batched_spec(self._spec, None)
            shapes = [] if padded_shapes is None else flat_shapes(padded_shapes, None)
            unknown = [[None if dim in (None, -1) else int(dim) for dim in shape] for shape in shapes]
            return _specs.padded_spec(self._spec, unknown, None)

        def of_first(first: Any) -> Any:
            shapes = [] if padded_shapes is None else flat_shapes(padded_shapes, None)
            unknown = [[None if dim in (None, -1) else int(dim) for dim in shape] for shape in shapes]
            return _specs.of_first(first) if no_padding else _specs.padded_of_first(first, unknown, None)

        def size(key: Any) -> int:
            return bucket_batch_sizes[int(key)]

        made = self._python_stage(lambda: _stages.grouped(self, bucket, batched, size, self._holding), spec=spec)
        made._of_first = of_first
        return self._as_endless(made)

    def ragged_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        row_splits_dtype: Any = dtypes.int64,
        name: str | None = None,
    ) -> Dataset:
        """Combines elements whose sizes differ to ragged tensors; numbers become tensors, as with `batch`."""
        size, splits = size_of("ragged_batch", "batch_size", batch_size, 1), dtypes.as_dtype(row_splits_dtype)
        made = self._python_stage(lambda: _composites.ragged_batches(self, size, drop_remainder, splits))
        made._of_first = lambda first: _composites.batches_of_first(first, drop_remainder)
        return made._with_cardinality(_stages.batch_count(self._native.cardinality(), size, drop_remainder))

    def sparse_batch(self, batch_size: int, row_shape: Any, name: str | None = None) -> Dataset:
        """Combines tensors whose sizes differ to sparse tensors with rows of `row_shape`, or of the largest size where it is
        None.
        """
        size = size_of("sparse_batch", "batch_size", batch_size, 1)
        shape = [None if dim in (None, -1) else size_of("sparse_batch", "row_shape", dim, 0) for dim in row_shape]
        made = self._python_stage(lambda: _composites.sparse_batches(self, size, shape))
        made._of_first = lambda first: _composites.batches_of_first(first, False)
        return made._with_cardinality(_stages.batch_count(self._native.cardinality(), size, False))

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Dataset:
        """Changes the batch size. Several sizes take turns."""
        if isinstance(self._spec, TensorSpec) and self._spec.shape == []:
            raise ValueError("rebatch: expected batches, got scalars: use batch")
        several = isinstance(batch_size, (list, tuple)) or getattr(batch_size, "shape", ()) != ()
        sizes = [size_of("rebatch", "batch_size", size, 0) for size in (batch_size if several else [batch_size])]
        if not any(sizes):
            raise InvalidArgumentError(f"rebatch: a batch_size must be >= 1, got {sizes}")
        rows = self.unbatch()
        exact = sizes[0] if len(set(sizes)) == 1 else None
        if exact is not None and not drop_remainder:
            # Without it, batches are full if those before it can be divided.
            before = None if self._spec is None else _specs.row_count("rebatch", self._spec)
            exact = exact if before is not None and before % exact == 0 else None
        if len(sizes) == 1:
            return rows.batch(sizes[0], drop_remainder or exact is not None)
        return self._python_stage(
            lambda: _stages.rebatched(
                rows, sizes, drop_remainder, _stages.stacked, lambda: _stages.empty_batch(rows.element_spec)
            ),
            spec=lambda: _specs.batched_spec(rows._spec, exact),
        )

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """Leaves out elements whose computation fails; with `log_warning`, the errors are logged. How many they are is in
        `ignored_errors` of the iterator's `report()`.
        """

        def on_error(error: BaseException) -> None:
            if not isinstance(error, (OpError, ValueError, ArithmeticError, LookupError, OSError)):
                raise error
            if log_warning:
                import logging

                logging.getLogger("taut").warning("ignore_errors: %s", error)

        return self._uniform(self._native.ignore_errors(on_error))

    def rejection_resample(
        self,
        class_func: Callable,
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Rejects elements so that classes have a target distribution. Elements become pairs: class and element.

        Without `initial_dist` the distribution is estimated from the elements so far. With a seed, every iteration keeps the
        same elements.
        """
        start, runs = seed_of(seed), itertools.count() if seed is None and not has_seed() else itertools.repeat(0)
        key = StageFunction("rejection_resample", class_func, arguments_of(self._spec))
        target = np.asarray(_native.as_tensor(target_dist), np.float64)
        initial = None if initial_dist is None else np.asarray(_native.as_tensor(initial_dist), np.float64)
        if initial is not None and initial.shape != target.shape:
            raise ValueError(
                f"rejection_resample: initial_dist must have the shape of target_dist, {target.shape}, "
                f"got {initial.shape}"
            )
        made = self._python_stage(
            lambda: _stages.resampled(self, key.run, target, initial, [start, next(runs)]),
            spec=lambda: None if key.spec is None else (key.spec, self._spec),
        )
        return self._as_endless(made)

    @staticmethod
    def random(
        seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Dataset:
        """An infinite dataset of random integers in [0, 2**32). Every iteration has the same, unless
        `rerandomize_each_iteration` is true."""
        from ._dataset import Dataset

        start, runs = seed_of(seed), itertools.count()
        made = Dataset._from_iterators(
            lambda: _stages.drawn_numbers([start, next(runs) if rerandomize_each_iteration else 0]),
            lambda: _specs.exactly(TensorSpec([], dtypes.int64)),
        )
        return made._with_cardinality(-1)

    def save(
        self,
        path: str,
        compression: str | None = None,
        shard_func: Callable | None = None,
        checkpoint_args: dict[str, Any] | None = None,
    ) -> None:
        """Writes the elements into a folder, from which `Dataset.load` reads them. `compression` is None or "GZIP".

        `shard_func(element)` is the number of the file for an element, an int64.
        """
        if checkpoint_args is not None:
            raise ValueError("save: checkpoint_args must be None: a dataset is written at once")
        shard = None if shard_func is None else StageFunction("save", shard_func, arguments_of(self._spec)).run
        _files.save(self, self.element_spec, path, compression, shard)

    @staticmethod
    def load(
        path: str,
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Callable | None = None,
        wait: bool = False,
    ) -> Dataset:
        """The dataset that `save` has written. `element_spec` gives named tuples back; without it they are tuples.

        `reader_func` makes the dataset of a dataset of datasets, one for each file, in the order of their numbers. Without it,
        one element of each file is read after the other. With `wait`, it waits until the dataset is there.
        """
        if wait:
            _files.wait_for(path)
        index = _files.read_index(path)
        specs = _files.decoded(index["structure"])
        if element_spec is not None:
            flat = nest.flatten(element_spec)
            saved = nest.flatten(specs)
            if len(flat) != len(saved) or not all(one.is_compatible_with(two) for one, two in zip(flat, saved)):
                raise InvalidArgumentError(f"load: element_spec must match the elements, {specs}, got {element_spec}")
            specs = nest.pack_sequence_as(element_spec, nest.flatten(specs))
        return _loaded(path, index, specs, reader_func)

    def snapshot(
        self,
        path: str,
        compression: str = "AUTO",
        reader_func: Callable | None = None,
        shard_func: Callable | None = None,
        name: str | None = None,
    ) -> Dataset:
        """The elements, written to a folder by the first iteration and read from there by the next ones.

        `shard_func` and `reader_func` are those of `save` and `load`. The folder has a folder for each pipeline, by its stages,
        their arguments and the code of their functions: what was written for another one is not read.
        """
        path = os.path.join(path, _fingerprints.fingerprint(self))
        shard = None if shard_func is None else StageFunction("snapshot", shard_func, arguments_of(self._spec)).run

        def elements() -> Iterator:
            try:
                index = _files.read_index(path)
            except FileNotFoundError:
                return _files.saving(self, self.element_spec, path, compression, shard)
            return iter(_loaded(path, index, self._spec or _files.decoded(index["structure"]), reader_func))

        made = self._python_stage(elements, lambda: _specs.uniform(self._elements), lambda: self._spec)
        return made._with_cardinality(self._native.cardinality())

    def _at(self, index: int) -> Any:
        number = size_of("at", "index", index)
        count = self._native.cardinality()
        if number < 0 or 0 <= count <= number:
            raise OutOfRangeError(
                f"at: index must be in [0, {count if count >= 0 else 'the number of elements'}), got {number}"
            )
        if self._access_epoch is None:
            # All accesses see one order: that of an epoch of their own.
            self._access_epoch = next_epoch(self._native)
        rest = self._native.iterate((self._access_epoch, number))
        for element in DatasetIterator(rest, cast("Dataset", self)):
            return element
        raise OutOfRangeError(f"at: index must be below the number of elements, got {number}")


def _loaded(path: str, index: dict[str, Any], specs: Any, reader_func: Callable | None) -> Dataset:
    """The dataset of an index, as `reader_func` makes it of its files."""
    from ._dataset import Dataset

    uniform = all(isinstance(spec, TensorSpec) and spec.shape.is_fully_defined() for spec in nest.flatten(specs))

    def one(shard: dict[str, Any]) -> Dataset:
        made = Dataset._from_iterators(
            lambda: _files.load(path, index, specs, shard),
            lambda: _specs.exactly(specs) if uniform else None,
            lambda: specs,
        )
        return made._with_cardinality(shard["count"])

    # A dataset without elements has no file; `reader_func` sees the elements' types all the same.
    shards = [one(shard) for shard in index["shards"] or [{"count": 0}]]
    if reader_func is None and len(shards) == 1:
        return shards[0]
    every = Dataset._from_iterators(lambda: iter(shards))._with_cardinality(len(shards))
    if reader_func is not None:
        return every.apply(reader_func)
    return every.interleave(lambda shard: shard, cycle_length=len(shards))._with_cardinality(index["count"])
