"""Taut from Python: tautpy_eager, tautpy_function (tf.function), tautpy_jit (jit_compile=True), tautpy_vectorized.

The programs are TensorFlow's own (tensorflow_peer.py), with `taut` in the place of `tensorflow`; only Adam is Taut's where
the table says so: Keras's Adam updates whole tables, Taut's the rows that were used.
"""
import sys

import taut

sys.modules["tensorflow"] = taut

import tensorflow_peer  # noqa: E402
import workloads  # noqa: E402
from measure import Registry  # noqa: E402

NAMES = {"tautpy_eager": "tf_eager", "tautpy_function": "tf_function", "tautpy_jit": "tf_xla",
         "tautpy_vectorized": "tf_vectorized"}


def adam(peer, lr):
    a = workloads.ADAM
    return taut.optimizers.Adam(lr, beta_1=a["beta1"], beta_2=a["beta2"], epsilon=a["eps"])


tensorflow_peer.adam = adam
tensorflow_peer.release_setup = lambda: None
cases = Registry()
for (peer, workload), builder in tensorflow_peer.cases.items():
    for ours, theirs in NAMES.items():
        if peer == theirs:
            cases[ours, workload] = lambda _, p, x, builder=builder, theirs=theirs: builder(theirs, p, x)
