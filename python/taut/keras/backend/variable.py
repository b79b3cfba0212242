"""Keras variables backed by Taut variables."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src.backend.common import KerasVariable
from keras.src.backend.common.stateless_scope import get_stateless_scope

import taut as tf
from taut._trackable import variables_made
from taut.keras.backend.convert import convert_to_numpy, convert_to_tensor, type_of


class Variable(KerasVariable):
    """A `keras.Variable` whose value is in a `taut.Variable`.

    Taut's ops, tapes and functions accept it: `__taut_tensor__` is its value, `__taut_variable__` the variable behind
    it. As in TensorFlow, `value` is that variable; it is a tensor inside a stateless scope that has a value for it, and where
    values are cast to the type of a layer's computation.
    """

    def _initialize(self, value):
        if isinstance(value, tf.Variable):
            self._value = value
            return
        with tf.init_scope():
            self._value = tf.Variable(value, trainable=self._trainable, dtype=self._dtype, name=self._name)
        # A variable whose initialization was deferred belongs to its layer already.
        variables_made(self)

    def _initialize_with_initializer(self, initializer):
        # A layer may be built inside a traced function. Its variables outlive the trace, so initial values are computed
        # outside of it.
        with tf.init_scope():
            self._initialize(convert_to_tensor(initializer(self._shape, dtype=self._dtype), self._dtype))

    def _direct_assign(self, value):
        self._value.assign(convert_to_tensor(value, self._dtype))

    def _convert_to_tensor(self, value, dtype=None):
        # The constructor, before which there is no shape, wraps a Taut variable of the right type: both share one state.
        if self._shape is None and isinstance(value, tf.Variable) and dtype in (None, type_of(value)):
            return value
        return convert_to_tensor(value, dtype=dtype)

    @property
    def shape(self) -> tf.TensorShape:
        """The shape, as that of `tf.Variable`."""
        return tf.TensorShape(super().shape)

    def __taut_variable__(self) -> tf.Variable:
        """The Taut variable behind this one."""
        if self._value is None:
            raise ValueError(f"Variable {self.path} is not initialized yet.")
        return self._value

    def _taut_read(self) -> tuple[Any, str]:
        """What is read of it now, the variable behind or its value in a stateless scope, and the type in which it is read."""
        scope = get_stateless_scope()
        value = None if scope is None else scope.get_current_value(self)
        return self.__taut_variable__() if value is None else value, self.dtype

    def __taut_tensor__(self) -> tf.Tensor:
        """The value, as Taut's ops convert it."""
        return convert_to_tensor(self)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if copy is False:
            return convert_to_tensor(self).__array__(dtype, copy=False)
        array = convert_to_numpy(self)
        return array if dtype is None else array.astype(dtype, copy=False)

    def numpy(self) -> Any:
        """A copy of the value as a NumPy array; a number of NumPy's for a scalar, as of `tf.Variable`."""
        return convert_to_numpy(self)[()]


def native(variable: Any) -> Any:
    """The Taut variable behind a Keras variable; other values unchanged."""
    return variable.__taut_variable__() if isinstance(variable, Variable) else variable
