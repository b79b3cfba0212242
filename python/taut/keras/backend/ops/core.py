"""`keras.ops`: shapes, slices, control flow and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from keras.src import tree
from keras.src.backend.common import KerasVariable
from keras.src.backend.common.keras_tensor import KerasTensor

import taut as tf
from taut.keras.backend.branches import cond_with_updates
from taut.keras.backend.convert import (
    open_shape,
    own_tensor as convert_to_tensor,
    promote,
    shape_of,
    slice_axis,
)
from taut.keras.backend.loops import leading_size, scan_axis
from taut.recording import recorded

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = True
IS_THREAD_SAFE = True


def is_tensor(x: Any) -> bool:
    """Whether `x` is a Taut tensor."""
    return tf.is_tensor(x)


def shape(x: Any) -> tuple:
    """The shape as a tuple; None for unknown sizes of a symbolic tensor, tensors for sizes that a recording leaves open."""
    return tuple(x.shape) if isinstance(x, KerasTensor) else open_shape(convert_to_tensor(x))


def random_seed_dtype() -> str:
    """The type of a seed generator's state, which holds seeds of 32 bits without a sign."""
    return "int64"


def device_scope(device_name: str):
    """A context manager for the device of ops; the CPU is the only one."""
    kind = str(device_name).lower().split(":")[0]
    if kind != "cpu":
        raise ValueError(f"The taut backend computes on the CPU. Received: device_name={device_name!r}")
    return nullcontext()


def stop_gradient(variable: Any) -> tf.Tensor:
    """Returns the value as a constant for differentiation."""
    return tf.stop_gradient(convert_to_tensor(variable))


@recorded
def unstack(x: Any, num: int | None = None, axis: int = 0) -> list[tf.Tensor]:
    """Splits a tensor into its slices along an axis."""
    return list(tf.unstack(convert_to_tensor(x), num=num, axis=axis))


# Places in a tensor.


@recorded
def scatter(indices: Any, values: Any, shape: Sequence[int]) -> tf.Tensor:
    """Adds `values` at `indices` into zeros of `shape`."""
    return tf.scatter_nd(convert_to_tensor(indices, "int32"), convert_to_tensor(values), list(shape))


@recorded
def scatter_update(inputs: Any, indices: Any, updates: Any, reduction: str | None = None) -> tf.Tensor:
    """Writes `updates` at `indices` into a copy of `inputs`, or combines them with it."""
    inputs = convert_to_tensor(inputs)
    indices = convert_to_tensor(indices, "int32")
    updates = convert_to_tensor(updates, inputs.dtype)
    rules: dict[str | None, Callable] = {
        None: tf.tensor_scatter_nd_update,
        "add": tf.tensor_scatter_nd_add,
        "max": tf.tensor_scatter_nd_max,
        "min": tf.tensor_scatter_nd_min,
        "mul": scatter_multiply,
    }
    if reduction not in rules:
        raise ValueError(f"Unsupported reduction: {reduction}. Expected one of {list(rules)}.")
    return rules[reduction](inputs, indices, updates)


def scatter_multiply(inputs: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor) -> tf.Tensor:
    """Multiplies a copy of `inputs` by `updates` at `indices`, sequentially where indices repeat."""
    depth, tail = shape_of(indices)[-1], shape_of(inputs)[shape_of(indices)[-1] :]
    places = tf.unstack(tf.reshape(indices, [-1, depth]))
    factors = tf.unstack(tf.reshape(updates, [-1, *tail]))
    for place, factor in zip(places, factors):
        place = tf.expand_dims(place, 0)
        product = tf.gather_nd(inputs, place) * tf.expand_dims(factor, 0)
        inputs = tf.tensor_scatter_nd_update(inputs, place, product)
    return inputs


@recorded
def slice(inputs: Any, start_indices: Any, shape: Sequence[int]) -> tf.Tensor:
    """Slices `inputs` from `start_indices` on; a size of -1 takes the rest."""
    x = convert_to_tensor(inputs)
    for axis, (start, size) in enumerate(zip(starts_of(start_indices), shape)):
        whole = shape_of(x)[axis]
        if isinstance(start, int):
            if start < 0 or size < -1 or start + size > whole:
                raise ValueError(
                    f"`slice` must stay within [0, {whole}) of axis {axis}. Received: start={start} and size={size}"
                )
            x = slice_axis(x, axis, start, whole if size == -1 else start + size)
        elif size == -1:
            raise ValueError("`slice` in a traced function needs a known size where the start is a tensor, got -1.")
        elif size != whole:
            x = tf.gather(x, tf.clip_by_value(start, 0, whole - size) + tf.range(size), axis=axis)
    return x


def starts_of(start_indices: Any) -> list[Any]:
    """The start along each axis: integers, or traced scalars."""
    if isinstance(start_indices, KerasVariable) or tf.is_tensor(start_indices):
        start_indices = tf.unstack(convert_to_tensor(start_indices, "int32"))
    known = tf.executing_eagerly()
    return [
        int(start) if known or not tf.is_tensor(start) else tf.reshape(tf.cast(start, "int32"), [])
        for start in start_indices
    ]


@recorded
def slice_update(inputs: Any, start_indices: Any, updates: Any) -> tf.Tensor:
    """Writes `updates` into a copy of `inputs` at `start_indices`.

    As in the other backends, a start that is too large is clamped so that the update fits.
    """
    inputs = convert_to_tensor(inputs)
    updates = convert_to_tensor(updates, inputs.dtype)
    last = [whole - part for whole, part in zip(shape_of(inputs), shape_of(updates))]
    start = tf.stack([convert_to_tensor(start, "int32") for start in starts_of(start_indices)])
    start = tf.clip_by_value(start, 0, convert_to_tensor(last, "int32"))
    grids = tf.meshgrid(*[tf.range(part) for part in shape_of(updates)], indexing="ij")
    places = tf.stack(grids, axis=-1) + start
    return tf.tensor_scatter_nd_update(inputs, places, updates)


# Branches and loops.


def cond(pred: Any, true_fn: Callable, false_fn: Callable) -> Any:
    """Calls `true_fn` or `false_fn`, which may assign to variables.

    A condition whose value is known is evaluated immediately.
    """
    if not isinstance(pred, KerasVariable) and not tf.is_tensor(pred):
        return true_fn() if pred else false_fn()
    pred = convert_to_tensor(pred, "bool")
    if tf.executing_eagerly():
        return true_fn() if bool(pred) else false_fn()
    return cond_with_updates(pred, true_fn, false_fn)


def switch(index: Any, branches: Sequence[Callable], *operands: Any) -> Any:
    """Calls `branches[index](*operands)`; the index is clamped."""
    index = tf.clip_by_value(convert_to_tensor(index, "int32"), 0, len(branches) - 1)
    return tf.switch_case(index, [(lambda branch=branch: branch(*operands)) for branch in branches])


def while_loop(cond: Callable, body: Callable, loop_vars: Any, maximum_iterations: int | None = None) -> Any:
    """Applies `body` to `loop_vars` while `cond` is true."""
    several = isinstance(loop_vars, (tuple, list))
    start = tree.map_structure(convert_to_tensor, tuple(loop_vars) if several else (loop_vars,))

    def step(*states):
        states = body(*states)
        return tuple(states) if several else (states,)

    states = tf.while_loop(
        lambda *states: convert_to_tensor(cond(*states), "bool"),
        step,
        start,
        maximum_iterations=maximum_iterations,
    )
    return type(loop_vars)(states) if type(loop_vars) is list else tuple(states) if several else states[0]


def fori_loop(lower: Any, upper: Any, body_fun: Callable, init_val: Any) -> Any:
    """Applies `body_fun(i, value)` for every `i` in [lower, upper)."""
    upper = convert_to_tensor(upper, "int32")
    init_val = tree.map_structure(convert_to_tensor, init_val)
    _, value = tf.while_loop(
        lambda i, value: i < upper,
        lambda i, value: (i + 1, body_fun(i, value)),
        (convert_to_tensor(lower, "int32"), init_val),
    )
    return value


def map(f: Callable, xs: Any) -> Any:
    """Applies `f` to the slices of `xs` along the first axis and stacks the results."""
    xs = tree.map_structure(convert_to_tensor, xs)
    _, results = scan_axis(lambda _, x: ((), f(x)), (), xs, leading_size(xs))
    return results


def vectorized_map(function: Callable, elements: Any) -> Any:
    """Applies `function` to all slices of `elements` along the first axis at once."""
    return tf.vectorized_map(function, tree.map_structure(convert_to_tensor, elements))


def scan(
    f: Callable,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple:
    """Applies `carry, y = f(carry, x)` along the first axis of `xs`; returns the last carry and the stacked `y`s.

    `unroll` is validated and has no effect: loops are not unrolled.
    """
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(f"`unroll` must be a positive integer or a boolean. Received: unroll={unroll}")
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` was not provided.")
    init = tree.map_structure(convert_to_tensor, () if init is None else init)
    xs = None if xs is None else tree.map_structure(convert_to_tensor, xs)
    count = leading_size(xs) if xs is not None else int(length or 0)
    if length is not None and count is not None and count != int(length):
        raise ValueError(f"`length` is {length}, but `xs` has {count} parts.")
    return scan_axis(f, init, xs, count, reverse)


def associative_scan(f: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Computes the prefix combinations of `elems` along an axis by an associative `f`, in a logarithmic number of
    steps.

    At each step, every element is combined with the one `distance` before it, which by then combines all those in
    between.
    """
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    elems = tree.map_structure(convert_to_tensor, elems)
    sizes = {shape_of(x)[axis] for x in tree.flatten(elems)}
    if len(sizes) != 1:
        raise ValueError(f"The elements of associative_scan must have one size along axis {axis}, got {sorted(sizes)}")
    count = sizes.pop()
    if reverse:
        elems = tree.map_structure(lambda x: tf.reverse(x, [axis % len(x.shape)]), elems)
    distance = 1
    while distance < count:
        before, after, start = (
            tree.map_structure(lambda x, low=low, high=high: slice_axis(x, axis, low, high), elems)
            for low, high in ((0, count - distance), (distance, count), (0, distance))
        )
        combined = f(before, after)
        elems = tree.map_structure(lambda a, b: tf.concat(promote(a, b), axis=axis), start, combined)
        distance *= 2
    if reverse:
        elems = tree.map_structure(lambda x: tf.reverse(x, [axis % len(x.shape)]), elems)
    return elems


# Gradients.


def custom_gradient(fun: Callable) -> Callable:
    """Decorates a function that returns its result and a function from its gradient to the arguments' gradients."""
    own = tf.custom_gradient(fun)

    def with_values(*args, **kwargs):
        args, kwargs = tree.map_structure(
            lambda x: convert_to_tensor(x) if isinstance(x, (KerasVariable, tf.Variable)) else x, (args, kwargs)
        )
        return own(*args, **kwargs)

    return with_values


def remat(f: Callable) -> Callable:
    """Decorates a function whose gradient recomputes intermediate values instead of saving them."""
    return tf.recompute_grad(f)
