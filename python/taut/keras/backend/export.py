"""Export of models, which is not implemented."""

from __future__ import annotations

from typing import Any


class ExportArchive:
    """The backend's part of `keras.export.ExportArchive`."""

    def track(self, resource: Any) -> None:
        """Raises NotImplementedError."""
        raise NotImplementedError("keras.export.ExportArchive.track is not implemented on the taut backend")

    def track_and_add_endpoint(self, name: str, resource: Any, input_signature: Any, **kwargs: Any) -> None:
        """Raises NotImplementedError."""
        raise NotImplementedError("keras.Model.export is not implemented on the taut backend")

    def add_endpoint(self, name: str, fn: Any, input_signature: Any = None, **kwargs: Any) -> None:
        """Raises NotImplementedError."""
        raise NotImplementedError("keras.export.ExportArchive.add_endpoint is not implemented on the taut backend")
