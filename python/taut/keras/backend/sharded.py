"""Optimizer state that is distributed over processes (ZeRO, stage 1).

Every process has the whole of every variable, and of its slots one part: a *shard* of `ceil(size / processes)` elements
in row-major order. An update computes this process's shard of the variable and gathers the others.
"""

from __future__ import annotations

from typing import Any

import taut as tf
from taut.keras.backend.variable import Variable, native

SMALL = 64 << 10
"""Variables of fewer bytes are not sharded, and their gradients share a message with others."""

ELEMENTWISE = ("Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Lion", "Nadam", "RMSprop", "SGD")
"""Optimizers (and subclasses with the same update) whose update of an element depends on no other element."""


def check_elementwise(optimizer: Any) -> None:
    """Raises an error if a part of a variable cannot be updated by itself."""
    from keras.src import optimizers

    if not any(type(optimizer).update_step is getattr(optimizers, name).update_step for name in ELEMENTWISE):
        raise ValueError(
            "an optimizer with sharded state must update elements independently of each other, got "
            f"{type(optimizer).__name__}; use one of {', '.join(ELEMENTWISE)}, or leave shard_optimizer_state out"
        )


def is_large(variable: Any) -> bool:
    """Whether the slots of a variable are sharded."""
    own = native(variable)
    overwritten = getattr(variable, "overwrite_with_gradient", False)
    return own.dtype.is_floating and own.dtype.size * own.shape.num_elements() >= SMALL and not overwritten


class Shard(Variable):
    """This process's shard of a variable, under the interface that an update uses.

    It has no memory of its own: a read takes the shard out of the whole, and what is assigned waits for `gather`.
    """

    def __init__(self, whole: Any, group: Any) -> None:
        self._whole, self._group, self._assigned = whole, group, None
        own = native(whole)
        self._shape = (-(-own.shape.num_elements() // group.size),)
        self._dtype, self._ndim, self._trainable, self._autocast = whole.dtype, 1, True, False
        self._name, self._path = whole.name, getattr(whole, "path", whole.name)
        self._initializer = self._regularizer = self._constraint = None

    @property
    def value(self) -> Any:
        """The shard."""
        return self._group.own_shard(native(self._whole)) if self._assigned is None else self._assigned

    def assign(self, value: Any) -> Any:
        """Keeps a value for `gather`."""
        self._assigned = self._convert_to_tensor(value, self._dtype)
        return self._assigned

    def __taut_variable__(self) -> Any:
        return native(self._whole)

    def gather(self) -> None:
        """Gives the variable the shards of all processes."""
        if self._assigned is not None:
            own = native(self._whole)
            own.assign(self._group.replace_shards(own, self._assigned))
            self._assigned = None


class SavedShard:
    """A slot that is sharded, as checkpoints see it: whole. Processes must save it together."""

    def __init__(self, slot: Any, shape: Any, group: Any) -> None:
        self._slot, self._shape, self._group = slot, tuple(shape), group

    def _saved_state(self) -> Any:
        return self._group.gather_shards(native(self._slot), list(self._shape))

    def _restore_state(self, whole: Any) -> None:
        if tuple(whole.shape) != self._shape:
            raise ValueError(f"{self._slot.path} must have the shape {list(self._shape)}, got {list(whole.shape)}")
        native(self._slot).assign(self._group.own_shard(whole))


class Sharding:
    """The shards of an optimizer's variables, and of its slots."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._slots: dict[int, tuple[Any, Any]] = {}

    @property
    def group(self) -> Any:
        """The processes: those of the strategy or job that the optimizer belongs to."""
        return self._source._group

    def shards(self, variable: Any) -> bool:
        """Whether the slots of a variable are shards."""
        return self.group.size > 1 and is_large(variable)

    def of(self, variable: Any) -> Any:
        """The shard of a variable; the variable itself if it is not sharded."""
        return Shard(variable, self.group) if self.shards(variable) else variable

    def note(self, slot: Any, variable: Any) -> None:
        """Remembers a slot that is a shard of one with the shape of a variable: its values differ between processes."""
        native(slot)._synchronization = tf.VariableSynchronization.ON_READ
        self._slots[id(slot)] = (slot, tuple(variable.shape))

    def saved(self, slot: Any) -> Any:
        """The slot as checkpoints see it."""
        _, shape = self._slots.get(id(slot), (None, None))
        return slot if shape is None else SavedShard(slot, shape, self.group)

    def clipped(self, gradients: list[Any], variables: list[Any], limit: float, together: bool) -> list[Any]:
        """Gradients whose norms, or whose norm `together`, are at most the limit. Those of shards are of the whole."""
        squares = []
        for gradient, variable in zip(gradients, variables):
            own = tf.reduce_sum(tf.square(gradient))
            squares.append(self.group.all_reduce(own, "SUM") if isinstance(variable, Shard) else own)
        if together:
            squares = [sum(tf.cast(square, tf.float32) for square in squares)] * len(squares)
        # The difference is zero, and NaN if a norm is not finite.
        norms = [tf.sqrt(square) for square in squares]
        scales = [limit / tf.maximum(norm, limit) + (norm - norm) for norm in norms]
        return [gradient * tf.cast(scale, gradient.dtype) for gradient, scale in zip(gradients, scales)]
