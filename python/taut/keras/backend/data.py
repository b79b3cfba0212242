"""Taut's datasets as input of `fit`, `evaluate` and `predict`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common.variables import is_float_dtype
from keras.src.backend.config import floatx
from keras.src.trainers.data_adapters import array_data_adapter, array_slicing, data_adapter_utils
from keras.src.trainers.data_adapters.data_adapter import DataAdapter
from keras.src.trainers.epoch_iterator import EpochIterator

import taut as tf
from taut import _native, sparse
from taut.keras.backend import distributed
from taut.keras.backend.convert import convert_to_numpy, convert_to_tensor


class DatasetAdapter(DataAdapter):
    """Adapts a `taut.data.Dataset` of batches."""

    def __init__(self, dataset: tf.data.Dataset, class_weight: dict[int, float] | None = None):
        self._dataset = dataset
        self._class_weight = class_weight
        count = int(dataset.cardinality())
        self._num_batches = count if count >= 0 else None

    def get_numpy_iterator(self) -> Iterator:
        """Iterates over the batches, which stay tensors."""
        for batch in self._dataset:
            yield batch if self._class_weight is None else self._weighted(batch)

    def _weighted(self, batch: Any) -> Any:
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(batch)
        if sample_weight is not None:
            raise ValueError("`class_weight` and `sample_weight` cannot be given at the same time.")
        if tree.is_nested(y):
            raise ValueError("`class_weight` needs a model with one output, got nested targets")
        return (
            x,
            y,
            data_adapter_utils.class_weight_to_sample_weights(convert_to_numpy(y), self._class_weight),
        )

    @property
    def num_batches(self) -> int | None:
        """The number of batches, if known."""
        return self._num_batches

    @property
    def batch_size(self) -> None:
        """None: batches may differ in size."""
        return None

    @property
    def has_partial_batch(self) -> None:
        """None: batches may differ in size."""
        return None

    @property
    def partial_batch_size(self) -> None:
        """None: batches may differ in size."""
        return None


class SparseRows:
    """The rows of a sparse tensor, which batches are made of."""

    def __init__(self, tensor: tf.SparseTensor) -> None:
        ordered = sparse.reorder(tensor)
        self._indices, self._values = ordered.indices.numpy(), convert_to_numpy(ordered.values)
        if is_float_dtype(self._values.dtype.name) and self._values.dtype.name != floatx():
            self._values = self._values.astype(floatx())
        self._dims = [int(size) for size in tensor.shape]
        self._starts = np.searchsorted(self._indices[:, 0], np.arange(self._dims[0] + 1))

    def __len__(self) -> int:
        return self._dims[0]

    def __getitem__(self, rows: np.ndarray) -> tf.SparseTensor:
        """These rows, in their order."""
        counts = self._starts[rows + 1] - self._starts[rows]
        own = np.repeat(np.arange(len(rows)), counts)
        ends = np.cumsum(counts)
        at = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts) + np.repeat(self._starts[rows], counts)
        indices = np.concatenate([own[:, None], self._indices[at, 1:]], 1).astype(np.int64)
        return tf.SparseTensor(indices, self._values[at], [len(rows), *self._dims[1:]])


class SparseAdapter(DataAdapter):
    """Adapts sparse tensors, and arrays beside them, whose batches stay sparse."""

    def __init__(self, data: tuple, class_weight: Any, batch_size: int | None, shuffle: bool) -> None:
        x, y, sample_weight = data
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError("`class_weight` and `sample_weight` cannot be given at the same time.")
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(convert_to_numpy(y), class_weight)
        parts = data_adapter_utils.pack_x_y_sample_weight(x, y, sample_weight)
        self._parts = tree.map_structure(_rows, parts if isinstance(parts, tuple) else (parts,))
        sizes = {len(part) for part in tree.flatten(self._parts) if part is not None}
        if len(sizes) != 1:
            raise ValueError(f"Data cardinality is ambiguous: the numbers of rows must be equal, got {sorted(sizes)}.")
        self._count, self._size, self._shuffle = sizes.pop(), batch_size or 32, shuffle

    def get_numpy_iterator(self) -> Iterator:
        """Iterates over the batches."""
        order = np.random.permutation(self._count) if self._shuffle else np.arange(self._count)
        for start in range(0, self._count, self._size):
            rows = order[start : start + self._size]
            yield tree.map_structure(lambda part, rows=rows: None if part is None else part[rows], self._parts)

    @property
    def num_batches(self) -> int:
        """The number of batches."""
        return -(-self._count // self._size)

    @property
    def batch_size(self) -> int:
        """The rows of a batch, except for the last."""
        return self._size

    @property
    def has_partial_batch(self) -> bool:
        """Whether the last batch has fewer rows."""
        return self.partial_batch_size is not None

    @property
    def partial_batch_size(self) -> int | None:
        """The rows of the last batch, if they are fewer."""
        return self._count % self._size or None


def _rows(part: Any) -> Any:
    if part is None:
        return None
    if isinstance(part, tf.SparseTensor):
        return SparseRows(part)
    if not array_slicing.can_slice_array(part):
        raise ValueError(f"beside sparse tensors, data must be arrays or tensors, got {type(part).__name__}")
    array = np.asarray(part)
    is_wide = is_float_dtype(array.dtype.name) and array.dtype.name != floatx()
    return array.astype(floatx()) if is_wide else array


def holds_sparse(data: Any) -> bool:
    """Whether a structure holds sparse tensors."""
    return any(isinstance(part, tf.SparseTensor) for part in tree.flatten(data))


def split(data: tuple, fraction: float) -> tuple:
    """The first rows of sparse tensors and arrays, and the last ones, which are this fraction."""
    count = next(int(part.shape[0]) for part in tree.flatten(data) if part is not None)
    at = math.floor(count * (1.0 - fraction))
    if at in (0, count):
        raise ValueError(f"validation_split={fraction} leaves no rows for training or validation: there are {count}")

    def rows(start: int, stop: int) -> tuple:
        own = np.arange(start, stop)
        return tree.map_structure(lambda part: None if part is None else _rows(part)[own], data)

    return rows(0, at), rows(at, count)


def epochs(x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, **options: Any) -> EpochIterator:
    """Keras's epoch iterator, which takes Taut's datasets, too."""
    if isinstance(x, tf.distribute.DistributedDataset):
        if x._group.size > 1:
            raise ValueError("with several processes, pass the dataset itself: `fit` divides its batches")
        x = x._dataset
    if isinstance(x, tf.data.Dataset):
        if y is not None or sample_weight is not None:
            name = "`y`" if y is not None else "`sample_weights`"
            raise ValueError(f"With a dataset as `x`, {name} should not be passed: the dataset has them as well.")
        x, class_weight = DatasetAdapter(x, class_weight), None
    elif any(isinstance(part, tf.RaggedTensor) for part in tree.flatten((x, y, sample_weight))):
        raise ValueError(
            "the layers of a model take dense tensors, got a tf.RaggedTensor\n"
            "  help: x.to_tensor() fills its rows up to the longest; a tf.data.Dataset can do so for each batch"
        )
    elif holds_sparse((x, y, sample_weight)):
        size, shuffle = options.get("batch_size"), bool(options.get("shuffle"))
        x = SparseAdapter((x, y, sample_weight), class_weight, size, shuffle)
        y = sample_weight = class_weight = None
    elif any(is_strings(part) for part in tree.flatten(x)):
        # Keras slices arrays of numbers.
        parts = (x,) if y is None else (x, y) if sample_weight is None else (x, y, sample_weight)
        parts = tree.map_structure(lambda part: tf.constant(part), parts)
        rows = tf.data.Dataset.from_tensor_slices(parts)
        rows = rows.shuffle(len(rows)) if options.get("shuffle") else rows
        x, y, sample_weight = DatasetAdapter(rows.batch(options.get("batch_size") or 32), class_weight), None, None
        class_weight, options = None, {**options, "shuffle": False}
    elif distributed.current_group() is not None and array_data_adapter.can_convert_arrays((x, y, sample_weight)):
        # Keras refuses arrays where several processes share the data, because it cannot divide them.
        own = {"batch_size": options.get("batch_size"), "shuffle": options.get("shuffle", False)}
        steps = options.get("steps_per_epoch")
        x = array_data_adapter.ArrayDataAdapter(x, y, sample_weight, class_weight=class_weight, steps=steps, **own)
        y = sample_weight = class_weight = None
    return EpochIterator(x=x, y=y, sample_weight=sample_weight, class_weight=class_weight, **options)


def is_strings(value: Any) -> bool:
    """Whether it is a tensor or an array of strings."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return isinstance(value, _native.StringTensor) or kind in ("S", "U") or (kind == "O" and value.size > 0)


def as_tensors(data: Any) -> Any:
    """Converts the arrays of a batch to tensors."""
    return tree.map_structure(lambda part: None if part is None else convert_to_tensor(part), data)
