"""`keras.ops`: the functions that NumPy has, with Keras's types of results."""

from taut.keras.backend.missing import missing
from taut.keras.backend.ops.numpy.bits import *  # noqa: F403
from taut.keras.backend.ops.numpy.create import *  # noqa: F403
from taut.keras.backend.ops.numpy.elementwise import *  # noqa: F403
from taut.keras.backend.ops.numpy.indexing import *  # noqa: F403
from taut.keras.backend.ops.numpy.products import *  # noqa: F403
from taut.keras.backend.ops.numpy.reduce import *  # noqa: F403
from taut.keras.backend.ops.numpy.shapes import *  # noqa: F403
from taut.keras.backend.ops.numpy.sorting import *  # noqa: F403
from taut.keras.backend.ops.numpy.statistics import *  # noqa: F403

i0 = missing("i0")


def slogdet(x):
    """The sign of the determinant, and the logarithm of its size."""
    from taut.keras.backend.ops import linalg

    return linalg.slogdet(x)
