"""Permutations of large ranges that are computed element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _native, dtypes
from .._common import refuse
from ..errors import DynamicShapeError

_KINDS = (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64)
#: The first word of the key of `tf.random.experimental.index_shuffle`, whose seeds have two.
_FIRST_WORD = 498247692
#: Constants of the key schedule of the block cipher Simon.
_CONSTANT, _SEQUENCE = 0xFFFFFFFC, 0x7369F885192C0EF5
_SMALLEST_BLOCK = 16


def index_shuffle(index: Any, seed: Any, max_index: Any) -> _native.Tensor:
    """The position of an index in a permutation of [0, max_index] that a seed of two integers chooses.

    The permutation is not stored: each element is computed by itself. Indices, maxima and seeds may be vectors.
    """
    seeds = np.atleast_1d(_known("index_shuffle", seed))
    if seeds.shape[-1] != 2 or seeds.ndim > 2:
        refuse("index_shuffle", f"seed must have the shape [2] or [n, 2], got {seeds.shape}")
    first = np.full([*seeds.shape[:-1], 1], _FIRST_WORD, seeds.dtype)
    return random_index_shuffle(index, np.concatenate([first, seeds], -1), max_index)


def random_index_shuffle(
    index: Any, seed: Any, max_index: Any, rounds: int = 4, name: str | None = None
) -> _native.Tensor:
    """As `tf.random.experimental.index_shuffle`, with a seed of three integers and a number of rounds of the cipher."""
    index = _native.as_tensor(index)
    if index.dtype not in _KINDS:
        refuse("index_shuffle", f"index must be int32, uint32, int64 or uint64, got {index.dtype.name}")
    own = _known("index_shuffle", index)
    most = _known("index_shuffle", _native.as_tensor(max_index, index.dtype))
    seeds = np.atleast_1d(_known("index_shuffle", seed))
    if own.ndim > 1 or most.ndim > 1 or seeds.ndim > 2 or seeds.shape[-1] != 3:
        text = f"index and max_index must be scalars or vectors, seed of shape [3] or [n, 3], got {own.shape}, {most.shape}"
        refuse("index_shuffle", f"{text}, {seeds.shape}")
    if rounds < 4 or rounds % 2:
        refuse("index_shuffle", f"rounds must be even and >= 4, got {rounds}")
    sizes = {part for part in (own.size if own.ndim else 1, most.size if most.ndim else 1) if part != 1}
    sizes |= {len(seeds)} if seeds.ndim == 2 and len(seeds) != 1 else set()
    if len(sizes) > 1:
        refuse("index_shuffle", f"the vectors must have one length, got {sorted(sizes)}")
    count = next(iter(sizes), 1)
    values, limits = (np.broadcast_to(part.reshape(-1), [count]) for part in (own, most))
    if (values < 0).any() or (values > limits).any():
        refuse("index_shuffle", f"index must be in [0, max_index], got {own.tolist()} and {most.tolist()}")
    keys = np.broadcast_to(np.atleast_2d(seeds), [count, 3])
    made = [_shuffled(*row, rounds) for row in zip(values.tolist(), keys.tolist(), limits.tolist())]
    is_scalar = not (own.ndim or most.ndim or seeds.ndim == 2)
    array = np.array(made, index.dtype.as_numpy_dtype)
    return _native.own_tensor(array[0] if is_scalar else array, index.dtype)


def _known(name: str, value: Any) -> np.ndarray:
    tensor = _native.as_tensor(value)
    if tensor.is_symbolic:
        refuse(name, "a permuted index is computed from the values of its arguments", DynamicShapeError)
    return np.asarray(tensor)


def _shuffled(index: int, key: list[int], most: int, rounds: int) -> int:
    """Encrypts an index with a block cipher of just enough bits, again and again until the result is in range: a permutation
    of all blocks becomes one of [0, most].
    """
    if most == 0:
        return 0
    bits = max(int(np.ceil(np.log2(most))), 1)
    width = max(bits + bits % 2, _SMALLEST_BLOCK) // 2
    mask = (1 << width) - 1

    def rotated(word: int, by: int) -> int:
        """A word, rotated to the left."""
        return ((word << by) | (word >> (width - by))) & mask

    words = [part & 0xFFFFFFFF & mask for part in key]
    sequence = _SEQUENCE & mask
    for i in range(3, rounds):
        last = words[i - 1]
        mixed = rotated(last, width - 3) ^ rotated(last, width - 4)
        words.append((_CONSTANT & mask) ^ (sequence & 1) ^ words[i - 3] ^ mixed)
        sequence >>= 1

    def mixed_in(word: int) -> int:
        return (rotated(word, 1) & rotated(word, 8 % width)) ^ rotated(word, 2)

    found = index
    while True:
        left, right = (found >> width) & mask, found & mask
        for i in range(0, rounds, 2):
            left ^= mixed_in(right) ^ words[i]
            right ^= mixed_in(left) ^ words[i + 1]
        found = left << width | right
        if found <= most:
            return found
