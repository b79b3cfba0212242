"""Compares Taut's results on every sample of the op table with NumPy's.

    python check.py DIRECTORY

DIRECTORY is what `cargo run -p taut-core --example conformance -- DIRECTORY` wrote: a manifest that names, for each
case, the arguments and either a NumPy expression for the expected result or a statement that must be true of the
result `out`. Nothing here knows an op; the expressions stand beside the ops. Types are NumPy's, except that floats are as
wide as the floats among the arguments, and float32 if there are only integers (`float_dtype`).
"""

import json
import sys
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import scipy.special

# Relative and absolute tolerance per type; everything else must be equal.
TOLERANCE = {"float16": (2e-3, 1e-3), "bfloat16": (2e-2, 1e-2), "float32": (2e-6, 1e-6), "float64": (1e-12, 1e-13)}
TOLERANCE |= {"complex64": TOLERANCE["float32"], "complex128": TOLERANCE["float64"]}


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


class Archive:
    """The arrays of one op, read once."""

    def __init__(self, directory):
        self.directory = directory
        self.name = None

    def __call__(self, op, described):
        if self.name != op:
            self.name, self.arrays = op, dict(np.load(self.directory / f"{op}.npz"))
        array = self.arrays[described["tensor"]]
        wanted = numpy_dtype(described["dtype"])
        if array.dtype != wanted:
            array = array.view(wanted)
        return array

    def argument(self, op, value):
        if isinstance(value, list):
            return tuple(value)  # axes and shapes: NumPy takes them as tuples
        if not isinstance(value, dict):
            return value
        if "tensor" in value:
            return self(op, value)
        if "complex" in value:
            return complex(*value["complex"])
        if "tensors" in value:
            return [self(op, one) for one in value["tensors"]]
        return numpy_dtype(value["dtype"])


def widened(value):
    """bfloat16 arrays as float32: NumPy computes in it, and the result is rounded at the end."""
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return [widened(one) for one in value]
    if isinstance(value, np.ndarray) and value.dtype == ml_dtypes.bfloat16:
        return value.astype(np.float32)
    return value


def array_dtypes(args):
    flat = [one for value in args.values() for one in (value if isinstance(value, list) else [value])]
    return [one.dtype for one in flat if isinstance(one, np.ndarray)]


def uses_bfloat16(args):
    return any(dtype == ml_dtypes.bfloat16 for dtype in array_dtypes(args))


def is_float(dtype):
    return dtype.name in TOLERANCE


def float_dtype(args):
    """The float type that Taut computes in, where it may differ from NumPy's: the widest of the floats that integers are
    promoted to, float32 if there are only integers. None without integers, or if an argument names the type."""
    dtypes = array_dtypes(args)
    floats = {dtype.name: dtype for dtype in dtypes if is_float(dtype)}
    if all(map(is_float, dtypes)) or any(isinstance(value, np.dtype) for value in args.values()):
        return None
    if {"float16", "bfloat16"} <= set(floats) or not floats:
        floats["float32"] = np.dtype(np.float32)
    if any(dtype.kind == "c" for dtype in floats.values()):
        return np.result_type(*floats.values())
    return max(floats.values(), key=lambda dtype: dtype.itemsize)


def wide_integers(value):
    """Small integers and booleans as int64, of which NumPy's mathematical functions are float64 instead of float16."""
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return [wide_integers(one) for one in value]
    is_small = isinstance(value, np.ndarray) and value.dtype.kind in "biu" and value.dtype.itemsize <= 2
    return value.astype(np.int64) if is_small else value


def narrowed(want, dtype):
    """`want` in the result's type; what is finite stays finite (the lowest float32 is beyond bfloat16)."""
    cast = want.astype(dtype)
    if dtype != ml_dtypes.bfloat16:
        return cast
    largest = np.asarray(ml_dtypes.finfo(dtype).max, dtype)
    return np.where(np.isinf(cast) & np.isfinite(want), np.copysign(largest, cast), cast)


def difference(got, want, wanted, loose):
    """What is wrong with `got`, which should have the type `wanted`, or None."""
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if got.dtype != wanted and not (loose and is_float(got.dtype)):
        return f"dtype {got.dtype}, expected {wanted}"
    tolerance = TOLERANCE.get(got.dtype.name)
    if tolerance is None:
        if not np.array_equal(got, want):
            return f"\n{got}\nexpected\n{want}"
        return None
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    wide_got, wide_want = got.astype(wide), narrowed(want, got.dtype).astype(wide)
    if not np.allclose(wide_got, wide_want, *tolerance, equal_nan=True):
        return f"\n{got}\nexpected\n{want}"
    return None


def expected(expression, scope):
    """NumPy's results."""
    want = eval(expression, scope)
    return [np.asarray(one) for one in (want if isinstance(want, (tuple, list)) else [want])]


def check(case, archive):
    op = case["op"]
    args = {name: archive.argument(op, value) for name, value in case["args"].items()}
    out = [archive(op, described) for described in case["out"]]
    loose = uses_bfloat16(args)
    scope = {name: widened(value) for name, value in args.items()}
    scope.update(np=np, sp=scipy.special)
    if "property" in case:
        scope["out"] = [widened(one) for one in out] if len(out) > 1 else widened(out[0])
        verdict = eval(case["property"], scope)
        return None if np.all(verdict) else f"not true: {case['property']}\nout = {out}"
    want, floating = expected(case["numpy"], scope), float_dtype(args)
    floats = [is_float(one.dtype) for one in want]
    if floating is not None and any(floats) and not any(map(is_float, array_dtypes(args))):
        # NumPy's values again, as float64: of small integers it makes float16.
        scope.update({name: wide_integers(value) for name, value in args.items()})
        again = expected(case["numpy"], scope)
        want = [new.astype(np.float64) if floated else old for old, new, floated in zip(want, again, floats)]
    if len(want) != len(out):
        return f"{len(out)} results, expected {len(want)}"
    for got, one in zip(out, want):
        # A type that NumPy widened to is none of the arguments'.
        widened_to = is_float(one.dtype) and one.dtype not in array_dtypes(args)
        wrong = difference(got, one, floating if widened_to and floating is not None else one.dtype, loose)
        if wrong:
            return wrong
    return None


def check_promotion(a, b, result):
    """The rule is NumPy's within integers and within floats; a float wins over an integer, and no integer becomes a float."""
    left, right = numpy_dtype(a), numpy_dtype(b)
    if is_float(left) != is_float(right):
        want = a if is_float(left) else b
    elif {a, b} == {"float16", "bfloat16"}:
        want = "float32"  # NumPy has no type for both.
    else:
        want = np.result_type(left, right).name
        want = "error" if want == "float64" and not is_float(left) else want
    return None if want == result else f"{a} with {b} is {result}, expected {want}"


def main():
    directory = Path(sys.argv[1])
    archive, failures, cases, ops = Archive(directory), [], 0, set()
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    for line in (directory / "manifest.jsonl").read_text().splitlines():
        case = json.loads(line)
        cases += 1
        if "promote" in case:
            name, wrong = "promotion", check_promotion(*case["promote"])
        else:
            name = case["op"]
            ops.add(name)
            try:
                wrong = check(case, archive)
            except Exception as error:  # a broken reference expression is a failure like any other
                wrong = f"{type(error).__name__}: {error}"
        if wrong:
            failures.append(f"{name}: {case.get('args')}: {wrong}")
    for failure in failures[:40]:
        print(failure, file=sys.stderr)
    print(f"NumPy {np.__version__}: {len(ops)} ops")
    print(f"conformance: {cases - len(failures)} passed, {len(failures)} failed")
    sys.exit(bool(failures) or not ops)


if __name__ == "__main__":
    main()
