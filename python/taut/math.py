"""Mathematics."""

from __future__ import annotations

from .ops import *  # noqa: F403
from .ops import op, round  # noqa: F401

log = op("log")
log1p = op("log1p")
unsorted_segment_sum = op("unsorted_segment_sum")
