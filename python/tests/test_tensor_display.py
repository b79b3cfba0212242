"""HTML representations for notebooks."""

import xml.dom.minidom

import numpy as np

import taut as tf
from taut import display


def parsed(html):
    """The page as a tree: an error if a tag is left open, or a text is not escaped."""
    return xml.dom.minidom.parseString(html)


def cells(html):
    def text(cell):
        return "".join(node.data for node in cell.childNodes if node.nodeType == node.TEXT_NODE)

    return [text(cell) for cell in parsed(html).getElementsByTagName("td")]


def test_tensors():
    assert cells(display.tensor_html(tf.constant([[1, 2], [3, 4]]))) == ["1", "2", "3", "4"]
    assert cells(display.tensor_html(tf.constant(2.5))) == ["2.5"]
    assert cells(display.tensor_html(tf.constant([True, False]))) == ["True", "False"]
    html = display.tensor_html(tf.range(1000))
    assert "int32(1000,)" in html
    shown = cells(html)
    assert shown[0] == "0"
    assert shown[-1] == "999"
    assert "…" in shown
    assert len(shown) < 20
    for other in (tf.zeros([2, 3, 4]), tf.zeros([0]), tf.cast([1.5], tf.bfloat16), tf.Variable([1.0])):
        parsed(display.tensor_html(other))
    assert tf.constant([1])._repr_html_() == display.tensor_html(tf.constant([1]))


def test_a_traced_tensor_has_no_elements():
    seen = []

    def body(x):
        seen.append(display.tensor_html(x))
        return x

    tf.function(body, autograph=False)(tf.zeros([3]))
    assert "traced" in seen[0]
    assert cells(seen[0]) == []


def test_plans():
    traced = tf.function(lambda x: tf.reduce_sum(tf.matmul(x, x)), autograph=False)
    plan = traced.plan(tf.TensorSpec([16, 16]))
    html = display.plan_html(plan)
    assert display.size(plan.peak_bytes) in cells(html)
    assert "At the peak" in html


def test_reports():
    held = tf.constant(np.ones(5000, "float32"))
    report = tf.memory.report()
    html = display.report_html(report)
    assert any("KiB" in cell for cell in cells(html))
    assert held.nbytes == 20000
    report.lines = [(100, 1, "tensor", "<b>a & b</b>")]
    assert "<b>a & b</b>" in cells(display.report_html(report))


def test_sizes():
    sizes = {0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 5 << 30: "5 GiB"}
    assert {count: display.size(count) for count in sizes} == sizes


def test_formatted_tensors_are_their_values():
    x = tf.constant([1.5, 2.0])
    assert f"{x[0]}" == "1.5" and f"{x[0]:.2f}" == "1.50" and f"{tf.constant(3)}" == "3"
    assert f"{x}" == "[1.5 2. ]"
    assert f"{tf.Variable(1.5)}".startswith("<tf.Variable")
    assert str(x[0]) == "tf.Tensor(1.5, shape=(), dtype=float32)"
    seen = []
    tf.function(lambda y: seen.append(f"{y}"))(x)
    assert seen[0].startswith("Tensor(")


def test_text_is_tensorflows():
    assert str(tf.constant(1.5)) == "tf.Tensor(1.5, shape=(), dtype=float32)"
    assert str(tf.constant([1.0, 2.0])) == "tf.Tensor([1. 2.], shape=(2,), dtype=float32)"
    assert str(tf.constant([[1], [2]])) == "tf.Tensor(\n[[1]\n [2]], shape=(2, 1), dtype=int32)"
    assert repr(tf.constant(True)) == "<tf.Tensor: shape=(), dtype=bool, numpy=True>"
    assert repr(tf.constant([1])) == "<tf.Tensor: shape=(1,), dtype=int32, numpy=array([1], dtype=int32)>"
    assert repr(tf.constant([[1.0], [2.0]])) == (
        "<tf.Tensor: shape=(2, 1), dtype=float32, numpy=\narray([[1.],\n       [2.]], dtype=float32)>"
    )
    assert repr(tf.Variable(1.5, name="v")) == "<tf.Variable 'v:0' shape=() dtype=float32, numpy=1.5>"
    assert (
        repr(tf.Variable([1.0]))
        == "<tf.Variable 'Variable:0' shape=(1,) dtype=float32, numpy=array([1.], dtype=float32)>"
    )
