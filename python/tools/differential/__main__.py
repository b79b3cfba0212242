"""Compares the package with TensorFlow, expression by expression, and counts the names of TensorFlow's public API.

`python -m differential answers FILE` runs in an environment with TensorFlow and writes its answers;
`python -m differential compare FILE` runs in one with this package. `write FOLDER` and `read FOLDER` exchange files (see
`files.py`). `cargo xtask differential` does it all.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import os
import pickle
import re
import sys
import types
from typing import Any

import numpy as np

from . import cases, files

#: Modules of TensorFlow that are out of scope: other engines' interfaces, files of models, several processes.
OUT_OF_SCOPE = frozenset(
    [
        *("compat", "core", "data.experimental.service", "distribute", "dtensor", "experimental.dtensor"),
        *("experimental.tensorrt", "feature_column", "keras", "lite", "mlir", "python", "quantization", "raw_ops"),
        *("saved_model", "security", "tools", "tpu", "xla"),
    ]
)


def public_names(tf: Any) -> list[str]:
    """The names of the public API in scope, without `tf.`."""
    found: list[str] = []

    def walk(module: types.ModuleType, path: str) -> None:
        for name in sorted(vars(module)):
            full = f"{path}.{name}" if path else name
            value = getattr(module, name, None)
            if name.startswith("_") or full in OUT_OF_SCOPE:
                continue
            if isinstance(value, types.ModuleType):
                if value.__name__.startswith("tensorflow"):
                    walk(value, full)
            else:
                found.append(full)

    # The modules are loaded when they are first used.
    for name in dir(tf):
        getattr(tf, name, None)
    walk(tf, "")
    return found


def plain(tf: Any, value: Any) -> Any:
    """A result as Python objects and arrays, which both engines have."""
    if isinstance(value, dict):
        return {key: plain(tf, part) for key, part in value.items()}
    if isinstance(value, tf.TensorShape):
        return ("shape", None if value.rank is None else tuple(value.as_list()))
    if isinstance(value, (list, tuple)):
        return [plain(tf, part) for part in value]
    if isinstance(value, getattr(tf, "TypeSpec", tf.TensorSpec)):
        return ("spec", re.sub(r"tf\.", "", repr(value)))
    if isinstance(value, tf.DType):
        return ("dtype", value.name)
    if isinstance(value, tf.data.Dataset):
        return [plain(tf, part) for part in value.take(20)]
    if isinstance(value, tf.IndexedSlices):
        return [plain(tf, value.values), plain(tf, value.indices)]
    if isinstance(value, tf.RaggedTensor):
        return [plain(tf, value.flat_values), plain(tf, value.nested_row_splits), plain(tf, value.shape)]
    if isinstance(value, tf.SparseTensor):
        return [plain(tf, part) for part in (value.indices, value.values, value.dense_shape)]
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        return array.astype(np.float32) if array.dtype.name == "bfloat16" else array
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    return ("object", type(value).__name__)


def evaluate(tf: Any, text: str) -> tuple[str, Any]:
    """("value", result) or ("error", names of the exception's classes)."""
    try:
        return "value", plain(tf, eval(text, cases.namespace(tf)))
    except Exception as error:
        return "error", [kind.__name__ for kind in type(error).__mro__] + [str(error).split("\n")[0][:200]]


def same(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two results are equal, floats up to rounding."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        if one.dtype.kind in "fc":
            scale = tolerance * (1e-10 if one.dtype == np.float64 else 2e-5 if one.dtype == np.float32 else 4e-3)
            return bool(np.allclose(one, other, rtol=scale, atol=scale, equal_nan=True))
        return bool(np.array_equal(one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key], tolerance) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(same(*pair, tolerance) for pair in zip(one, other))
    return type(one) is type(other) and one == other


def agrees(expected: tuple[str, Any], found: tuple[str, Any], tolerance: float) -> bool:
    """Whether an outcome is TensorFlow's: the same value, or an error of a class that programs would catch."""
    if expected[0] != found[0]:
        return False
    if expected[0] == "error":
        return bool({expected[1][0], *({"ValueError", "TypeError"} & set(expected[1]))} & set(found[1]))
    return same(expected[1], found[1], tolerance)


def names_in(text: str, public: set[str]) -> set[str]:
    """The public names that an expression uses."""
    found = set()
    for path in re.findall(r"\btf\.([A-Za-z_0-9.]+)", text):
        while path and path not in public:
            path = path.rpartition(".")[0]
        if path:
            found.add(path)
    return found


def has(tf: Any, path: str) -> bool:
    """Whether a name exists."""
    thing = tf
    for part in path.split("."):
        try:
            thing = getattr(thing, part)
        except Exception:
            return False
    return True


def answers(path: str) -> None:
    """Writes TensorFlow's answers and names."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    found = {text: evaluate(tf, text) for text, _ in cases.CASES}
    with open(path, "wb") as file:
        pickle.dump({"names": public_names(tf), "answers": found, "version": tf.__version__}, file)
    errors = sum(outcome[0] == "error" for outcome in found.values())
    print(f"TensorFlow {tf.__version__}: {len(found)} expressions, {errors} of which it refuses")


def compare(path: str, show: bool) -> int:
    """Prints what differs and what is counted. Returns the number of differences."""
    import taut as tf

    with open(path, "rb") as file:
        stored = pickle.load(file)
    public = set(stored["names"])
    wrong = []
    checked: set[str] = set()
    for text, tolerance in cases.CASES:
        found = evaluate(tf, text)
        if agrees(stored["answers"][text], found, tolerance):
            checked |= names_in(text, public)
        else:
            wrong.append((text, stored["answers"][text], found))
    for text, expected, found in wrong:
        print(f"differs: {text}\n    TensorFlow: {expected}\n    here:       {found}")
    present = {name for name in public if has(tf, name)}
    rows = collections.defaultdict(lambda: [0, 0, 0])
    for name in public:
        row = rows[name.rpartition(".")[0] or "tf"]
        row[0] += 1
        row[1] += name in present
        row[2] += name in checked & present
    print(f"{'module':34} {'names':>6} {'here':>6} {'checked':>8}")
    for module in sorted(rows):
        print(f"{module:34} {rows[module][0]:6} {rows[module][1]:6} {rows[module][2]:8}")
    print(f"{'all':34} {len(public):6} {len(present):6} {len(checked & present):8}")
    print(f"{len(cases.CASES)} expressions, {len(wrong)} differ from TensorFlow {stored['version']}")
    if show:
        print("missing: " + " ".join(sorted(public - present)))
    return len(wrong)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("answers", "compare", "write", "read"))
    parser.add_argument("file")
    parser.add_argument("--missing", action="store_true", help="list the names that are missing")
    options = parser.parse_args()
    if options.what == "answers":
        answers(options.file)
        return 0
    if options.what == "compare":
        return 1 if compare(options.file, options.missing) else 0
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    tf = importlib.import_module("tensorflow" if importlib.util.find_spec("tensorflow") else "taut")
    if options.what == "read":
        return 1 if files.read(tf, options.file) else 0
    files.write(tf, options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
