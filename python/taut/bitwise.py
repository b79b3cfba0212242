"""Integers as bits."""

from __future__ import annotations

from ._native import Op as op  # noqa: N813

bitwise_and = op("bitwise_and")
bitwise_or = op("bitwise_or")
bitwise_xor = op("bitwise_xor")
invert = op("bitwise_not", "invert")
left_shift = op("left_shift")
right_shift = op("right_shift")
