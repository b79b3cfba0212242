"""The loop of recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras.src import tree

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, shape_of
from taut.keras.backend.loops import along


def rnn(
    step_function: Callable,
    inputs: Any,
    initial_states: Sequence[Any],
    go_backwards: bool = False,
    mask: Any = None,
    constants: Sequence[Any] | None = None,
    unroll: bool = False,
    input_length: int | None = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
    return_all_outputs: bool = True,
) -> tuple[Any, Any, Any]:
    """Applies `output, states = step_function(input, states)` along the time axis.

    Where the mask is false, a step changes no state, and its output is the one before (or zeros, if
    `zero_output_for_mask`). Backwards, outputs are in the order in which they were made. Without
    `return_all_outputs`, the time axis of the outputs has size 1, and holds the last one.

    Returns the last output, all outputs, and the last states.
    """
    inputs = tree.map_structure(convert_to_tensor, inputs)
    if not time_major:
        inputs = tree.map_structure(time_and_batch_swapped, inputs)
    if mask is not None:
        mask = convert_to_tensor(mask, "bool")
        mask = mask if time_major else time_and_batch_swapped(mask)
        if len(mask.shape) == 2:
            mask = mask[..., None]
    count = shape_of(tree.flatten(inputs)[0])[0]
    if count == 0:
        raise ValueError("A recurrent layer needs at least one step of time.")
    states = tree.map_structure(convert_to_tensor, tuple(initial_states))
    step = masked_step(step_function, tuple(constants or ()), zero_output_for_mask, has_mask=mask is not None)
    xs = inputs if mask is None else (inputs, mask)

    if unroll:
        carry, outputs = written_out(step, (states, None), xs, count, go_backwards)
    else:
        carry, outputs = looped(step, (states, None), xs, count, go_backwards)
    states = carry[0]
    last = tree.map_structure(lambda stack: stack[-1], outputs)
    if not return_all_outputs:
        outputs = tree.map_structure(lambda output: output[None], last)
    if not time_major:
        outputs = tree.map_structure(time_and_batch_swapped, outputs)
    return last, outputs, states


def masked_step(step_function: Callable, constants: tuple, zeros: bool, has_mask: bool) -> Callable:
    """The step as a function of (states, output before) and of what comes in, mask included."""

    def step(carry, x):
        states, before = carry
        if not has_mask:
            output, new_states = step_function(x, tuple(states) + constants)
            return (same_structure(states, new_states), None), output
        x, mask = x
        output, new_states = step_function(x, tuple(states) + constants)
        if zeros or before is None:
            before_or_zeros = tree.map_structure(tf.zeros_like, output)
        else:
            before_or_zeros = before
        output = tree.map_structure(lambda new, old: chosen(mask, new, old), output, before_or_zeros)
        states = tree.map_structure(
            lambda new, old: chosen(mask, new, old), same_structure(states, new_states), states
        )
        return (states, None if zeros else output), output

    return step


def same_structure(states: Any, new_states: Any) -> Any:
    """New states in the structure of the old ones: cells may return lists where tuples were given."""
    return tree.pack_sequence_as(states, [convert_to_tensor(x) for x in tree.flatten(new_states)])


def chosen(mask: tf.Tensor, new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
    """`new` for the rows where the mask holds, `old` for the others."""
    rows = tf.reshape(mask, [*shape_of(mask), *[1] * (len(new.shape) - len(mask.shape))])
    return tf.where(rows, new, old)


def written_out(step: Callable, carry: Any, xs: Any, count: int, backwards: bool) -> tuple[Any, Any]:
    """The loop, step by step: longer to trace, and open to the compiler."""
    outputs = []
    for i in reversed(range(count)) if backwards else range(count):
        carry, output = step(carry, tree.map_structure(lambda x, i=i: x[i], xs))
        outputs.append(output)
    return carry, tree.map_structure(lambda *parts: tf.stack(parts), *outputs)


def looped(step: Callable, carry: Any, xs: Any, count: int, backwards: bool) -> tuple[Any, Any]:
    """The loop as one op, with outputs in the order in which they were made."""
    carry, outputs = along(step, carry, xs, count, reverse=backwards)
    if backwards:
        outputs = tree.map_structure(lambda stack: tf.reverse(stack, [0]), outputs)
    return carry, outputs


def time_and_batch_swapped(x: tf.Tensor) -> tf.Tensor:
    """`x` with its first two axes exchanged."""
    return tf.transpose(x, [1, 0, *range(2, len(x.shape))])


def cudnn_ok(*args: Any, **kwargs: Any) -> bool:
    """Whether the layer could use a graphics card's own recurrent kernels: there is none."""
    return False


def lstm(*args: Any, **kwargs: Any) -> Any:
    """Raises: there is no other way to run an LSTM than step by step. Keras takes that one then."""
    raise NotImplementedError("There is no special LSTM on the taut backend.")


def gru(*args: Any, **kwargs: Any) -> Any:
    """Raises: there is no other way to run a GRU than step by step. Keras takes that one then."""
    raise NotImplementedError("There is no special GRU on the taut backend.")


def bidirectional_lstm(*args: Any, **kwargs: Any) -> Any:
    """Raises: both directions of an LSTM run one after the other. Keras does so then."""
    raise NotImplementedError("There is no special bidirectional LSTM on the taut backend.")


def bidirectional_gru(*args: Any, **kwargs: Any) -> Any:
    """Raises: both directions of a GRU run one after the other. Keras does so then."""
    raise NotImplementedError("There is no special bidirectional GRU on the taut backend.")
