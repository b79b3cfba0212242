"""Control flow: loops, branches and maps as single ops."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from . import _native, _raw_ops as raw, nest, tensor_array
from ._common import refuse_option
from .errors import InvalidArgumentError
from .ragged import has_strings, map_rows
from .ragged_tensor import RaggedTensorSpec
from .recording import call_with_functions
from .shape import TensorShape
from .spec import TensorSpec

if TYPE_CHECKING:
    from ._typing import DTypeLike

# The result of a loop has the structure of its variables.
_LoopVars = TypeVar("_LoopVars")


def _constant_unless(made: Any, back_prop: bool) -> Any:
    """The results of a loop; as constants if its gradient is not needed."""
    return made if back_prop else nest.map_structure(raw.stop_gradient, made)


def _convertible(*functions: Callable) -> tuple:
    """The functions, converted by AutoGraph on their first call. In a trace the caller has converted them already."""
    if _native.is_tracing():
        return functions
    from .autograph import lazily_converted

    return tuple(map(lazily_converted, functions))


def while_loop(
    cond: Callable,
    body: Callable,
    loop_vars: _LoopVars,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: int | None = None,
    name: str | None = None,
    grad_budget: int | None = None,
) -> _LoopVars:
    """Repeats `body(*loop_vars)` while `cond(*loop_vars)` is true; returns the final loop variables.

    The body is traced once, and its states are updated in place: memory does not grow with the number of steps.
    `grad_budget` bounds the bytes saved for the gradient; the rest is recomputed.
    """
    cond, body = _convertible(cond, body)
    single = not isinstance(loop_vars, (list, tuple))
    states: list[Any] = [loop_vars] if single else list(loop_vars)  # type: ignore[call-overload]

    def test(values: list) -> Any:
        return cond(*values)

    def step(values: list) -> list:
        made = body(*values)
        return [made] if len(values) == 1 and not isinstance(made, (list, tuple)) else list(made)

    packed = None
    leaves = nest.flatten(states)
    if any(map(tensor_array.is_array, leaves)):
        test, step, states, packed = tensor_array.as_loop(test, step, states)
    if maximum_iterations is not None:
        maximum_iterations = int(maximum_iterations)
    invariants = None
    if shape_invariants is not None:
        shapes = nest.flatten(_shapes(shape_invariants))
        if len(shapes) != len(leaves):
            raise ValueError(
                f"while_loop: expected a shape for each of {len(leaves)} loop variables, got {len(shapes)}"
            )
        each = zip(shapes, leaves, nest.flatten(states))
        # The elements of an array are one state whose shape stays.
        invariants = [_dims(now.shape if tensor_array.is_array(leaf) else shape.dims, now) for shape, leaf, now in each]
    done = call_with_functions(_native.while_loop, test, step, states, invariants, maximum_iterations, grad_budget)
    done = _constant_unless(done, back_prop)
    if packed is not None:
        done = packed(done)
    if single:
        return done[0]
    made: Any = type(loop_vars)(done) if type(loop_vars) in (list, tuple) else tuple(done)  # type: ignore[call-arg]
    return made


def _dims(shape: TensorShape, state: Any) -> list:
    """The sizes of a state that are the same at every step; None for others. A state of unknown rank keeps its rank."""
    return [None] * _native.as_tensor(state).ndim if shape.rank is None else list(shape)


class _Shape:
    """A shape as a leaf of a structure."""

    def __init__(self, dims: Any) -> None:
        self.dims = dims


def _shapes(structure: Any) -> Any:
    if isinstance(structure, TensorSpec):
        return _Shape(structure.shape)
    if isinstance(structure, TensorShape):
        return _Shape(structure)
    if isinstance(structure, dict):
        return {key: _shapes(part) for key, part in structure.items()}
    if not isinstance(structure, (list, tuple)):
        raise TypeError(f"while_loop: shape_invariants must be tf.TensorShape or tf.TensorSpec, got {structure!r}")
    return [_shapes(part) for part in structure]


def cond(pred: Any, true_fn: Callable | None = None, false_fn: Callable | None = None, name: str | None = None) -> Any:
    """Returns `true_fn()` if `pred` is true, else `false_fn()`. Only one of them runs."""
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError(f"tf.cond: true_fn and false_fn must be callable, got {true_fn!r} and {false_fn!r}")
    if isinstance(pred, bool):
        return true_fn() if pred else false_fn()
    pred = _native.as_tensor(pred)
    if not pred.is_symbolic:
        run, unrun = (true_fn, false_fn) if bool(pred) else (false_fn, true_fn)
        return _connected(run(), unrun)
    try:
        return call_with_functions(_native.cond, pred, _without_arrays(true_fn), _without_arrays(false_fn))
    except _HoldsArrays:
        from .autograph.choice import choose

        branches = [lambda: [true_fn()], lambda: [false_fn()]]
        return choose("tf.cond", object(), pred, branches, ["retval_"])[0]


class _HoldsArrays(Exception):  # noqa: N818
    """The result of a branch holds a TensorArray, whose elements the branches must pass on as one tensor."""


def _without_arrays(function: Callable) -> Callable:
    def checked() -> Any:
        made = function()
        if any(map(tensor_array.is_array, nest.flatten(made))):
            raise _HoldsArrays
        return made

    return checked


def _connected(made: Any, *unrun: Callable) -> Any:
    """The result of a branch. In a function that runs op by op, what the other branches use has zeros as its gradient, as
    in a traced one.
    """
    from .autograph import untaken

    return untaken.connected(made, *unrun) if untaken.is_needed() else made


def _connected_without_rows(made: Any, fn: Callable, elems: Any) -> Any:
    """The result of a map, in which the function did not run if there are no rows."""
    from .autograph import untaken

    # A trace must not read the number of rows, which may be open.
    if not untaken.is_needed():
        return made
    is_empty = any(isinstance(rows, _native.Array) and rows.ndim and not len(rows) for rows in nest.flatten(elems))
    return untaken.connected(made, fn) if is_empty else made


def switch_case(branch_index: Any, branch_fns: Any, default: Callable | None = None, name: str | None = None) -> Any:
    """Calls the function with this index; `default`, or the last function, if the index is out of range."""
    pairs = branch_fns
    if isinstance(branch_fns, dict):
        pairs = sorted(branch_fns.items())
    elif not isinstance(branch_fns, (list, tuple)):
        raise TypeError(f"switch_case: branch_fns must be a list or dict of functions, got {branch_fns!r}")
    elif branch_fns and isinstance(branch_fns[0], (list, tuple)):
        pairs = sorted(branch_fns)
    else:
        pairs = list(enumerate(branch_fns))
    if [number for number, _ in pairs] != list(range(len(pairs))):
        raise ValueError(f"branch_fns must be numbered 0, 1, 2, ..., got {[number for number, _ in pairs]}")
    functions = [function for _, function in pairs]
    if default is not None:
        functions.append(default)
    index = _native.as_tensor(branch_index)
    if not index.is_symbolic:
        number = int(index)
        run = functions.pop(number if 0 <= number < len(functions) else -1)
        return _connected(run(), *functions)
    try:
        return call_with_functions(_native.switch_case, index, list(map(_without_arrays, functions)))
    except _HoldsArrays:
        chosen = functions[-1]
        for number in reversed(range(len(functions) - 1)):
            chosen = functools.partial(cond, raw.equal(index, number), functions[number], chosen)
        return chosen()


def case(
    pred_fn_pairs: Sequence,
    default: Callable | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str | None = None,
) -> Any:
    """Calls the function of the first predicate that is true, or `default` if none is."""
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    if not pairs:
        if default is None:
            raise ValueError("tf.case: at least one predicate or a default must be given")
        return default()
    if exclusive:
        held = sum(raw.cast(_native.as_tensor(pred), "int32") for pred, _ in pairs)
        _require(held <= 1, "tf.case: with exclusive=True at most one predicate may be true")
    (pred, function), rest = pairs[0], pairs[1:]
    if not rest and default is None:
        _require(_native.as_tensor(pred), "tf.case: without a default, one of the predicates must be true, got none")
        return function()
    return cond(pred, function, lambda: case(rest, default))


def _require(holds: Any, message: str) -> None:
    """Raises InvalidArgumentError unless a condition holds; in a traced function, whenever it runs."""
    if holds.is_symbolic:
        raw.ensure(holds, message)
    elif not bool(holds):
        raise InvalidArgumentError(message)


def map_fn(
    fn: Callable,
    elems: Any,
    dtype: DTypeLike = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
    memory_budget: int | None = None,
) -> Any:
    """Applies `fn` to each row of the elements and stacks the results.

    Rows are computed in chunks that fit into `memory_budget` bytes (or of `parallel_iterations` rows). The gradient
    recomputes each chunk and keeps to the same budget.
    """
    (fn,) = _convertible(fn)
    wanted = fn_output_signature if fn_output_signature is not None else dtype
    if has_strings(elems) or any(isinstance(spec, RaggedTensorSpec) for spec in nest.flatten(wanted)):
        return map_rows(fn, elems, wanted)
    made = call_with_functions(_native.map_fn, fn, elems, parallel_iterations, memory_budget)
    made = _connected_without_rows(made, fn, elems)
    if wanted is not None:
        _check_types(made, wanted)
    return _constant_unless(made, back_prop)


def _check_types(made: Any, wanted: Any) -> None:
    flat, signature = nest.flatten(made), nest.flatten(wanted)
    for one, spec in zip(flat, signature):
        dtype = getattr(spec, "dtype", spec)
        if one.dtype != dtype:
            raise TypeError(f"fn must return the type of fn_output_signature, {dtype}, got {one.dtype.name}")


def vectorized_map(fn: Callable, elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """Applies `fn` to all rows of the elements at once and stacks the results."""
    reason = "ops without a batching rule always run as a loop"
    refuse_option("vectorized_map", "fallback_to_while_loop", fallback_to_while_loop, reason, default=True)
    (fn,) = _convertible(fn)
    return call_with_functions(_native.vectorized_map, fn, elems)


def scan(
    fn: Callable,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
    grad_budget: int | None = None,
) -> Any:
    """Computes `state = fn(state, row)` over the rows; returns all states, stacked."""
    (fn,) = _convertible(fn)
    first, rest = _begin(elems, initializer, reverse)

    def step(state: Any, row: Any) -> tuple:
        after = fn(state, row)
        return after, after

    _, states = call_with_functions(_native.scan, step, first, rest, reverse, grad_budget)
    if initializer is None:

        def joined(one: Any, many: Any) -> Any:
            one = raw.expand_dims(one, 0)
            return raw.concat([many, one] if reverse else [one, many], 0)

        states = nest.map_structure(joined, first, states, check_types=False)
    return _constant_unless(states, back_prop)


def _begin(elems: Any, initializer: Any, reverse: bool) -> tuple:
    elems = nest.map_structure(_native.as_tensor, elems)
    if initializer is not None:
        return initializer, elems
    at = -1 if reverse else 0
    rest = slice(None, -1) if reverse else slice(1, None)
    return (
        nest.map_structure(lambda rows: rows[at], elems),
        nest.map_structure(lambda rows: rows[rest], elems),
    )


def _fold(fn: Callable, elems: Any, initializer: Any, reverse: bool, back_prop: bool) -> Any:
    (fn,) = _convertible(fn)
    first, rest = _begin(elems, initializer, reverse)
    last, _ = call_with_functions(_native.scan, lambda state, row: (fn(state, row), ()), first, rest, reverse)
    return _constant_unless(last, back_prop)


def foldl(
    fn: Callable,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Computes `state = fn(state, row)` over the rows; returns the last state."""
    return _fold(fn, elems, initializer, False, back_prop)


def foldr(
    fn: Callable,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """As `foldl`, from the last row to the first."""
    return _fold(fn, elems, initializer, True, back_prop)
