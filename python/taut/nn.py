"""What layers are made of."""

from __future__ import annotations

from .ops import op

relu = op("relu")
