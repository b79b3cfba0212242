"""Registers the backend before Keras is imported."""

import sys
from pathlib import Path

import numpy as np
import pytest

# Test modules share the trainings beside them.
sys.path.append(str(Path(__file__).parent))

keras = pytest.importorskip("taut.keras")


@pytest.fixture(autouse=True)
def fresh():
    """Every test begins with the same seed and with no names or symbolic state of the one before."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(1337)


@pytest.fixture
def rng() -> np.random.Generator:
    """Numbers for a test, the same at every run."""
    return np.random.default_rng(0)
