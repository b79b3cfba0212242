"""Profiles: edge cases."""

import os
import threading

import pytest

import taut as tf


def test_a_profile_may_be_stopped_inside_its_block():
    with tf.profiler.Profile() as profile:
        tf.exp(tf.ones([10]))
        profile.stop()
    assert profile.peak_bytes >= 40
    with pytest.raises(KeyError), tf.profiler.Profile() as profile:
        profile.stop()
        raise KeyError
    assert profile.seconds > 0


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_profile_needs_room(capacity):
    with pytest.raises(ValueError, match="capacity must be >= 1"):
        tf.profiler.Profile(capacity=capacity)


def test_a_folder_that_cannot_be_made_is_told_before_the_work(tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.raises(OSError, match="file"):
        tf.profiler.experimental.start(taken / "log")
    with tf.profiler.Profile() as profile:  # nothing is recording
        pass
    assert profile.seconds >= 0
    tf.profiler.experimental.start(tmp_path / "log")
    tf.profiler.experimental.stop()
    assert sorted(os.listdir(tmp_path / "log")) == ["profile.html", "trace.json"]


def test_one_of_many_threads_stops_it():
    profile = tf.profiler.Profile()
    profile.start()
    refused = []

    def stop():
        try:
            profile.stop()
        except RuntimeError as error:
            refused.append(error)

    threads = [threading.Thread(target=stop) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7
    assert profile.seconds > 0


def test_a_profile_without_references_ends():
    profile = tf.profiler.Profile()
    profile.start()
    del profile
    with tf.profiler.Profile() as another:
        pass
    assert another.seconds >= 0
