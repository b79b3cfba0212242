"""Export of models to other formats, of which this backend writes none."""

from __future__ import annotations


class ExportArchive:
    """The backend's part of `keras.export.ExportArchive`, which cannot be made."""

    def __init__(self) -> None:
        # The class of the error is that of Keras's own archive on a backend that it does not know.
        raise NotImplementedError(
            "`ExportArchive` and `Model.export` need a graph of TensorFlow, JAX or PyTorch, which the taut backend does not "
            "make. Use `Model.save(path)` to store the model; with another backend, `keras.models.load_model(path)` reads "
            "it, and `Model.export` exports it."
        )
