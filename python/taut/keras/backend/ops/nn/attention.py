"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, promote, shape_of, type_of


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    scale: float | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> tf.Tensor:
    """Computes scaled dot-product attention.

    All tensors have shape (batch, length, heads, size). Keys and values may have fewer heads, shared by groups of query
    heads.
    """
    if flash_attention:
        raise ValueError("Flash attention is not supported by the taut backend.")
    query, key, value = promote(query, key, value)
    if any(len(x.shape) != 4 for x in (query, key, value)):
        shapes = [shape_of(x) for x in (query, key, value)]
        raise ValueError(f"`dot_product_attention` takes tensors of rank 4. Received shapes: {shapes}")
    heads, shared = shape_of(query)[2], shape_of(key)[2]
    if heads % shared:
        raise ValueError(
            f"The number of query heads must be a multiple of the key heads. Received: {heads} and {shared}"
        )
    if heads != shared:
        key, value = (tf.repeat(x, heads // shared, axis=2) for x in (key, value))
    scale = 1.0 / math.sqrt(shape_of(query)[-1]) if scale is None else scale

    queries, keys, values = (tf.transpose(x, [0, 2, 1, 3]) for x in (query, key, value))
    logits = tf.matmul(queries, keys, transpose_b=True)
    # The softmax of 16-bit logits is computed in 32 bits.
    logits = tf.cast(logits, "float64" if type_of(query) == "float64" else "float32") * scale
    if attn_logits_soft_cap is not None:
        logits = tf.tanh(logits / attn_logits_soft_cap) * attn_logits_soft_cap
    if bias is not None:
        logits = logits + convert_to_tensor(bias, logits.dtype)
    allowed = attention_mask(logits, mask, is_causal)
    if allowed is not None:
        logits = tf.where(allowed, logits, 0.7 * logits.dtype.min)
    weights = tf.cast(tf.nn.softmax(logits, axis=-1), query.dtype)
    return tf.transpose(tf.matmul(weights, values), [0, 2, 1, 3])


def attention_mask(logits: tf.Tensor, mask: Any, is_causal: bool) -> tf.Tensor | None:
    """The keys that each query may attend to; None for all."""
    allowed = None
    if mask is not None:
        allowed = convert_to_tensor(mask)
        if type_of(allowed) != "bool":
            raise ValueError(f"`mask` must be boolean. Received: mask.dtype={type_of(allowed)}")
    if is_causal:
        *_, queries, keys = shape_of(logits)
        earlier = convert_to_tensor(np.tril(np.ones((1, 1, queries, keys), dtype="bool")))
        allowed = earlier if allowed is None else tf.logical_and(allowed, earlier)
    return allowed
