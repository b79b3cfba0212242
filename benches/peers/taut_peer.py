"""Taut from Python: tautpy_eager, tautpy_function (tf.function), tautpy_vectorized, the writings of the LSTM (tautpy_slice,
tautpy_scan, tautpy_unrolled, tautpy_kerasrnn), and Keras's fit (tautpy_keras).

The programs are TensorFlow's own (tensorflow_peer.py), with `taut` in the place of `tensorflow`; only Adam is Taut's where
the table says so: Keras's Adam updates whole tables, Taut's the rows that were used.
"""

import sys

import taut

sys.modules["tensorflow"] = taut

import keras_models  # noqa: E402
import tensorflow_peer  # noqa: E402
import workloads  # noqa: E402
from measure import Registry  # noqa: E402

VARIANTS = ("eager", "function", "vectorized", "kerasrnn", "slice", "scan", "unrolled")


def adam(peer, lr):
    a = workloads.ADAM
    return taut.optimizers.Adam(lr, beta_1=a["beta1"], beta_2=a["beta2"], epsilon=a["eps"])


tensorflow_peer.adam = adam
tensorflow_peer.release_setup = lambda: None
cases = Registry()
keras_models.register(cases, "tautpy_keras")
for (peer, workload), builder in tensorflow_peer.cases.items():
    variant = peer.removeprefix("tf_")
    if variant in VARIANTS:
        cases[f"tautpy_{variant}", workload] = lambda _, p, x, builder=builder, peer=peer: builder(peer, p, x)
