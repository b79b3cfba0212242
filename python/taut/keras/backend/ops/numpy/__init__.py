"""`keras.ops`: the functions that NumPy has, with Keras's types of results."""

from taut.keras.backend.missing import missing
from taut.keras.backend.ops.numpy.create import *  # noqa: F403
from taut.keras.backend.ops.numpy.elementwise import *  # noqa: F403
from taut.keras.backend.ops.numpy.indexing import *  # noqa: F403
from taut.keras.backend.ops.numpy.products import *  # noqa: F403
from taut.keras.backend.ops.numpy.reduce import *  # noqa: F403
from taut.keras.backend.ops.numpy.shapes import *  # noqa: F403
from taut.keras.backend.ops.numpy.sorting import *  # noqa: F403
from taut.keras.backend.ops.numpy.statistics import *  # noqa: F403

for _name in ("gcd", "i0", "lcm", "nextafter"):
    globals()[_name] = missing(_name)
