"""The backend's base class of Keras optimizers."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from keras.src import backend, ops
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.optimizers import base_optimizer

import taut as tf
from taut import distribute
from taut._trackable import variables_made
from taut.keras.backend.convert import convert_to_tensor
from taut.keras.backend.distributed import reduced
from taut.keras.backend.sharded import SavedShard, Shard, Sharding, check_elementwise
from taut.keras.backend.variable import Variable, native
from taut.variable_arguments import original


def then_restored(build: Callable) -> Callable:
    """The method; afterwards, variables take the values of a checkpoint that wait for them."""

    @functools.wraps(build)
    def built(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = build(self, *args, **kwargs)
        variables_made(self)
        return result

    return built


class Optimizer(base_optimizer.BaseOptimizer):
    """Base class of `keras.Optimizer`.

    It accepts Taut's variables beside Keras's, and sparse gradients, which are densified where the update rule needs
    all rows. Conditional updates (gradient accumulation, weight averages) select values instead of branching, so that a
    step is one straight-line program.
    """

    _sharding: Sharding | None = None
    """How the state is distributed over processes; None if every process has all of it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._shard_state_of(distribute.get_strategy())

    def _shard_state_of(self, strategy: Any) -> None:
        """Distributes the state over the processes of a strategy that wants it."""
        if strategy.shard_optimizer_state and self._sharding is None and not self.built:
            self._sharding = Sharding(strategy)
            strategy._optimizers.add(self)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        """Updates variables by their gradients; variables whose gradient is None are skipped."""
        kept = tf.IndexedSlices if self._supports_sparse() else ()
        if trainable_variables is not None:
            trainable_variables = [self._as_keras_variable(variable) for variable in trainable_variables]
        grads = self._reduced(list(grads), self._is_sharded(trainable_variables))
        if self._needs_all_gradients():
            grads = [g() if callable(g) else g for g in reversed(grads)][::-1]
        grads = [g if g is None or callable(g) or isinstance(g, kept) else convert_to_tensor(g) for g in grads]
        super().apply(grads, trainable_variables)

    def _needs_all_gradients(self) -> bool:
        """Whether gradients are used before the update of their variable."""
        clips = (self.clipnorm, self.global_clipnorm, self.clipvalue)
        return any((*clips, self.gradient_accumulation_steps, self.loss_scale_factor))

    def _reduced(self, grads: list[Any], is_sharded: list[bool]) -> list[Any]:
        """The gradients, combined over the processes that train together; a function that returns a shard where the
        variable's slots are sharded.
        """
        return reduced(grads, is_sharded)

    def _is_sharded(self, variables: list[Any] | None) -> list[bool]:
        """Which gradients are reduced to shards: those of variables whose slots are sharded."""
        if self._sharding is None:
            return []
        if in_stateless_scope():
            raise ValueError("an optimizer with sharded state cannot be applied in a stateless scope")
        if not self.built and variables is not None:
            with backend.name_scope(self.name, caller=self):
                self.build(variables)
        return [self._sharding.shards(variable) for variable in variables or self._trainable_variables]

    def build(self, variables: Any) -> None:
        """Makes the slots of variables."""
        if self._sharding is not None:
            check_elementwise(self)
        super().build(variables)

    def add_variable_from_reference(
        self, reference_variable: Any, name: str | None = None, initializer: Any = "zeros"
    ) -> Any:
        """A slot of a variable; see `keras.Optimizer.add_variable_from_reference`. Moving averages are not sharded."""
        sharding = self._sharding
        if sharding is None or name == "average" or not sharding.shards(reference_variable):
            return super().add_variable_from_reference(reference_variable, name, initializer)
        slot = super().add_variable_from_reference(sharding.of(reference_variable), name, initializer)
        sharding.note(slot, reference_variable)
        return slot

    @contextlib.contextmanager
    def _with_new_state(self) -> Iterator[None]:
        """Gives the optimizer a new state within: for plans of other numbers of processes."""
        if self._sharding is None:
            yield
            return
        config = self.get_config()
        if not isinstance(self._learning_rate, Variable):
            config["learning_rate"] = self._learning_rate
        other = type(self).from_config(config)
        other._sharding = Sharding(self._sharding._source)
        other._wrappers = dict(getattr(self, "_wrappers", {}))
        if self.built:
            other.build(self._trainable_variables)
        own = self.__dict__.copy()
        self.__dict__.clear()
        self.__dict__.update(other.__dict__)
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(own)

    def _take_part_in_saving(self) -> None:
        """What the other processes do while one saves the state."""
        for slot in self._saved_variables():
            if isinstance(slot, SavedShard):
                slot._saved_state()

    def _saved_variables(self) -> list[Any]:
        """The variables as checkpoints see them: whole, on every number of processes."""
        return self.variables if self._sharding is None else [self._sharding.saved(slot) for slot in self.variables]

    def save_own_variables(self, store: Any) -> None:
        """Writes the state. If it is sharded, all processes must call it."""
        for i, slot in enumerate(self._saved_variables()):
            store[str(i)] = slot._saved_state().numpy() if isinstance(slot, SavedShard) else slot.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Reads the state; of one that is sharded, this process's part."""
        saved = self._saved_variables()
        if len(store.keys()) != len(saved) or not any(isinstance(slot, SavedShard) for slot in saved):
            super().load_own_variables(store)
            return
        for i, slot in enumerate(saved):
            value = convert_to_tensor(np.asarray(store[str(i)]))
            slot._restore_state(value) if isinstance(slot, SavedShard) else slot.assign(value)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        build = vars(cls).get("build")
        if build is not None:
            setattr(cls, "build", then_restored(build))

    def _supports_sparse(self):
        """Whether an update by a sparse gradient touches only its rows: plain gradient descent."""
        from keras.src.optimizers.sgd import SGD

        more = (
            self.weight_decay,
            self.clipnorm,
            self.global_clipnorm,
            self.clipvalue,
            self.use_ema,
            self.gradient_accumulation_steps,
            self.loss_scale_factor,
        )
        return type(self) is SGD and not self.momentum and not any(more) and not in_stateless_scope()

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        pairs = list(zip(grads, trainable_variables))
        # Shards are reduced, updated and gathered variable by variable, in the order of the backward pass.
        for grad, variable in pairs if self._sharding is None else reversed(pairs):
            if callable(grad):
                grad = convert_to_tensor(grad())
            if isinstance(grad, tf.IndexedSlices):
                rate = convert_to_tensor(learning_rate, grad.values.dtype)
                step = grad.with_values(grad.values * rate)
                native(variable).scatter_sub(step)
            else:
                self.update_step(grad, variable, learning_rate)
            if isinstance(variable, Shard) and not self.gradient_accumulation_steps:
                variable.gather()

    def _var_key(self, variable):
        return id(native(variable))

    def _as_keras_variable(self, variable):
        """The Keras variable that wraps a Taut variable: the same one at every step, since slots are found by it."""
        if not isinstance(variable, tf.Variable):
            return variable
        variable = original(variable)
        if not hasattr(self, "_wrappers"):
            self._wrappers: dict[int, Any] = {}
        if id(variable) not in self._wrappers:
            name = (variable.name or "variable").split(":")[0].replace("/", "_")
            made = Variable(variable, trainable=True, name=name)
            made.constraint = variable.constraint
            self._wrappers[id(variable)] = made
        return self._wrappers[id(variable)]

    def _backend_apply_gradients(self, grads, trainable_variables):
        if self._sharding is not None:
            trainable_variables = [self._sharding.of(variable) for variable in trainable_variables]
        if self.gradient_accumulation_steps:
            self._accumulate(grads, trainable_variables)
        else:
            self._update(grads, trainable_variables)
        for variable in trainable_variables:
            if isinstance(variable, Shard):
                variable.gather()
        if self.use_ema:
            self._update_model_variables_moving_average(self._trainable_variables)
            if self.ema_overwrite_frequency:
                due = ops.equal((self.iterations + 1) % self.ema_overwrite_frequency, 0)
                for variable, average in zip(self._trainable_variables, self._model_variables_moving_average):
                    if average is not None:
                        variable.assign(tf.where(due, average.value, variable.value))

    def _update(self, grads, trainable_variables):
        limit = self.clipnorm or self.global_clipnorm
        if limit and self._sharding is not None and self._sharding.group.size > 1:
            grads = self._sharding.clipped(grads, trainable_variables, limit, together=not self.clipnorm)
        else:
            grads = self._clip_gradients(grads)
        self._apply_weight_decay(trainable_variables)
        self._backend_update_step(grads, trainable_variables, self.learning_rate)

    def _accumulate(self, grads, trainable_variables):
        """Accumulates gradients; every `gradient_accumulation_steps` steps, updates by their mean. The update of the
        other steps is computed and dropped.
        """
        steps = self.gradient_accumulation_steps
        accumulators = [self._accumulated_gradients[self._get_variable_index(v)] for v in trainable_variables]
        due = ops.equal((self._iterations + 1) % steps, 0)
        sums = [grad + convert_to_tensor(accumulator) for grad, accumulator in zip(grads, accumulators)]
        held = {id(accumulator) for accumulator in self._accumulated_gradients if accumulator is not None}
        states = [*trainable_variables, *(v for v in self.variables if id(v) not in held)]
        before = [convert_to_tensor(state) for state in states]
        self._update([total / steps for total in sums], trainable_variables)
        for state, old in zip(states, before):
            state.assign(tf.where(due, state.value, old))
        for accumulator, total in zip(accumulators, sums):
            accumulator.assign(tf.where(due, tf.zeros_like(total), total))
