"""The namespace `tf.data.experimental`: transformations for `Dataset.apply`, and names that moved to `tf.data`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _namespace, dtypes, nest
from ..errors import InvalidArgumentError
from . import _specs, _stages
from ._dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from ._functions import StageFunction, arguments_of
from ._iterators import Optional
from ._joined import check_datasets
from ._options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ThreadingOptions,
)
from ._records import SqlDataset, make_batched_features_dataset
from ._sources import CsvDataset, make_csv_dataset

Transformation = Callable[[Dataset], Dataset]


def cardinality(dataset: Dataset) -> Any:
    """The number of elements; INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
    check_datasets("cardinality", [dataset])
    return dataset.cardinality()


def get_next_as_optional(iterator: Any) -> Any:
    """The next element, or an optional without a value after the last."""
    return iterator.get_next_as_optional()


def get_single_element(dataset: Dataset) -> Any:
    """The only element; an error if there are more or none."""
    check_datasets("get_single_element", [dataset])
    return dataset.get_single_element()


def get_structure(dataset_or_iterator: Any) -> Any:
    """The types and shapes of the elements."""
    if not hasattr(dataset_or_iterator, "element_spec"):
        raise TypeError(f"get_structure: expected a dataset or an iterator, got {dataset_or_iterator!r}")
    return dataset_or_iterator.element_spec


def dense_to_ragged_batch(
    batch_size: int, drop_remainder: bool = False, row_splits_dtype: Any = dtypes.int64
) -> Transformation:
    """`Dataset.ragged_batch` as a transformation."""
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def dense_to_sparse_batch(batch_size: int, row_shape: Any) -> Transformation:
    """`Dataset.sparse_batch` as a transformation."""
    return lambda dataset: dataset.sparse_batch(batch_size, row_shape)


def at(dataset: Dataset, index: Any) -> Any:
    """The element with this index. The elements before it are skipped, which most stages do without computing them."""
    check_datasets("at", [dataset])
    return dataset._at(index)


class TFRecordWriter:
    """Writes the elements of a dataset of strings as records of a file."""

    def __init__(self, filename: Any, compression_type: str | None = None) -> None:
        self._filename, self._compression = filename, compression_type

    def write(self, dataset: Dataset) -> None:
        """Writes all elements, which must be scalars of strings."""
        from ..io import TFRecordWriter as Writer

        if not isinstance(dataset, Dataset):
            raise TypeError(f"TFRecordWriter.write: expected a dataset, got {dataset!r}")
        spec = dataset.element_spec
        if getattr(spec, "dtype", None) != dtypes.string or spec.shape.rank not in (0, None):
            raise TypeError(f"TFRecordWriter.write: elements must be scalars of strings, got {spec}")
        with Writer(self._filename, self._compression) as writer:
            for record in dataset:
                writer.write(record)


def from_list(elements: list, name: str | None = None) -> Dataset:
    """A dataset of the elements of a list."""
    if not isinstance(elements, list) or not elements:
        raise ValueError(f"from_list: elements must be a list with at least one element, got {elements!r}")
    columns = [Dataset.from_tensors(element) for element in elements]
    made = columns[0]
    try:
        for column in columns:
            _specs.check_alike("from_list", made.element_spec, column.element_spec)
    except TypeError as error:
        raise ValueError(str(error)) from None
    for column in columns[1:]:
        made = made.concatenate(column)
    return made


def assert_cardinality(expected_cardinality: Any) -> Transformation:
    """States the number of elements; an iteration fails if it is another one."""
    return lambda dataset: dataset._same(dataset._native.assert_cardinality(int(expected_cardinality)))


def pad_to_cardinality(cardinality: int, mask_key: str = "valid") -> Transformation:
    """Adds zeros to the elements, which are dicts, up to a number of them; `mask_key` tells which were there."""

    from .. import where, zeros_like

    def transformed(dataset: Dataset) -> Dataset:
        spec = dataset.element_spec
        if not isinstance(spec, dict):
            raise ValueError(f"pad_to_cardinality: elements must be dicts, got {spec}")
        if mask_key in spec:
            raise ValueError(f"pad_to_cardinality: mask_key must not be a key of the elements, got {mask_key!r}")
        count = dataset._native.cardinality()
        if count == UNKNOWN_CARDINALITY or not 0 < count <= int(cardinality):
            raise ValueError(
                f"pad_to_cardinality: the dataset must have 1 to {int(cardinality)} elements, it has {count}"
            )

        def padded(i: Any, element: Any) -> Any:
            def zeros(part: Any) -> Any:
                return where(i < count, part, zeros_like(part))

            return {**nest.map_structure(zeros, element), mask_key: i < count}

        return dataset.repeat().take(int(cardinality)).enumerate().map(padded)

    return transformed


def bucket_by_sequence_length(
    element_length_func: Callable,
    bucket_boundaries: list[int],
    bucket_batch_sizes: list[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """`Dataset.bucket_by_sequence_length` for `apply`."""
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func,
        bucket_boundaries,
        bucket_batch_sizes,
        padded_shapes,
        padding_values,
        pad_to_bucket_boundary,
        no_padding,
        drop_remainder,
    )


def choose_from_datasets(datasets: list, choice_dataset: Dataset, stop_on_empty_dataset: bool = False) -> Dataset:
    """`Dataset.choose_from_datasets`; by default it goes on until all datasets have ended."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def sample_from_datasets(
    datasets: list, weights: Any = None, seed: int | None = None, stop_on_empty_dataset: bool = False
) -> Dataset:
    """`Dataset.sample_from_datasets`."""
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Transformation:
    """The dataset as it is: there is one device."""
    _check_devices("copy_to_device", target_device, source_device)
    return lambda dataset: dataset


def prefetch_to_device(device: str, buffer_size: int | None = None) -> Transformation:
    """`Dataset.prefetch`: there is one device."""
    _check_devices("prefetch_to_device", device)
    return lambda dataset: dataset.prefetch(buffer_size)


def _check_devices(name: str, *devices: str) -> None:
    for device in devices:
        if "cpu" not in str(device).lower():
            raise InvalidArgumentError(f"{name}: device must be the CPU, the only one, got {device!r}")


def enumerate_dataset(start: int = 0) -> Transformation:
    """`Dataset.enumerate` for `apply`."""
    return lambda dataset: dataset.enumerate(start)


class Reducer(NamedTuple):
    """The functions of `group_by_reducer`."""

    init_func: Callable
    reduce_func: Callable
    finalize_func: Callable


def group_by_reducer(key_func: Callable, reducer: Reducer) -> Transformation:
    """Reduces the elements of each key, and returns the results in the order of the keys."""

    def transformed(dataset: Dataset) -> Dataset:
        key = StageFunction("group_by_reducer", key_func, arguments_of(dataset._spec)).run
        return dataset._python_stage(lambda: _stages.reduced_by_key(dataset, key, reducer))

    return transformed


def group_by_window(
    key_func: Callable, reduce_func: Callable, window_size: int | None = None, window_size_func: Callable | None = None
) -> Transformation:
    """`Dataset.group_by_window` for `apply`."""
    return lambda dataset: dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)


def ignore_errors(log_warning: bool = False) -> Transformation:
    """`Dataset.ignore_errors` for `apply`."""
    return lambda dataset: dataset.ignore_errors(log_warning)


def load(
    path: str, element_spec: Any = None, compression: str | None = None, reader_func: Callable | None = None
) -> Dataset:
    """`Dataset.load`."""
    return Dataset.load(path, element_spec, compression, reader_func)


def save(
    dataset: Dataset,
    path: str,
    compression: str | None = None,
    shard_func: Callable | None = None,
    checkpoint_args: dict[str, Any] | None = None,
) -> None:
    """`Dataset.save`."""
    dataset.save(path, compression, shard_func, checkpoint_args)


def snapshot(
    path: str, compression: str = "AUTO", reader_func: Callable | None = None, shard_func: Callable | None = None
) -> Transformation:
    """`Dataset.snapshot` for `apply`."""
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def map_and_batch(
    map_func: Callable,
    batch_size: int,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
) -> Transformation:
    """`map` and `batch`."""
    calls = num_parallel_calls if num_parallel_batches is None else num_parallel_batches * int(batch_size)
    return lambda dataset: dataset.map(map_func, calls).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable,
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool | None = False,
    buffer_output_elements: int | None = None,
    prefetch_input_elements: int | None = None,
) -> Transformation:
    """`Dataset.interleave` on threads, in a fixed order."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, cycle_length)


def rejection_resample(
    class_func: Callable, target_dist: Any, initial_dist: Any = None, seed: int | None = None
) -> Transformation:
    """`Dataset.rejection_resample` for `apply`."""
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)


def scan(initial_state: Any, scan_func: Callable) -> Transformation:
    """`Dataset.scan` for `apply`."""
    return lambda dataset: dataset.scan(initial_state, scan_func)


def shuffle_and_repeat(buffer_size: int, count: int | None = None, seed: int | None = None) -> Transformation:
    """`shuffle` and `repeat`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def take_while(predicate: Callable) -> Transformation:
    """`Dataset.take_while` for `apply`."""
    return lambda dataset: dataset.take_while(predicate)


def unbatch() -> Transformation:
    """`Dataset.unbatch` for `apply`."""
    return lambda dataset: dataset.unbatch()


def unique() -> Transformation:
    """`Dataset.unique` for `apply`."""
    return lambda dataset: dataset.unique()


def parse_example_dataset(
    features: dict[str, Any], num_parallel_calls: int | None = 1, deterministic: bool | None = None
) -> Transformation:
    """For `apply`: parses batches of serialized examples, as `tf.io.parse_example` does."""
    from .. import io

    if features is None:
        raise ValueError("features must be given")
    return lambda dataset: dataset.map(lambda examples: io.parse_example(examples, features))


def DatasetInitializer(dataset: Dataset) -> Any:  # noqa: N802  A class in TensorFlow.
    """Keys and values of a table: the elements of a dataset of pairs."""
    from .. import lookup

    return lookup.KeyValueTensorInitializer(*_columns(list(dataset)))


def _columns(pairs: list) -> tuple:
    """The keys and values of pairs, and their types."""
    if not pairs:
        raise InvalidArgumentError("the dataset of a table must have elements")
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise ValueError("elements of the dataset must be pairs of a key and a value")
    keys, values = ([one.numpy() for one in column] for column in zip(*pairs))
    return keys, values, pairs[0][0].dtype, pairs[0][1].dtype


def _table(dataset: Dataset, key_dtype: Any, num_oov_buckets: int, vocab_size: int | None, default_value: Any) -> Any:
    from .. import lookup

    if num_oov_buckets < 0:
        raise ValueError(f"`num_oov_buckets` must be greater than or equal to 0, got {num_oov_buckets}.")
    if vocab_size is not None and vocab_size < 1:
        raise ValueError(f"`vocab_size` must be greater than 0, got {vocab_size}.")
    pairs = list(dataset if vocab_size is None else dataset.take(vocab_size))
    columns = _columns(pairs)
    value_dtype = columns[3]
    if num_oov_buckets and value_dtype != dtypes.int64:
        raise TypeError(f"Invalid `value_dtype`: expected int64 but got {value_dtype!r}.")
    initializer = lookup.KeyValueTensorInitializer(*columns)
    if num_oov_buckets:
        return lookup.StaticVocabularyTable(initializer, num_oov_buckets, lookup_key_dtype=key_dtype)
    return lookup.StaticHashTable(initializer, default_value)


def table_from_dataset(
    dataset: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: Any = None,
    key_dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """A table of the pairs of keys and values of a dataset.

    Keys that it does not have get `default_value`, or one of `num_oov_buckets` buckets.
    """
    if not num_oov_buckets and default_value is None:
        raise ValueError("default_value must be given, or num_oov_buckets")
    return _table(dataset, key_dtype, num_oov_buckets, vocab_size, default_value)


def index_table_from_dataset(
    dataset: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    key_dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """A table of the elements of a dataset and their numbers, counted from 0."""
    pairs = dataset.enumerate().map(lambda number, key: (key, number))
    return _table(pairs, key_dtype, num_oov_buckets, vocab_size, default_value)


def Counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64) -> Dataset:  # noqa: N802
    """`Dataset.counter`."""
    return Dataset.counter(start, step, dtype)


def RandomDataset(seed: int | None = None, rerandomize_each_iteration: bool | None = None) -> Dataset:  # noqa: N802
    """`Dataset.random`."""
    return Dataset.random(seed, rerandomize_each_iteration)


__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "Counter",
    "CsvDataset",
    "DatasetInitializer",
    "DistributeOptions",
    "ExternalStatePolicy",
    "OptimizationOptions",
    "Optional",
    "RandomDataset",
    "Reducer",
    "SqlDataset",
    "TFRecordWriter",
    "ThreadingOptions",
    "assert_cardinality",
    "at",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_list",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "index_table_from_dataset",
    "load",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "map_and_batch",
    "pad_to_cardinality",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "scan",
    "shuffle_and_repeat",
    "snapshot",
    "table_from_dataset",
    "take_while",
    "unbatch",
    "unique",
]
__getattr__, __dir__ = _namespace.plain(__name__)
