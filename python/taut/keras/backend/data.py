"""Taut's datasets as input of `fit`, `evaluate` and `predict`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keras.src import tree
from keras.src.trainers.data_adapters import array_data_adapter, data_adapter_utils
from keras.src.trainers.data_adapters.data_adapter import DataAdapter
from keras.src.trainers.epoch_iterator import EpochIterator

import taut as tf
from taut import _native
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
