"""`keras.ops`: activations, convolutions, pooling, losses, attention."""

from taut.keras.backend.ops.nn.activations import *  # noqa: F403
from taut.keras.backend.ops.nn.attention import *  # noqa: F403
from taut.keras.backend.ops.nn.conv import *  # noqa: F403
from taut.keras.backend.ops.nn.ctc import *  # noqa: F403
from taut.keras.backend.ops.nn.losses import *  # noqa: F403
from taut.keras.backend.ops.nn.normalization import *  # noqa: F403
from taut.keras.backend.ops.nn.patches import *  # noqa: F403
from taut.keras.backend.ops.nn.pooling import *  # noqa: F403
