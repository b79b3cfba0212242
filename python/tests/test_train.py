"""What is in checkpoints, by name."""

import numpy as np
import pytest

import taut as tf


def test_files_and_folders_are_read(tmp_path):
    weights = np.arange(6, dtype="float32").reshape(2, 3)
    checkpoint = tf.train.Checkpoint(w=tf.Variable(weights), steps=[tf.Variable(3)])
    path = checkpoint.save(tmp_path / "model")
    for place in (path, tmp_path):
        assert sorted(tf.train.list_variables(place)) == [("steps.0", []), ("w", [2, 3])]
        np.testing.assert_array_equal(tf.train.load_variable(place, "w"), weights)
    with pytest.raises(KeyError, match="no variable 'b'"):
        tf.train.load_variable(path, "b")


def test_a_folder_without_checkpoints(tmp_path):
    assert tf.train.latest_checkpoint(tmp_path) is None
    with pytest.raises(tf.errors.NotFoundError, match="no checkpoint"):
        tf.train.list_variables(tmp_path)
