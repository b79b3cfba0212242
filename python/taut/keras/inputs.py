"""Inputs of models that are declared sparse."""

from __future__ import annotations

from typing import Any


class _Backend:
    """Keras's backend, as the layer of inputs sees it: with sparse tensors.

    Keras refuses `keras.Input(sparse=True)`, because the ops of this backend are those of dense tensors. But a model converts
    its inputs, and sparse ones become dense (`backend/convert.py`).
    """

    SUPPORTS_SPARSE_TENSORS = True

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


def accept_sparse(input_layer: Any) -> None:
    """Makes the module of Keras's `InputLayer` accept `keras.Input(sparse=True)`."""
    if not isinstance(input_layer.backend, _Backend):
        input_layer.backend = _Backend(input_layer.backend)
