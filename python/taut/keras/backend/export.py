"""Export of models to other formats, of which this backend writes none."""

from __future__ import annotations

import functools
from typing import Any

import taut as tf


class ExportArchive:
    """The backend's part of `keras.export.ExportArchive`, which cannot be made."""

    def __init__(self) -> None:
        raise unsupported("ExportArchive")


def refuse_export(model: Any) -> None:
    """Makes the `export` of Keras's `Model` say, for every format, what to do instead."""
    export = model.export

    @functools.wraps(export)
    def refused(self: Any, filepath: Any, format: str = "tf_saved_model", **options: Any) -> None:
        raise unsupported(f"Model.export(format={format!r})")

    model.export = refused


def unsupported(name: str) -> tf.errors.UnimplementedError:
    """The error for a function that writes a model in another format."""
    return tf.errors.UnimplementedError(
        f"`{name}` needs a graph of TensorFlow, JAX or PyTorch, which the taut backend does not make. Use `Model.save(path)` "
        "to store the model; with another backend, `keras.models.load_model(path)` reads it, and `Model.export` exports it."
    )
