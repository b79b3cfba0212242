"""Shared by the examples: the `--quick` option, digits and a text to train on, sampling from a language model."""

from __future__ import annotations

import gzip
import pathlib
import sys

import numpy as np
import taut as tf

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A character's token is its index.
VOCABULARY = "\n abcdefghijklmnopqrstuvwxyz0123456789.,:;()`=&?|-"


def is_quick() -> bool:
    """Whether the example was started with `--quick`, as the tests do: less data, fewer epochs."""
    return "--quick" in sys.argv


def digits() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The UCI handwritten digits: 8x8 images in [0, 1] and labels, for training and for testing."""
    folder = ROOT / "crates/data/assets/digits"
    images = gzip.decompress((folder / "images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / "labels-idx1-ubyte.gz").read_bytes())[8:]
    x = (np.frombuffer(images, np.uint8).reshape(-1, 8, 8, 1) / 16).astype("float32")
    y = np.frombuffer(labels, np.uint8).astype("int64")
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[:360], order[360:]
    return (x[train], y[train]), (x[test], y[test])


def text() -> str:
    """Pages of the book as training text, reduced to the characters of `VOCABULARY`."""
    pages = ["first-steps", "tensors", "gradients", "functions", "control-flow"]
    whole = "".join((ROOT / f"docs/src/{page}.md").read_text() for page in pages).lower()
    return "".join(character for character in whole if character in VOCABULARY)


def encode(text: str) -> np.ndarray:
    """The tokens of a text."""
    return np.array([VOCABULARY.index(character) for character in text], "int64")


def windows(length: int, most: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Windows of the text as inputs; the same windows shifted by one character as labels."""
    tokens = encode(text())
    rows = (len(tokens) - 1) // length
    rows = rows if most is None else min(rows, most)
    return tuple(tokens[start : start + rows * length].reshape(rows, length) for start in (0, 1))


def generate(model, length: int) -> str:
    """Continues a prompt: samples token after token, with a context of `length` tokens and temperature 0.6."""
    tokens = list(encode(" " * length + "the memory of "))
    for _ in range(10 if is_quick() else 200):
        logits = model(np.array([tokens[-length:]]))[:, -1] / 0.6
        tokens.append(int(tf.random.categorical(tf.convert_to_tensor(logits), 1)[0, 0]))
    return "".join(VOCABULARY[token] for token in tokens).strip()
