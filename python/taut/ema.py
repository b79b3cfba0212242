"""Exponential moving averages of variables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import _native, _raw_ops as raw
from ._trackable import variables_made
from .variable import Variable


class ExponentialMovingAverage:
    """Maintains exponential moving averages of variables: `average = decay * average + (1 - decay) * value`.

    With `num_updates`, the decay is at most `(1 + num_updates) / (10 + num_updates)`, so that averages adapt faster at first.

    >>> import taut as tf
    >>> weight = tf.Variable(0.0)
    >>> average = tf.train.ExponentialMovingAverage(0.9)
    >>> average.apply([weight])
    >>> _ = weight.assign(10.0)
    >>> average.apply([weight])
    >>> round(float(average.average(weight)), 3)
    1.0
    """

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ) -> None:
        if zero_debias:
            raise ValueError("zero_debias must be False: averages start at the variables' values, not at zero")
        self._decay, self._num_updates, self.name = decay, num_updates, name
        # By variable. The variables are kept alive, so that their keys are not reused.
        self._averages: dict[int, tuple[Any, Variable]] = {}

    def apply(self, var_list: Iterable) -> None:
        """Updates the averages; new averages start at the variables' values."""
        decay = self._decay
        if self._num_updates is not None:
            steps = self._num_updates * 1.0
            bound = (1.0 + steps) / (10.0 + steps)
            decay = raw.minimum(decay, bound) if isinstance(bound, _native.Array) else min(decay, bound)
        for variable in var_list:
            self._step(variable, decay)

    def _step(self, variable: Any, decay: Any) -> None:
        key = _key(variable)
        if key not in self._averages:
            with _native.InitScope():
                self._averages[key] = (
                    variable,
                    Variable(variable.read_value(), trainable=False, name=self.average_name(variable)),
                )
            variables_made(self)
        _, average = self._averages[key]
        average.assign_add((variable.read_value() - average) * (1.0 - decay))

    @property
    def variables(self) -> list[Variable]:
        """The averages, in the order of their first `apply`."""
        return [average for _, average in self._averages.values()]

    def average_name(self, var: Any) -> str:
        """The name of the average of a variable, also before the first `apply`."""
        return f"{var.name.removesuffix(':0')}/{self.name}"

    def average(self, var: Any) -> Variable | None:
        """The average of a variable; None before the first `apply`."""
        return self._averages.get(_key(var), (None, None))[1]


def _key(variable: Any) -> int:
    """Which variable it is. In a trace, another object may stand in for it."""
    return variable._id if isinstance(variable, _native.Array) else id(variable)


__all__ = ["ExponentialMovingAverage"]
