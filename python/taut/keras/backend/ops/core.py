"""`keras.ops`: shapes, slices, loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from keras.src import tree
from keras.src.backend.common import KerasVariable
from keras.src.backend.common.keras_tensor import KerasTensor

import taut as tf
from taut.keras.backend.branches import either
from taut.keras.backend.convert import cast, convert_to_numpy, cut, shape_of, together
from taut.keras.backend.convert import own_tensor as convert_to_tensor
from taut.keras.backend.loops import along, parts_of
from taut.keras.backend.spec import compute_output_spec
from taut.keras.backend.variable import Variable

__all__ = [
    "IS_THREAD_SAFE",
    "SUPPORTS_COMPLEX_DTYPES",
    "SUPPORTS_RAGGED_TENSORS",
    "SUPPORTS_SPARSE_TENSORS",
    "Variable",
    "associative_scan",
    "cast",
    "compute_output_spec",
    "cond",
    "convert_to_numpy",
    "convert_to_tensor",
    "custom_gradient",
    "device_scope",
    "fori_loop",
    "is_tensor",
    "map",
    "random_seed_dtype",
    "remat",
    "scan",
    "scatter",
    "scatter_update",
    "shape",
    "slice",
    "slice_update",
    "stop_gradient",
    "switch",
    "unstack",
    "vectorized_map",
    "while_loop",
]

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = False
IS_THREAD_SAFE = True


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor of Taut."""
    return tf.is_tensor(x)


def shape(x: Any) -> tuple:
    """The shape, as a tuple; of a symbolic tensor, with `None` where it is not known."""
    return tuple(x.shape) if isinstance(x, KerasTensor) else shape_of(convert_to_tensor(x))


def random_seed_dtype() -> str:
    """The type of a seed generator's state."""
    return "int32"


def device_scope(device_name: str):
    """A context in which work is done on `device_name`. There is one device, the CPU."""
    kind = str(device_name).lower().split(":")[0]
    if kind != "cpu":
        raise ValueError(f"The taut backend computes on the CPU. Received: device_name={device_name!r}")
    return nullcontext()


def stop_gradient(variable: Any) -> tf.Tensor:
    """The value, without its history."""
    return tf.stop_gradient(convert_to_tensor(variable))


def unstack(x: Any, num: int | None = None, axis: int = 0) -> list[tf.Tensor]:
    """The parts of a tensor along an axis, as a list."""
    return list(tf.unstack(convert_to_tensor(x), num=num, axis=axis))


# Places in a tensor.


def scatter(indices: Any, values: Any, shape: Sequence[int]) -> tf.Tensor:
    """Zeros of `shape`, to which `values` are added at `indices`."""
    return tf.scatter_nd(convert_to_tensor(indices, "int32"), convert_to_tensor(values), list(shape))


def scatter_update(inputs: Any, indices: Any, updates: Any, reduction: str | None = None) -> tf.Tensor:
    """A copy of `inputs` with `updates` at `indices`: in place of what was there, or combined with it."""
    inputs = convert_to_tensor(inputs)
    indices = convert_to_tensor(indices, "int32")
    updates = convert_to_tensor(updates, inputs.dtype)
    rules = {
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
    """A copy of `inputs`, multiplied by `updates` at `indices`, one after the other where places repeat."""
    depth, tail = shape_of(indices)[-1], shape_of(inputs)[shape_of(indices)[-1] :]
    places = tf.unstack(tf.reshape(indices, [-1, depth]))
    factors = tf.unstack(tf.reshape(updates, [-1, *tail]))
    for place, factor in zip(places, factors):
        place = tf.expand_dims(place, 0)
        product = tf.gather_nd(inputs, place) * tf.expand_dims(factor, 0)
        inputs = tf.tensor_scatter_nd_update(inputs, place, product)
    return inputs


def slice(inputs: Any, start_indices: Any, shape: Sequence[int]) -> tf.Tensor:
    """The part of `inputs` that begins at `start_indices` and has `shape`; -1 stands for all that is left."""
    x = convert_to_tensor(inputs)
    for axis, (start, size) in enumerate(zip(starts_of(start_indices), shape)):
        whole = shape_of(x)[axis]
        if isinstance(start, int):
            x = cut(x, axis, start, whole if size == -1 else start + size)
        elif size == -1:
            raise ValueError("A slice whose start is computed inside a function needs a size that is known.")
        elif size != whole:
            x = tf.gather(x, tf.clip_by_value(start, 0, whole - size) + tf.range(size), axis=axis)
    return x


def starts_of(start_indices: Any) -> list[Any]:
    """Where a slice begins along each axis: whole numbers, or numbers of a trace."""
    if isinstance(start_indices, KerasVariable) or tf.is_tensor(start_indices):
        start_indices = tf.unstack(convert_to_tensor(start_indices, "int32"))
    known = tf.executing_eagerly()
    return [
        int(start) if known or not tf.is_tensor(start) else tf.reshape(tf.cast(start, "int32"), [])
        for start in start_indices
    ]


def slice_update(inputs: Any, start_indices: Any, updates: Any) -> tf.Tensor:
    """A copy of `inputs` with `updates` in the part that begins at `start_indices`.

    As in the other backends, a part that would reach beyond the end is moved back until it fits.
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
    """The result of `true_fn` or `false_fn`, which may also assign to variables.

    A condition whose value is there is decided on the spot.
    """
    if not isinstance(pred, KerasVariable) and not tf.is_tensor(pred):
        return true_fn() if pred else false_fn()
    pred = convert_to_tensor(pred, "bool")
    if tf.executing_eagerly():
        return true_fn() if bool(pred) else false_fn()
    return either(pred, true_fn, false_fn)


def switch(index: Any, branches: Sequence[Callable], *operands: Any) -> Any:
    """The result of `branches[index](*operands)`; an index out of range takes the nearest branch."""
    index = tf.clip_by_value(convert_to_tensor(index, "int32"), 0, len(branches) - 1)
    return tf.switch_case(index, [(lambda branch=branch: branch(*operands)) for branch in branches])


def while_loop(cond: Callable, body: Callable, loop_vars: Any, maximum_iterations: int | None = None) -> Any:
    """`loop_vars` after `body` was applied for as long as `cond` held."""
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
    """`init_val` after `body_fun(i, value)` was applied for every `i` from `lower` to `upper` - 1."""
    upper = convert_to_tensor(upper, "int32")
    init_val = tree.map_structure(convert_to_tensor, init_val)
    _, value = tf.while_loop(
        lambda i, value: i < upper,
        lambda i, value: (i + 1, body_fun(i, value)),
        (convert_to_tensor(lower, "int32"), init_val),
    )
    return value


def map(f: Callable, xs: Any) -> Any:
    """The results of `f` for the parts of `xs` along its first axis, stacked."""
    xs = tree.map_structure(convert_to_tensor, xs)
    _, results = along(lambda _, x: ((), f(x)), (), xs, parts_of(xs))
    return results


def vectorized_map(function: Callable, elements: Any) -> Any:
    """The results of `function` for the parts of `elements` along its first axis, computed together."""
    return tf.vectorized_map(function, tree.map_structure(convert_to_tensor, elements))


def scan(
    f: Callable,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple:
    """Applies `carry, y = f(carry, x)` along the first axis of `xs`: the last carry, and the `y`s stacked.

    `unroll` is how far other backends write the loop out. Taut's loops have no such setting: the value is
    checked and changes nothing in the result.
    """
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(f"`unroll` must be a positive integer or a boolean. Received: unroll={unroll}")
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` was not provided.")
    init = tree.map_structure(convert_to_tensor, () if init is None else init)
    xs = None if xs is None else tree.map_structure(convert_to_tensor, xs)
    count = int(length) if xs is None else parts_of(xs)
    if length is not None and count != int(length):
        raise ValueError(f"`length` is {length}, but `xs` has {count} parts.")
    return along(f, init, xs, count, reverse)


def associative_scan(f: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The running combination of `elems` along an axis by an associative `f`, in a logarithmic number of
    steps.

    At each step, every element is combined with the one `distance` before it, which by then stands for all
    those in between.
    """
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    elems = tree.map_structure(convert_to_tensor, elems)
    sizes = {shape_of(x)[axis] for x in tree.flatten(elems)}
    if len(sizes) != 1:
        raise ValueError(
            f"The elements of associative_scan differ in size along axis {axis}: {sorted(sizes)}"
        )
    count = sizes.pop()
    if reverse:
        elems = tree.map_structure(lambda x: tf.reverse(x, [axis % len(x.shape)]), elems)
    distance = 1
    while distance < count:
        before = tree.map_structure(lambda x: cut(x, axis, 0, count - distance), elems)
        after = tree.map_structure(lambda x: cut(x, axis, distance, count), elems)
        start = tree.map_structure(lambda x: cut(x, axis, 0, distance), elems)
        combined = f(before, after)
        elems = tree.map_structure(lambda a, b: tf.concat(together(a, b), axis=axis), start, combined)
        distance *= 2
    if reverse:
        elems = tree.map_structure(lambda x: tf.reverse(x, [axis % len(x.shape)]), elems)
    return elems


# Gradients.


def custom_gradient(fun: Callable) -> Callable:
    """A function with its own gradient: `fun` returns its result and the function from gradient to
    gradients."""
    own = tf.custom_gradient(fun)

    def with_values(*args, **kwargs):
        args, kwargs = tree.map_structure(
            lambda x: x.value if isinstance(x, KerasVariable) else x, (args, kwargs)
        )
        return own(*args, **kwargs)

    return with_values


def remat(f: Callable) -> Callable:
    """A function whose inner values are computed again for the gradient instead of being kept."""
    return tf.recompute_grad(f)
