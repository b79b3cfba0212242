"""The fifteen programs of `programs/`, each in a fresh interpreter: it ends well and prints what it must."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

PROGRAMS = pathlib.Path(__file__).parent / "programs"
SHAPE = r"Result shape: \(100, 100\)"
LOSSES = [r"Optimized Loss: \d+\.\d{4}", r"Unoptimized Loss: \d+\.\d{4}"]

# A thousand numbers, each ten thousand times; the sums are of 32 bits.
SUMS = [rf"tf\.Tensor\({10_000 * i}, shape=\(\), dtype=int32\)" for i in range(1000)]

LINES = {
    "layers_made_in_a_function": [],
    "persistent_tape_of_a_model": [],
    "layer_with_a_custom_gradient": [],
    "python_loop_of_products": [SHAPE, r"Execution time \(naive loop\): \d+\.\d{4} seconds"],
    "while_loop_of_products": [SHAPE, r"Execution time \(tf\.while_loop\): \d+\.\d{4} seconds"],
    "numpy_loop_of_products": [SHAPE, r"Execution time \(numpy loop\): \d+\.\d{4} seconds"],
    "large_tensor_in_a_function": [],
    "named_and_chained_expressions": [],
    "condition_on_a_python_value": [],
    "dataset_map": SUMS,
    "dataset_map_with_del": SUMS,
    "dataset_map_with_jit": SUMS,
    "preprocessing_outside_the_tape": LOSSES,
    "variable_as_a_constant": LOSSES,
    "function_under_a_tape": LOSSES,
}


def free_bytes():
    """The memory that the system could give."""
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def run(program):
    return subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)


def test_every_program_has_its_expected_output():
    assert sorted(path.stem for path in PROGRAMS.glob("*.py")) == sorted(LINES)


@pytest.mark.parametrize("name", LINES)
def test_program(name):
    if name == "large_tensor_in_a_function":
        if not pathlib.Path("/proc/meminfo").exists() or free_bytes() < 10 << 30:
            pytest.skip("it makes two tensors of 4 GB: 10 GB have to be free")
    done = run(PROGRAMS / f"{name}.py")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    printed = done.stdout.splitlines()
    assert len(printed) == len(LINES[name]), done.stdout
    for line, pattern in zip(printed, LINES[name]):
        assert re.fullmatch(pattern, line), line
