"""Averages of variables over the steps of a training."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import _native
from .variable import Variable


class ExponentialMovingAverage:
    """Averages of variables in which a step weighs `decay` times what the next one does.

    With `num_updates`, the first steps weigh more: the decay is at most `(1 + num_updates) / (10 + num_updates)`.

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
            raise ValueError("averages begin with what the variables are: zero_debias means nothing for them")
        self._decay, self._num_updates, self.name = decay, num_updates, name
        # By the ids of the variables, which are held so that no other gets one's id.
        self._averages: dict[int, tuple[Any, Variable]] = {}

    def apply(self, var_list: Iterable) -> None:
        """Makes a step: averages that are not there yet begin with what the variables are."""
        decay = self._decay
        if self._num_updates is not None:
            steps = self._num_updates * 1.0
            bound = (1.0 + steps) / (10.0 + steps)
            decay = _minimum(decay, bound) if isinstance(bound, _native.Array) else min(decay, bound)
        for variable in var_list:
            self._step(variable, decay)

    def _step(self, variable: Any, decay: Any) -> None:
        if id(variable) not in self._averages:
            with _native.InitScope():
                self._averages[id(variable)] = (variable, Variable(variable.read_value(), trainable=False))
        _, average = self._averages[id(variable)]
        average.assign_add((variable.read_value() - average) * (1.0 - decay))

    def average(self, var: Any) -> Variable | None:
        """The average of a variable; None if there is none yet."""
        return self._averages[id(var)][1] if id(var) in self._averages else None


_minimum = _native.Op("minimum")

__all__ = ["ExponentialMovingAverage"]
