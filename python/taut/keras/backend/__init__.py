"""The backend that Keras finds under the name `taut`.

Keras imports everything from here that `__all__` lists, as it does from its own backends.
"""

from keras.src.backend.common.name_scope import name_scope

from taut.keras.backend import random
from taut.keras.backend import rnn as _rnn
from taut.keras.backend.ops import core, image, linalg, math, nn, numpy
from taut.keras.backend.ops.core import (
    IS_THREAD_SAFE,
    SUPPORTS_COMPLEX_DTYPES,
    SUPPORTS_RAGGED_TENSORS,
    SUPPORTS_SPARSE_TENSORS,
    Variable,
    cast,
    compute_output_spec,
    cond,
    convert_to_numpy,
    convert_to_tensor,
    device_scope,
    is_tensor,
    random_seed_dtype,
    scatter,
    shape,
    stop_gradient,
    vectorized_map,
)

bidirectional_gru = _rnn.bidirectional_gru
bidirectional_lstm = _rnn.bidirectional_lstm
cudnn_ok = _rnn.cudnn_ok
gru = _rnn.gru
lstm = _rnn.lstm
rnn = _rnn.rnn

__all__ = [
    "IS_THREAD_SAFE",
    "SUPPORTS_COMPLEX_DTYPES",
    "SUPPORTS_RAGGED_TENSORS",
    "SUPPORTS_SPARSE_TENSORS",
    "Variable",
    "bidirectional_gru",
    "bidirectional_lstm",
    "cast",
    "compute_output_spec",
    "cond",
    "convert_to_numpy",
    "convert_to_tensor",
    "core",
    "cudnn_ok",
    "device_scope",
    "gru",
    "image",
    "is_tensor",
    "linalg",
    "lstm",
    "math",
    "name_scope",
    "nn",
    "numpy",
    "random",
    "random_seed_dtype",
    "rnn",
    "scatter",
    "shape",
    "stop_gradient",
    "vectorized_map",
]
