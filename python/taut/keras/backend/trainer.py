"""`fit`, `evaluate`, `predict`, and steps on single batches.

A training step (forward, backward, update) is one call of a `taut.function`; the loops around it, with their callbacks,
are Python. Layers that are not built yet are built by the first step, so a model that overrides the steps needs no
`call`.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src import callbacks as callbacks_module, metrics as metrics_module, optimizers as optimizers_module, tree
from keras.src.backend import config
from keras.src.saving import serialization_lib
from keras.src.trainers import trainer as base_trainer
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import pythonify_logs

import taut as tf
from taut import sparse
from taut.keras.backend import distributed, rank_callbacks
from taut.keras.backend.convert import convert_to_numpy, shape_of
from taut.keras.backend.data import as_tensors, epochs as epochs_of, holds_sparse, split
from taut.keras.backend.layer import converted_in_traces
from taut.keras.backend.variable import native


class Trainer(base_trainer.Trainer):
    """Base class of `keras.Model`."""

    def __init__(self):
        super().__init__()
        self.train_function = None
        self.test_function = None
        self.predict_function = None
        self._memory_budget = None
        self._ranks = None

    @traceback_utils.filter_traceback
    def compile(self, *args: Any, memory_budget: Any = None, **kwargs: Any) -> None:
        """Configures training; see `keras.Model.compile`.

        `memory_budget` is the number of bytes that a step may allocate: a number, text such as "200MB", or a
        `tf.memory.MemoryBudget`. It is not saved with the model: it belongs to the machine.
        """
        budget = None if memory_budget is None else tf.memory.MemoryBudget(memory_budget)
        super().compile(*args, **kwargs)
        if budget is not None and self.run_eagerly:
            raise ValueError("memory_budget needs steps that are traced: run_eagerly must be False")
        self._memory_budget = budget
        if isinstance(self.optimizer, optimizers_module.Optimizer):
            self.optimizer._shard_state_of(tf.distribute.get_strategy())
        self._ranks = None
        self._join_ranks()

    def _join_ranks(self) -> distributed.Ranks | None:
        """The processes that train this model together: those of the strategy in whose scope it was compiled, or of
        Keras's distribution.
        """
        if self._ranks is None:
            group = distributed.current_group()
            self._ranks = None if group is None else distributed.Ranks(group)
        return self._ranks

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles the model as a saved one was; see `keras.Model.compile_from_config`."""
        if type(self).compile is not Trainer.compile:
            super().compile_from_config(config)  # warns: the model has its own `compile`
            return
        self.compile(**serialization_lib.deserialize_keras_object(config))
        if getattr(self, "optimizer", None) is not None and self.built:
            self.optimizer.build(self.trainable_variables)

    # One batch.

    def train_step(self, data: Any) -> dict[str, Any]:
        """Runs forward, backward and update; returns the metrics so far. Models may override it."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        # Only trainable weights are watched, so that frozen layers save nothing for the backward pass. The weights of a model
        # that is not built yet are not known.
        built = all(layer.built for layer in self._flatten_layers())
        with tf.GradientTape(watch_accessed_variables=not built) as tape:
            for weight in self.trainable_weights:
                tape.watch(native(weight))
            y_pred = self._forward(x, training=True)
            loss = self._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True)
            scaled = loss if self.optimizer is None else self.optimizer.scale_loss(loss)
        self._loss_tracker.update_state(loss, sample_weight=batch_size_of(x))
        weights = self.trainable_weights
        if weights:
            gradients = tape.gradient(scaled, [native(weight) for weight in weights])
            self.optimizer.apply(gradients, weights)
        else:
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data: Any) -> dict[str, Any]:
        """Runs forward and computes the loss; returns the metrics so far. Models may override it."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        y_pred = self._forward(x, training=False)
        loss = self._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False)
        self._loss_tracker.update_state(loss, sample_weight=batch_size_of(x))
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data: Any) -> Any:
        """Runs forward. Models may override it."""
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return self._forward(x, training=False)

    @property
    def compiled_metrics(self) -> MetricsOfKeras2:
        """The metrics of the model, for training steps that were written for Keras 2."""
        return MetricsOfKeras2(self)

    def compiled_loss(self, y: Any, y_pred: Any, sample_weight: Any = None, regularization_losses: Any = None) -> Any:
        """The loss of the model, which has the losses of its layers, for training steps that were written for Keras 2."""
        warnings.warn("`model.compiled_loss()` is deprecated: use `model.compute_loss(x, y, y_pred)`.", stacklevel=2)
        return self.compute_loss(x=None, y=y, y_pred=y_pred, sample_weight=sample_weight)

    def _forward(self, x, training):
        return self(x, training=training) if self._call_has_training_arg else self(x)

    # Functions of several batches: those between two calls of the callbacks.

    def _make_function(self, step: Callable, prepare: Callable | None = None, is_shared: bool = True) -> Callable:
        """A function that runs `step` on each batch, traced unless the model runs eagerly. `prepare(step, batch)` is
        called before the first trace. If `is_shared`, processes that train together divide the batch.
        """
        if self.run_eagerly:
            if is_shared and self._join_ranks() is not None:
                raise ValueError("models that several processes train need steps that are traced: run_eagerly=False")
            return lambda batches: [step(self._tensors(batch)) for batch in batches]
        step = converted_in_traces(step)
        traced = tf.function(
            step,
            autograph=False,
            reduce_retracing=True,
            jit_compile=bool(self.jit_compile),
            memory_budget=self._memory_budget,
        )

        def steps(batches):
            nonlocal prepare
            batches = [self._tensors(batch) for batch in batches]
            if prepare is not None:
                prepare(step, batches[0])
                prepare = None
            return [run(batch) for batch in batches]

        def run(batch):
            ranks = self._join_ranks() if is_shared else None
            return traced(batch) if ranks is None else self._step_together(ranks, traced, batch)

        return steps

    def _tensors(self, batch):
        """The tensors of a batch. The inputs of a model of layers are dense: its layers are those of dense tensors. A model
        with a `call` of its own gets sparse tensors as they are.
        """
        if holds_sparse(batch) and type(self).call.__module__.startswith("keras.src.models."):
            batch = tree.map_structure(
                lambda part: sparse.to_dense(part) if isinstance(part, tf.SparseTensor) else part, batch
            )
        return as_tensors(batch)

    def _step_together(self, ranks, step, batch):
        """A step of all processes, on this one's rows of the batch."""
        ranks.check(self)
        own, has_rows = ranks.own(batch, distributed.divides_batches())
        sums = [native(variable) for metric in self.metrics for variable in metric.variables]
        before = None if has_rows else [tf.identity(variable) for variable in sums]
        with ranks.active():
            ranks.check_plan(step, own)
            logs = step(own)
        if before is not None:
            for variable, value in zip(sums, before):
                variable.assign(value)
        return logs

    def _build_optimizer(self, step, batch):
        """Builds the optimizer before the step is traced: an unbuilt one would put its loss scale into the program as a
        constant.

        If the model is not built either, or overrides `train_step`, the weights are found by a trace, which is dropped.
        """
        if self.optimizer is None or self.optimizer.built:
            return
        layers_built = all(layer.built for layer in self._flatten_layers())
        if layers_built and type(self).train_step is Trainer.train_step:
            self.optimizer.build(self.trainable_variables)
        else:
            # A step whose shapes depend on values runs op by op; its first run builds the optimizer.
            with contextlib.suppress(tf.errors.DynamicShapeError):
                trace_once(step, batch)

    def make_train_function(self, force: bool = False) -> Callable:
        """The function from batches to the logs of the last one, created once."""
        if self.train_function is None or force:
            self.train_function = last_of(self._make_function(self.train_step, self._build_optimizer))
        return self.train_function

    def make_test_function(self, force: bool = False) -> Callable:
        """The function from batches to the logs of the last one, created once."""
        if self.test_function is None or force:
            self.test_function = last_of(self._make_function(self.test_step))
        return self.test_function

    def make_predict_function(self, force: bool = False) -> Callable:
        """The function from batches to their concatenated predictions, created once."""
        if self.predict_function is None or force:
            self.predict_function = joined(self._make_function(self.predict_step, is_shared=False))
        return self.predict_function

    # Epochs.

    @traceback_utils.filter_traceback
    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        initial_epoch=0,
        steps_per_epoch=None,
        validation_steps=None,
        validation_batch_size=None,
        validation_freq=1,
    ):
        """Trains for `epochs` passes over the data; see `keras.Model.fit`."""
        self._assert_compile_called("fit")
        most = config.max_epochs()
        if most and most < epochs:
            warnings.warn(f"Limiting epochs to {most}", stacklevel=2)
            epochs = most
        if validation_split and validation_data is None:
            divide = split if holds_sparse((x, y)) else array_slicing.train_validation_split
            (x, y, sample_weight), validation_data = divide((x, y, sample_weight), validation_split)
        validation = None
        if validation_data is not None:
            val_x, val_y, val_weight = data_adapter_utils.unpack_x_y_sample_weight(validation_data)
            validation = {
                "x": val_x,
                "y": val_y,
                "sample_weight": val_weight,
                "batch_size": validation_batch_size or batch_size,
                "steps": validation_steps,
            }
        iterator = epochs_of(
            x,
            y,
            sample_weight,
            class_weight,
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            shuffle=shuffle,
            steps_per_execution=self.steps_per_execution,
        )
        iterator.reset()
        self._build_for_batches_of(x)
        callbacks = self._callback_list(callbacks, verbose, epochs, iterator, add_history=True)

        self.stop_training = False
        function = self.make_train_function()
        self._eval_epoch_iterator = None
        callbacks.on_train_begin()
        logs, epoch_logs = {}, None
        for epoch in range(self._initial_epoch or initial_epoch, epochs):
            self.reset_metrics()
            callbacks.on_epoch_begin(epoch)
            with iterator.catch_stop_iteration():
                for begin, end, batches in iterator:
                    callbacks.on_train_batch_begin(begin)
                    logs = function(batches)
                    callbacks.on_train_batch_end(end, logs)
                    if self.stop_training:
                        break
            logs = self._end_epoch(logs, is_training=True)
            if not logs:
                self._build_without_batches(x)
            epoch_logs = dict(self._get_metrics_result_or_logs(logs)) if logs else {}
            if validation is not None and self._should_eval(epoch, validation_freq):
                epoch_logs.update(self._validate(validation, callbacks))
            callbacks.on_epoch_end(epoch, epoch_logs)
            if self.stop_training:
                break

        if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        self._eval_epoch_iterator = None
        callbacks.on_train_end(logs=epoch_logs)
        return self.history

    def _validate(self, validation: dict[str, Any], callbacks) -> dict[str, Any]:
        """Evaluates within `fit`; returns the logs with the prefix `val_`. The iterator is kept for the next epoch."""
        if self._eval_epoch_iterator is None:
            self._eval_epoch_iterator = epochs_of(
                validation["x"],
                validation["y"],
                validation["sample_weight"],
                batch_size=validation["batch_size"],
                steps_per_epoch=validation["steps"],
                shuffle=False,
                steps_per_execution=self.steps_per_execution,
            )
        logs = self.evaluate(**validation, callbacks=callbacks, return_dict=True, _use_cached_eval_dataset=True)
        return {f"val_{name}": value for name, value in logs.items()}

    @traceback_utils.filter_traceback
    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=None,
        verbose="auto",
        sample_weight=None,
        steps=None,
        callbacks=None,
        return_dict=False,
        **kwargs,
    ):
        """Computes loss and metrics over the data; see `keras.Model.evaluate`."""
        self._assert_compile_called("evaluate")
        cached = kwargs.pop("_use_cached_eval_dataset", False)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        if cached:
            iterator: Any = self._eval_epoch_iterator
        else:
            iterator = epochs_of(
                x,
                y,
                sample_weight,
                batch_size=batch_size,
                steps_per_epoch=steps,
                shuffle=False,
                steps_per_execution=self.steps_per_execution,
            )
        iterator.reset()
        callbacks = self._callback_list(callbacks, verbose, 1, iterator)

        function = self.make_test_function()
        self.stop_evaluating = False
        callbacks.on_test_begin()
        logs = {}
        self.reset_metrics()
        with iterator.catch_stop_iteration():
            for begin, end, batches in iterator:
                callbacks.on_test_batch_begin(begin)
                logs = function(batches)
                callbacks.on_test_batch_end(end, logs)
                if self.stop_evaluating:
                    break
        logs = self._end_epoch(logs, is_training=False)
        logs = pythonify_logs(self._get_metrics_result_or_logs(logs)) if logs else {}
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback
    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        """Computes predictions as NumPy arrays; see `keras.Model.predict`."""
        iterator = epochs_of(
            x,
            batch_size=batch_size,
            steps_per_epoch=steps,
            shuffle=False,
            steps_per_execution=self.steps_per_execution,
        )
        callbacks = self._callback_list(callbacks, verbose, 1, iterator)

        function = self.make_predict_function()
        self.stop_predicting = False
        callbacks.on_predict_begin()
        results = []
        with iterator.catch_stop_iteration():
            for begin, end, batches in iterator:
                callbacks.on_predict_batch_begin(begin)
                results.append(function(batches))
                callbacks.on_predict_batch_end(end, {"outputs": results[-1]})
                if self.stop_predicting:
                    break
        callbacks.on_predict_end()
        return concatenated(results)

    def _build_for_batches_of(self, x):
        """Builds a `Sequential` for batches of any size, where the first batch would build it for its own."""
        from keras.src.models.sequential import Sequential

        if self.built or self.run_eagerly or not isinstance(self, Sequential):
            return
        rows = None
        if isinstance(x, tf.data.Dataset):
            # No element is computed for this.
            x = None if x._spec is None else data_adapter_utils.unpack_x_y_sample_weight(x._spec)[0]
            rows = x.shape[0] if isinstance(x, tf.TensorSpec) and x.shape.rank else None
        is_tensor = isinstance(x, (np.ndarray, tf.Tensor, tf.TensorSpec))
        sizes = tf.TensorShape(x.shape)[1:] if is_tensor else tf.TensorShape(None)
        if sizes.is_fully_defined() and len(x.shape):
            self.build((rows, *sizes))

    def _build_without_batches(self, x):
        """Builds a model that an empty dataset trains, as its first batch would."""
        if isinstance(x, tf.data.Dataset) and not all(layer.built for layer in self._flatten_layers()):
            self._symbolic_build(data_batch=x.element_spec)

    def _end_epoch(self, logs, is_training):
        """The logs of an epoch: those of all processes that train together."""
        ranks = self._join_ranks()
        if ranks is None:
            return logs
        ranks.end_epoch(self, is_training)
        return self.get_metrics_result() if logs else logs

    def _callback_list(self, callbacks, verbose, epochs, iterator, **options):
        """The callbacks as a Keras `CallbackList`."""
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        if (ranks := self._join_ranks()) is not None:
            is_sharded = getattr(self.optimizer, "_sharding", None) is not None
            callbacks = rank_callbacks.of_rank(ranks.group.rank, callbacks, is_sharded)
            verbose = verbose if ranks.group.rank == 0 else 0
        made = callbacks_module.CallbackList(
            callbacks,
            add_progbar=verbose != 0,
            verbose=verbose,
            epochs=epochs,
            steps=iterator.num_batches,
            model=self,
            **options,
        )
        # Results are there when a step returns: a thread for the callbacks of a batch would save no waiting, and waking it
        # costs more than they do.
        made._async_train = made._async_test = made._async_predict = False
        return made

    # One batch, from outside.

    @traceback_utils.filter_traceback
    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        """Runs one training step; see `keras.Model.train_on_batch`."""
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError(
                    "Arguments `sample_weight` and `class_weight` cannot be specified at the same time. "
                    f"Received: sample_weight={sample_weight}, class_weight={class_weight}"
                )
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        return self._on_batch((x, y, sample_weight), self.make_train_function, return_dict)

    @traceback_utils.filter_traceback
    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        """Computes loss and metrics of one batch; see `keras.Model.test_on_batch`."""
        self._assert_compile_called("test_on_batch")
        return self._on_batch((x, y, sample_weight), self.make_test_function, return_dict)

    def _on_batch(self, data, make_function, return_dict):
        data = self._tensors(data)
        self.reset_metrics()
        logs = pythonify_logs(make_function()([data]))
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback
    def predict_on_batch(self, x):
        """Computes predictions of one batch, as NumPy arrays."""
        return self.make_predict_function()([(x,)])


class MetricsOfKeras2:
    """`model.compiled_metrics` of Keras 2. As in Keras on TensorFlow, means, that of the loss too, are those of predictions."""

    def __init__(self, model: Trainer) -> None:
        self._model = model

    def update_state(self, y: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch to every metric."""
        text = "`model.compiled_metrics` is deprecated: call `metric.update_state(y, y_pred)` for each metric."
        warnings.warn(text, stacklevel=2)
        for metric in self._model.metrics:
            values = (y_pred,) if isinstance(metric, metrics_module.Mean) else (y, y_pred)
            metric.update_state(*values, sample_weight=sample_weight)


def trace_once(step: Callable, batch: Any) -> None:
    """Traces a step and drops the trace. Variables that the step creates stay."""
    tensors = [x for x in tree.flatten(batch) if x is not None]

    def run(*given):
        waiting = iter(given)
        step(tree.map_structure(lambda x: None if x is None else next(waiting), batch))
        return ()

    # Strings, and sparse and ragged tensors, are values of the trace.
    is_numbers = [isinstance(x, tf.Tensor) and x.dtype != tf.string for x in tensors]
    tf.trace_specs(run, *[tf.TensorSpec(x.shape, x.dtype) if own else x for x, own in zip(tensors, is_numbers)])


def batch_size_of(x: Any) -> int:
    """The size of the first axis of the first input."""
    return shape_of(next(part for part in tree.flatten(x) if part is not None))[0]


def last_of(function: Callable) -> Callable:
    """A function that returns the last result of `function`: metrics accumulate over batches."""
    return lambda batches: function(batches)[-1]


def joined(function: Callable) -> Callable:
    """A function that returns the results of `function` as NumPy arrays, concatenated."""
    return lambda batches: concatenated([tree.map_structure(convert_to_numpy, result) for result in function(batches)])


def concatenated(results: list[Any]) -> Any:
    """Structures of arrays, concatenated along the first axis."""
    if len(results) == 1:
        return results[0]
    return tree.map_structure(lambda *parts: np.concatenate(parts), *results)
