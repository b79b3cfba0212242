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
    heads. Works in tiles, in memory that does not grow with the number of scores, unless logits are capped or a mask and
    a bias are both given.
    """
    if attn_logits_soft_cap is not None and not attn_logits_soft_cap > 0:
        raise ValueError(f"`attn_logits_soft_cap` must be positive. Received: {attn_logits_soft_cap}")
    query, key, value = promote(query, key, value)
    if any(len(x.shape) != 4 for x in (query, key, value)):
        shapes = [shape_of(x) for x in (query, key, value)]
        raise ValueError(f"`dot_product_attention` takes tensors of rank 4. Received shapes: {shapes}")
    heads, shared = shape_of(query)[2], shape_of(key)[2]
    if heads % shared:
        raise ValueError(
            f"The number of query heads must be a multiple of the key heads. Received: {heads} and {shared}"
        )
    scale = 1.0 / math.sqrt(shape_of(query)[-1]) if scale is None else scale
    mask = boolean_mask(mask)
    bias = None if bias is None else convert_to_tensor(bias)
    queries, keys, values = (tf.transpose(x, [0, 2, 1, 3]) for x in (query, key, value))

    # The op takes one mask: booleans, or numbers of the type of the queries.
    single = bias is None or (mask is None and type_of(bias) == type_of(query))
    if attn_logits_soft_cap is None and single and query.dtype.is_floating:
        outputs = tf.nn.attention(queries, keys, values, bias if mask is None else mask, is_causal, float(scale))
        allowed = None if mask is None else visible(mask, is_causal, queries, keys)
        if allowed is not None:
            outputs = average_unseen(outputs, values, allowed)
    elif flash_attention and attn_logits_soft_cap is None:
        raise ValueError(
            "Flash attention takes floats, and either a mask or a bias of the type of the queries. Set "
            "`flash_attention=None`."
        )
    else:
        outputs = attention_by_scores(queries, keys, values, bias, mask, scale, is_causal, attn_logits_soft_cap)
    return tf.transpose(outputs, [0, 2, 1, 3])


def attention_by_scores(
    queries: tf.Tensor,
    keys: tf.Tensor,
    values: tf.Tensor,
    bias: tf.Tensor | None,
    mask: tf.Tensor | None,
    scale: float,
    is_causal: bool,
    soft_cap: float | None,
) -> tf.Tensor:
    """Attention by the matrix of all scores, on tensors of shape (batch, heads, length, size)."""
    heads, shared = shape_of(queries)[1], shape_of(keys)[1]
    if heads != shared:
        keys, values = (tf.repeat(x, heads // shared, axis=1) for x in (keys, values))
    logits = tf.matmul(queries, keys, transpose_b=True)
    # The softmax of 16-bit logits is computed in 32 bits.
    logits = tf.cast(logits, "float64" if type_of(queries) == "float64" else "float32") * scale
    if soft_cap is not None:
        logits = tf.tanh(logits / soft_cap) * soft_cap
    if bias is not None:
        logits = logits + tf.cast(bias, logits.dtype)
    allowed = visible(mask, is_causal, queries, keys)
    if allowed is not None:
        logits = tf.where(allowed, logits, 0.7 * logits.dtype.min)
    weights = tf.cast(tf.nn.softmax(logits, axis=-1), queries.dtype)
    return tf.matmul(weights, values)


def boolean_mask(mask: Any) -> tf.Tensor | None:
    """The mask as a tensor; an error if it is not boolean."""
    if mask is None:
        return None
    mask = convert_to_tensor(mask)
    if type_of(mask) != "bool":
        raise ValueError(f"`mask` must be boolean. Received: mask.dtype={type_of(mask)}")
    return mask


def visible(mask: tf.Tensor | None, is_causal: bool, queries: tf.Tensor, keys: tf.Tensor) -> tf.Tensor | None:
    """The keys that each query may attend to; None for all."""
    if not is_causal:
        return mask
    shape = (1, 1, shape_of(queries)[2], shape_of(keys)[2])
    earlier = convert_to_tensor(np.tril(np.ones(shape, dtype="bool")))
    return earlier if mask is None else tf.logical_and(mask, earlier)


def average_unseen(outputs: tf.Tensor, values: tf.Tensor, allowed: tf.Tensor) -> tf.Tensor:
    """The outputs, in which queries that may attend to no key get the mean of all values, as Keras defines it."""
    mean = tf.reduce_mean(values, axis=2, keepdims=True)
    heads, shared = shape_of(outputs)[1], shape_of(values)[1]
    if heads != shared:
        mean = tf.repeat(mean, heads // shared, axis=1)
    return tf.where(tf.reduce_any(allowed, axis=-1, keepdims=True), outputs, mean)
