"""`tf.summary.trace_on` and its siblings, and messages that a program has made itself."""

import glob

import numpy as np
import pytest

import taut as tf
from taut.example_protos import fields


@pytest.fixture(autouse=True)
def _ends():
    yield
    tf.summary.trace_off()


def values(folder):
    """Step, tag, plugin and contents of the values in the event files of a folder."""
    found = []
    for path in sorted(glob.glob(f"{folder}/events*")):
        for record in tf.data.TFRecordDataset(path):
            event = dict(fields(record.numpy()))
            for number, value in fields(event.get(5, b"")):
                assert number == 1
                parts = dict(fields(value))
                plugin = dict(fields(dict(fields(parts.get(9, b""))).get(1, b""))).get(1, b"")
                found.append((event.get(2, 0), parts[1].decode(), plugin.decode(), parts.get(8, b"")))
    return found


def nodes(tensor):
    """The names of the nodes of each graph in a `RunMetadata`."""
    message = tf.io.parse_tensor(tensor, tf.string).numpy()
    graphs = [dict(fields(function))[2] for number, function in fields(message) if number == 4]
    return [[dict(fields(node))[1].decode() for number, node in fields(graph) if number == 1] for graph in graphs]


def test_graphs_of_functions_that_were_called(tmp_path):
    f, g, h = (tf.function(code) for code in (lambda x: tf.nn.relu(x * 2.0), lambda x: x @ x, lambda x: x + 1.0))
    h(tf.ones([2]))
    f(tf.ones([3]))
    original = tf.function(h).__call__.__func__
    tf.summary.trace_on()
    for _ in range(2):
        f(tf.ones([3]))
        g(tf.ones([2, 2]))
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        tf.summary.trace_export("calls", step=7)
    assert tf.function(h).__call__.__func__ is original
    ((step, tag, plugin, tensor),) = values(tmp_path)
    assert (step, tag, plugin) == (7, "calls", "graph_run_metadata_graph")
    first, second = nodes(tensor)
    assert any("fused" in one or "relu" in one for one in first) and any("matmul" in one for one in second)


def test_a_profile_beside_the_graph(tmp_path):
    folder = tmp_path / "profile"
    tf.summary.trace_on(profiler=True, profiler_outdir=str(folder))
    tf.function(lambda x: x * 2.0)(tf.ones([3]))
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        tf.summary.trace_export("both", step=1)
    assert [row[1:3] for row in values(tmp_path)] == [("both", "graph_run_metadata")]
    assert (folder / "profile.html").exists() and (folder / "trace.json").exists()


def test_a_trace_that_is_turned_off_writes_nothing(tmp_path):
    tf.summary.trace_on(profiler=True, profiler_outdir=str(tmp_path / "p"))
    tf.function(lambda x: x * 2.0)(tf.ones([3]))
    tf.summary.trace_off()
    tf.summary.trace_off()
    assert not (tmp_path / "p" / "profile.html").exists()
    with pytest.raises(ValueError, match="trace_on"):
        tf.summary.trace_export("none", step=0)
    with pytest.raises(ValueError, match="profiler_outdir"):
        tf.summary.trace_on(profiler=True)


@pytest.mark.filterwarnings("ignore:.*runs op by op")
def test_a_function_that_runs_op_by_op_has_no_graph(tmp_path):
    tf.summary.trace_on()
    found = tf.function(lambda x: tf.boolean_mask(x, x > 0.0))(tf.constant([1.0, -1.0]))
    np.testing.assert_array_equal(found, [1.0])
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        tf.summary.trace_export("ops", step=0)
    assert nodes(values(tmp_path)[0][3]) == []


def test_a_message_of_a_program(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    with tf.summary.create_file_writer(str(source)).as_default():
        tf.summary.scalar("a", 2.5, step=3)
    (record,) = list(tf.data.TFRecordDataset(glob.glob(f"{source}/events*")[0]).skip(1))
    message = dict(fields(record.numpy()))[5]
    assert not tf.summary.experimental.write_raw_pb(message, step=1)
    with tf.summary.create_file_writer(str(target)).as_default():
        assert tf.summary.experimental.write_raw_pb(message, step=9)
        with pytest.raises(ValueError, match="scalar string"):
            tf.summary.experimental.write_raw_pb(3, step=9)
        with pytest.raises(ValueError, match="step"):
            tf.summary.experimental.write_raw_pb(message)
    assert [row[:3] for row in values(target)] == [(9, "a", "scalars")]
