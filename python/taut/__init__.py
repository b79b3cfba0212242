"""Taut: a tensor engine whose memory is known, kept and explained, shaped like TensorFlow 2.

>>> import taut as tf
>>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
>>> tf.matmul(x, x).numpy().tolist()
[[7.0, 10.0], [15.0, 22.0]]
"""

from __future__ import annotations

import os as _os
import typing as _typing

from . import _native
from . import _op as _op

_native.pass_over(_os.path.dirname(__file__) + _os.sep)

from . import dtypes, errors, linalg, math, memory, nest, nn, random  # noqa: E402
from ._native import DType, from_dlpack  # noqa: E402
from .control import (  # noqa: E402
    case,
    cond,
    foldl,
    foldr,
    map_fn,
    scan,
    switch_case,
    vectorized_map,
    while_loop,
)
from .custom import custom_gradient, grad_pass_through, recompute_grad  # noqa: E402
from .dtypes import (  # noqa: A004, E402
    as_dtype,
    bfloat16,
    bool,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .initial import (  # noqa: E402
    constant_initializer,
    ones_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    zeros_initializer,
)
from .module import Module  # noqa: E402
from .function import executing_eagerly, function, init_scope, inside_function, trace_specs  # noqa: E402
from .ops import *  # noqa: E402, F403
from .shape import TensorShape  # noqa: E402
from .sparse import IndexedSlices  # noqa: E402
from .spec import TensorSpec, type_spec_from_value  # noqa: E402
from .tape import GradientTape, UnconnectedGradients, gradients, stop_gradient  # noqa: E402
from .tensor import (  # noqa: E402
    Tensor,
    constant,
    convert_to_tensor,
    get_static_value,
    is_symbolic_tensor,
    is_tensor,
    rank,
    shape,
    size,
)
from .tensor_array import TensorArray  # noqa: E402
from .variable import Variable  # noqa: E402

__version__ = "0.1.0"
newaxis = None

_LAZY = ("array_api", "autodiff", "autograph", "bitwise", "config", "data", "debugging", "image", "keras", "optimizers", "profiler", "test", "train")
# Keras's, under the names that they have here, too.
_KERAS = ("initializers", "losses", "metrics")

if _typing.TYPE_CHECKING:
    from . import array_api, autodiff, autograph, bitwise, config, data, debugging, image, keras, optimizers, profiler, test, train
else:

    def __getattr__(name: str) -> _typing.Any:
        if name in _LAZY:
            import importlib

            return importlib.import_module(f"{__name__}.{name}")
        if name in _KERAS:
            from . import keras

            return getattr(keras, name)
        raise AttributeError(f"module 'taut' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_KERAS})
