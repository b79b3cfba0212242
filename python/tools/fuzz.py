"""Calls the package with random arguments, random graphs and mutated files.

Whatever is passed, a call returns a value or raises an exception: it never panics, never ends the process, and leaves the
ledger as it was. Inputs depend on their seed alone; one that fails is printed with it. Parts run in processes of their own,
so that a crash is found, too.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import inspect
import io
import os
import random
import subprocess
import sys
import tempfile
import types
import warnings
from typing import Any

import numpy as np

PARTS = ("calls", "graphs", "files")

# Names that wait, write outside of the process's own memory, or change global settings.
SKIPPED = frozenset(
    [
        *(
            "Assert",
            "autograph",
            "compat",
            "config",
            "counter",
            "custom_gradient",
            "debugging",
            "enable_check_numerics",
        ),
        *("experimental_run_functions_eagerly", "from_generator", "function", "init_scope", "initializers", "keras"),
        *("losses", "memory", "metrics", "numpy_function", "optimizers", "print", "profiler", "py_function"),
        *("recompute_grad", "save", "set_global_generator", "set_seed", "snapshot", "test", "train"),
        *("variable_creator_scope", "while_loop"),
    ]
)


@functools.cache
def functions(tf: Any) -> list[tuple[str, Any]]:
    """The public functions, with their names."""
    found: dict[str, Any] = {}

    def walk(module: Any, path: str, depth: int) -> None:
        for name in dir(module):
            full = f"{path}.{name}"
            if name.startswith("_") or name in SKIPPED:
                continue
            value = getattr(module, name, None)
            if isinstance(value, types.ModuleType):
                if value.__name__.startswith("taut") and depth < 3:
                    walk(value, full, depth + 1)
            elif callable(value):
                found[full] = value

    walk(tf, "tf", 0)
    return sorted(found.items())


def value(tf: Any, rng: random.Random, depth: int = 0) -> Any:
    """A random argument: a tensor, an array, a number, text, None, or a structure of those."""
    kinds = ["tensor"] * 8 + [
        "array",
        "int",
        "int",
        "float",
        "text",
        "none",
        "bool",
        "shape",
        "dtype",
        "function",
        "odd",
    ]
    kind = rng.choice(kinds if depth > 1 else [*kinds, "list", "tuple", "dict"])
    shape = [rng.choice((0, 1, 1, 2, 3, 4)) for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 4, 5)))]
    dtype = rng.choice(("float32",) * 4 + ("float64", "int32", "int64", "bool", "uint8", "float16", "bfloat16", "int8"))
    match kind:
        case "tensor" | "array":
            made = np.random.default_rng(rng.randrange(2**32)).integers(-3, 9, shape).astype(np.float32)
            made = np.where(np.abs(made) > 7, np.nan, made) if dtype.startswith("f") and rng.random() < 0.1 else made
            tensor = tf.cast(tf.constant(made), dtype)
            return tensor if kind == "tensor" else tensor.numpy()
        case "int":
            return rng.choice((-(2**31), -2, -1, 0, 1, 2, 3, 5, 100, 2**31, 2**62, 2**70))
        case "float":
            return rng.choice((0.0, -1.0, 0.5, 1e30, float("nan"), float("inf"), -1e-30))
        case "text":
            return rng.choice(("SAME", "VALID", "NHWC", "bilinear", "", "nearest", "x", "float32", "ij,jk->ik", "\0"))
        case "none":
            return None
        case "bool":
            return rng.random() < 0.5
        case "shape":
            return shape
        case "dtype":
            return tf.as_dtype(dtype)
        case "function":
            return rng.choice((lambda *x: x[0] if x else None, lambda x: x, lambda: 1, len))
        case "odd":
            return rng.choice((object(), b"bytes", 1j, type, range(3), iter([1]), {1, 2}, Ellipsis, slice(None)))
    parts = [value(tf, rng, depth + 1) for _ in range(rng.randrange(4))]
    return (
        parts if kind == "list" else tuple(parts) if kind == "tuple" else {str(i): part for i, part in enumerate(parts)}
    )


def call(tf: Any, rng: random.Random) -> tuple[Any, list]:
    """A function and arguments for its parameters, without most of the optional ones."""
    _, function = rng.choice(functions(tf))
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    least = sum(one.default is one.empty for one in places)
    most = len(places) if parameters else 4
    return function, [value(tf, rng) for _ in range(min(most, least + rng.choice((0, 0, 0, 1, 1, 2, 5))))]


def calls(tf: Any, seed: int) -> None:
    """A call of a random function with random arguments."""
    rng = random.Random(seed)
    function, arguments = call(tf, rng)
    with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
        made = function(*arguments)
        if isinstance(made, (tf.Tensor, np.ndarray)):
            str(made)


UNARY = [
    *("abs", "negative", "square", "sigmoid", "tanh", "exp", "sin", "cos", "softplus", "relu"),
    *("transpose", "reduce_sum", "reduce_mean", "reverse"),
]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "matmul"]


def graphs(tf: Any, seed: int) -> None:
    """A random graph of ops: eager, traced and planned it has the same values, and the same gradients."""
    rng = random.Random(seed)
    size = rng.choice((1, 2, 3, 5))
    steps = [(rng.choice(UNARY + BINARY), rng.randrange(100), rng.randrange(100)) for _ in range(rng.randrange(1, 25))]

    def step(name: str, a: Any, b: Any) -> Any:
        match name:
            case "relu" | "sigmoid" | "softplus":
                return getattr(tf.nn, name)(a)
            case "reduce_sum" | "reduce_mean":
                return getattr(tf, name)(a, axis=0, keepdims=True) + tf.zeros_like(a)
            case "reverse":
                return tf.reverse(a, [1])
            case "exp":
                return tf.exp(tf.clip_by_value(a, -5.0, 3.0))
            case "matmul":
                return tf.matmul(a, b) / float(size)
            case "square" | "multiply":
                made = tf.square(a) if name == "square" else a * b
                return tf.clip_by_value(made, -100.0, 100.0)
        return getattr(tf, name)(a, b) if name in BINARY else getattr(tf, name)(a)

    def whole(x: Any) -> Any:
        values = [x, x + 1.0]
        for name, i, j in steps:
            values.append(step(name, values[i % len(values)], values[j % len(values)]))
        return tf.reduce_sum(tf.tanh(values[-1])) + tf.reduce_sum(tf.tanh(values[rng_pick % len(values)]))

    rng_pick = rng.randrange(100)

    def with_gradient(x: Any) -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = whole(x)
        return y, tape.gradient(y, x, unconnected_gradients="zero")

    x = tf.constant(np.random.default_rng(seed).normal(size=(size, size)))
    eager = with_gradient(x)
    for jit in (False, True):
        traced = tf.function(with_gradient, jit_compile=jit, autograph=False)(x)
        for one, other in zip(eager, traced):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-9)


def files(tf: Any, seed: int) -> None:
    """A file with a few changed, missing or added bytes: it is read, or an exception says what is wrong."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        kind = rng.choice(("checkpoint", "dataset", "cache"))
        if kind == "checkpoint":
            path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0]), w=tf.Variable([[3]])).write(os.path.join(folder, "c"))
        elif kind == "dataset":
            tf.data.Dataset.range(5).map(lambda x: (x, {"a": x})).save(folder)
        else:
            list(tf.data.Dataset.range(5).cache(os.path.join(folder, "cache")))
        for parent, _, names in os.walk(folder):
            for name in names:
                _mutate(os.path.join(parent, name), rng)
        with contextlib.suppress(Exception):
            if kind == "checkpoint":
                tf.train.Checkpoint(v=tf.Variable([0.0, 0.0]), w=tf.Variable([[0]])).read(path)
            elif kind == "dataset":
                list(tf.data.Dataset.load(folder))
            else:
                list(tf.data.Dataset.range(5).cache(os.path.join(folder, "cache")))


def _mutate(path: str, rng: random.Random) -> None:
    with open(path, "rb") as file:
        data = bytearray(file.read())
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0 if data:
                data[at % len(data)] = rng.randrange(256)
            case 1:
                del data[at : at + rng.randrange(1, 9)]
            case 2:
                data[at:at] = rng.randbytes(rng.randrange(1, 9))
            case _:
                data[at : at + 8] = (2 ** rng.randrange(64) - 1).to_bytes(8, "little")
    with open(path, "wb") as file:
        file.write(data)


def run(part: str, seeds: range) -> int:
    """Runs inputs in this process. Returns how many failed."""
    import taut as tf

    warnings.simplefilter("ignore")
    # An argument may ask for more memory than the machine has; that is an error, at once.
    tf.memory.limit(256 << 20)
    work = {"calls": calls, "graphs": graphs, "files": files}[part]
    failed = 0
    for seed in seeds:
        print(seed, file=sys.stderr, flush=True)
        before = tf.memory.live_bytes()
        try:
            work(tf, seed)
        except BaseException as error:
            # A panic is no Exception, and a wrong value is an AssertionError.
            failed += 1
            print(f"{part} {seed}: {type(error).__name__}: {str(error)[:500]}", flush=True)
        if tf.memory.live_bytes() != before:
            gc.collect()
            if tf.memory.live_bytes() != before and part != "calls":
                failed += 1
                print(f"{part} {seed}: {tf.memory.live_bytes() - before} bytes are left", flush=True)
    return failed


def supervise(part: str, seeds: range) -> int:
    """Runs inputs in processes of their own. Returns how many failed."""
    failed, rest = 0, seeds
    while rest:
        numbers = ["--seed", str(rest.start), "--inputs", str(len(rest))]
        command = [sys.executable, os.path.abspath(__file__), "--part", part, *numbers]
        # Calls may write files by the names that they are given.
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=folder)
        sys.stdout.write(ran.stdout)
        lines = [line for line in ran.stderr.splitlines() if line.isdigit()]
        if ran.returncode in (0, 1) and lines and int(lines[-1]) == rest[-1]:
            return failed + ran.stdout.count("\n")
        last = int(lines[-1]) if lines else rest.start
        failed += 1 + ran.stdout.count("\n")
        print(f"{part} {last}: the process ended with {ran.returncode}: {ran.stderr[-500:]}")
        rest = range(last + 1, rest.stop)
    return failed


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", choices=PARTS, help="run one part in this process")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.inputs)
    if options.part:
        return 1 if run(options.part, seeds) else 0
    failed = 0
    for part in PARTS:
        wrong = supervise(part, seeds)
        print(f"{part}: {len(seeds)} inputs, {wrong} failed")
        failed += wrong
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
