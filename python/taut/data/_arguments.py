"""Datasets as arguments of traced functions: one trace serves all datasets whose elements have the same specs.

In the trace, an object stands in for the dataset: the function can iterate over it, and reduce it. A function that does
anything else with it, such as making further stages of it, is traced for each dataset.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any, NamedTuple

import numpy as np

from .. import _native, dtypes, nest
from ..function import NeedsArgumentError, register_argument
from ..spec import TensorSpec
from ..type_spec import DatasetSpec
from . import _epochs, _specs
from ._dataset import Dataset
from ._iterators import TracedIterator, traced_iterator

_MANY = 2
_LARGEST = 2**31 - 1


class _DatasetSpec:
    """What a trace depends on: the structure, types and shapes of the elements, and whether there are none, one or more."""

    def __init__(self, dataset: Dataset, elements: _specs.Elements, count: int) -> None:
        self.elements, self.spec, self.count = elements, dataset._spec, min(count, _MANY)
        #: The dataset, while the function is traced for it. Traces do not keep it alive.
        self.dataset = weakref.ref(dataset)
        self._key = repr((elements.each, elements.last, self.spec, self.count))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DatasetSpec) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"dataset of {self.spec}"


class _DatasetArgument(NamedTuple):
    """A dataset as an argument: its number among all datasets, the number of its elements, and what a trace depends on."""

    number: Any
    count: Any
    spec: Any

    def in_trace(self) -> Dataset:
        return _StandIn(self)

    def in_call(self) -> Dataset:
        return _datasets[int(self.number)]

    def type_spec(self) -> DatasetSpec:
        return DatasetSpec(self.spec.spec)


class _StandIn(Dataset):
    """A dataset in a traced function that takes it as an argument."""

    def __init__(self, argument: _DatasetArgument) -> None:
        self._argument = argument
        self._begun = None

    def __getattr__(self, name: str) -> Any:
        # What a dataset has and this object has not, depends on which dataset it is.
        if hasattr(self.__dict__["_argument"].spec.dataset(), name):
            raise NeedsArgumentError(Dataset)
        raise AttributeError(f"'Dataset' object has no attribute {name!r}", name=name, obj=self)

    @property
    def _elements(self) -> _specs.MaybeElements:
        return self._argument.spec.elements

    @property
    def _spec(self) -> Any:
        return self._argument.spec.spec

    def _traced_iterator(self, spec: Any) -> TracedIterator:
        return traced_iterator(lambda inputs: _datasets[int(inputs[0])], [self._argument.number], spec)

    def _count_in_trace(self) -> tuple[int, Any]:
        known = self._argument.spec.count
        return known, self._argument.count if known == _MANY else known

    def cardinality(self, name: str | None = None) -> _native.Tensor:
        """The number of elements, when the function runs."""
        known, total = self._count_in_trace()
        if known == _MANY:
            from .. import cast

            return cast(total, dtypes.int64)
        return _native.own_tensor(known, dtypes.int64)

    def __repr__(self) -> str:
        return f"<tf.data.Dataset in a traced function: {self._argument.spec}>"

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_argument", "_begun"):
            super().__setattr__(name, value)
        else:
            raise NeedsArgumentError(Dataset)


def _as_argument(dataset: Dataset) -> Any:
    """What stands for a dataset in a signature; the dataset itself, if its elements may have different specs."""
    elements, count = dataset._elements, dataset._native.cardinality()
    if _epochs.assigns_variables(dataset._native):
        return dataset
    if elements is None or count > _LARGEST or not all(map(_is_known, nest.flatten([elements.each, elements.last]))):
        return dataset
    number = _numbers_by_dataset.get(dataset)
    if number is None:
        number = _numbers_by_dataset[dataset] = next(_numbers)
        _datasets[number] = dataset
    return _DatasetArgument(
        _native.own_tensor(np.int64(number)),
        _native.own_tensor(np.int32(count)),
        _DatasetSpec(dataset, elements, count),
    )


def _is_known(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.shape.is_fully_defined() and spec.dtype != dtypes.string


_numbers = itertools.count()
_datasets: weakref.WeakValueDictionary[int, Dataset] = weakref.WeakValueDictionary()
_numbers_by_dataset: weakref.WeakKeyDictionary[Dataset, int] = weakref.WeakKeyDictionary()
register_argument(Dataset, _as_argument)
register_argument(_StandIn, lambda dataset: dataset._argument)
