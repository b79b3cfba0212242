"""Shapes that depend on the values of tensors, in traced functions and datasets: the results are TensorFlow's.

The first argument of `case` is what TensorFlow 2.21 gives for the same function.
"""

from __future__ import annotations

import numpy as np
import pytest

import taut as tf

F = tf.function
CASES: list = []

pytestmark = pytest.mark.filterwarnings("ignore:.*runs op by op")


def case(*answer):
    def add(function):
        CASES.append((function, answer[0] if len(answer) == 1 else answer))
        return function

    return add


def I(n):  # noqa: E743, N802
    return tf.constant(n, tf.int32)


def plain(value):
    """A result as types and lists."""
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return (value.dtype.name, value.numpy().tolist())


@case(("float32", [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]))
def ones_n():
    return F(lambda n: tf.ones([n, 2]))(I(3))


@case(("float32", [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
def zeros_vec():
    return F(lambda n: tf.zeros(n))(tf.constant([2, 3]))


@case(("float32", [0.0, 1.0, 2.0, 3.0]))
def slice_n():
    return F(lambda x, n: x[:n])(tf.range(10.0), I(4))


@case(("float32", [6.0, 7.0, 8.0, 9.0]))
def slice_neg():
    return F(lambda x, n: x[-n:])(tf.range(10.0), I(4))


@case(("float32", [[5.0, 7.0, 9.0], [10.0, 12.0, 14.0]]))
def slice_2d():
    return F(lambda x, n: x[1:n, ::2])(tf.reshape(tf.range(20.0), [4, 5]), I(3))


@case(("int32", [0, 1, 2, 3]))
def range_n():
    return F(lambda n: tf.range(n))(I(4))


@case(("int32", [1, 3, 5, 7]))
def range_mul():
    return F(lambda n: tf.range(n) * 2 + 1)(I(4))


@case(("int32", [1, 4, 7]))
def range_step():
    return F(lambda a, b, c: tf.range(a, b, c))(I(1), I(9), I(3))


@case(("float32", [0.0, 0.5, 1.0, 1.5]))
def range_f():
    return F(lambda n: tf.range(0.0, n, 0.5))(tf.constant(2.0))


@case(("int64", [[1], [2]]))
def where_mask():
    return F(lambda x: tf.where(x > 2))(tf.constant([1, 3, 5, 0]))


@case(("float32", [3.0, 5.0]))
def bool_index():
    return F(lambda x: x[x > 2])(tf.constant([1.0, 3, 5, 0]))


@case(("float32", [[0.0, 1.0], [4.0, 5.0]]))
def boolean_mask():
    return F(lambda x, m: tf.boolean_mask(x, m))(tf.reshape(tf.range(6.0), [3, 2]), tf.constant([True, False, True]))


@case([("int32", [3, 1, 2]), ("int32", [0, 1, 0, 2, 1])])
def unique():
    return F(lambda x: tf.unique(x))(tf.constant([3, 1, 3, 2, 1]))


@case([("int32", [3, 1, 2]), ("int32", [0, 1, 0, 2, 1]), ("int32", [2, 2, 1])])
def unique_counts():
    return F(lambda x: tf.unique_with_counts(x))(tf.constant([3, 1, 3, 2, 1]))


@case(("float32", [0.0, 1.0, 4.0, 9.0]))
def ta_size():
    @F
    def f(n):
        ta = tf.TensorArray(tf.float32, size=n)
        for i in tf.range(n):
            ta = ta.write(i, tf.cast(i * i, tf.float32))
        return ta.stack()

    return f(I(4))


@case(("int32", [0, 2, 4, 6]))
def ta_dynamic():
    @F
    def f(n):
        ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        for i in tf.range(n):
            if i % 2 == 0:
                ta = ta.write(ta.size(), i)
        return ta.stack()

    return f(I(7))


@case(("int32", [0, 0, 1, 0, 1, 2]))
def ta_infer_false():
    @F
    def f(n):
        ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True, infer_shape=False, element_shape=[None])
        for i in tf.range(n):
            ta = ta.write(i, tf.range(i))
        return ta.concat()

    return f(I(4))


@case(("float32", [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]))
def reshape_n():
    return F(lambda x, n: tf.reshape(x, [n, -1]))(tf.range(6.0), I(2))


@case(("float32", [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]))
def reshape_vec():
    return F(lambda x, s: tf.reshape(x, s))(tf.range(6.0), tf.constant([3, 2]))


@case(("float32", [[7.0, 7.0], [7.0, 7.0]]))
def fill():
    return F(lambda n: tf.fill([n, 2], 7.0))(I(2))


@case(("int32", [2, 3]))
def normal():
    return tf.shape(F(lambda n: tf.random.normal([n, 3]))(I(2)))


@case(("int32", [5]))
def uniform():
    return tf.shape(F(lambda n: tf.random.uniform([n]))(I(5)))


@case(("int32", [1, 2, 1, 2, 1, 2]))
def tile():
    return F(lambda x, n: tf.tile(x, [n]))(tf.constant([1, 2]), I(3))


@case(("int32", [0, 0, 1, 2, 0]))
def pad():
    return F(lambda x, n: tf.pad(x, [[n, 1]]))(tf.constant([1, 2]), I(2))


@case(("int32", [1, 1, 2, 2]))
def repeat():
    return F(lambda x, n: tf.repeat(x, n))(tf.constant([1, 2]), I(2))


@case(("int32", [[1, 2], [3, 4], [3, 4], [3, 4]]))
def repeat_vec():
    return F(lambda x, n: tf.repeat(x, n, axis=0))(tf.constant([[1, 2], [3, 4]]), tf.constant([1, 3]))


@case(("bool", [[True, False, False], [True, True, True], [True, True, False]]))
def seqmask():
    return F(lambda l: tf.sequence_mask(l))(tf.constant([1, 3, 2]))


@case(("float32", [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
def onehot():
    return F(lambda x, d: tf.one_hot(x, d))(tf.constant([0, 2]), I(3))


@case(("float32", [[1.0, 0.0], [0.0, 1.0]]))
def eye():
    return F(lambda n: tf.eye(n))(I(2))


@case(("float32", [0.0, 0.5, 1.0]))
def linspace():
    return F(lambda n: tf.linspace(0.0, 1.0, n))(I(3))


@case(("float32", [[1.0, 2.0], [1.0, 2.0]]))
def broadcast():
    return F(lambda n: tf.broadcast_to(tf.constant([1.0, 2]), [n, 2]))(I(2))


@case([("float32", [1.0, 1.0]), ("float32", [1.0, 1.0, 1.0])])
def cond_shapes():
    f = F(lambda p: tf.cond(p, lambda: tf.ones([2]), lambda: tf.ones([3])))
    return f(tf.constant(True)), f(tf.constant(False))


@case([("float32", [2.0, 4.0, 2.0, 4.0]), ("float32", [-2.0, -4.0])])
def if_shapes():
    @F
    def f(x):
        if tf.reduce_sum(x) > 0:
            y = tf.concat([x, x], 0)
        else:
            y = x
        return y * 2

    return f(tf.constant([1.0, 2])), f(tf.constant([-1.0, -2]))


@case(("float32", [1.0, 1.0]))
def switch_shapes():
    return F(lambda i: tf.switch_case(i, [lambda: tf.zeros([1]), lambda: tf.ones([2])]))(I(1))


@case(("int32", [0, 1, 2, 3]))
def grow_inv():
    @F
    def f(n):
        i = tf.constant(0)
        x = tf.zeros([0], tf.int32)
        return tf.while_loop(
            lambda i, x: i < n,
            lambda i, x: (i + 1, tf.concat([x, [i]], 0)),
            [i, x],
            shape_invariants=[i.shape, tf.TensorShape([None])],
        )[1]

    return f(I(4))


@case(("int32", [0, 1, 2]))
def grow_eager():
    i = tf.constant(0)
    x = tf.zeros([0], tf.int32)
    return tf.while_loop(
        lambda i, x: i < 3,
        lambda i, x: (i + 1, tf.concat([x, [i]], 0)),
        [i, x],
        shape_invariants=[i.shape, tf.TensorShape([None])],
    )[1]


@case(("int32", [0, 1, 2, 3]))
def grow_ag():
    @F
    def f(n):
        x = tf.zeros([0], tf.int32)
        for i in tf.range(n):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape([None]))])
            x = tf.concat([x, [i]], 0)
        return x

    return f(I(4))


@case(("float32", [5.0, 6.0, 5.0, 5.0]))
def grow_open():
    @F(input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.int32)])
    def f(x, n):
        for i in tf.range(n):
            x = tf.concat([x, x[:1]], 0)
        return x

    return f(tf.constant([5.0, 6]), I(2))


@case([("float32", 12.0), ("float32", 8.0), ("float32", 4.0)])
def spec_none():
    @F(input_signature=[tf.TensorSpec(None, tf.float32)])
    def f(x):
        return tf.reduce_sum(x) * 2

    return f(tf.ones([2, 3])), f(tf.constant(4.0)), f(tf.ones([2]))


@case([[("int32", 2), ("int32", [2, 3]), ("int32", 6)], [("int32", 0), ("int32", []), ("int32", 1)]])
def spec_none_rank():
    @F(input_signature=[tf.TensorSpec(None, tf.float32)])
    def f(x):
        return tf.rank(x), tf.shape(x), tf.size(x)

    return f(tf.ones([2, 3])), f(tf.constant(4.0))


@case(("float32", [1.0, 1.0, 2.0, 2.0]))
def numpy_fn():
    return F(lambda x: tf.numpy_function(lambda a: np.repeat(a, 2), [x], tf.float32))(tf.constant([1.0, 2]))


@case(("float32", [6.0, 9.0]))
def py_fn():
    return F(lambda x: tf.py_function(lambda a: a[a > 1], [x], tf.float32) * 3)(tf.constant([1.0, 2, 3]))


@case(("float32", [0.0, 4.0, 6.0]))
def tape_inside():
    @F
    def f(x):
        with tf.GradientTape() as t:
            t.watch(x)
            y = tf.reduce_sum(tf.boolean_mask(x, x > 1) ** 2)
        return t.gradient(y, x)

    return f(tf.constant([1.0, 2, 3]))


@case(("float32", [8.0, 16.0, 0.0]))
def tape_outside():
    f = F(lambda x, n: x[:n] * 2)
    x = tf.constant([1.0, 2, 3])
    with tf.GradientTape() as t:
        t.watch(x)
        y = tf.reduce_sum(f(x, I(2)) ** 2)
    return t.gradient(y, x)


@case([("float32", 8.0), ("float32", 5.0), ("float32", 5.0)])
def var_assign():
    v = tf.Variable(1.0)

    @F
    def f(x):
        y = x[x > 0]
        v.assign_add(tf.reduce_sum(y))
        return v * tf.cast(tf.size(y), tf.float32)

    a = f(tf.constant([1.0, -1, 2]))
    b = f(tf.constant([-1.0, 1]))
    return a, b, v


@case([("int64", [[1]]), ("int64", [[0]]), ("float32", 3.0)])
def var_assign_before():
    v = tf.Variable(1.0)

    @F
    def f(x):
        v.assign_add(1.0)
        return tf.where(x > v)

    a = f(tf.constant([1.0, 5.0]))
    b = f(tf.constant([3.5, 2.5]))
    return a, b, v


@case([("float32", 100.0), ("float32", 871.1466674804688), ("float32", [10.546667098999023, 14.906667709350586])])
def train():
    w = tf.Variable([1.0, 2.0])

    @F
    def step(x, m):
        with tf.GradientTape() as t:
            loss = tf.reduce_mean(tf.boolean_mask(tf.linalg.matvec(x, w), m) ** 2)
        g = t.gradient(loss, w)
        w.assign_sub(0.1 * g)
        return loss

    x = tf.reshape(tf.range(6.0), [3, 2])
    return step(x, tf.constant([True, False, True])), step(x, tf.constant([True, True, True])), w


@case([("float32", [3.0, 3.0]), ("float32", [5.0, 5.0, 5.0])])
def created_once():
    class M(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = None

        @F
        def __call__(self, n):
            if self.v is None:
                self.v = tf.Variable(3.0)
            return tf.ones([n]) * self.v

    m = M()
    a = m(I(2))
    m.v.assign(5.0)
    return a, m(I(3))


@case([("int32", 11), ("int32", 4)])
def nested():
    g = F(lambda n: tf.range(n))
    f = F(lambda n: tf.reduce_sum(g(n)) + 1)
    return f(I(5)), f(I(3))


@case([("int64", []), ("int64", [0]), ("int64", [0, 1])])
def iterator():
    it = iter(tf.data.Dataset.range(6))
    f = F(lambda it: tf.range(next(it)))
    return f(it), f(it), f(it)


@case([("float32", []), ("float32", [1.0]), ("float32", [1.0, 1.0])])
def captured_iterator():
    it = iter(tf.data.Dataset.range(6))
    f = F(lambda: tf.ones([next(it)]))
    return f(), f(), f()


@case([("int64", []), ("int64", [0]), ("int64", [0, 1]), ("int64", [0, 1, 2])])
def ds_map():
    return list(tf.data.Dataset.range(4).map(lambda n: tf.range(n)))


@case(
    [
        ("float32", []),
        ("float32", [[1.0, 1.0]]),
        ("float32", [[1.0, 1.0], [1.0, 1.0]]),
        ("float32", [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]),
    ]
)
def ds_map_par():
    return list(tf.data.Dataset.range(4).map(lambda n: tf.ones([n, 2]), num_parallel_calls=2))


@case([("int32", [1, 2]), ("int32", [3, 4])])
def ds_map_mask():
    return list(tf.data.Dataset.from_tensor_slices(tf.constant([[1, -1, 2], [3, 4, -5]])).map(lambda x: x[x > 0]))


@case([("int64", [[0, 0], [0, 1]]), ("int64", [[0, 1, 2, 0], [0, 1, 2, 3]])])
def ds_padded():
    return list(tf.data.Dataset.range(1, 5).map(lambda n: tf.range(n)).padded_batch(2))


@case([("int64", []), ("int64", [0]), ("int64", [0, 1])])
def ds_np():
    return list(tf.data.Dataset.range(3).map(lambda n: tf.numpy_function(lambda a: np.arange(a), [n], tf.int64)))


@case([("int64", 3), ("int64", 4)])
def ds_filter():
    return list(tf.data.Dataset.range(5).filter(lambda n: tf.reduce_sum(tf.range(n)) > 2))


@case(("int64", 4))
def ds_in_fn():
    ds = tf.data.Dataset.range(4).map(lambda n: tf.range(n))

    @F
    def f():
        s = tf.constant(0, tf.int64)
        for x in ds:
            s += tf.reduce_sum(x)
        return s

    return f()


@case(("int32", [0, 1, 10]))
def map_fn_dyn():
    return tf.map_fn(lambda n: tf.reduce_sum(tf.range(n)), tf.constant([1, 2, 5]))


@case(("int32", [0, 1, 10]))
def map_fn_dyn_f():
    return F(lambda ns: tf.map_fn(lambda n: tf.reduce_sum(tf.range(n)), ns))(tf.constant([1, 2, 5]))


@case(("int32", [1, 2, 12]))
def scan_dyn():
    return tf.scan(lambda a, n: a + tf.reduce_sum(tf.range(n)), tf.constant([1, 2, 5]))


@case(("int32", [3, 0, 3]))
def segsum():
    return F(lambda x, i: tf.math.segment_sum(x, i))(tf.constant([1, 2, 3]), tf.constant([0, 0, 2]))


@case(("int32", [1, 0, 2]))
def bincount():
    return F(lambda x: tf.math.bincount(x))(tf.constant([0, 2, 2]))


@case([("int32", [1, 3]), ("int32", [2])])
def dyn_part():
    return F(lambda x, p: tf.dynamic_partition(x, p, 2))(tf.constant([1, 2, 3]), tf.constant([0, 1, 0]))


@case(("int32", [0, 9, 0, 8, 0]))
def scatter_nd():
    return F(lambda i, u, n: tf.scatter_nd(i, u, [n]))(tf.constant([[1], [3]]), tf.constant([9, 8]), I(5))


@case(("int32", [1, 2, 3]))
def tfslice():
    return F(lambda x, b, s: tf.slice(x, [b], [s]))(tf.range(6), I(1), I(3))


@case(("int32", [2, 3, 4, 5]))
def slice_m1():
    return F(lambda x, b: tf.slice(x, [b], [-1]))(tf.range(6), I(2))


@case(("int32", [2, 3, 4, 5]))
def strided():
    return F(lambda x, n: x[n:])(tf.range(6), I(2))


@case([("float32", [5.0, 3.0]), ("int32", [1, 2])])
def topk():
    return F(lambda x, k: tf.math.top_k(x, k))(tf.constant([1.0, 5, 3]), I(2))


@case(("float32", [2.0, 3.0]))
def gather_where():
    @F
    def f(x):
        i = tf.where(x > 1)[:, 0]
        return tf.gather(x, i)

    return f(tf.constant([1.0, 2, 3]))


@case(("float32", [3.0, 3.0, 3.0]))
def set_shape():
    @F
    def f(x):
        y = tf.numpy_function(lambda a: a * 2, [x], tf.float32)
        y.set_shape([3])
        return y + 1

    return f(tf.ones([3]))


@case(("float32", [1.0]))
def ensure():
    return F(lambda x: tf.ensure_shape(tf.boolean_mask(x, x > 0), [None]))(tf.constant([1.0, -1]))


@case(("int32", [2, 3, 1]))
def image_resize():
    return tf.shape(F(lambda x, s: tf.image.resize(x, s))(tf.ones([4, 4, 1]), tf.constant([2, 3])))


@case(("float32", [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]))
def static_shape():
    return F(lambda x: tf.ones([tf.shape(x)[0] * 2 - 1, 2]))(tf.ones([2, 5]))


@case(("float32", [1.0, 1.0, 1.0]))
def static_float():
    return F(lambda x: tf.ones([tf.cast(tf.math.ceil(tf.cast(tf.shape(x)[0], tf.float32) * 0.5), tf.int32)]))(
        tf.ones([5])
    )


@case(("int32", [0, 1, 2]))
def static_range():
    return F(lambda x: tf.range(tf.shape(x)[0]))(tf.ones([3]))


@case([("int32", [2, 18]), ("float32", [[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]])])
def static_many():
    @F
    def f(x):
        b = tf.shape(x)[0]
        n = tf.reduce_prod(tf.shape(x)[1:])
        y = tf.reshape(x, [b, n])
        z = tf.tile(y, [1, b])
        w = tf.concat([z, tf.zeros([b, tf.size(x) // b])], 1)
        return tf.shape(w), tf.ones(tf.concat([[b], tf.shape(x)[1:]], 0))

    return f(tf.ones([2, 3, 2]))


@case([("int32", 3), ("int32", 2), {"a": ("int32", [0, 1])}])
def result_int():
    @F
    def f(x, n):
        y = x[:n]
        return 3, tf.size(y), {"a": y}

    return f(tf.range(4), I(2))


@case(("float32", [[0.0, 0.0, 0.0], [0.0, 12.0, 0.0], [0.0, 0.0, 18.0]]))
def hess():
    f = F(lambda x: tf.reduce_sum(tf.boolean_mask(x, x > 1) ** 3))
    x = tf.constant([1.0, 2, 3])
    with tf.GradientTape() as t2:
        t2.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = f(x)
        g = t1.gradient(y, x)
    return t2.jacobian(g, x)


@pytest.mark.parametrize(("function", "answer"), CASES, ids=lambda part: getattr(part, "__name__", ""))
def test_results_are_those_of_tensorflow(function, answer):
    found, wanted = plain(function()), plain_answer(answer)
    assert found == wanted


def plain_answer(answer):
    """The answer with lists for tuples, except for (type, values)."""
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], str):
        return answer
    if isinstance(answer, (list, tuple)):
        return [plain_answer(part) for part in answer]
    if isinstance(answer, dict):
        return {key: plain_answer(part) for key, part in answer.items()}
    return answer
