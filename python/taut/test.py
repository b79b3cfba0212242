"""Test utilities: `tf.test.TestCase` and gradient checks."""

from __future__ import annotations

import functools
import tempfile
import unittest
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _namespace, _native, dtypes, nest
from .config import list_physical_devices


def _array(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        value = [_array(one) for one in value]
    return np.asarray(value)


class TestCase(unittest.TestCase):
    """A `unittest.TestCase` with assertions about tensors, which may be given as arrays or lists, too."""

    def evaluate(self, tensors: Any) -> Any:
        """Returns the values as arrays."""
        return nest.map_structure(lambda one: one.numpy() if isinstance(one, _native.Array) else one, tensors)

    def get_temp_dir(self) -> str:
        """A temporary directory that is deleted after the test."""
        if not hasattr(self, "_folder"):
            self._folder = tempfile.TemporaryDirectory()
            self.addCleanup(self._folder.cleanup)
        return self._folder.name

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Asserts equal shapes and elements. NaN equals NaN."""
        np.testing.assert_array_equal(*self._shaped(a, b, msg), err_msg=msg or "")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Asserts that some elements differ."""
        self._differ(lambda: self.assertAllEqual(a, b), msg or "all elements are equal")

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:  # noqa: N802
        """Asserts that structures of tensors are close; the tolerance is at least 1e-3 for float16, 1e-2 for bfloat16."""
        if isinstance(a, dict) or isinstance(b, dict):
            self.assertIsInstance(a, dict, msg)
            self.assertIsInstance(b, dict, msg)
            self.assertCountEqual(a.keys(), b.keys(), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
            return
        try:
            one, other = _array(a), _array(b)
        except ValueError:  # ragged lists are compared part by part
            self.assertEqual(len(a), len(b), msg)
            for pair in zip(a, b):
                self.assertAllClose(*pair, rtol, atol, msg)
            return
        least = 1e-2 if "bfloat16" in (one.dtype.name, other.dtype.name) else 1e-3
        if {one.dtype.name, other.dtype.name} & {"float16", "bfloat16"}:
            rtol, atol = max(rtol, least), max(atol, least)
        one, other = self._shaped(one, other, msg)
        np.testing.assert_allclose(_plain(one), _plain(other), rtol, atol, err_msg=msg or "")

    def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:  # noqa: N802
        """Asserts that some elements are not close."""
        self._differ(lambda: self.assertAllClose(a, b, rtol, atol), msg or "all elements are close")

    def assertAllInRange(  # noqa: N802
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Asserts that all elements are within bounds, which are inclusive unless open."""
        target = _array(target)
        above = target > lower_bound if open_lower_bound else target >= lower_bound
        below = target < upper_bound if open_upper_bound else target <= upper_bound
        self.assertTrue((above & below).all(), f"not all between {lower_bound} and {upper_bound}: {target}")

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Asserts that all elements are greater than a value."""
        self.assertTrue((_array(a) > comparison_target).all(), f"not all above {comparison_target}: {a}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Asserts that all elements are less than a value."""
        self.assertTrue((_array(a) < comparison_target).all(), f"not all below {comparison_target}: {a}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Asserts that all elements are greater than or equal to a value."""
        self.assertTrue((_array(a) >= comparison_target).all(), f"some below {comparison_target}: {a}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Asserts that all elements are less than or equal to a value."""
        self.assertTrue((_array(a) <= comparison_target).all(), f"some above {comparison_target}: {a}")

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:  # noqa: N802
        """Asserts that all elements are in a set."""
        self.assertTrue(np.isin(_array(target), list(expected_set)).all(), f"not all among {expected_set}: {target}")

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Asserts equal shapes."""
        self.assertEqual(np.shape(input_a), np.shape(input_b), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:  # noqa: N802
        """Asserts the element type."""
        self.assertEqual(_native.as_tensor(target).dtype, dtypes.as_dtype(expected_dtype))

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:  # noqa: N802
        """Asserts that two numbers differ by at most `err`."""
        self.assertLessEqual(abs(float(f1) - float(f2)), err, msg)

    def _shaped(self, a: Any, b: Any, msg: str | None) -> tuple[Any, Any]:
        a, b = _array(a), _array(b)
        self.assertEqual(a.shape, b.shape, msg)
        return a, b

    def _differ(self, check: Callable[[], None], msg: str) -> None:
        try:
            check()
        except AssertionError:
            return
        self.fail(msg)


def _plain(array: Any) -> Any:
    return array.astype(np.float64) if array.dtype.name == "bfloat16" else array


def compute_gradient(f: Callable, x: Sequence, delta: float | None = None) -> tuple[tuple, tuple]:
    """The Jacobians of `f(*x)` by the tape and by finite differences, a matrix for each argument.

    Rows are elements of the result, columns elements of the argument. A complex number counts as two elements: its real
    and its imaginary part.
    """
    from .tape import GradientTape

    given = [_native.as_tensor(one) for one in x]
    with GradientTape(persistent=True) as tape:
        tape.watch(given)
        made = f(*given)
    by_tape, by_differences = [], []
    for i, one in enumerate(given):
        by_tape.append(_by_tape(tape, made, one))
        by_differences.append(_differences(f, given, i, delta).reshape(by_tape[-1].shape))
    return tuple(by_tape), tuple(by_differences)


def _reals(array: Any) -> Any:
    """The elements, and those of complex numbers as pairs of real numbers."""
    flat = np.ravel(np.asarray(array))
    return flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat


def _by_tape(tape: Any, made: Any, x: Any) -> Any:
    """The Jacobian, row by row: the gradients for one element, or for one part of a complex element, of the result."""
    rows = []
    empty = np.zeros_like(np.asarray(made))
    for place in np.ndindex(empty.shape):
        for unit in (1, 1j) if np.iscomplexobj(empty) else (1,):
            upstream = empty.copy()
            upstream[place] = unit
            found = tape.gradient(made, x, _native.as_tensor(upstream), unconnected_gradients="zero")
            rows.append(_reals(found))
    return np.array(rows, _reals(np.asarray(x)).dtype).reshape(_reals(empty).size, _reals(np.asarray(x)).size)


def _differences(f: Callable, given: list, i: int, delta: float | None) -> Any:
    one = np.array(given[i])
    real = one.real.dtype
    step = delta or {2: 2.0**-4, 4: 2.0**-10}.get(real.itemsize, 2.0**-20)
    rows = []
    for place in np.ndindex(one.shape):
        for unit in (1, 1j) if np.iscomplexobj(one) else (1,):
            ends = []
            for sign in (1, -1):
                moved = one.copy()
                moved[place] += sign * step * unit
                end = _reals(np.asarray(f(*given[:i], _native.as_tensor(moved), *given[i + 1 :])))
                ends.append(end.astype(np.float64))
            rows.append((ends[0] - ends[1]) / (2 * step))
    return np.array(rows).T.astype(real)


def main(argv: list[str] | None = None) -> None:
    """Runs the tests of the calling program."""
    unittest.main(argv=argv)


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether a GPU is available: never."""
    return bool(list_physical_devices("GPU"))


def gpu_device_name() -> str:
    """The name of the GPU: empty, since GPUs are not supported."""
    return ""


def is_built_with_cuda() -> bool:
    """Whether it is built with CUDA: never."""
    return False


def is_built_with_rocm() -> bool:
    """Whether it is built with ROCm: never."""
    return False


def is_built_with_xla() -> bool:
    """Whether it is built with XLA: never."""
    return False


def is_cpu_target_available(target: str) -> bool:
    """Whether the machine's processor is of this kind: "x86", "arm" or "aarch64"."""
    import platform

    machine = platform.machine().lower()
    names = {"x86": ("x86", "amd64", "i386", "i686"), "arm": ("arm", "aarch64"), "aarch64": ("aarch64", "arm64")}
    return machine.startswith(names.get(target, (target,)))


def is_built_with_gpu_support() -> bool:
    """Whether it is built with GPU support: never."""
    return False


def disable_with_predicate(pred: Callable[[], bool], skip_message: str) -> Callable:
    """A decorator of test methods that are skipped with this message if `pred()` is true."""

    def decorated(method: Callable) -> Callable:
        @functools.wraps(method)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            if pred():
                self.skipTest(skip_message)
            return method(self, *args, **kwargs)

        return run

    return decorated


__all__ = [
    "TestCase",
    "compute_gradient",
    "disable_with_predicate",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_built_with_xla",
    "is_cpu_target_available",
    "is_gpu_available",
    "main",
]
__getattr__, __dir__ = _namespace.plain(__name__)
