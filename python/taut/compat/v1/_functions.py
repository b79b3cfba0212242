"""Functions of `tf.compat.v1` whose signature or meaning is not that of TensorFlow 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taut as tf

from ... import _raw_ops as raw
from ..._common import refuse
from ..._native import Tensor, as_tensor


def one_of(function: str, **values: Any) -> Any:
    """The value of an option that has several names."""
    given = {name: value for name, value in values.items() if value is not None}
    if len(given) > 1:
        refuse(function, f"{' and '.join(given)} are one option: give one of them", ValueError)
    return next(iter(given.values()), None)


def _reduction(name: str) -> Callable:
    own = getattr(tf, name)

    def reduce(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        axis = one_of(own.__name__, axis=axis, reduction_indices=reduction_indices)
        return own(input_tensor, axis, bool(one_of(own.__name__, keepdims=keepdims, keep_dims=keep_dims)))

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"As `tf.{name}`, with the option's names of TensorFlow 1."
    return reduce


reduce_all, reduce_any, reduce_logsumexp, reduce_max = map(
    _reduction, ("reduce_all", "reduce_any", "reduce_logsumexp", "reduce_max")
)
reduce_mean, reduce_min, reduce_prod, reduce_sum = map(
    _reduction, ("reduce_mean", "reduce_min", "reduce_prod", "reduce_sum")
)


def argmax(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: Any = tf.int64
) -> Tensor:
    """The index of the largest element along an axis, the first one unless given."""
    return tf.argmax(input, one_of("argmax", axis=axis, dimension=dimension) or 0, output_type)


def argmin(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: Any = tf.int64
) -> Tensor:
    """The index of the smallest element along an axis, the first one unless given."""
    return tf.argmin(input, one_of("argmin", axis=axis, dimension=dimension) or 0, output_type)


def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = tf.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: Any = None,
) -> Tensor:
    """The number of elements that are not zero."""
    x = one_of("count_nonzero", input_tensor=input_tensor, input=input)
    axis = one_of("count_nonzero", axis=axis, reduction_indices=reduction_indices)
    keeps = bool(one_of("count_nonzero", keepdims=keepdims, keep_dims=keep_dims))
    return tf.math.count_nonzero(x, axis, keeps, dtype)


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Inserts an axis of size 1."""
    axis = one_of("expand_dims", axis=axis, dim=dim)
    if axis is None:
        refuse("expand_dims", "axis must be given", ValueError)
    return tf.expand_dims(input, axis)


def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Tensor:
    """Removes axes of size 1."""
    return tf.squeeze(input, one_of("squeeze", axis=axis, squeeze_dims=squeeze_dims))


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Elements of `x` where the condition is true, else of `y`, which have one shape: that of the condition, or rows that a
    condition of rank 1 selects. Without them, the coordinates of true elements.
    """
    if x is None and y is None:
        return tf.where(condition)
    if x is None or y is None:
        refuse("where", "x and y must both be given, or neither", ValueError)
    condition, x, y = as_tensor(condition), as_tensor(x), as_tensor(y)
    is_of_rows = len(condition.shape) == 1 and len(x.shape) > 1 and condition.shape[0] == x.shape[0]
    if x.shape != y.shape or not (condition.shape == x.shape or condition.shape == () or is_of_rows):
        text = f"x and y must have the shape of the condition, or its rows, got {condition.shape}, {x.shape}, {y.shape}"
        refuse("where", f"{text}\n  help: tf.where broadcasts")
    if is_of_rows:
        condition = tf.reshape(condition, [condition.shape[0], *[1] * (len(x.shape) - 1)])
    return tf.where(condition, x, y)


def shape(input: Any, name: str | None = None, out_type: Any = tf.int32) -> Any:
    """The shape as a tensor."""
    return tf.shape(input, out_type)


def size(input: Any, name: str | None = None, out_type: Any = tf.int32) -> Tensor:
    """The number of elements as a tensor."""
    return tf.size(input, out_type)


def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Zeros of a tensor's shape."""
    return tf.zeros_like(tensor, dtype)


def ones_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Ones of a tensor's shape."""
    return tf.ones_like(tensor, dtype)


def constant(
    value: Any, dtype: Any = None, shape: Any = None, name: str = "Const", verify_shape: bool = False
) -> Tensor:
    """A constant tensor. With `verify_shape`, the value must have the shape already."""
    made = tf.constant(value, dtype, shape)
    if verify_shape and shape is not None and tf.constant(value, dtype).shape != made.shape:
        refuse("constant", f"expected a value of shape {made.shape}, got {tf.constant(value, dtype).shape}", TypeError)
    return made


def convert_to_tensor(
    value: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None, dtype_hint: Any = None
) -> Tensor:
    """Converts an object to a tensor."""
    hint = one_of("convert_to_tensor", preferred_dtype=preferred_dtype, dtype_hint=dtype_hint)
    return tf.convert_to_tensor(value, dtype, hint)


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """Gathers slices by index along an axis."""
    return tf.gather(params, indices, validate_indices, axis, batch_dims)


def gather_nd(
    params: Any, indices: Any, name: str | None = None, batch_dims: int = 0, bad_indices_policy: str = ""
) -> Tensor:
    """Gathers slices at the coordinates along the last axis of `indices`."""
    return tf.gather_nd(params, indices, batch_dims, bad_indices_policy=bad_indices_policy)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """Gathers along the last axis of `indices`; the axes before it are those of a batch."""
    return tf.gather(params, indices, batch_dims=len(as_tensor(indices).shape) - 1)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0
) -> Tensor:
    """Pads a tensor."""
    return tf.pad(tensor, paddings, mode, constant_values)


def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    """Permutes axes."""
    return tf.transpose(a, perm, conjugate)


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The norm of vectors or matrices."""
    return tf.norm(tensor, ord, axis, bool(one_of("norm", keepdims=keepdims, keep_dims=keep_dims)))


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The quotient; that of integers is rounded down."""
    x, y = as_tensor(x), as_tensor(y)
    return raw.floor_div(x, y) if x.dtype.is_integer and y.dtype.is_integer else raw.div(x, y)


def cond(
    pred: Any,
    true_fn: Callable | None = None,
    false_fn: Callable | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable | None = None,
    fn2: Callable | None = None,
) -> Any:
    """The result of one of two functions. A list of one result is that result, unless `strict`."""
    made = tf.cond(pred, one_of("cond", true_fn=true_fn, fn1=fn1), one_of("cond", false_fn=false_fn, fn2=fn2))
    return made[0] if not strict and isinstance(made, (list, tuple)) and len(made) == 1 else made


def while_loop(
    cond: Callable,
    body: Callable,
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Runs `body` while `cond` is true. A list of one state is that state, unless `return_same_structure`."""
    made = tf.while_loop(
        cond, body, loop_vars, shape_invariants, parallel_iterations, back_prop, swap_memory, maximum_iterations
    )
    is_one = isinstance(made, (list, tuple)) and len(made) == 1
    return made[0] if is_one and not return_same_structure else made


def map_fn(
    fn: Callable,
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Maps rows."""
    signature = one_of("map_fn", dtype=dtype, fn_output_signature=fn_output_signature)
    return tf.map_fn(fn, elems, signature, parallel_iterations, back_prop, swap_memory, infer_shape)


def name_scope(name: str | None, default_name: str | None = None, values: Any = None) -> Any:
    """A context manager for a prefix of names."""
    return tf.name_scope(default_name if name is None else name)


def _cast(name: str, dtype: Any) -> Callable:
    def to(x: Any, name: str = name) -> Tensor:
        return tf.cast(x, dtype)

    to.__doc__ = f"Casts to {dtype.name}."
    return to


to_float, to_double, to_bfloat16 = (
    _cast("ToFloat", tf.float32),
    _cast("ToDouble", tf.float64),
    _cast("ToBFloat16", tf.bfloat16),
)
to_int32, to_int64 = _cast("ToInt32", tf.int32), _cast("ToInt64", tf.int64)
to_complex64, to_complex128 = _cast("ToComplex64", tf.complex64), _cast("ToComplex128", tf.complex128)


def _update(method: str) -> Callable:
    def update(ref: Any, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
        return getattr(ref, method)(value)

    update.__doc__ = f"`ref.{method}(value)`: the variable after the update."
    return update


assign_add, assign_sub = _update("assign_add"), _update("assign_sub")


def assign(ref: Any, value: Any, validate_shape: Any = None, use_locking: Any = None, name: str | None = None) -> Any:
    """Assigns a value of the variable's shape."""
    if validate_shape is not None and not validate_shape:
        refuse("assign", "validate_shape must be true: a variable keeps its shape", ValueError)
    return ref.assign(value)


def _scatter(how: str) -> Callable:
    def scatter(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None) -> Any:
        return getattr(ref, f"scatter_{how}")(tf.IndexedSlices(as_tensor(updates), as_tensor(indices)))

    scatter.__doc__ = f"`ref.scatter_{how}`: rows of a variable."
    return scatter


scatter_add, scatter_sub, scatter_update = _scatter("add"), _scatter("sub"), _scatter("update")
scatter_mul, scatter_div = _scatter("mul"), _scatter("div")
scatter_max, scatter_min = _scatter("max"), _scatter("min")


def _scatter_nd(how: str) -> Callable:
    def scatter(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None) -> Any:
        return getattr(ref, f"scatter_nd_{how}")(indices, updates)

    scatter.__doc__ = f"`ref.scatter_nd_{how}`: slices of a variable."
    return scatter


scatter_nd_add, scatter_nd_sub, scatter_nd_update = _scatter_nd("add"), _scatter_nd("sub"), _scatter_nd("update")


def py_func(func: Callable, inp: Any, Tout: Any, stateful: bool = True, name: str | None = None) -> Any:  # noqa: N803
    """Calls a Python function of arrays in every run."""
    return tf.numpy_function(func, inp, Tout, stateful)


def set_random_seed(seed: Any) -> None:
    """Sets the seed of random ops."""
    tf.random.set_seed(seed)


class Dimension:
    """A size of a shape, which may be unknown."""

    def __init__(self, value: Any) -> None:
        self.value = getattr(value, "value", value)

    def __int__(self) -> Any:
        return self.value

    __index__ = __int__

    def __eq__(self, other: object) -> Any:
        other = getattr(other, "value", other)
        return None if self.value is None or other is None else self.value == other

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"Dimension({self.value})"

    def __str__(self) -> str:
        return "?" if self.value is None else str(self.value)


def dimension_value(dimension: Any) -> int | None:
    """The size: shapes consist of sizes."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: Any, index: int) -> Dimension:
    """A size of a shape."""
    return Dimension(None if shape.rank is None else shape[index])


def executing_eagerly_outside_functions() -> bool:
    """Whether code outside of functions runs eagerly: always."""
    return True


resource_variables_enabled = control_flow_v2_enabled = executing_eagerly_outside_functions


def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
    """Does nothing: ops outside of functions always run eagerly."""
    for option, value in (("config", config), ("device_policy", device_policy), ("execution_mode", execution_mode)):
        if value is not None:
            refuse("enable_eager_execution", f"{option} must be None: there are no sessions and one device", ValueError)


def enable_v2_behavior() -> None:
    """Does nothing: there is no other behavior."""


enable_v2_tensorshape = enable_resource_variables = enable_tensor_equality = enable_control_flow_v2 = enable_v2_behavior


def _refused(what: str) -> Callable:
    def disable() -> None:
        refuse(what, "there is no TensorFlow 1 behavior here: ops run eagerly, or in tf.function", RuntimeError)

    disable.__doc__ = "Raises RuntimeError: there is no TensorFlow 1 behavior."
    return disable


disable_eager_execution, disable_v2_behavior = _refused("disable_eager_execution"), _refused("disable_v2_behavior")
disable_v2_tensorshape = _refused("disable_v2_tensorshape")
disable_resource_variables = _refused("disable_resource_variables")
disable_tensor_equality = _refused("disable_tensor_equality")
disable_control_flow_v2 = _refused("disable_control_flow_v2")


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = tf.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """The number of pairs of label and prediction."""
    return tf.math.confusion_matrix(labels, predictions, num_classes, weights, dtype)


def bincount(
    arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = tf.int32
) -> Tensor:
    """The number of occurrences of each integer."""
    return tf.math.bincount(arr, weights, minlength, maxlength, dtype)


def _assertion(name: str) -> Callable:
    own = getattr(tf.debugging, name)

    def check(
        x: Any, y: Any, data: Any = None, summarize: Any = None, message: str | None = None, name: str | None = None
    ) -> Any:
        return own(x, y, _message(message, data), summarize)

    check.__doc__ = f"As `tf.debugging.{name}`."
    return check


def _message(message: str | None, data: Any) -> str | None:
    """A message, and values that are printed with it."""
    if data is None:
        return message
    return " ".join(
        [*([message] if message else []), *(str(getattr(one, "numpy", lambda one=one: one)()) for one in data)]
    )


assert_equal, assert_none_equal = _assertion("assert_equal"), _assertion("assert_none_equal")
assert_less, assert_less_equal = _assertion("assert_less"), _assertion("assert_less_equal")
assert_greater, assert_greater_equal = _assertion("assert_greater"), _assertion("assert_greater_equal")


def _sign_assertion(name: str) -> Callable:
    own = getattr(tf.debugging, name)

    def check(
        x: Any, data: Any = None, summarize: Any = None, message: str | None = None, name: str | None = None
    ) -> Any:
        return own(x, _message(message, data), summarize)

    check.__doc__ = f"As `tf.debugging.{name}`."
    return check


assert_positive, assert_negative = _sign_assertion("assert_positive"), _sign_assertion("assert_negative")
assert_non_negative = _sign_assertion("assert_non_negative")
assert_non_positive = _sign_assertion("assert_non_positive")


def assert_rank(
    x: Any, rank: Any, data: Any = None, summarize: Any = None, message: str | None = None, name: str | None = None
) -> Any:
    """As `tf.debugging.assert_rank`."""
    return tf.debugging.assert_rank(x, rank, _message(message, data))


def assert_rank_at_least(
    x: Any, rank: Any, data: Any = None, summarize: Any = None, message: str | None = None, name: str | None = None
) -> Any:
    """As `tf.debugging.assert_rank_at_least`."""
    return tf.debugging.assert_rank_at_least(x, rank, _message(message, data))


def verify_tensor_all_finite(
    t: Any = None, msg: str | None = None, name: str | None = None, x: Any = None, message: str | None = None
) -> Tensor:
    """The tensor; raises an error if it has elements that are not finite."""
    x = one_of("verify_tensor_all_finite", t=t, x=x)
    return tf.debugging.assert_all_finite(x, one_of("verify_tensor_all_finite", msg=msg, message=message) or "")


#: The names of `tf.compat.v1` that are defined here.
PUBLIC = frozenset(
    name
    for name, value in globals().items()
    if not name.startswith("_") and getattr(value, "__module__", "") == __name__ and name != "one_of"
)
