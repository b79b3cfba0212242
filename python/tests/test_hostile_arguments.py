"""Arguments that are huge, zero or of a wrong type are refused before anything is computed or allocated."""

import subprocess
import sys

import pytest

import taut as tf

IMAGE = tf.ones([4, 4, 4, 4])
WIDE = tf.ones([1, 4096, 1])
EYE = tf.eye(2)
ROWS = tf.ragged.constant([[1], [2, 3]])

REFUSED = {
    "shape from a range": (lambda: tf.ones(range(10**12)), "at most 1048576"),
    "shape from an iterator": (lambda: tf.zeros(iter(range(10**12))), "at most 1048576"),
    "sizes from a range": (lambda: tf.TensorShape(range(10**12)), "at most 1048576"),
    "tensor from a range": (lambda: tf.constant(range(10**15)), "bytes|memory|TiB"),
    "depth_to_space by 0": (lambda: tf.nn.depth_to_space(IMAGE, 0), "depth_to_space: block_size must be >= 1, got 0"),
    "space_to_depth by 0": (lambda: tf.nn.space_to_depth(IMAGE, 0), "space_to_depth: block_size must be >= 1, got 0"),
    "depth_to_space by -2": (lambda: tf.nn.depth_to_space(IMAGE, -2), "block_size must be >= 1, got -2"),
    "batch_to_space by 0": (
        lambda: tf.batch_to_space(IMAGE, [0, 1], [[0, 0], [0, 0]]),
        r"batch_to_space: block_shape must be >= 1, got \[0, 1\]",
    ),
    "space_to_batch by 0": (
        lambda: tf.space_to_batch(IMAGE, [0, 1], [[0, 0], [0, 0]]),
        r"space_to_batch: block_shape must be >= 1, got \[0, 1\]",
    ),
    "data_format of conv2d": (
        lambda: tf.nn.conv2d(IMAGE, tf.ones([1, 1, 4, 1]), 1, "SAME", data_format=3),
        "conv2d: data_format must be one of 'NHWC', 'NCHW', got 3",
    ),
    "data_format of max_pool": (
        lambda: tf.nn.max_pool2d(IMAGE, 2, 1, "SAME", data_format=3),
        "max_pool2d: data_format must be one of 'NHWC', 'NCHW', got 3",
    ),
    "data_format of bias_add": (
        lambda: tf.nn.bias_add(IMAGE, tf.ones([4]), data_format=3),
        "bias_add: data_format must be one of",
    ),
    "padding of conv2d": (
        lambda: tf.nn.conv2d(IMAGE, tf.ones([1, 1, 4, 1]), 1, 3),
        "conv2d: padding must be 'SAME', 'VALID' or a list of pairs, got 3",
    ),
    "mode of pad": (
        lambda: tf.pad(tf.ones([2]), [[1, 1]], mode=3),
        "pad: mode must be one of 'CONSTANT', 'REFLECT', 'SYMMETRIC', got 3",
    ),
    "partitions": (
        lambda: tf.dynamic_partition(tf.ones([2]), [0, 1], 2**32),
        r"num_partitions must be in \[0, 1048576\]",
    ),
    "generators": (lambda: tf.random.Generator.from_seed(1).split(2**31), r"count must be in \[0, 1048576\]"),
    "seeds": (lambda: tf.random.Generator.from_seed(1).make_seeds(2**31), r"count must be in \[0, 1048576\]"),
    "differences": (lambda: tf.array_api.diff(tf.ones([3]), n=-1), "n must be >= 0, got -1"),
    "resize": (lambda: tf.image.resize(tf.ones([2, 2, 1]), [2**31, 2**31]), "sizes must be <= 16777216"),
    "resize, nearest": (
        lambda: tf.image.resize(tf.ones([2, 2, 1]), [2**40, 1], "nearest"),
        "sizes must be <= 16777216",
    ),
    "weights of resize": (lambda: tf.image.resize(WIDE, [1, 2**20]), "interpolation weights"),
    "sparse function of a tensor": (
        lambda: tf.sparse.reorder(tf.ones([2])),
        "reorder: sp_input must be a tf.SparseTensor",
    ),
    "sparse sum of a list": (lambda: tf.sparse.reduce_sum([1.0]), "reduce_sum: sp_input must be a tf.SparseTensor"),
    "sparse maximum of numbers": (lambda: tf.sparse.maximum(1, 2), "maximum: sp_a must be a tf.SparseTensor"),
    "sparse product of tensors": (lambda: tf.sparse.sparse_dense_matmul(EYE, EYE), "one of the matrices must be"),
    "no sparse tensors": (lambda: tf.sparse.concat(0, []), "sp_inputs must be a list of tf.SparseTensor"),
    "ragged axis": (lambda: tf.expand_dims(IMAGE, ROWS), "expand_dims: axis must not be a ragged tensor"),
    "ragged axis of a sum": (lambda: tf.reduce_sum([1.0], ROWS), "axis must not be a ragged tensor"),
    "ragged shape": (lambda: tf.broadcast_to([1.0], ROWS), "shape must not be a ragged tensor"),
    "string as shapes": (lambda: tf.data.Dataset.range(3).padded_batch(2, "abc"), "expected a shape, .* got 'abc'"),
    "string as invariants": (
        lambda: tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0], shape_invariants="abc"),
        "shape_invariants must be tf.TensorShape",
    ),
    "branches": (lambda: tf.switch_case(0, tf.ones([])), "branch_fns must be a list or dict of functions"),
    "strings as segments": (
        lambda: tf.math.bincount(tf.constant(["a"])),
        "expected integers|not supported|must be int",
    ),
    "template": (lambda: tf.strings.format(3, [1]), "template and placeholder must be strings, got 3"),
    "encoding": (lambda: tf.strings.unicode_decode("a", 3), "the encoding must be a string, got 3"),
    "numbers as datasets": (
        lambda: tf.data.Dataset.sample_from_datasets([1.0, 2.0]),
        "sample_from_datasets: expected datasets, got 1.0",
    ),
    "choices": (
        lambda: tf.data.Dataset.choose_from_datasets([tf.data.Dataset.range(2)], 3),
        "choose_from_datasets: expected datasets, got 3",
    ),
    "operator": (lambda: tf.linalg.LinearOperatorAdjoint(EYE), "expected a tf.linalg.LinearOperator"),
    "operators": (lambda: tf.linalg.LinearOperatorKronecker([EYE]), "expected a tf.linalg.LinearOperator"),
    "axes of fftshift": (lambda: tf.signal.fftshift(EYE, 2), r"fftshift: axes must be in \[-2, 2\), got 2"),
    "offsets": (lambda: tf.image.extract_glimpse(IMAGE, [2, 2], [1.0]), r"offsets \[batch, 2\], got"),
    "primals": (lambda: tf.autodiff.ForwardAccumulator(1.0, 2.0), "primals must be tensors or variables, got 1.0"),
    "features": (lambda: tf.train.Features(feature=[1]), "expected a dict of tf.train.Feature, got list"),
    "near integers": (lambda: tf.debugging.assert_near(tf.constant([1]), tf.constant([2])), "atol=0, rtol=0"),
    "near unsigned": (
        lambda: tf.debugging.assert_near(tf.constant([1], tf.uint8), tf.constant([2], tf.uint8)),
        "atol=0, rtol=0",
    ),
}


@pytest.mark.parametrize("call, message", REFUSED.values(), ids=REFUSED)
def test_refused(call, message):
    before = tf.memory.live_bytes()
    tf.memory.reset_peak()
    with pytest.raises((ValueError, MemoryError, TypeError), match=message):
        call()
    assert tf.memory.peak_bytes() - before < 10_000


def test_ranges_become_tensors_without_lists():
    assert tf.constant(range(3, 10, 3)).numpy().tolist() == [3, 6, 9]
    assert tf.constant(range(5, 0, -2)).dtype == tf.int32
    assert tf.constant(range(2**40, 2**40 + 2)).numpy().tolist() == [2**40, 2**40 + 1]
    assert tf.constant(range(0)).shape == [0]
    assert tf.constant(range(2), tf.float32).numpy().tolist() == [0.0, 1.0]
    assert (tf.constant([1.0, 2.0]) + range(2)).numpy().tolist() == [1.0, 3.0]
    assert tf.ones(range(2, 4)).shape == [2, 3]


def test_broadcast_shapes_of_many_axes():
    assert tf.broadcast_static_shape([1] * 40, [2]) == [1] * 39 + [2]
    assert tf.broadcast_static_shape([3, 1], [1, 5]) == [3, 5]
    assert tf.broadcast_static_shape(tf.TensorShape([None, 1, None]), [4, 1]).as_list() == [None, 4, None]
    assert tf.broadcast_static_shape(tf.TensorShape([None]), [4]).as_list() == [4]
    assert tf.broadcast_static_shape([0], [1]) == [0]
    with pytest.raises(ValueError, match="not broadcastable"):
        tf.broadcast_static_shape([1] * 40 + [3], [2])
    with pytest.raises(ValueError, match="not broadcastable"):
        tf.broadcast_static_shape([0], [2])


def test_integers():
    assert tf.linalg.matrix_rank(tf.constant([[1, 0], [0, 2]])).numpy() == 2
    assert tf.linalg.matrix_rank(tf.constant([[1, 2], [2, 4]])).numpy() == 1
    tf.debugging.assert_near(tf.constant([1, 5]), tf.constant([1, 5]))
    tf.debugging.assert_near(tf.constant([10]), tf.constant([11]), atol=1)
    tf.debugging.assert_near(tf.constant([3], tf.uint8), tf.constant([4], tf.uint8), rtol=0.5)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.debugging.assert_near(tf.constant([2**53], tf.int64), tf.constant([2**53 + 1], tf.int64))


def test_differences_of_any_order_end():
    assert tf.array_api.diff(tf.constant([1, 4, 9]), n=2).numpy().tolist() == [2]
    assert tf.array_api.diff(tf.constant([1, 4, 9]), n=2**32).shape == [0]


def test_means_over_an_empty_batch():
    losses = tf.constant([1.0, 2.0])
    assert tf.nn.compute_average_loss(losses, global_batch_size=4).numpy() == 0.75
    # As TensorFlow: the sum over no examples is 0, not an error.
    assert tf.nn.compute_average_loss(losses, global_batch_size=0).numpy() == 0.0
    with pytest.raises(ValueError, match="global_batch_size must be >= 0, got -1"):
        tf.nn.compute_average_loss(losses, global_batch_size=-1)


def test_second_derivatives_of_piecewise_linear_functions():
    x = tf.Variable([-1.0, 2.0])
    for function in (tf.nn.relu, tf.nn.relu6, tf.nn.leaky_relu):
        with tf.GradientTape(persistent=True) as outer:
            with tf.GradientTape() as inner:
                y = function(x)
            first = inner.gradient(y, x)
        assert outer.gradient(first, x).numpy().tolist() == [0.0, 0.0]


def test_random_maps_draw_anew_in_each_epoch_unless_there_is_a_seed(monkeypatch):
    monkeypatch.setattr("taut._ops.random._has_seed", False)

    def epochs():
        dataset = tf.data.Dataset.range(3).map(lambda _: tf.random.uniform([]))
        return [[float(value) for value in dataset] for _ in range(2)]

    first, second = epochs()
    assert first != second
    tf.random.set_seed(7)
    seeded = epochs()
    tf.random.set_seed(7)
    assert seeded == epochs() and seeded[0] == seeded[1]


@pytest.mark.parametrize("loop", [tf.foldl, tf.foldr, tf.scan])
def test_loops_refuse_a_single_string(loop):
    with pytest.raises(ValueError, match="must have rank >= 1"):
        loop(lambda state, _: state, "SAME", 1.0)
    with pytest.raises(ValueError, match="must have rank >= 1"):
        tf.map_fn(lambda x: x, "SAME")


def test_many_partitions():
    # In time that does not grow with the product of elements and partitions.
    parts = tf.dynamic_partition(tf.range(50_000), tf.range(49_999, -1, -1), 50_000)
    assert [int(part[0]) for part in parts[:3]] == [49_999, 49_998, 49_997]
    parts = tf.dynamic_partition([[1, 2], [3, 4], [5, 6]], [2, 0, 2], 4)
    assert [part.numpy().tolist() for part in parts] == [[[3, 4]], [], [[1, 2], [5, 6]], []]
    assert tf.dynamic_partition([], tf.constant([], tf.int32), 2)[1].shape == [0]
    assert tf.dynamic_partition([1.0], [0], 1)[0].numpy().tolist() == [1.0]
    assert tf.dynamic_partition([], tf.constant([], tf.int32), 0) == []
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        first, second = tf.dynamic_partition(x, [1, 0, 1], 2)
        y = tf.reduce_sum(first * first) + 5.0 * tf.reduce_sum(second)
    assert tape.gradient(y, x).numpy().tolist() == [5.0, 4.0, 5.0]


def test_datasets_of_very_many_stages_are_refused():
    dataset = tf.data.Dataset.range(3)
    for _ in range(2000):
        dataset = dataset.skip(0)
    assert [int(x) for x in dataset.prefetch(1)] == [0, 1, 2]
    with pytest.raises(ValueError, match="at most 4096 stages"):
        for _ in range(5000):
            dataset = dataset.skip(0)


def test_crops_of_batch_to_space_lie_inside_the_image():
    x = tf.ones([4, 4, 4, 1])
    for crops in ([[100, 100], [0, 0]], [[4, 5], [0, 0]], [[-1, 0], [0, 0]], [[2**62, 2**62], [0, 0]]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="crops must be >= 0 and at most 8 together"):
            tf.batch_to_space(x, [2, 2], crops)
    assert tf.batch_to_space(x, [2, 2], [[4, 4], [0, 0]]).shape == [1, 0, 8, 1]


def test_widths_of_numbers_in_strings_are_bounded():
    for options in ({"width": 2**31 - 1}, {"precision": 10**5}, {"width": 10**9, "fill": "0"}):
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be <= 65535"):
            tf.strings.as_string(1.5, **options)
    assert len(tf.strings.as_string(1.5, width=65535).numpy()) == 65535


def test_binomial_samples_take_no_time_that_grows_with_the_trials():
    counts = tf.constant([1e3, 1e6, 1e9, 1e12, 1e18], tf.float64)
    chances = tf.constant([0.4, 0.9, 0.5, 0.25, 0.5], tf.float64)
    samples = tf.random.stateless_binomial([4000, 5], [1, 2], counts, chances, tf.float64).numpy()
    mean, variance = (counts * chances).numpy(), (counts * chances * (1 - chances)).numpy()
    assert (abs(samples.mean(0) - mean) < 5 * (variance / 4000) ** 0.5).all()
    assert (abs(samples.var(0) / variance - 1) < 0.12).all()


def test_normal_samples_far_from_the_mean_lie_in_their_interval():
    # Beyond a, samples exceed it by 1 / a on average.
    sample = tf.random.stateless_parameterized_truncated_normal
    for low, high in ((100.0, 101.0), (-101.0, -100.0), (37.5, 60.0), (8.0, float("inf"))):
        x = abs(sample([4000], [1, 2], 0.0, 1.0, low, high).numpy().astype("f8"))
        nearest = min(abs(low), abs(high))
        assert x.min() >= nearest
        assert abs((x.mean() - nearest) * nearest - 1) < 0.1


def test_as_many_seeds_as_results():
    for split in (tf.random.split, tf.random.experimental.stateless_split):
        with pytest.raises(ValueError, match=r"num must be in \[0, 1048576\]"):
            split([1, 2], 2**40)


def test_binomial_samples_of_a_generator_and_its_reset():
    generator = tf.random.Generator.from_seed(3)
    state = generator.state.read_value()
    first = generator.binomial([1000], 50.0, 0.9)
    assert first.dtype == tf.int32 and abs(float(tf.reduce_mean(tf.cast(first, tf.float64))) - 45.0) < 0.4
    assert bool(tf.reduce_any(generator.binomial([1000], 50.0, 0.9) != first))
    generator.reset(state)
    assert bool(tf.reduce_all(generator.binomial([1000], 50.0, 0.9) == first))


def test_arguments_whose_methods_call_the_function():
    # In a process of its own: a function that waits for itself would not return.
    text = """
import taut as tf
f = tf.function(lambda a: 1.0)
class Argument:
    def __hash__(self):
        return int(f(3))
    def __eq__(self, other):
        return f(4) == 1.0 and self is other
    def __repr__(self):
        return str(f(5))
first, second = Argument(), Argument()
print(*(float(f(a)) for a in (first, second, first, [second])), len(f.traces) >= 5)
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout.strip()) == (0, "1.0 1.0 1.0 1.0 True"), ran.stderr[-2000:]


@pytest.mark.parametrize(
    "make",
    [
        lambda tnp: tnp.vander(2**31, 2**31),
        lambda tnp: tnp.vander([1.0], 2**40),
        lambda tnp: tnp.zeros(10**12),
        lambda tnp: tnp.ones([10**6, 10**6], "int8"),
        lambda tnp: tnp.eye(10**6),
        lambda tnp: tnp.tri(10**6),
        lambda tnp: tnp.linspace(0, 1, 10**11),
    ],
)
def test_arrays_beyond_the_limit_are_an_error_before_they_are_made(make):
    before = tf.memory.live_bytes()
    tf.memory.limit(before + (64 << 20))
    try:
        with pytest.raises(tf.errors.ResourceExhaustedError):
            make(tf.experimental.numpy)
    finally:
        tf.memory.limit(None)
    assert tf.memory.live_bytes() == before
