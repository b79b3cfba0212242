"""The loop of recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras.src import tree

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, open_shape
from taut.keras.backend.loops import scan_axis


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

    Where the mask is false, states are unchanged and the output is the previous one (or zeros, if
    `zero_output_for_mask`). With `go_backwards`, outputs are in processing order. Without `return_all_outputs`, the
    time axis of the outputs has size 1 and holds the last one.

    Returns the last output, all outputs, and the last states.
    """
    inputs = tree.map_structure(convert_to_tensor, inputs)
    if not time_major:
        inputs = tree.map_structure(time_and_batch_swapped, inputs)
    if mask is not None:
        mask = convert_to_tensor(mask, "bool")
        mask = mask if time_major else time_and_batch_swapped(mask)
        if mask.ndim == 2:
            mask = mask[..., None]
    # None where a recording leaves the number of steps open.
    count = tree.flatten(inputs)[0].get_shape()[0]
    if count == 0:
        raise ValueError("A recurrent layer needs at least one time step.")
    states = tree.map_structure(convert_to_tensor, tuple(initial_states))
    step = with_mask(step_function, tuple(constants or ()), zero_output_for_mask)
    if unroll and count is None:
        raise ValueError("unroll=True needs a known number of time steps, got None")
    loop = unrolled if unroll else looped
    states, outputs, last = loop(step, states, inputs, mask, count, go_backwards)
    if not return_all_outputs:
        outputs = tree.map_structure(lambda output: output[None], last)
    if not time_major:
        outputs = tree.map_structure(time_and_batch_swapped, outputs)
    return last, outputs, states


def with_mask(step_function: Callable, constants: tuple, zeros: bool) -> Callable:
    """A step from states, the previous output (or None), an input and its mask to new states and an output."""

    def step(states, before, x, mask):
        output, new_states = step_function(x, tuple(states) + constants)
        new_states = same_structure(states, new_states)
        if mask is None:
            return new_states, output
        if zeros or before is None:
            before = tree.map_structure(tf.zeros_like, output)
        output = tree.map_structure(lambda new, old: select_rows(mask, new, old), output, before)
        return tree.map_structure(lambda new, old: select_rows(mask, new, old), new_states, states), output

    return step


def same_structure(states: Any, new_states: Any) -> Any:
    """New states in the structure of the old ones: cells may return lists for tuples."""
    return tree.pack_sequence_as(states, [convert_to_tensor(x) for x in tree.flatten(new_states)])


def select_rows(mask: tf.Tensor, new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
    """`new` for the rows where the mask is true, `old` for the others."""
    rows = tf.reshape(mask, [*open_shape(mask), *[1] * (new.ndim - mask.ndim)])
    return tf.where(rows, new, old)


def part(structure: Any, place: int | slice) -> Any:
    """Slices every tensor of a structure along the first axis; None stays None."""
    return tree.map_structure(lambda x: None if x is None else x[place], structure)


def unrolled(step: Callable, states: Any, xs: Any, mask: Any, count: int, backwards: bool) -> tuple[Any, Any, Any]:
    """The unrolled loop: slower to trace, but visible to the compiler. Returns states, all outputs, and the last one."""
    outputs: list[Any] = []
    for i in reversed(range(count)) if backwards else range(count):
        states, output = step(states, outputs[-1] if outputs else None, part(xs, i), part(mask, i))
        outputs.append(output)
    return states, tree.map_structure(lambda *parts: tf.stack(parts), *outputs), outputs[-1]


def looped(step: Callable, states: Any, xs: Any, mask: Any, count: int | None, backwards: bool) -> tuple[Any, Any, Any]:
    """The loop as one op. With a mask the first step precedes it, to find the outputs' shapes.

    Returns states, all outputs, and the last one.
    """
    if mask is None:
        places: list[int | None] = []

        def unmasked(states, x):
            new_states, output = step(states, None, x, None)
            flat = tree.flatten(new_states)
            places[:] = [next((j for j, y in enumerate(flat) if y is x), None) for x in tree.flatten(output)]
            return new_states, output

        states, outputs = scan_axis(unmasked, states, xs, reverse=backwards)
        outputs = reversed_if(backwards, outputs)
        # An output that is a state needs no stack for its last value, nor its gradient one of zeros.
        flat, stacks = tree.flatten(states), tree.flatten(outputs)
        last = [stack[-1] if j is None else flat[j] for j, stack in zip(places, stacks)]
        return states, outputs, tree.pack_sequence_as(outputs, last)
    first, rest = (-1, slice(0, -1)) if backwards else (0, slice(1, None))
    states, output = step(states, None, part(xs, first), part(mask, first))
    outputs = tree.map_structure(lambda x: x[None], output)
    if count == 1:
        return states, outputs, output

    def masked(carry, x):
        states, output = step(*carry, *x)
        return (states, output), output

    (states, last), later = scan_axis(masked, (states, output), part((xs, mask), rest), reverse=backwards)
    later = reversed_if(backwards, later)
    return states, tree.map_structure(lambda one, others: tf.concat([one, others], axis=0), outputs, later), last


def reversed_if(backwards: bool, outputs: Any) -> Any:
    """Outputs in processing order."""
    return tree.map_structure(lambda stack: tf.reverse(stack, [0]), outputs) if backwards else outputs


def time_and_batch_swapped(x: tf.Tensor) -> tf.Tensor:
    """Swaps the first two axes."""
    return tf.transpose(x, [1, 0, *range(2, x.ndim)])


def cudnn_ok(*args: Any, **kwargs: Any) -> bool:
    """Whether cuDNN kernels can be used: never."""
    return False


# By these errors Keras knows that it shall use `rnn`, which computes the same. A layer of its own could project the inputs of
# all steps by one product, but would hold these projections for all steps, of which the loop holds one.


def lstm(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError; Keras falls back to its own loop."""
    raise NotImplementedError("There is no fused LSTM on the taut backend.")


def gru(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError; Keras falls back to its own loop."""
    raise NotImplementedError("There is no fused GRU on the taut backend.")


def bidirectional_lstm(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError; Keras falls back to two layers."""
    raise NotImplementedError("There is no fused bidirectional LSTM on the taut backend.")


def bidirectional_gru(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError; Keras falls back to two layers."""
    raise NotImplementedError("There is no fused bidirectional GRU on the taut backend.")
