"""Datasets made of several datasets, side by side or one element after the other."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .. import _native, nest
from .._ops.random import has_seed
from ..spec import TensorSpec
from ..type_spec import DatasetSpec
from . import _fingerprints, _specs, _stages
from ._epochs import seed_of, seeded
from ._options import DatasetOptions

if TYPE_CHECKING:
    from ._dataset import Dataset

INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


@_fingerprints.noted
class JoinedDatasets:
    """The part of `Dataset` whose functions take several datasets."""

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Zips datasets; it ends with the shortest."""
        from ._dataset import Dataset

        if args and datasets is not None:
            raise TypeError("zip: datasets must be None beside positional arguments")
        structure = datasets if datasets is not None else args[0] if len(args) == 1 else args
        if isinstance(structure, Dataset):
            return structure._same(structure._native)
        flat = nest.flatten(structure)
        for part in flat:
            if not isinstance(part, Dataset):
                raise TypeError(f"zip: expected datasets in tuples and dicts, got {part!r}")
        if not flat:
            raise TypeError("zip needs at least one dataset")
        native = _native.Dataset.zip([dataset._native for dataset in flat])
        made = Dataset(
            native,
            lambda: _specs.zipped([dataset._elements for dataset in flat]),
            lambda: _specs.zipped_specs([dataset._spec for dataset in flat]),
            functools.reduce(DatasetOptions.merge, (dataset._options for dataset in flat)),
        )
        if type(structure) is tuple and all(isinstance(part, Dataset) for part in structure):
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

        It ends when all datasets have ended, or when one has (`stop_on_empty_dataset`). With a seed, every iteration samples
        the same, unless `rerandomize_each_iteration` is true; without one, each samples anew.
        """
        from ._dataset import Dataset

        if not datasets:
            raise ValueError("sample_from_datasets: datasets must not be empty")
        check_datasets("sample_from_datasets", datasets)
        is_anew = _is_anew(seed, rerandomize_each_iteration)
        if isinstance(weights, Dataset):
            return _sampled_by(datasets, weights, seed, stop_on_empty_dataset, is_anew)
        weights = [1.0] * len(datasets) if weights is None else [float(weight) for weight in weights]
        if len(weights) != len(datasets):
            raise ValueError(
                f"sample_from_datasets: weights must have one value per dataset, {len(datasets)}, got {len(weights)}"
            )
        for dataset in datasets[1:]:
            _specs.check_alike("sample_from_datasets", datasets[0]._spec, dataset._spec)
        pairs = [(dataset, weight) for dataset, weight in zip(datasets, weights) if weight]
        if len(pairs) == 1:
            return pairs[0][0]

        def known() -> _specs.MaybeElements:
            return _specs.common(dataset._elements for dataset, _ in pairs)

        def spec() -> Any:
            return _specs.common_spec([dataset._spec for dataset, _ in pairs])

        if stop_on_empty_dataset:
            start, runs = seed_of(seed), itertools.count()

            def elements() -> Iterator:
                run = next(runs) if is_anew else 0
                choices = _stages.drawn([weight for _, weight in pairs], [start, run])
                return _stages.chosen([dataset for dataset, _ in pairs], choices, stop_on_empty_dataset)

            made = Dataset._from_iterators(elements, known, spec)
            is_endless = all(dataset._native.cardinality() == INFINITE_CARDINALITY for dataset, _ in pairs)
            return made._with_cardinality(INFINITE_CARDINALITY) if is_endless else made
        sources = [(dataset._native, weight) for dataset, weight in pairs]
        start = seed_of(seed)
        made = Dataset(seeded(_native.Dataset.sample_from(sources, start, is_anew), start), known, spec)
        # As in TensorFlow, the number of elements of several datasets is not told.
        return (
            made._same(made._native.assert_cardinality(UNKNOWN_CARDINALITY))
            if made._native.cardinality() >= 0
            else made
        )

    @staticmethod
    def choose_from_datasets(datasets: list, choice_dataset: Dataset, stop_on_empty_dataset: bool = True) -> Dataset:
        """Takes elements from datasets by index; the indices are the elements of `choice_dataset`."""
        from ._dataset import Dataset

        if not datasets:
            raise ValueError("choose_from_datasets: datasets must not be empty")
        check_datasets("choose_from_datasets", [choice_dataset, *datasets])
        choices = choice_dataset._spec
        if isinstance(choices, TensorSpec) and not (choices.dtype.is_integer and choices.shape == []):
            raise TypeError(f"choose_from_datasets: choices must be integer scalars, got {choices}")
        for dataset in datasets[1:]:
            _specs.check_alike("choose_from_datasets", datasets[0]._spec, dataset._spec)
        made = Dataset._from_iterators(
            lambda: _stages.chosen(datasets, choice_dataset, stop_on_empty_dataset),
            lambda: _specs.common(dataset._elements for dataset in datasets),
            lambda: _specs.common_spec([dataset._spec for dataset in datasets]),
        )
        counts = [one._native.cardinality() for one in datasets]
        # Without it, the choices go on as long as one of the datasets does.
        of_all = all if stop_on_empty_dataset else any
        is_endless = choice_dataset._native.cardinality() == INFINITE_CARDINALITY and of_all(
            count == INFINITE_CARDINALITY for count in counts
        )
        return made._with_cardinality(INFINITE_CARDINALITY) if is_endless else made


def _is_anew(seed: int | None, rerandomize_each_iteration: bool | None) -> bool:
    """Whether each iteration samples anew."""
    if rerandomize_each_iteration is None:
        return seed is None and not has_seed()
    return bool(rerandomize_each_iteration)


def _sampled_by(datasets: list, weights: Dataset, seed: int | None, stop: bool, is_anew: bool) -> Dataset:
    """Samples elements from datasets; each element of `weights` holds for one draw."""
    from ._dataset import Dataset

    start, runs = seed_of(seed), itertools.count()

    def elements() -> Iterator:
        run = next(runs) if is_anew else 0
        return _stages.chosen(datasets, _stages.drawn_by(weights, len(datasets), [start, run]), stop)

    return Dataset._from_iterators(
        elements,
        lambda: _specs.common(dataset._elements for dataset in datasets),
        lambda: _specs.common_spec([dataset._spec for dataset in datasets]),
    )


def rows_of_datasets(structure: Any) -> Dataset | None:
    """The rows of a structure with lists of datasets, each of which is a column; None if there is no such list."""
    from ._dataset import Dataset

    parts = structure if type(structure) is tuple else (structure,)

    def is_column(part: Any) -> bool:
        return isinstance(part, list) and bool(part) and all(isinstance(one, Dataset) for one in part)

    if not any(map(is_column, parts)):
        return None
    for part in filter(is_column, parts):
        for dataset in part[1:]:
            _specs.check_alike("from_tensor_slices", part[0]._spec, dataset._spec)
    numbers = [list(range(len(part))) if is_column(part) else part for part in parts]
    rows = Dataset.from_tensor_slices(tuple(numbers))

    def elements() -> Iterator:
        for row in rows:
            made = tuple(part[int(one)] if is_column(part) else one for part, one in zip(parts, row))
            yield made if type(structure) is tuple else made[0]

    def spec() -> Any:
        specs = zip(parts, rows.element_spec)
        made = tuple(DatasetSpec(part[0].element_spec) if is_column(part) else one for part, one in specs)
        return made if type(structure) is tuple else made[0]

    return Dataset._from_iterators(elements, spec=spec)._with_cardinality(len(rows))


def check_datasets(name: str, datasets: Iterable) -> None:
    """Raises TypeError if one of them is no dataset."""
    from ._dataset import Dataset

    for dataset in datasets:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"{name}: expected datasets, got {dataset!r}\n  at {_native.calling_line()}")
