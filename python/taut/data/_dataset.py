"""The dataset: sources, and stages that the engine runs."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

from .. import _native, _raw_ops as raw, dtypes, nest
from .._common import refuse
from .._ops.py_function import is_trial
from ..errors import DynamicShapeError, InvalidArgumentError, OperatorNotAllowedInGraphError, raise_for
from ..shape import TensorShape
from ..spec import TensorSpec
from . import _composites, _epochs, _fingerprints, _specs, _stages
from ._epochs import function_seed, seed_of
from ._functions import StageFunction, arguments_of, expanding, step_function
from ._iterators import DatasetIterator, NumpyIterator, TracedIterator, traced_iterator
from ._joined import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, JoinedDatasets, rows_of_datasets
from ._options import DatasetOptions as Options
from ._python_stages import PythonStages
from ._structures import as_element, as_tensors, boxed, flat_shapes, has_traced, size_of, typed_element

AUTOTUNE = -1

# The most threads of a stage.
_MAX_WORKERS = 1024


@_fingerprints.noted
class Dataset(JoinedDatasets, PythonStages):
    """A sequence of elements: tensors, or tuples, lists and dicts of tensors.

    Functions given to `map` and `filter` are traced once and run without the interpreter lock.

    >>> import taut as tf
    >>> squares = tf.data.Dataset.range(5).map(lambda x: x * x)
    >>> [int(x) for x in squares]
    [0, 1, 4, 9, 16]
    """

    def __init__(
        self,
        native: _native.Dataset,
        elements: Callable[[], _specs.MaybeElements] = lambda: None,
        spec: Callable[[], Any] = lambda: None,
        options: Options | None = None,
    ) -> None:
        self._native = native
        # An iterator that has computed its first element for its specs. The next iteration takes it.
        self._begun: DatasetIterator | None = None
        self._find_elements, self._find_spec = elements, spec
        # The specs of all elements, given those of the first.
        self._of_first: Callable[[Any], Any] = _specs.of_first
        self._options = options or Options()
        # The method and the arguments that have made it, and a number that those made later exceed.
        self._made_by: Any = None
        self._number = _fingerprints.next_number()
        # The classes of ragged and sparse tensors; None for a dataset that has none, or of which they are not known.
        self._composites: list[type] | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _fingerprints.noted_source(cls)

    @functools.cached_property
    def _elements(self) -> _specs.MaybeElements:
        """What is known of the elements without computing one."""
        return self._find_elements()

    @functools.cached_property
    def _spec(self) -> Any:
        """The public specs of the elements, with None for sizes that may vary; None if an element is needed for them."""
        found = self._find_spec()
        return _specs.merged(self._elements) if found is None else found

    @classmethod
    def _from_iterators(
        cls,
        elements: Callable[[], Iterator],
        known: Callable[[], _specs.MaybeElements] = lambda: None,
        spec: Callable[[], Any] = lambda: None,
    ) -> Dataset:
        """A dataset over a Python iterator, which is created anew for each iteration."""
        return cls(_native.Dataset.from_generator(lambda: map(boxed, elements())), known, spec)

    def _stage(
        self,
        native: _native.Dataset,
        elements: Callable[[], _specs.MaybeElements] = lambda: None,
        spec: Callable[[], Any] = lambda: None,
    ) -> Dataset:
        """A stage after this one, with its options."""
        return Dataset(native, elements, spec, self._options)

    def _same(self, native: _native.Dataset) -> Dataset:
        """A stage that leaves the elements as they are, the last one at the end."""
        return self._like_this(self._stage(native, lambda: self._elements, lambda: self._spec))

    def _uniform(self, native: _native.Dataset) -> Dataset:
        """A stage that changes the number or the order of the elements."""
        return self._like_this(self._stage(native, lambda: _specs.uniform(self._elements), lambda: self._spec))

    def _made_of(self, name: str, *args: Any) -> Dataset:
        """The dataset, with a note of what has made it."""
        self._made_by = (name, args)
        return self

    def _like_this(self, made: Dataset) -> Dataset:
        """A dataset whose elements have the same classes and specs as those of this one."""
        made._composites, made._of_first = self._composites, self._of_first
        return made

    @classmethod
    def _of(cls, native: _native.Dataset) -> Dataset:
        """Called by the engine for an element that is a dataset, such as those of `window`."""
        return cls(native)

    @classmethod
    def _without_elements(cls, spec: Any) -> Dataset:
        """A dataset in place of one of which only the specs of the elements are known."""
        return cls(_native.Dataset.from_generator(lambda: iter(())), spec=lambda: spec)

    @classmethod
    def _of_traced(cls, source: str, spec: Any) -> Dataset:
        """A dataset of tensors that have no values: a function that makes it runs op by op, unless only specs are asked for."""
        if not is_trial():
            text = f"{source}: the elements are known when the function runs\n  at {_native.calling_line()}"
            raise DynamicShapeError(text)
        return cls._without_elements(spec)

    # Options.

    def options(self) -> Options:
        """The options that were set with `with_options`."""
        return self._options

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """The dataset with these options, in addition to those it has. They do not change the elements."""
        if not isinstance(options, Options):
            raise TypeError(f"with_options: expected tf.data.Options, got {options!r}")
        made = self._same(self._native)
        made._made_by, made._options = self._made_by, self._options.merge(options)
        return made

    # Sources.

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """Creates a dataset of the rows of tensors."""
        if (of_datasets := rows_of_datasets(tensors)) is not None:
            return of_datasets._made_of("from_tensor_slices", tensors)
        if _composites.has_composites(rows := as_tensors(tensors)):
            made = Dataset._from_iterators(lambda: _composites.rows(rows), spec=lambda: _composites.row_specs(rows))
            made._composites = _composites.kinds(rows)
            return made._with_cardinality(_composites.count(rows))._made_of("from_tensor_slices", rows)
        known = _specs.exactly(_specs.rows(_specs.specs_of(rows)))
        if has_traced(rows):
            return Dataset._of_traced("from_tensor_slices", known.each)
        made = Dataset(_native.Dataset.from_tensor_slices(boxed(rows)), lambda: known)
        return made._made_of("from_tensor_slices", rows)

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """Creates a dataset of one element."""
        known = _specs.exactly(_specs.specs_of(element := as_tensors(tensors)))
        if has_traced(element):
            return Dataset._of_traced("from_tensors", known.each)
        if any(isinstance(leaf, Dataset) for leaf in nest.flatten(element)):
            made = Dataset._from_iterators(lambda: iter([element]), spec=lambda: known.each)
            return made._with_cardinality(1)._made_of("from_tensors", element)
        made = Dataset(_native.Dataset.from_tensors(boxed(element)), lambda: known)
        if _composites.has_composites(element):
            made._composites = _composites.kinds(element)
        return made._made_of("from_tensors", element)

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
        if not callable(generator):
            raise TypeError(f"from_generator: generator must be a function that returns an iterable, got {generator!r}")
        if output_signature is not None and not (output_types is None and output_shapes is None):
            raise TypeError("from_generator: output_types and output_shapes must be None beside output_signature")
        if output_shapes is not None and output_types is None:
            raise TypeError("from_generator: output_types must be given beside output_shapes")
        signature = output_signature
        if signature is None and output_types is not None:
            if output_shapes is None:
                signature = nest.map_structure(lambda dtype: TensorSpec(None, dtype), output_types)
            else:
                shapes = [TensorShape(shape) for shape in flat_shapes(output_shapes, output_types)]
                flat = [TensorSpec(s, d) for s, d in zip(shapes, nest.flatten(output_types))]
                signature = nest.pack_sequence_as(output_types, flat)

        def yielded() -> Iterator:
            try:
                yield from generator(*(args or ()))
            except Exception as error:
                raise_for("from_generator", error)

        def typed(element: Any) -> Any:
            return element if signature is None else typed_element(element, signature)

        # `map` goes on after an element that does not fit: the error is that of one element.
        made = Dataset._from_iterators(
            lambda: map(typed, yielded()),
            lambda: _specs.of_signature(signature),
            lambda: _specs.public_signature(signature),
        )
        made._composites = _composites.kinds_of_specs(output_signature)
        return made

    @staticmethod
    def range(*args: int, output_type: Any = dtypes.int64, name: str | None = None) -> Dataset:
        """Creates a dataset of the integers of Python's `range`."""
        if not 1 <= len(args) <= 3:
            raise ValueError(f"range needs 1 to 3 arguments, got {len(args)}")
        if has_traced(args):
            return Dataset._of_traced("range", TensorSpec([], output_type))
        sizes = [size_of("range", "args", arg) for arg in args]
        if len(sizes) == 3 and sizes[2] == 0:
            raise InvalidArgumentError("range: step must not be 0")
        numbers = range(*sizes)
        known = _specs.exactly(TensorSpec([], output_type))
        return Dataset(_native.Dataset.range(numbers.start, numbers.stop, numbers.step, output_type), lambda: known)

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64, name: str | None = None) -> Dataset:
        """Creates an infinite dataset of numbers with a constant step."""
        dtype = dtypes.as_dtype(dtype)
        if dtype.is_integer:
            start, step = size_of("counter", "start", start), size_of("counter", "step", step)
        wide = dtypes.int64 if dtype.is_integer else dtypes.float64
        first, apart = _native.own_tensor(start, wide), _native.own_tensor(step, wide)
        numbers = Dataset.from_tensors(0).repeat().enumerate()
        return numbers.map(lambda i, _: raw.cast(first + apart * raw.cast(i, wide), dtype))

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
            workers = _workers("map", num_parallel_calls)
        function = StageFunction("map", map_func, arguments_of(self._spec), as_element)
        made = self._stage(
            _epochs.noted(self._native.map(function, workers, function_seed()), function.assigns),
            lambda: _specs.mapped(self._elements, lambda each: function.results(arguments_of(each))),
            lambda: function.spec,
        )
        made._composites = _composites.kinds_of_specs(function.spec)
        return made

    def filter(self, predicate: Callable, name: str | None = None) -> Dataset:
        """Keeps the elements for which a function returns true."""
        function = self._predicate("filter", predicate)
        return self._uniform(_epochs.noted(self._native.filter(function, function_seed()), function.assigns))

    def take_while(self, predicate: Callable, name: str | None = None) -> Dataset:
        """Takes elements until a function returns false."""
        function = self._predicate("take_while", predicate)
        return self._uniform(_epochs.noted(self._native.take_while(function, function_seed()), function.assigns))

    def _predicate(self, stage: str, predicate: Callable) -> StageFunction:
        function = StageFunction(stage, predicate, arguments_of(self._spec))
        _specs.check_predicate(stage, function.spec)
        return function

    def flat_map(self, map_func: Callable, name: str | None = None) -> Dataset:
        """Maps each element to a dataset and concatenates these."""
        function, spec = expanding("flat_map", map_func, arguments_of(self._spec))
        return self._stage(self._native.flat_map(function, function_seed()), spec=lambda: spec)

    def interleave(
        self,
        map_func: Callable,
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Maps each element to a dataset and interleaves `cycle_length` of these at a time; 4 if it is not given.

        With `num_parallel_calls`, elements are prepared on background threads, in the same order.
        """
        cycle = 4 if cycle_length in (None, AUTOTUNE) else size_of("interleave", "cycle_length", cycle_length, 1)
        block = 1 if block_length is None else size_of("interleave", "block_length", block_length, 1)
        map_func, spec = expanding("interleave", map_func, arguments_of(self._spec))
        if num_parallel_calls is None:
            return self._stage(self._native.interleave(map_func, cycle, block, function_seed()), spec=lambda: spec)
        # Each of the interleaved datasets prepares its elements on a thread of its own.
        ahead = max(block, _workers("interleave", num_parallel_calls) // cycle)

        def prepared(*element: Any) -> Any:
            made = map_func(*element)
            return made.prefetch(ahead) if isinstance(made, Dataset) else made

        made = self._stage(self._native.interleave(prepared, cycle, block, function_seed()), spec=lambda: spec)
        return self._as_endless(made)

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Combines consecutive elements along a new first axis."""
        size, count = size_of("batch", "batch_size", batch_size, 1), self._native.cardinality()
        if (kinds := self._composites) is not None:
            groups = self._from_iterators(
                lambda: _composites.batches(self, size, drop_remainder, kinds),
                spec=lambda: _composites.batched_spec(self._spec, kinds, size if drop_remainder else None),
            )
            groups._options, groups._composites = self._options, kinds
            groups._of_first = lambda first: _composites.batches_of_first(first, drop_remainder)
            return groups._with_cardinality(_stages.batch_count(count, size, drop_remainder))
        return self._stage(
            self._native.batch(size, drop_remainder),
            lambda: _specs.batched(self._elements, size, count, drop_remainder),
            lambda: _specs.batched_spec(self._spec, size if drop_remainder else None),
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
        if values and not nest.is_nested(padding_values):
            # One value is that of all tensors.
            values *= len(nest.flatten(self._spec if self._spec is not None else self.element_spec))
        _specs.check_containers("padded_shapes", self._spec, padded_shapes)
        _specs.check_containers("padding_values", self._spec, padding_values)
        _specs.check_padding(self._spec, shapes, values)
        size = size_of("padded_batch", "batch_size", batch_size, 1)
        exact = size if drop_remainder else None
        made = self._stage(
            self._native.padded_batch(size, shapes, values, drop_remainder),
            spec=lambda: _specs.padded_spec(self._spec, shapes, exact),
        )
        made._of_first = lambda first: _specs.padded_of_first(first, shapes, exact)
        return made

    def unbatch(self, name: str | None = None) -> Dataset:
        """Splits elements into their rows."""
        if (kinds := self._composites) is not None:
            each = self._from_iterators(
                lambda: (row for group in self for row in _composites.rows(group)),
                spec=lambda: _composites.unbatched_spec(self._spec),
            )
            each._options, each._composites = self._options, kinds
            return each
        rows = _specs.row_count("unbatch", self._spec)
        made = self._stage(
            self._native.unbatch(),
            lambda: _specs.unbatched(self._elements),
            lambda: _specs.unbatched_spec(self._spec),
        )
        total = self._native.cardinality()
        return self._as_endless(made) if rows is None or total < 0 else made._with_cardinality(rows * total)

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
        size = None
        if buffer_size is not None:
            # TensorFlow's value for a buffer of all elements.
            whole = int(buffer_size) == UNKNOWN_CARDINALITY
            size = 2**62 if whole else size_of("shuffle", "buffer_size", buffer_size, 1)
        start = seed_of(seed)
        return self._uniform(_epochs.seeded(self._native.shuffle(size, buffer_bytes, start, each), start))

    def repeat(self, count: int | None = None, name: str | None = None) -> Dataset:
        """Repeats the dataset `count` times, or infinitely."""
        times = -1 if count is None else size_of("repeat", "count", count)
        return self._uniform(self._native.repeat(None if times < 0 else times))

    def take(self, count: int, name: str | None = None) -> Dataset:
        """Takes the first `count` elements; all of them if it is negative."""
        most, total = size_of("take", "count", count), self._native.cardinality()
        if most < 0:
            return self._same(self._native)
        taken = self._native.take(most)
        if 0 <= total <= most:
            return self._same(taken)
        if total == UNKNOWN_CARDINALITY:
            taken = taken.assert_cardinality(UNKNOWN_CARDINALITY)
        return self._like_this(self._stage(taken, self._but_the_last, lambda: self._spec))

    def skip(self, count: int, name: str | None = None) -> Dataset:
        """Skips the first `count` elements; all of them if it is negative."""
        number = size_of("skip", "count", count)
        return self.take(0) if number < 0 else self._same(self._native.skip(number))

    def shard(self, num_shards: int, index: int, name: str | None = None) -> Dataset:
        """Keeps every `num_shards`-th element, starting at `index`."""
        shards, place = size_of("shard", "num_shards", num_shards, 1), size_of("shard", "index", index)
        if not 0 <= place < shards:
            raise InvalidArgumentError(f"shard: index must be in [0, {shards}), got {place}")
        return self._uniform(self._native.shard(shards, place))

    def cache(self, filename: str = "", name: str | None = None, memory_bytes: int | None = None) -> Dataset:
        """Caches the elements of the first iteration: in memory, in a file, or up to `memory_bytes` in memory and the
        rest in a file.
        """
        return self._same(self._native.cache(filename or None, memory_bytes))

    def prefetch(
        self, buffer_size: int | None = None, name: str | None = None, buffer_bytes: int | None = None
    ) -> Dataset:
        """Prepares elements on a background thread: `buffer_size` of them, or `buffer_bytes` bytes; none for a size of 0."""
        size = 2 if buffer_size in (None, AUTOTUNE) else size_of("prefetch", "buffer_size", buffer_size, 0)
        if size == 0 and buffer_bytes is None:
            return self._same(self._native)
        return self._same(self._native.prefetch(size, buffer_bytes))

    def enumerate(self, start: int = 0, name: str | None = None) -> Dataset:
        """Pairs each element with its index."""
        return self._stage(
            self._native.enumerate(size_of("enumerate", "start", start)),
            lambda: _specs.numbered(self._elements),
            lambda: None if self._spec is None else (TensorSpec([], dtypes.int64), self._spec),
        )

    def window(
        self,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Creates datasets of `size` elements each, starting `shift` elements apart; for elements that are tuples or dicts,
        tuples or dicts of datasets."""
        most = size_of("window", "size", size, 1)
        apart = most if shift is None else size_of("window", "shift", shift, 1)
        return self._stage(
            self._native.window(most, apart, size_of("window", "stride", stride, 1), drop_remainder),
            spec=lambda: _specs.window_spec(self._spec),
        )

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """Appends the elements of another dataset, which must have the same structure and types."""
        _specs.check_alike("concatenate", self._spec, dataset._spec)
        return self._stage(
            self._native.concatenate(dataset._native),
            lambda: _specs.common([self._elements, dataset._elements]),
            lambda: _specs.common_spec([self._spec, dataset._spec]),
        ).with_options(dataset._options)

    def apply(self, transformation_func: Callable) -> Dataset:
        """Applies a function to the dataset."""
        return _specs.checked_dataset("apply", transformation_func(self))

    def reduce(self, initial_state: Any, reduce_func: Callable, name: str | None = None) -> Any:
        """Reduces all elements with a state: `state = reduce_func(state, element)`."""
        state = as_tensors(initial_state)
        spec = None if _native.is_tracing() else self._spec
        step = step_function("reduce", reduce_func, state, spec, result=lambda made: _stages.in_form(state, made))
        if _native.is_tracing():
            return _stages.reduced_in_trace(iter(self), state, step)
        for element in self:
            state = _stages.same_state("reduce", state, step.run(state, element))
        return state

    # What it is, and what is in it.

    def cardinality(self, name: str | None = None) -> _native.Tensor:
        """The number of elements; INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return _native.own_tensor(self._native.cardinality(), dtypes.int64)

    @functools.cached_property
    def element_spec(self) -> Any:
        """The types and shapes of the elements; None stands for a size that may vary.

        A first element is computed for this only if a stage does not tell otherwise, and is delivered later.
        """
        return _specs.public((self._spec or _specs.merged(self._elements)) or self._of_first(self._first_specs()))

    def _first_specs(self) -> Any:
        """The specs of the first element, with None for the sizes in which the second one differs. Both are delivered later."""
        first = self._first_spec()
        if self._elements is not None or self._begun is None:
            return first
        with _native.InitScope():
            second = self._begun._spec_after_next()
        merged = None if second is None else _specs.common_spec([first, second])
        return first if merged is None else merged

    def _with_cardinality(self, count: int) -> Dataset:
        """The dataset with its number of elements stated: -1 if there is no end; as it is if the number is not known (-2)."""
        return self if count == UNKNOWN_CARDINALITY else self._same(self._native.assert_cardinality(count))

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

    def _spec_of_all(self) -> Any:
        """Specs that fit all elements, without None where all have one size; None if the stages do not tell."""
        known = self._elements
        if known is not None and known.is_uniform:
            return known.each
        flat = [] if self._spec is None else nest.flatten(self._spec)
        return (
            self._spec if all(not isinstance(one, TensorSpec) or one.shape.rank is not None for one in flat) else None
        )

    def _but_the_last(self) -> _specs.MaybeElements:
        known = self._elements
        return None if known is None else _specs.exactly(known.each)

    def _start(self) -> DatasetIterator:
        """An iterator over the next epoch."""
        begun, self._begun = self._begun, None
        if begun is not None:
            return begun
        epoch = _epochs.next_epoch(self._native)
        return DatasetIterator(self._native.iterate((epoch, 0)), self)

    def __iter__(self) -> Any:
        if not _native.is_tracing():
            return self._start()
        return self._traced_iterator(self._spec_of_all() or self._first_spec())

    def _check_plan(self) -> None:
        """Raises an error if a function that takes elements cannot have a plan: values of variables are read before it runs."""
        if _epochs.assigns_variables(self._native):
            refuse(
                "iter",
                "functions of the dataset assign variables, whose values depend on the elements",
                DynamicShapeError,
            )

    def _traced_iterator(self, spec: Any) -> TracedIterator:
        """An iterator of the function being traced, over elements with these specs."""
        self._check_plan()
        return traced_iterator(lambda _inputs: self, [], spec)

    def _count_in_trace(self) -> tuple[int, Any]:
        """The cardinality, and the same as a traced loop compares with it. In place of more than one, the first may be two."""
        count = self._native.cardinality()
        return count, count

    def iterate(self, position: tuple[int, int] | None = None) -> DatasetIterator:
        """An iterator that resumes at a `DatasetIterator.position`."""
        return DatasetIterator(self._native.iterate(position), self)

    def as_numpy_iterator(self) -> Iterator:
        """Iterates over the elements as arrays."""
        if _native.is_tracing():
            text = "as_numpy_iterator needs values, which a traced function does not have: iterate over the dataset"
            raise OperatorNotAllowedInGraphError(f"{text}\n  at {_native.calling_line()}")
        return NumpyIterator(self)

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
        words = {INFINITE_CARDINALITY: "infinite", UNKNOWN_CARDINALITY: "of unknown length", 1: "of 1 element"}
        # No element is computed for this.
        spec = "" if self._spec is None else f", element_spec={_specs.public(self._spec)}"
        return f"<tf.data.Dataset {words.get(count, f'of {count} elements')}{spec}>"


def _workers(name: str, num_parallel_calls: Any) -> int:
    """A number of threads. More than the most that there can be is no error in TensorFlow, and changes no element."""
    if num_parallel_calls == AUTOTUNE:
        return os.cpu_count() or 1
    return min(size_of(name, "num_parallel_calls", num_parallel_calls, 1), _MAX_WORKERS)
