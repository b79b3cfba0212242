"""tf.test: test cases and gradient checks."""

import unittest

import numpy as np
import pytest

import taut as tf


class Case(tf.test.TestCase):
    def runTest(self):  # noqa: N802
        pass


CASE = Case()
X = tf.constant([1.0, 2.0])


@pytest.mark.parametrize(
    "name,right,wrong",
    [
        ("assertAllEqual", (X, [1.0, 2.0]), (X, [1.0, 3.0])),
        ("assertAllEqual", (tf.constant([np.nan]), [np.nan]), (X, 1.0)),
        ("assertNotAllEqual", (X, [1.0, 3.0]), (X, [1.0, 2.0])),
        ("assertAllClose", (X, [1.0, 2.000001]), (X, [1.0, 2.001])),
        ("assertAllClose", (X, [1.0, 2.1], 0.1), (X, [[1.0, 2.0]])),
        ("assertAllClose", ({"a": X, "b": 1}, {"a": [1, 2], "b": 1.0}), ({"a": X}, {"b": X})),
        ("assertAllClose", ([X, [3.0]], [[1, 2], [3]]), ([X, [3.0]], [[1, 2], [4]])),
        ("assertAllClose", (tf.constant([1.0], tf.bfloat16), [1.005]), (tf.constant([1.0], tf.bfloat16), [1.1])),
        ("assertNotAllClose", (X, [1.0, 2.1]), (X, [1.0, 2.0])),
        ("assertAllInRange", (X, 1, 2), (X, 1, 2, True)),
        ("assertAllGreater", (X, 0.5), (X, 1)),
        ("assertAllGreaterEqual", (X, 1), (X, 1.5)),
        ("assertAllLess", (X, 2.5), (X, 2)),
        ("assertAllLessEqual", (X, 2), (X, 1.5)),
        ("assertAllInSet", (X, {1, 2, 3}), (X, {1, 3})),
        ("assertShapeEqual", (X, np.zeros(2)), (X, np.zeros(3))),
        ("assertDTypeEqual", (X, tf.float32), (X, tf.int32)),
        ("assertNear", (X[0], 1.1, 0.2), (X[0], 1.1, 0.05)),
    ],
)
def test_what_holds_and_what_does_not(name, right, wrong):
    getattr(CASE, name)(*right)
    with pytest.raises(AssertionError):
        getattr(CASE, name)(*wrong)


def test_cases_run():
    class Sum(tf.test.TestCase):
        def test_sum(self):
            self.assertAllEqual(self.evaluate({"a": X + 1})["a"], [2, 3])
            with open(f"{self.get_temp_dir()}/file", "w") as file:
                file.write("x")

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Sum).run(result)
    assert result.testsRun == 1 and result.wasSuccessful()


def test_gradients_by_differences():
    exact, measured = tf.test.compute_gradient(
        lambda x, y: tf.square(x) @ y, [tf.constant([[1.0, 2.0]]), tf.ones([2, 3])]
    )
    assert [one.shape for one in exact] == [(3, 2), (3, 6)] == [one.shape for one in measured]
    for one, other in zip(exact, measured):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(exact[0], [[2, 4]] * 3)


def test_there_are_no_graphics_processors():
    assert (
        not tf.test.is_gpu_available() and not tf.test.is_built_with_cuda() and not tf.test.is_built_with_gpu_support()
    )
    assert tf.test.gpu_device_name() == ""
