"""What of TensorFlow is missing is said: in errors, in `dir`, and on a page of the book."""

import importlib
import pathlib

import pytest

import taut as tf
from taut._missing import TOPICS

NAMES = [name for _, names, _ in TOPICS for name in names.split()]
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "src" / "missing.md"


@pytest.mark.parametrize("name", NAMES)
def test_missing_names_are_explained(name):
    *path, last = name.split(".")
    module = importlib.import_module(".".join(["taut", *path]))
    with pytest.raises(AttributeError, match=f"has no attribute '{last}': tf.{name} of TensorFlow is missing"):
        getattr(module, last)
    assert not hasattr(module, last)


def test_page_lists_every_name():
    page = PAGE.read_text()
    for topic, names, remedy in TOPICS:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {topic} |")]
        assert all(f"`{name}`" in row for name in names.split()) and row.endswith(f"| {remedy} |")
    assert len(NAMES) == len(set(NAMES))


def test_other_names_have_the_plain_message():
    with pytest.raises(AttributeError) as caught:
        tf.reduce_summ
    assert str(caught.value) == "module 'taut' has no attribute 'reduce_summ'"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "autodiff",
        "config",
        "data",
        "math",
        "memory",
        "nest",
        "nn",
        "optimizers",
        "profiler",
        "test",
        "train",
        "version",
    ],
)
def test_dir_lists_what_is_meant_for_users(name):
    module = getattr(tf, name) if name else tf
    listed = [one for one in dir(module) if not one.startswith("__")]
    assert listed and not [one for one in listed if one.startswith("_")]
    helpers = {"Any", "Callable", "Iterator", "np", "os", "annotations", "contextmanager", "raw", "itertools"}
    helpers -= {"Iterator"} if name == "data" else set()
    assert not helpers.intersection(listed)
    for one in listed:
        if not (name == "" and one in ("keras", "initializers", "losses", "metrics")):
            assert hasattr(module, one), one


def test_version_and_devices():
    assert tf.version.VERSION == tf.__version__
    (cpu,) = tf.config.list_physical_devices()
    assert cpu.device_type == "CPU" and tf.config.list_physical_devices("GPU") == []
    with tf.device("/CPU:0"):
        assert "CPU:0" in tf.ones([1]).device
    with tf.device("/GPU:0"):
        assert "CPU:0" in tf.ones([1]).device
    tf.config.set_soft_device_placement(False)
    try:
        with pytest.raises(ValueError, match="test_missing_names.py"):
            tf.device("/GPU:0")
    finally:
        tf.config.set_soft_device_placement(True)
    before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    x = tf.ones([1000])
    info = tf.config.experimental.get_memory_info("CPU:0")
    assert info["current"] - before == x.nbytes == 4000 and info["peak"] >= info["current"]
    with pytest.raises(ValueError, match="GPU:0"):
        tf.config.experimental.get_memory_info("GPU:0")
    tf.config.experimental.set_memory_growth(cpu, True)
    assert tf.config.get_soft_device_placement()


def test_errors_have_the_classes_that_programs_catch():
    calls = [
        lambda: tf.gather(tf.ones([2]), [5]),
        lambda: tf.ones([3])[5],
        lambda: tf.scatter_nd([[5]], [1.0], [3]),
        lambda: tf.reshape(tf.ones([2]), [5]),
        lambda: tf.ones([2]) + tf.ones([3]),
        lambda: tf.linalg.cholesky(tf.constant([[-1.0]])),
    ]
    for call in calls:
        with pytest.raises(tf.errors.InvalidArgumentError):
            call()
    for call in calls[:3]:
        with pytest.raises(IndexError):
            call()
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="only once"):
        tape.gradient(y, x)


def test_missing_gradients_name_their_variables():
    w, b = tf.Variable([1.0], name="weight"), tf.Variable([2.0], name="bias")
    optimizer = tf.optimizers.SGD(0.1)
    with pytest.raises(ValueError, match="weight.*bias"):
        optimizer.apply_gradients([(None, w), (None, b)])
    with pytest.warns(RuntimeWarning, match="no gradient for .*bias") as caught:
        optimizer.apply_gradients([(tf.ones([1]), w), (None, b)])
    (warning,) = caught
    assert ".rs:" not in str(warning.message) and warning.filename.endswith("test_missing_names.py")


def test_attributes_of_variables():
    v = tf.Variable([1.0])
    assert v.initializer is None and v.constraint is None
    assert v.is_initialized().numpy() and v.is_initialized().dtype == tf.bool


def test_profiles_name_no_line_of_the_extension(tmp_path):
    v, optimizer = tf.Variable(tf.ones([50])), tf.optimizers.Adam(0.1)
    double = tf.function(lambda x: tf.exp(x) * 2.0)
    with tf.profiler.Profile() as profile:
        optimizer.apply_gradients([(tf.ones([50]), v)])
        list(tf.data.Dataset.range(10).map(lambda i: i * 2).batch(2).prefetch(2))
        double(tf.ones([10]))
    for save in (profile.save_html, profile.save_trace):
        save(tmp_path / "profile")
        text = (tmp_path / "profile").read_text()
        assert "test_missing_names.py" in text and "crates/" not in text


def test_concrete_functions():
    v = tf.Variable([1.0, 2.0], name="scale")
    count = tf.Variable(0, trainable=False)

    @tf.function
    def f(x, times=2):
        count.assign_add(1)
        return {"y": x * v * float(times)}

    made = f.get_concrete_function(tf.TensorSpec([2]))
    assert made is f.get_concrete_function(tf.TensorSpec([2]))
    assert made is f.get_concrete_function(tf.constant([5.0, 6.0]), times=2)
    assert made is not f.get_concrete_function(tf.TensorSpec([2]), times=3)
    args, kwargs = made.structured_input_signature
    assert args == (tf.TensorSpec([2], name="x"), 2) and kwargs == {}
    assert made.structured_outputs == {"y": tf.TensorSpec([2])}
    assert made.outputs == [tf.TensorSpec([2])]
    assert made.inputs[0] == tf.TensorSpec([2]) and len(made.inputs) == 3
    assert {id(one) for one in made.variables} == {id(v), id(count)}
    assert made.trainable_variables == (v,) or made.trainable_variables[0] is v
    assert count.numpy() == 0
    assert made(tf.constant([1.0, 1.0]))["y"].numpy().tolist() == [2.0, 4.0]
    assert count.numpy() == 1
    with pytest.raises(TypeError, match="expected"):
        made(tf.ones([3]))


@pytest.mark.parametrize("name", ["cpu", "CPU", "/CPU:0", "/cpu:0", "gpu"])
def test_a_type_is_the_name_of_a_device(name):
    # TensorFlow 2.21 takes all of these, and places ops softly.
    with tf.device(name):
        assert float(tf.constant(1.0) + 1.0) == 2.0
