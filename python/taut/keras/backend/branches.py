"""Branches of a trace that assign to Keras variables inside a stateless scope.

A stateless scope outlives the branches, but tensors of a branch must not leave it. So assigned values become results of
the branch, and are assigned after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras.src import tree
from keras.src.backend.common.stateless_scope import StatelessScope, get_stateless_scope

import taut as tf
from taut.keras.backend.convert import convert_to_tensor


class Collecting(StatelessScope):
    """A stateless scope that also records which variables are assigned. It starts with the values of the enclosing
    scope.
    """

    def __init__(self):
        super().__init__()
        around = get_stateless_scope()
        if around is not None:
            self.state_mapping = dict(around.state_mapping)
        self.assigned = {}

    def add_update(self, update):
        """Records the variable and its new value."""
        variable, _ = update
        self.assigned[id(variable)] = variable
        super().add_update(update)


def cond_with_updates(pred: tf.Tensor, true_fn: Callable, false_fn: Callable) -> Any:
    """`tf.cond` of two functions that may assign to variables."""
    if get_stateless_scope() is None:
        return tf.cond(pred, true_fn, false_fn)
    variables = list({**assigned_by(true_fn), **assigned_by(false_fn)}.values())
    structure = None

    def returning(fn):
        def branch():
            nonlocal structure
            with Collecting():
                structure = fn()
                results = [convert_to_tensor(x) for x in tree.flatten(structure) if x is not None]
                return results, values(variables)

        return branch

    results, new = tf.cond(pred, returning(true_fn), returning(false_fn))
    for variable, value in zip(variables, new):
        variable.assign(value)
    results = iter(results)
    return tree.map_structure(lambda x: None if x is None else next(results), structure)


def values(variables: Sequence[Any]) -> list[tf.Tensor]:
    """The variables' values in this scope, in their own types."""
    return [convert_to_tensor(variable, variable._dtype) for variable in variables]


def assigned_by(fn: Callable) -> dict[int, Any]:
    """The variables that `fn` assigns, by id, found by a trace that is dropped."""
    scope = Collecting()

    def run():
        with scope:
            fn()
        return ()

    tf.trace_specs(run)
    return scope.assigned
