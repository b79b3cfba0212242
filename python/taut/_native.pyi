"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn


TensorLike = Any
DTypeLike = Any

class Array:
    """What tensors and variables have in common: arithmetic, comparisons, slicing, and their values as NumPy's."""

    T: Any

    def __abs__(self, /) -> Any:
        ...

    def __add__(self, value, /) -> Any:
        ...

    def __and__(self, value, /) -> Any:
        ...

    def __array__(self, /, dtype=..., copy=...) -> Any:
        ...

    def __bool__(self, /) -> bool:
        ...

    def __contains__(self, _value) -> Any:
        ...

    def __dlpack__(self, /, *, stream=..., max_version=..., dl_device=..., copy=...) -> Any:
        ...

    def __dlpack_device__(self, /) -> Any:
        ...

    def __eq__(self, value, /) -> Any:
        ...

    def __float__(self, /) -> float:
        ...

    def __floordiv__(self, value, /) -> Any:
        ...

    def __format__(self, spec) -> Any:
        ...

    def __ge__(self, value, /) -> Any:
        ...

    def __getitem__(self, key, /) -> Any:
        ...

    def __gt__(self, value, /) -> Any:
        ...

    def __hash__(self, /) -> int:
        ...

    def __index__(self, /) -> int:
        ...

    def __int__(self, /) -> int:
        ...

    def __invert__(self, /) -> Any:
        ...

    def __iter__(self) -> Any:
        ...

    def __le__(self, value, /) -> Any:
        ...

    def __len__(self, /) -> int:
        ...

    def __lshift__(self, value, /) -> Any:
        ...

    def __lt__(self, value, /) -> Any:
        ...

    def __matmul__(self, value, /) -> Any:
        ...

    def __mod__(self, value, /) -> Any:
        ...

    def __mul__(self, value, /) -> Any:
        ...

    def __ne__(self, value, /) -> Any:
        ...

    def __neg__(self, /) -> Any:
        ...

    def __or__(self, value, /) -> Any:
        ...

    def __pos__(self, /) -> Any:
        ...

    def __pow__(self, value, mod=..., /) -> Any:
        ...

    def __radd__(self, value, /) -> Any:
        ...

    def __rand__(self, value, /) -> Any:
        ...

    def __repr__(self) -> Any:
        ...

    def __rfloordiv__(self, value, /) -> Any:
        ...

    def __rlshift__(self, value, /) -> Any:
        ...

    def __rmatmul__(self, value, /) -> Any:
        ...

    def __rmod__(self, value, /) -> Any:
        ...

    def __rmul__(self, value, /) -> Any:
        ...

    def __ror__(self, value, /) -> Any:
        ...

    def __round__(self, digits=...) -> Any:
        ...

    def __rpow__(self, value, mod=..., /) -> Any:
        ...

    def __rrshift__(self, value, /) -> Any:
        ...

    def __rshift__(self, value, /) -> Any:
        ...

    def __rsub__(self, value, /) -> Any:
        ...

    def __rtruediv__(self, value, /) -> Any:
        ...

    def __rxor__(self, value, /) -> Any:
        ...

    def __str__(self) -> Any:
        ...

    def __sub__(self, value, /) -> Any:
        ...

    def __truediv__(self, value, /) -> Any:
        ...

    def __xor__(self, value, /) -> Any:
        ...

    @property
    def _id(self) -> Any:
        """A number that no other tensor has while this one is there."""

    def _repr_html_(self) -> Any:
        ...

    def data_ptr(self, /) -> Any:
        """The address of its first element."""

    device: Any

    @property
    def dtype(self) -> Any:
        ...

    def get_shape(self) -> Any:
        ...

    @property
    def is_symbolic(self) -> Any:
        """Whether it is a value of a function that is being traced, without elements."""

    def item(self, /) -> Any:
        """The only element as a number of Python's."""

    name: Any

    @property
    def nbytes(self) -> Any:
        """Bytes of its elements."""

    @property
    def ndim(self) -> Any:
        """Number of dimensions."""

    def numpy(self, /) -> Any:
        """The elements as an array of NumPy's that looks at the same memory and cannot be written to; a number for a"""

    def ref(self) -> Any:
        ...

    def set_shape(self, shape) -> Any:
        """Raises ValueError unless the tensor has this shape: shapes are always known."""

    @property
    def shape(self) -> Any:
        ...

    @property
    def size(self) -> Any:
        """Number of elements."""

    @property
    def strides(self) -> Any:
        """Strides in elements."""

    def tolist(self) -> Any:
        ...

class DType:
    """An element type."""

    def __eq__(self, value, /) -> Any:
        ...

    def __ge__(self, value, /) -> Any:
        ...

    def __gt__(self, value, /) -> Any:
        ...

    def __hash__(self, /) -> int:
        ...

    def __le__(self, value, /) -> Any:
        ...

    def __lt__(self, value, /) -> Any:
        ...

    def __ne__(self, value, /) -> Any:
        ...

    def __reduce__(self, /) -> Any:
        ...

    def __repr__(self, /) -> Any:
        ...

    def __str__(self, /) -> Any:
        ...

    @property
    def as_datatype_enum(self) -> Any:
        """A number for every type, as TensorFlow counts them."""

    @property
    def as_numpy_dtype(self) -> Any:
        """NumPy's name for it: a scalar type."""

    base_dtype: Any

    @property
    def is_bool(self) -> Any:
        ...

    def is_compatible_with(self, other) -> Any:
        """Whether values of the other type can stand here: those of the same type."""

    is_complex: Any

    @property
    def is_floating(self) -> Any:
        ...

    @property
    def is_integer(self) -> Any:
        ...

    is_numeric: Any

    is_quantized: Any

    @property
    def is_unsigned(self) -> Any:
        ...

    @property
    def itemsize(self) -> Any:
        ...

    limits: Any

    max: Any

    min: Any

    @property
    def name(self) -> Any:
        """What it is called."""

    real_dtype: Any

    @property
    def size(self) -> Any:
        """Bytes of one element."""

class Dataset:
    """Elements that come one after the other."""

    def batch(self, /, size, exact) -> Any:
        ...

    def cache(self, /, path, bytes) -> Any:
        ...

    def cardinality(self, /) -> Any:
        """The number of elements; -1 if there is no end, -2 if only running it will tell."""

    def concatenate(self, /, other) -> Any:
        ...

    def enumerate(self, /, start) -> Any:
        ...

    def filter(self, /, function) -> Any:
        ...

    def flat_map(self, /, function) -> Any:
        ...

    def from_generator(make) -> Any:
        """staticmethod(function) -> method"""

    def from_tensor_slices(tensors) -> Any:
        """staticmethod(function) -> method"""

    def from_tensors(tensors) -> Any:
        """staticmethod(function) -> method"""

    def interleave(self, /, function, cycle_length, block_length) -> Any:
        ...

    def iterate(self, /, position=...) -> Any:
        """Starts the next epoch, or at a position: (epoch, elements delivered)."""

    def map(self, /, function, workers) -> Any:
        ...

    def padded_batch(self, /, size, shapes, values, exact) -> Any:
        ...

    def prefetch(self, /, elements, bytes) -> Any:
        ...

    def range(start, stop, step, dtype) -> Any:
        """staticmethod(function) -> method"""

    def repeat(self, /, times) -> Any:
        ...

    def sample_from(parts, seed) -> Any:
        """staticmethod(function) -> method"""

    def shard(self, /, shards, index) -> Any:
        ...

    def shuffle(self, /, elements, bytes, seed, each_epoch) -> Any:
        ...

    def skip(self, /, count) -> Any:
        ...

    def take(self, /, count) -> Any:
        ...

    def take_while(self, /, function) -> Any:
        ...

    def unbatch(self, /) -> Any:
        ...

    def window(self, /, size, shift, stride, exact) -> Any:
        ...

    def zip(parts) -> Any:
        """staticmethod(function) -> method"""

class DatasetIterator:
    """A running dataset."""

    def __iter__(self, /) -> Any:
        ...

    def __next__(self, /) -> Any:
        ...

    def close(self, /) -> Any:
        """Ends it: its threads, and what they hold."""

    @property
    def position(self) -> Any:
        """Where it is: (epoch, elements delivered)."""

    def report(self, /) -> Any:
        """What each stage did so far and where the pipeline waits: a text, and rows of (stage, most bytes held)."""

class ForwardAccumulator:
    """Follows what is computed with the primals, as they move along the tangents."""

    def __enter__(self, /) -> Any:
        ...

    def __exit__(self, /, *_error) -> Any:
        ...

    def jvp(self, /, value) -> Any:
        """The derivative of a value along the tangents; None if it does not depend on the primals."""

class Function:
    """A Python function that is traced once per signature and then runs as one planned program."""

    def __call__(self, /, *args, **kwargs) -> Any:
        ...

    @property
    def cached_bytes(self) -> Any:
        """The bytes that traces hold between calls."""

    def forget(self, /) -> Any:
        """Forgets all traces."""

    def graph(self, /, *args, **kwargs) -> Any:
        """The graph of a call with these arguments, as text."""

    def plan(self, /, *args, **kwargs) -> Any:
        """The plan of a call with these arguments."""

    def plan_gradient(self, /, *args, **kwargs) -> Any:
        """The plans of a call under a tape with these arguments: forward and backward."""

    def release(self, /) -> Any:
        """Gives back the memory that is kept between calls."""

    @property
    def trace_count(self) -> Any:
        """How many traces were made."""

    def traces(self, /) -> Any:
        """The traces that were made: (signature, ms, bytes, peak bytes, reason)."""

    @property
    def variables(self) -> Any:
        """The variables that the first trace made."""

class GradientTape:
    """Follows what is computed with what it watches, so that gradients can be asked for. It keeps of each call only what that"""

    def __class_getitem__(cls, /, _item) -> Any:
        ...

    def __enter__(self, /) -> Any:
        ...

    def __exit__(self, /, *_error) -> Any:
        ...

    def _batch_jacobian(self, /, target, source) -> Any:
        """As `_jacobian`, of one source whose rows are those that rows of the target depend on."""

    def _explain(self, /) -> Any:
        """What is kept, by which op and line, and why: a text, and its rows as (bytes, op, line, why)."""

    def _jacobian(self, /, target, sources) -> Any:
        """The derivatives of every element of the target with respect to all elements of the sources, in the sources' structure."""

    def _pause(self, /) -> Any:
        """Stops recording until `_resume` is called."""

    def _resume(self, /) -> Any:
        ...

    def bytes_held(self, /) -> Any:
        """How many bytes are kept for gradients, each buffer counted once."""

    def explain_none(self, /, target, source) -> Any:
        """Why the gradient of a target with respect to a source is none; None if it is not."""

    def gradient(self, /, target, sources, output_gradients=..., unconnected_gradients=...) -> Any:
        ...

    @property
    def is_recording(self) -> Any:
        """Whether it is recording."""

    def num_entries(self, /) -> Any:
        """How many calls are written down."""

    def reset(self, /) -> Any:
        """Forgets everything, what is watched too, and goes on recording."""

    def watch(self, /, tensor) -> Any:
        """Follows these tensors and variables from now on."""

    def watched_variables(self, /) -> Any:
        """The variables that are followed, in the order in which they came."""

class InitScope:
    """In its `with` statement, nothing is being traced: ops run at once."""

    def __enter__(self, /) -> Any:
        ...

    def __exit__(self, /, *_error) -> Any:
        ...

class Op:
    ...

    def __call__(self, /, *args, **kwargs) -> Any:
        ...

    def __copy__(self) -> Any:
        ...

    def __deepcopy__(self, memo) -> Any:
        ...

    @property
    def __name__(self) -> Any:
        ...

    def __reduce__(op) -> Any:
        ...

    def __repr__(self, /) -> Any:
        ...

    __signature__: Any

    @property
    def doc(self) -> Any:
        """What the op table says of it."""

    @property
    def group(self) -> Any:
        """The group it belongs to in the op table."""

    @property
    def op(self) -> Any:
        """Its name in the op table."""

    @property
    def params(self) -> Any:
        """Its parameters: name, what it takes, and its default as Python writes it."""

class Optimizer:
    """An optimizer of certain variables."""

    def apply(self, /, pairs) -> Any:
        """Updates the variables by these gradients: pairs of a gradient (or None) and its variable."""

    @property
    def iterations(self) -> Any:
        """The number of updates so far."""

    def named(self, /) -> Any:
        """Its own variables, by name."""

    @property
    def rate(self) -> Any:
        ...

    def set_rate(self, /, rate) -> Any:
        ...

class Plan:
    """What a call of a function does and needs, to the byte, known before it runs."""

    def __repr__(self, /) -> Any:
        ...

    def __str__(self, /) -> Any:
        ...

    def _explain_peak(self, /) -> Any:
        """Who is alive at the peak, since which line, why, and what would free it: as text, and as rows of (bytes, op, line, why,"""

    def _repr_html_(self) -> Any:
        ...

    @property
    def arena_bytes(self) -> Any:
        """The bytes of the one block that holds all intermediate values."""

    @property
    def constant_bytes(self) -> Any:
        """The bytes of the constants that are part of the program."""

    def explain_peak(self) -> Any:
        """Who is alive at the peak: size, op, line, why, and what would free it. The rows sum to the peak."""

    @property
    def input_bytes(self) -> Any:
        """The bytes of the arguments."""

    @property
    def lower_bound(self) -> Any:
        """The bytes that no packing of these values in this order could go below."""

    @property
    def output_bytes(self) -> Any:
        """The bytes of the results."""

    @property
    def peak_bytes(self) -> Any:
        """The most bytes that a call holds at any moment, beside arguments and variables."""

    def save_html(self, /, path) -> Any:
        """Writes the plan as a page for a browser."""

    @property
    def steps(self) -> Any:
        """The steps of the program: (op, line)."""

    def table(self, /) -> Any:
        """The values of the program, when they live and where they lie, as text."""

    @property
    def total_bytes(self) -> Any:
        """Everything together: arguments, variables, constants and the peak of the call."""

    @property
    def variable_bytes(self) -> Any:
        """The bytes of the variables that the call uses."""

class Profiler:
    """Records what the process does, on all of its threads, until it is finished."""

    def finish(self, /) -> Any:
        """Ends the recording, and says what happened; none if it was ended before."""

class Tensor(Array):
    """An n-dimensional array of one element type. It never changes."""

    def __copy__(self) -> Any:
        ...

    def __deepcopy__(self, memo) -> Any:
        ...

    def __reduce__(self) -> Any:
        ...

    assign: Any

class Timeline:
    """What happened when: memory, calls, runs of programs, and marks. Times are in seconds from its start."""

    def _alive_at(self, /, seconds=...) -> Any:
        """Everything that was alive at a moment, or at the peak: (bytes, kind, op, line, why). The rows sum to the ledger's bytes."""

    def _by_line(self, /) -> Any:
        """Time per line, as `_by_op`."""

    def _by_op(self, /) -> Any:
        """Time per op: (op, op whose gradient it is part of, line, calls, seconds, seconds without inner calls, GFLOP/s, GB/s)."""

    @property
    def _dropped(self) -> Any:
        """What there was no room for: changes of memory, calls, marks."""

    def _marks(self, /) -> Any:
        """The moments that were named: (seconds, name, live bytes)."""

    def _memory(self, /) -> Any:
        """Bytes at every moment at which they changed: (seconds, rows of (kind, bytes))."""

    def _planned(self, /) -> Any:
        """Per program that ran: (line, steps, runs, planned peak, largest measured peak, smallest, seconds)."""

    def _save_html(self, /, path, title, plans) -> Any:
        """Writes the page for a browser, with the plans of what ran and further ones by name."""

    @property
    def duration(self) -> Any:
        """How long it was recorded, in seconds."""

    @property
    def live_at_end(self) -> Any:
        """The ledger's live bytes when recording ended."""

    @property
    def live_at_start(self) -> Any:
        """The ledger's live bytes when recording began."""

    @property
    def peak_at(self) -> Any:
        """When there were most bytes."""

    @property
    def peak_bytes(self) -> Any:
        """The most bytes at a time."""

    def to_chrome_trace(self, /) -> Any:
        """The recording in the trace event format, for Perfetto."""

class Variable(Array):
    """A tensor that can be changed, in its own memory. Tapes follow it by itself if it is trainable."""

    def _assign(self, /, value) -> Any:
        ...

    def _assign_add(self, /, value) -> Any:
        ...

    def _assign_sub(self, /, value) -> Any:
        ...

    @property
    def _name(self) -> Any:
        """Its name, or nothing."""

    def _scatter(self, /, how, indices, updates) -> Any:
        ...

    @property
    def address(self) -> Any:
        """The address of its memory."""

    @property
    def id(self) -> Any:
        """A number that no other variable ever has."""

    def read_value(self, /) -> Any:
        """Its value now, as tapes see it."""

    @property
    def trainable(self) -> Any:
        """Whether tapes follow it by themselves."""

def allocations() -> Any:
    """How many buffers were allocated so far."""

def allocator() -> Any:
    """The name of the source of new buffers."""

def as_tensor(value, dtype=...) -> Any:
    """An object as a tensor: itself if it is one, over its own memory where that is possible."""

def ask(function, tensors, results, is_seen) -> Any:
    """As `tell`, with results: `function` returns the bytes of tensors of these types and shapes. If it is not seen, it is called"""

def calling_line() -> Any:
    """The line that is calling, as `file:line`."""

def close_iterators() -> Any:
    """Closes all iterators."""

def cond(pred, yes, no) -> Any:
    """What one of two functions returns. Without a trace, the other is not called."""

def current_limit() -> Any:
    """The most bytes that tensors may hold, if there is a limit."""

def custom_gradient(forward, inputs) -> Any:
    """Calls a function that brings its own gradient. `forward(*inputs)` returns its outputs, the tensors that the gradient keeps,"""

def digits() -> Any:
    """The handwritten digits that come with the package: images and labels to train with, and to test with."""

def disable_check_numerics() -> Any:
    """Checks no longer."""

def dtype_named(name) -> Any:
    """The one object that stands for the element type of this name."""

def enable_check_numerics() -> Any:
    """Checks the results of every op on this thread for NaN and infinity from now on, forward and backward."""

def from_dlpack(object) -> Any:
    """A tensor over the memory of another engine's."""

def gradients(ys, xs, grad_ys) -> Any:
    """The gradients of tensors of a function that is being traced."""

def idle_bytes() -> Any:
    """Bytes that are kept for reuse."""

def is_tracing() -> Any:
    """Whether a function is being traced on this thread."""

def list_checkpoint(path) -> Any:
    """The names, types and shapes of what is in a file, and its words."""

def live_bytes(category=...) -> Any:
    """Bytes that tensors hold now."""

def load_checkpoint(path, variables) -> Any:
    """Gives variables the values that are in a file, and returns its words. Names, types and shapes must fit."""

def map_fn(body, elements, parallel_iterations=..., memory_budget=...) -> Any:
    """Calls `body` on each element, as many at once as the budget allows."""

def mark(name) -> Any:
    """Names this moment, if somebody records."""

def next_key() -> Any:
    """A key that no draw had before; inside a traced function, another one in each call."""

def op_names() -> Any:
    """The names of all ops of the table."""

def own_tensor(value, dtype=...) -> Any:
    """A tensor of an object's elements, which nobody else can change."""

def pass_over(prefix) -> Any:
    """Files that begin like this belong to the package, or work for others: their lines are passed over."""

def peak_bytes() -> Any:
    """The most bytes that tensors held since the peak was reset."""

def random_state() -> Any:
    """Where the random numbers are: (seed, counter)."""

def recompute(function, inputs) -> Any:
    """Calls a function whose gradient computes it again instead of keeping what is inside."""

def record(on) -> Any:
    """Turns recording by source line on or off; returns whether it was on."""

def report() -> Any:
    """Who holds what: a text, rows of (category, live, peak), and rows of (bytes, buffers, category, line)."""

def reset_peak() -> Any:
    """Begins a new peak, at what is held now."""

def save_checkpoint(path, variables, words) -> Any:
    """Writes variables and words to a file: it is there whole, or the old one still is."""

def scan(body, state, elements, reverse=..., grad_budget=...) -> Any:
    """Goes through the elements with a state: `body(state, element)` returns the next state and what is stacked."""

def set_allocator(name, functions=...) -> Any:
    """Makes the pool, the system, or two functions at these addresses the source of new buffers."""

def set_limit(bytes=...) -> Any:
    """Sets the most bytes that tensors may hold, or none; returns the limit that was there before."""

def set_random_state(state) -> Any:
    """Goes on with random numbers from there."""

def set_seed(seed) -> Any:
    """Begins the random numbers anew."""

def set_threads(count) -> Any:
    """Sets how many threads kernels use; returns how many they used before."""

def stand_in(dtype, shape) -> Any:
    """A tensor without a value, of this type and shape, to plan with."""

def switch_case(number, branches) -> Any:
    """What the function of this number returns; the last one if there is none."""

def tell(function, tensors) -> Any:
    """Calls `function` with a list of the tensors' values as arrays: in a traced function, whenever it runs."""

def threads() -> Any:
    """How many threads kernels use."""

def trace_only(body, *args, **kwargs) -> Any:
    """Calls a function with tensors that have no values, and returns its results, which have none either: what types and shapes it"""

def trim() -> Any:
    """Gives memory that is kept for reuse back to the system; returns how many bytes."""

def vectorized_map(body, elements) -> Any:
    """Calls `body` on all elements at once."""

def while_loop(cond, body, states, invariants=..., maximum_iterations=..., grad_budget=...) -> Any:
    """Repeats `body` on the states, as long as `cond` holds. Both take the whole structure of states."""
