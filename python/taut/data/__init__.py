"""Input pipelines: datasets with background threads and buffers bounded in bytes."""

from __future__ import annotations

import bisect
import functools
import itertools
import os
import weakref
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from .. import _namespace, _native, _raw_ops as raw, dtypes, nest
from .._ops.random import has_seed
from ..errors import InvalidArgumentError, OperatorNotAllowedInGraphError
from ..function import Function
from ..shape import TensorShape
from ..spec import TensorSpec
from . import _specs, _stages
from ._iterators import (
    DatasetIterator,
    Optional,
    Report as Report,
    TracedIterator as TracedIterator,
    traced_iterator,
)
from ._structures import as_tensors, fill_unknown, flat_shapes, typed_element

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


class Dataset:
    """A sequence of elements: tensors, or tuples, lists and dicts of tensors.

    Functions given to `map` and `filter` are traced once and run without the interpreter lock.

    >>> import taut as tf
    >>> squares = tf.data.Dataset.range(5).map(lambda x: x * x)
    >>> [int(x) for x in squares]
    [0, 1, 4, 9, 16]
    """

    def __init__(self, native: _native.Dataset, elements: Callable[[], _specs.MaybeElements] = lambda: None) -> None:
        self._native = native
        self._epochs = 0
        # An iterator that has computed its first element for its specs. The next iteration takes it.
        self._begun: DatasetIterator | None = None
        self._find_elements = elements

    @functools.cached_property
    def _elements(self) -> _specs.MaybeElements:
        """What is known of the elements without computing one."""
        return self._find_elements()

    @classmethod
    def _from_iterators(
        cls, elements: Callable[[], Iterator], known: Callable[[], _specs.MaybeElements] = lambda: None
    ) -> Dataset:
        """A dataset over a Python iterator, which is created anew for each iteration."""
        return cls(_native.Dataset.from_generator(elements), known)

    def _same(self, native: _native.Dataset) -> Dataset:
        """A stage that leaves the elements as they are, the last one at the end."""
        return Dataset(native, lambda: self._elements)

    def _uniform(self, native: _native.Dataset) -> Dataset:
        """A stage that changes the number or the order of the elements."""
        return Dataset(native, lambda: _specs.uniform(self._elements))

    @classmethod
    def _of(cls, native: _native.Dataset) -> Dataset:
        """Called by the engine for an element that is a dataset, such as those of `window`."""
        return cls(native)

    # Sources.

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """Creates a dataset of the rows of tensors."""
        rows = as_tensors(tensors)
        known = _specs.exactly(_specs.rows(_specs.specs_of(rows)))
        return Dataset(_native.Dataset.from_tensor_slices(rows), lambda: known)

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """Creates a dataset of one element."""
        element = as_tensors(tensors)
        known = _specs.exactly(_specs.specs_of(element))
        return Dataset(_native.Dataset.from_tensors(element), lambda: known)

    @staticmethod
    def from_generator(
        generator: Callable,
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """Creates a dataset of the elements that `generator(*args)` yields. It is called for each iteration."""
        signature = output_signature
        if signature is None and output_types is not None:
            if output_shapes is None:
                signature = nest.map_structure(dtypes.as_dtype, output_types)
            else:
                shapes = [TensorShape(shape) for shape in flat_shapes(output_shapes, output_types)]
                flat = [TensorSpec(s, d) for s, d in zip(shapes, nest.flatten(output_types))]
                signature = nest.pack_sequence_as(output_types, flat)

        def elements() -> Iterator:
            for element in generator(*(args or ())):
                yield typed_element(element, signature) if signature is not None else element

        return Dataset._from_iterators(elements, lambda: _specs.of_signature(signature))

    @staticmethod
    def range(*args: int, output_type: Any = dtypes.int64, name: str | None = None) -> Dataset:
        """Creates a dataset of the integers of Python's `range`."""
        numbers = range(*(int(arg) for arg in args))
        known = _specs.exactly(TensorSpec([], output_type))
        return Dataset(_native.Dataset.range(numbers.start, numbers.stop, numbers.step, output_type), lambda: known)

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Zips datasets; it ends with the shortest."""
        structure = datasets if datasets is not None else args[0] if len(args) == 1 else args
        if isinstance(structure, Dataset):
            structure = (structure,)
        flat = nest.flatten(structure)
        native = _native.Dataset.zip([dataset._native for dataset in flat])
        made = Dataset(native, lambda: _specs.zipped([dataset._elements for dataset in flat]))
        if isinstance(structure, tuple) and all(isinstance(part, Dataset) for part in structure):
            return made
        return made.map(lambda *parts: nest.pack_sequence_as(structure, list(parts)))

    @staticmethod
    def sample_from_datasets(
        datasets: list,
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:
        """Samples elements from datasets at random, by weight.

        It ends when all datasets have ended, or when one has (`stop_on_empty_dataset`). Each iteration samples anew,
        unless `rerandomize_each_iteration` is False.
        """
        weights = [1.0] * len(datasets) if weights is None else [float(weight) for weight in weights]
        pairs = [(dataset, weight) for dataset, weight in zip(datasets, weights) if weight]

        def known() -> _specs.MaybeElements:
            return _specs.common(dataset._elements for dataset, _ in pairs)

        if stop_on_empty_dataset or rerandomize_each_iteration is False:
            start, runs = _seed(seed), itertools.count()

            def elements() -> Iterator:
                run = next(runs) if rerandomize_each_iteration is not False else 0
                choices = _stages.drawn([weight for _, weight in pairs], [start, run])
                return _stages.chosen([dataset for dataset, _ in pairs], choices, stop_on_empty_dataset)

            return Dataset._from_iterators(elements, known)
        sources = [(dataset._native, weight) for dataset, weight in pairs]
        start = _seed(seed)
        return Dataset(_seeded(_native.Dataset.sample_from(sources, start), start), known)

    @staticmethod
    def choose_from_datasets(datasets: list, choice_dataset: Dataset, stop_on_empty_dataset: bool = True) -> Dataset:
        """Takes elements from datasets by index; the indices are the elements of `choice_dataset`."""
        return Dataset._from_iterators(
            lambda: _stages.chosen(datasets, choice_dataset, stop_on_empty_dataset),
            lambda: _specs.common(dataset._elements for dataset in datasets),
        )

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64, name: str | None = None) -> Dataset:
        """Creates an infinite dataset of numbers with a constant step."""
        first, apart, dtype = int(start), int(step), dtypes.as_dtype(dtype)
        return Dataset.from_tensors(0).repeat().enumerate().map(lambda i, _: raw.cast(first + apart * i, dtype))

    # Transformations.

    def map(
        self,
        map_func: Callable,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Applies a function to each element; the parts of a tuple are its arguments. The order is kept."""
        workers = None
        if synchronous and num_parallel_calls is not None:
            raise ValueError(f"synchronous=True needs num_parallel_calls=None, got {num_parallel_calls}")
        if num_parallel_calls is not None:
            workers = (os.cpu_count() or 1) if num_parallel_calls == AUTOTUNE else int(num_parallel_calls)
        function = _converted(map_func)
        # With a global seed, every iteration draws the same random numbers, as in TensorFlow.
        seed = _seed(None) if has_seed() else None
        return Dataset(self._native.map(function, workers, seed), lambda: _specs.mapped(self._elements, function))

    def filter(self, predicate: Callable, name: str | None = None) -> Dataset:
        """Keeps the elements for which a function returns true."""
        return self._uniform(self._native.filter(_converted(predicate)))

    def take_while(self, predicate: Callable, name: str | None = None) -> Dataset:
        """Takes elements until a function returns false."""
        return self._uniform(self._native.take_while(_converted(predicate)))

    def flat_map(self, map_func: Callable, name: str | None = None) -> Dataset:
        """Maps each element to a dataset and concatenates these."""
        return Dataset(self._native.flat_map(map_func))

    def interleave(
        self,
        map_func: Callable,
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Maps each element to a dataset and interleaves `cycle_length` of these at a time."""
        cycle = 1 if cycle_length is None else 4 if cycle_length == AUTOTUNE else cycle_length
        return Dataset(self._native.interleave(map_func, cycle, block_length or 1))

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Combines consecutive elements along a new first axis."""
        if int(batch_size) < 1:
            raise InvalidArgumentError(f"batch_size must be >= 1, got {int(batch_size)}")
        size, count = int(batch_size), self._native.cardinality()
        return Dataset(
            self._native.batch(size, drop_remainder),
            lambda: _specs.batched(self._elements, size, count, drop_remainder),
        )

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """As `batch`, padding elements to the largest shape, or to a given one."""
        shapes = [] if padded_shapes is None else [list(shape) for shape in flat_shapes(padded_shapes, None)]
        shapes = [[None if dim in (None, -1) else int(dim) for dim in shape] for shape in shapes]
        values = [] if padding_values is None else nest.flatten(padding_values)
        return Dataset(self._native.padded_batch(int(batch_size), shapes, values, drop_remainder))

    def unbatch(self, name: str | None = None) -> Dataset:
        """Splits elements into their rows."""
        return Dataset(self._native.unbatch(), lambda: _specs.unbatched(self._elements))

    def rebatch(self, batch_size: int, drop_remainder: bool = False, name: str | None = None) -> Dataset:
        """Changes the batch size."""
        return self.unbatch().batch(batch_size, drop_remainder)

    def shuffle(
        self,
        buffer_size: int | None = None,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
        buffer_bytes: int | None = None,
    ) -> Dataset:
        """Shuffles elements with a buffer of `buffer_size` elements, or of `buffer_bytes` bytes."""
        if (buffer_size is None) == (buffer_bytes is None):
            raise ValueError("exactly one of buffer_size and buffer_bytes must be given")
        each = reshuffle_each_iteration is not False
        size = None if buffer_size is None else int(buffer_size)
        start = _seed(seed)
        return self._uniform(_seeded(self._native.shuffle(size, buffer_bytes, start, each), start))

    def repeat(self, count: int | None = None, name: str | None = None) -> Dataset:
        """Repeats the dataset `count` times, or infinitely."""
        return self._uniform(self._native.repeat(None if count in (None, -1) else int(count)))

    def take(self, count: int, name: str | None = None) -> Dataset:
        """Takes the first `count` elements; all of them for -1."""
        if count == -1:
            return self
        taken, total = self._native.take(int(count)), self._native.cardinality()
        return self._same(taken) if 0 <= total <= int(count) else Dataset(taken, self._but_the_last)

    def skip(self, count: int, name: str | None = None) -> Dataset:
        """Skips the first `count` elements; all of them for -1."""
        return self.take(0) if count == -1 else self._same(self._native.skip(int(count)))

    def shard(self, num_shards: int, index: int, name: str | None = None) -> Dataset:
        """Keeps every `num_shards`-th element, starting at `index`."""
        return self._uniform(self._native.shard(int(num_shards), int(index)))

    def cache(self, filename: str = "", name: str | None = None, memory_bytes: int | None = None) -> Dataset:
        """Caches the elements of the first iteration: in memory, in a file, or up to `memory_bytes` in memory and the
        rest in a file.
        """
        return self._same(self._native.cache(filename or None, memory_bytes))

    def prefetch(
        self, buffer_size: int | None = None, name: str | None = None, buffer_bytes: int | None = None
    ) -> Dataset:
        """Prepares elements on a background thread: `buffer_size` of them, or `buffer_bytes` bytes."""
        size = 2 if buffer_size in (None, AUTOTUNE) else int(buffer_size)
        return self._same(self._native.prefetch(size, buffer_bytes))

    def enumerate(self, start: int = 0, name: str | None = None) -> Dataset:
        """Pairs each element with its index."""
        return Dataset(self._native.enumerate(int(start)), lambda: _specs.numbered(self._elements))

    def window(
        self,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Creates datasets of `size` elements each, starting `shift` elements apart."""
        return Dataset(self._native.window(int(size), int(shift or size), int(stride), drop_remainder))

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """Appends the elements of another dataset."""
        native = self._native.concatenate(dataset._native)
        return Dataset(native, lambda: _specs.common([self._elements, dataset._elements]))

    def scan(self, initial_state: Any, scan_func: Callable, name: str | None = None) -> Dataset:
        """Maps elements with a state: `scan_func(state, element)` returns the next state and an element."""
        step = _stages.traced(scan_func)
        return Dataset._from_iterators(lambda: _stages.scanned(self, initial_state, step))

    def unique(self, name: str | None = None) -> Dataset:
        """Keeps the first occurrence of each element. Elements must be tensors; all distinct ones are kept in memory."""
        return Dataset._from_iterators(lambda: _stages.distinct(self), lambda: _specs.uniform(self._elements))

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
        size: Any = window_size_func if window_size is None else lambda _: window_size
        key = _stages.traced(key_func)
        return Dataset._from_iterators(lambda: _stages.grouped(self, key, reduce_func, size, _from_elements))

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
            raise ValueError("pad_to_bucket_boundary needs padded_shapes, with None for padded dimensions")
        length = _stages.traced(element_length_func)

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

        size = bucket_batch_sizes.__getitem__
        return Dataset._from_iterators(lambda: _stages.grouped(self, bucket, batched, size, _from_elements))

    def apply(self, transformation_func: Callable) -> Dataset:
        """Applies a function to the dataset."""
        return transformation_func(self)

    def reduce(self, initial_state: Any, reduce_func: Callable, name: str | None = None) -> Any:
        """Reduces all elements with a state: `state = reduce_func(state, element)`."""
        state = nest.map_structure(_native.as_tensor, initial_state)
        step = Function(reduce_func, on_retrace="allow")
        if _native.is_tracing():
            return _stages.reduced_in_trace(iter(self), state, step)
        for element in self:
            state = step(state, element)
        return state

    # What it is, and what is in it.

    def cardinality(self, name: str | None = None) -> _native.Tensor:
        """The number of elements; INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return _native.own_tensor(self._native.cardinality(), dtypes.int64)

    @property
    def element_spec(self) -> Any:
        """The types and shapes of the elements; None stands for a size that differs in the last one.

        A first element is computed for this only if a stage does not tell otherwise, and is delivered later.
        """
        known = self._elements
        if known is None or known.is_uniform:
            return self._first_spec()
        return nest.map_structure(lambda each, last: each.most_specific_compatible_type(last), *known)

    def _first_spec(self) -> Any:
        """The types and shapes of the first element."""
        known = self._elements
        if known is not None:
            return known.each
        with _native.InitScope():
            begun = self._start()
            if not begun._has_next():
                raise InvalidArgumentError(
                    "the types and shapes of an empty dataset are not known\n  help: give output_signature to from_generator"
                )
            self._begun = begun
            return begun._next_spec()

    def _but_the_last(self) -> _specs.MaybeElements:
        known = self._elements
        return None if known is None else _specs.exactly(known.each)

    def _seeds_digest(self) -> int:
        """A number that depends on the seeds of all stages."""
        found, rest = [], [self._native]
        while rest:
            stage = rest.pop()
            found.append(str(_seeds.get(stage)))
            rest.extend(stage.parents)
        return zlib.crc32(" ".join(found).encode())

    def _start(self) -> DatasetIterator:
        """An iterator over the next epoch."""
        begun, self._begun = self._begun, None
        if begun is not None:
            return begun
        epoch = self._epochs
        self._epochs += 1
        return DatasetIterator(self._native.iterate((epoch, 0)), self)

    def __iter__(self) -> Any:
        return traced_iterator(self, self._first_spec()) if _native.is_tracing() else self._start()

    def iterate(self, position: tuple[int, int] | None = None) -> DatasetIterator:
        """An iterator that resumes at a `DatasetIterator.position`."""
        return DatasetIterator(self._native.iterate(position), self)

    def as_numpy_iterator(self) -> Iterator:
        """Iterates over the elements as arrays."""
        if _native.is_tracing():
            text = "as_numpy_iterator needs values, which a traced function does not have: iterate over the dataset"
            raise OperatorNotAllowedInGraphError(f"{text}\n  at {_native.calling_line()}")
        return map(_stages.as_arrays, self)

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element; an error if there are more or none."""
        if _native.is_tracing():
            return _stages.single_in_trace(iter(self))
        elements = list(self.take(2))
        if len(elements) != 1:
            raise InvalidArgumentError(
                f"the dataset must have exactly one element, it has {'none' if not elements else 'more'}"
            )
        return elements[0]

    def __len__(self) -> int:
        count = self._native.cardinality()
        if count == INFINITE_CARDINALITY:
            raise TypeError("an infinite dataset has no length")
        if count == UNKNOWN_CARDINALITY:
            raise TypeError("the length of the dataset is unknown: it depends on the elements")
        return count

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        count = self._native.cardinality()
        words = {INFINITE_CARDINALITY: "infinite", UNKNOWN_CARDINALITY: "of unknown length"}
        return f"<tf.data.Dataset {words.get(count, f'of {count} elements')}>"


def _from_elements(elements: list) -> Dataset:
    """A dataset of these elements."""
    return Dataset._from_iterators(lambda: iter(elements))


#: The seeds of the stages that draw random numbers.
_seeds: weakref.WeakKeyDictionary[_native.Dataset, int] = weakref.WeakKeyDictionary()


def _seeded(stage: _native.Dataset, seed: int) -> _native.Dataset:
    _seeds[stage] = seed
    return stage


def _seed(seed: int | None) -> int:
    """The given seed, or one derived from the global seed."""
    if seed is not None:
        return int(seed) % 2**64
    seed, count = (int(part) for part in _native.next_key().numpy())
    return (seed ^ count * 0x9E3779B97F4A7C15) % 2**64


def _converted(function: Callable) -> Callable:
    if isinstance(function, Function):
        return function
    from ..autograph import lazily_converted

    return lazily_converted(function)


class experimental:  # noqa: N801
    """The namespace `tf.data.experimental`."""

    AUTOTUNE = AUTOTUNE
    Optional = Optional
    cardinality = staticmethod(lambda dataset: dataset.cardinality())
    get_next_as_optional = staticmethod(lambda iterator: iterator.get_next_as_optional())


from ._sources import (  # noqa: E402  Sources are datasets.
    CsvDataset,
    FixedLengthRecordDataset,
    TextLineDataset,
    TFRecordDataset,
    make_csv_dataset,
)

setattr(experimental, "CsvDataset", CsvDataset)
setattr(experimental, "make_csv_dataset", staticmethod(make_csv_dataset))

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "FixedLengthRecordDataset",
    "TFRecordDataset",
    "TextLineDataset",
    "experimental",
]
__getattr__, __dir__ = _namespace.plain(__name__)
