"""Keras: registration of the backend."""

import ast
import inspect
import subprocess
import sys
import types

import keras
import pytest

import taut.keras
from taut.keras import hook


def test_keras_runs_on_taut():
    assert keras.config.backend() == "taut"
    assert keras.src.backend.BackendVariable.__module__ == "taut.keras.backend.variable"


def test_installing_again_changes_nothing():
    before = list(sys.meta_path)
    hook.install()
    assert sys.meta_path == before
    assert sum(isinstance(finder, hook.Finder) for finder in sys.meta_path) == 1


def test_another_backend_that_is_loaded_already_is_an_error(monkeypatch):
    config = types.SimpleNamespace(backend=lambda: "jax")
    monkeypatch.setitem(sys.modules, "keras.src.backend.config", config)
    with pytest.raises(ImportError, match="already loaded with the backend 'jax'"):
        hook.install()


@pytest.mark.parametrize("module", hook.BRANCHES)
def test_a_switch_gets_one_more_branch(module):
    tree = ast.parse('if backend.backend() == "tensorflow":\n    a = 1\nelse:\n    a = 2\n')
    hook.add_branch(tree, module)
    (switch,) = tree.body
    assert ast.unparse(switch.test) == "backend.backend() == 'taut'"
    assert switch.orelse[0].body


def test_a_keras_without_the_switch_is_named():
    with pytest.raises(ImportError, match="keras.src.layers.layer"):
        hook.add_branch(ast.parse("a = 1"), "keras.src.layers.layer")


def test_a_switch_without_further_branches_is_not_taken():
    tree = ast.parse('if backend() == "tensorflow":\n    a = 1\n')
    with pytest.raises(ImportError, match="3.15"):
        hook.add_branch(tree, "keras.src.backend")


def test_names_of_keras_are_names_here():
    assert taut.keras.layers is keras.layers
    assert taut.keras.Model is keras.Model
    assert taut.keras.backend.epsilon() == 1e-7
    assert "Sequential" in dir(taut.keras)
    with pytest.raises(AttributeError):
        taut.keras.no_such_name


def test_modules_can_be_imported_by_their_names_here():
    import taut.keras.layers
    from taut.keras.optimizers.schedules import CosineDecay

    assert taut.keras.layers.Dense is keras.layers.Dense
    assert CosineDecay is keras.optimizers.schedules.CosineDecay


def test_losses_and_metrics_have_their_short_names():
    assert taut.keras.losses.MSE is keras.losses.mean_squared_error
    assert taut.keras.metrics.mae is keras.metrics.mean_absolute_error


def test_the_dynamic_backend_knows_the_name():
    from keras.src.utils.backend_utils import DynamicBackend

    dynamic = DynamicBackend("taut")
    dynamic.set_backend("taut")
    assert dynamic.numpy.__name__ == "taut.keras.backend.numpy"
    with pytest.raises(ValueError):
        dynamic.set_backend("no such backend")


def test_sequential_takes_functions():
    model = taut.keras.Sequential([lambda x: x * 2.0, keras.layers.Flatten()])
    assert model(taut.ones([2, 3])).numpy().tolist() == [[2.0] * 3] * 2
    with pytest.raises(ValueError, match="Only instances"):
        taut.keras.Sequential([keras.layers.Dense])


def test_sequential_takes_functions_with_their_own_gradient():
    @taut.custom_gradient
    def double(x):
        return x * 2.0, lambda dy: dy * 10.0

    model = taut.keras.Sequential([double])
    x = taut.constant([[1.0, 2.0]])
    with taut.GradientTape() as tape:
        tape.watch(x)
        y = model(x)
    assert y.numpy().tolist() == [[2.0, 4.0]]
    assert tape.gradient(y, x).numpy().tolist() == [[10.0, 10.0]]


def test_importing_keras_first_is_refused_in_words():
    """In a process of its own, with a stand-in for a Keras that runs on another backend."""
    program = """
import sys, types
sys.modules["keras.src.backend.config"] = types.SimpleNamespace(backend=lambda: "torch")
try:
    import taut.keras
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "already loaded with the backend 'torch'" in done.stdout, done.stderr


def test_functions_have_the_signatures_of_kerass():
    compared = 0
    for module in ("core", "image", "linalg", "math", "nn", "numpy"):
        ours, theirs = getattr(keras.src.backend, module), getattr(keras.src.ops, module)
        for name in ours.__all__:
            wanted = getattr(theirs, name, None)
            # Ops have a class; others, and `multi_hot`, change their arguments before they call the backend.
            is_op = isinstance(wanted, types.FunctionType) and hasattr(theirs, "".join(map(str.title, name.split("_"))))
            if is_op and not hasattr(theirs, f"_{name}") and name != "multi_hot":
                assert inspect.signature(getattr(ours, name)) == inspect.signature(wanted), f"{module}.{name}"
                compared += 1
    assert compared > 200
