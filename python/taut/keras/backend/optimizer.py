"""The backend's base class of Keras optimizers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from keras.src import ops
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.optimizers import base_optimizer

import taut as tf
from taut._trackable import variables_made
from taut.keras.backend.convert import convert_to_tensor
from taut.keras.backend.distributed import reduced
from taut.keras.backend.variable import Variable, native


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

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        """Updates variables by their gradients; variables whose gradient is None are skipped."""
        kept = tf.IndexedSlices if self._supports_sparse() else ()
        grads = reduced(list(grads))
        grads = [g if g is None or isinstance(g, kept) else convert_to_tensor(g) for g in grads]
        if trainable_variables is not None:
            trainable_variables = [self._as_keras_variable(variable) for variable in trainable_variables]
        super().apply(grads, trainable_variables)

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
        for grad, variable in zip(grads, trainable_variables):
            if isinstance(grad, tf.IndexedSlices):
                rate = convert_to_tensor(learning_rate, grad.values.dtype)
                step = tf.IndexedSlices(grad.values * rate, grad.indices, grad.dense_shape)
                native(variable).scatter_sub(step)
            else:
                self.update_step(grad, variable, learning_rate)

    def _var_key(self, variable):
        return id(native(variable))

    def _as_keras_variable(self, variable):
        """The Keras variable that wraps a Taut variable: the same one at every step, since slots are found by it."""
        if not isinstance(variable, tf.Variable):
            return variable
        if not hasattr(self, "_wrappers"):
            self._wrappers: dict[int, Any] = {}
        if id(variable) not in self._wrappers:
            name = (variable.name or "variable").split(":")[0].replace("/", "_")
            self._wrappers[id(variable)] = Variable(variable, trainable=True, name=name)
        return self._wrappers[id(variable)]

    def _backend_apply_gradients(self, grads, trainable_variables):
        if self.gradient_accumulation_steps:
            self._accumulate(grads, trainable_variables)
        else:
            self._update(grads, trainable_variables)
        if self.use_ema:
            self._update_model_variables_moving_average(self._trainable_variables)
            if self.ema_overwrite_frequency:
                due = ops.equal((self.iterations + 1) % self.ema_overwrite_frequency, 0)
                for variable, average in zip(self._trainable_variables, self._model_variables_moving_average):
                    if average is not None:
                        variable.assign(tf.where(due, average.value, variable.value))

    def _update(self, grads, trainable_variables):
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
        sums = [grad + accumulator.value for grad, accumulator in zip(grads, accumulators)]
        held = {id(accumulator) for accumulator in self._accumulated_gradients if accumulator is not None}
        states = [*trainable_variables, *(v for v in self.variables if id(v) not in held)]
        before = [state.value for state in states]
        self._update([total / steps for total in sums], trainable_variables)
        for state, old in zip(states, before):
            state.assign(tf.where(due, state.value, old))
        for accumulator, total in zip(accumulators, sums):
            accumulator.assign(tf.where(due, tf.zeros_like(total), total))
