"""The Python array API standard, version 2024.12, on tensors.

Where the standard leaves a choice: the default floating-point type is float32 and the default integer type int64; mixed
kinds promote to the float type. Arrays are immutable.

>>> from taut import array_api as xp
>>> float(xp.sum(xp.linspace(0.0, 1.0, 5)))
2.5
"""

from __future__ import annotations

from .._namespace import lazy
from . import fft, linalg

__getattr__, __dir__, __all__ = lazy(__name__)

__array_api_version__ = "2024.12"

e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

__all__ += ["__array_api_version__", "e", "fft", "inf", "linalg", "nan", "newaxis", "pi"]
