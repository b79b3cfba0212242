"""CTC decoders, fractional pooling, random windows, own conversions: against enumeration and their definitions."""

import itertools
import math

import numpy as np
import pytest

import taut as tf

RNG = np.random.default_rng(5)


def paths(chances, blank):
    """The probabilities of all label sequences, by enumerating every alignment."""
    found = {}
    steps, classes = chances.shape
    for alignment in itertools.product(range(classes), repeat=steps):
        labels = tuple(kind for kind, _ in itertools.groupby(alignment) if kind != blank)
        found[labels] = found.get(labels, 0.0) + math.prod(chances[i, kind] for i, kind in enumerate(alignment))
    return sorted(found.items(), key=lambda one: -one[1])


def test_beam_search_finds_the_likeliest_labels():
    logits = RNG.normal(size=(4, 3, 3)).astype(np.float32)
    lengths = [4, 3, 4]
    found, scores = tf.nn.ctc_beam_search_decoder(logits, lengths, beam_width=200, top_paths=3)
    for row, length in enumerate(lengths):
        shares = np.exp(logits[:length, row])
        expected = paths(shares / shares.sum(-1, keepdims=True), 2)[:3]
        for place, (labels, chance) in enumerate(expected):
            dense = tf.sparse.to_dense(found[place], default_value=-1).numpy()[row]
            assert [label for label in dense if label >= 0] == list(labels)
            assert math.exp(scores[row, place]) == pytest.approx(chance, rel=1e-4)


def test_greedy_decoder_merges_and_drops_blanks():
    best = [[0, 0, 2, 0], [1, 1, 1, 2]]
    logits = np.swapaxes(np.eye(3, dtype=np.float32)[best] * 5, 0, 1)
    (found,), scores = tf.nn.ctc_greedy_decoder(logits, [4, 3])
    assert tf.sparse.to_dense(found, default_value=-1).numpy().tolist() == [[0, 0], [1, -1]]
    assert scores.numpy().tolist() == [[-20.0], [-15.0]]
    (found,), _ = tf.nn.ctc_greedy_decoder(logits, [4, 3], merge_repeated=False, blank_index=0)
    assert tf.sparse.to_dense(found, default_value=-1).numpy().tolist() == [[2, -1, -1], [1, 1, 1]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="sequence_length"):
        tf.nn.ctc_greedy_decoder(logits, [4])


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda x: tf.nn.ctc_greedy_decoder(x, [5, 1]), r"sequence_length must be in \[0, 4\], got \[5, 1\]"),
        (lambda x: tf.nn.ctc_greedy_decoder(x, [4, -1]), r"sequence_length must be in \[0, 4\], got \[4, -1\]"),
        (lambda x: tf.nn.ctc_beam_search_decoder(x, [4, 5]), r"sequence_length must be in \[0, 4\], got \[4, 5\]"),
        (lambda x: tf.nn.ctc_greedy_decoder(x, [4, 4], blank_index=3), r"blank_index must be in \[-3, 3\), got 3"),
        (lambda x: tf.nn.ctc_greedy_decoder(x, [4, 4], blank_index=-4), r"blank_index must be in \[-3, 3\), got -4"),
        (
            lambda x: tf.nn.ctc_loss([[1], [1]], x, [1, 1], [4, 4], blank_index=7),
            r"blank_index must be in \[-3, 3\), got 7",
        ),
    ],
)
def test_arguments_of_ctc_out_of_range_are_errors(wrong, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        wrong(np.zeros((4, 2, 3), np.float32))


@pytest.mark.parametrize("pseudo_random", [False, True])
@pytest.mark.parametrize("overlapping", [False, True])
def test_fractional_pools_cover_the_image(pseudo_random, overlapping):
    x = RNG.normal(size=(2, 11, 7, 3)).astype(np.float32)
    for pool, reduce in ((tf.nn.fractional_max_pool, np.max), (tf.nn.fractional_avg_pool, np.mean)):
        made, rows, columns = pool(x, [1.0, 1.6, 1.3, 1.0], pseudo_random, overlapping)
        rows, columns = rows.numpy(), columns.numpy()
        for places, size, count in ((rows, 11, 6), (columns, 7, 5)):
            assert places[0] == 0 and places[-1] == size and len(places) == count + 1
            assert set(np.diff(places)) <= {size // count, size // count + 1}
        more = int(overlapping)
        expected = [
            [reduce(x[:, a : b + more, c : d + more], (1, 2)) for c, d in itertools.pairwise(columns)]
            for a, b in itertools.pairwise(rows)
        ]
        np.testing.assert_allclose(made.numpy(), np.moveaxis(np.array(expected), 2, 0), rtol=1e-5, atol=1e-6)


def test_fractional_pools_draw_anew_in_traces():
    x = tf.random.normal([1, 40, 40, 1])
    traced = tf.function(lambda x: tf.nn.fractional_max_pool(x, 1.5).row_pooling_sequence)
    assert len({tuple(traced(x).numpy()) for _ in range(5)}) > 1
    seeded = tf.function(lambda x: tf.nn.fractional_max_pool(x, 1.5, seed=7).row_pooling_sequence)
    assert len({tuple(seeded(x).numpy()) for _ in range(5)}) == 1
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.nn.fractional_avg_pool(x, 1.5, seed=7).output)
    assert float(tf.reduce_sum(tape.gradient(y, x))) == pytest.approx(26 * 26, rel=1e-5)


def test_random_windows_cover_a_box():
    for seed in range(30):
        begin, size, box = tf.image.stateless_sample_distorted_bounding_box(
            [40, 60, 3], [[[0.2, 0.2, 0.6, 0.7], [0.0, 0.0, 0.1, 0.1]]], [seed, 1], 0.5, [0.5, 2.0], [0.1, 0.8], 1000
        )
        (top, left, zero), (height, width, all_channels) = begin.numpy(), size.numpy()
        assert zero == 0 and all_channels == -1 and top >= 0 and left >= 0
        assert top + height <= 40 and left + width <= 60 and 0.1 <= height * width / 2400 <= 0.8
        assert 0.45 <= width / height <= 2.2
        fractions = [top / 40, left / 60, (top + height) / 40, (left + width) / 60]
        np.testing.assert_allclose(box.numpy()[0, 0], fractions, rtol=1e-6)
        covered = []
        for y1, x1, y2, x2 in ((8, 12, 24, 42), (0, 0, 4, 6)):
            shared = max(min(y2, top + height) - max(y1, top), 0) * max(min(x2, left + width) - max(x1, left), 0)
            covered.append(shared / ((y2 - y1) * (x2 - x1)))
        assert max(covered) >= 0.5 - 1e-6
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least one bounding box"):
        tf.image.sample_distorted_bounding_box([4, 4, 3], tf.zeros([1, 0, 4]))


def test_random_windows_draw_anew_in_traces():
    @tf.function
    def crop(image):
        begin, size, _ = tf.image.sample_distorted_bounding_box(tf.shape(image), [[[0.0, 0.0, 1.0, 1.0]]])
        return tf.slice(image, begin, size)

    with pytest.warns(RuntimeWarning, match="op by op"):
        shapes = {tuple(crop(tf.zeros([50, 50, 3])).shape) for _ in range(5)}
    assert len(shapes) > 1


def test_soft_suppression_is_tensorflows():
    boxes = [[0, 0, 1, 1], [0, 0, 1, 0.9], [0, 0, 1, 0.4], [0, 0.5, 1, 1.2], [0.2, 0.2, 0.8, 0.8]]
    kept, scores = tf.image.non_max_suppression_with_scores(
        boxes, [0.9, 0.8, 0.7, 0.6, 0.65], 5, iou_threshold=0.5, soft_nms_sigma=0.3
    )
    assert kept.numpy().tolist() == [0, 2, 4, 3, 1]
    np.testing.assert_allclose(scores.numpy(), [0.9, 0.5361498, 0.4939224, 0.41898975, 0.09496818], rtol=1e-6)
    assert tf.image.non_max_suppression(boxes, [0.9, 0.8, 0.7, 0.6, 0.65], 5).numpy().tolist() == [0, 2, 4, 3]
    with pytest.warns(RuntimeWarning, match="op by op"):
        traced = tf.function(lambda b, s: tf.image.non_max_suppression(b, s, 5))
        assert traced(tf.constant(boxes), tf.constant([0.9, 0.8, 0.7, 0.6, 0.65])).numpy().tolist() == [0, 2, 4, 3]


def test_jpeg_quality_loses_detail():
    image = RNG.uniform(size=(16, 16, 3)).astype(np.float32)
    losses = [float(np.abs(tf.image.adjust_jpeg_quality(image, q).numpy() - image).mean()) for q in (5, 50, 100)]
    assert losses[0] > losses[1] > losses[2] and losses[2] < 0.05
    assert tf.image.stateless_random_jpeg_quality(image, 20, 80, [1, 2]).shape == (16, 16, 3)
    with pytest.raises(ValueError, match="min_jpeg_quality"):
        tf.image.random_jpeg_quality(image, 80, 20)


def test_own_classes_become_tensors():
    class Celsius:
        def __init__(self, degrees):
            self.degrees = degrees

    with pytest.raises(TypeError, match="expected a tensor"):
        tf.convert_to_tensor(Celsius(1.0))
    later = tf.register_tensor_conversion_function(Celsius, lambda value, **_: tf.constant(value.degrees), 200)
    assert later is None and float(tf.convert_to_tensor(Celsius(1.5))) == 1.5
    tf.register_tensor_conversion_function(
        Celsius, lambda value, **_: NotImplemented if value.degrees < 0 else tf.constant(value.degrees + 273.0)
    )
    assert float(tf.add(Celsius(1.0), 1.0)) == 275.0 and float(tf.add(Celsius(-1.0), 1.0)) == 0.0
    with pytest.raises(TypeError, match="base_type must be a class"):
        tf.register_tensor_conversion_function(int, lambda value, **_: value)


def test_accidental_hits_are_found():
    hits = tf.nn.compute_accidental_hits(
        tf.constant([[1, 2], [3, 4]], tf.int64), tf.constant([4, 1, 7, 2], tf.int64), 2
    )
    assert hits.indices.numpy().tolist() == [0, 0, 1] and hits.ids.numpy().tolist() == [1, 3, 0]
    assert (hits.weights.numpy() == np.finfo(np.float32).min).all()


def test_lists_of_indices_select_points():
    x = np.arange(60).reshape(3, 4, 5)
    rows, columns = np.array([0, 2]), np.array([3, 1])
    t = tf.constant(x)
    assert (t[rows, columns].numpy() == x[rows, columns]).all()
    assert (t[rows[:, None], columns].numpy() == x[rows[:, None], columns]).all()
    assert (t[rows, columns, 1:3].numpy() == x[rows, columns, 1:3]).all()
    assert (t[rows, 1, columns].numpy() == x[rows, 1, columns]).all()
    assert (t[rows, columns, columns].numpy() == x[rows, columns, columns]).all()
    assert t[tf.constant(True)].shape == (1, 3, 4, 5) and t[tf.constant(False)].shape == (0, 3, 4, 5)
    with tf.GradientTape() as tape:
        v = tf.Variable(x.astype(np.float64))
        y = tf.reduce_sum(v[rows, columns] ** 2)
    expected = np.zeros(x.shape)
    expected[rows, columns] = 2.0 * x[rows, columns]
    np.testing.assert_array_equal(tf.convert_to_tensor(tape.gradient(y, v)).numpy(), expected)
    with pytest.raises(IndexError, match="several arrays of indices"):
        t[:, rows, columns]


@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        (lambda x: tf.log(x), AttributeError, "TensorFlow 1\n  help: use tf.math.log"),
        (lambda x: tf.Session(), AttributeError, "use a call of the function"),
        (lambda x: x.__setitem__(0, 1.0), TypeError, "immutable\n  help: tf.tensor_scatter_nd_update"),
        (lambda x: tf.Variable(x).__setitem__(0, 1.0), TypeError, r"help: variable\[key\].assign"),
        (lambda x: bool(x), ValueError, "ambiguous\n  help: use tf.reduce_all or tf.reduce_any"),
        (lambda x: tf.constant([[1, 2], [3]]), ValueError, "help: tf.ragged.constant"),
        (lambda x: tf.random.set_seed("a"), TypeError, "seed must be an integer, got 'a'"),
        (lambda x: tf.memory.limit("4 GB"), TypeError, "bytes must be an integer"),
    ],
)
def test_errors_say_what_to_write(wrong, kind, text):
    with pytest.raises(kind, match=text):
        wrong(tf.constant([1.0, 2.0]))


def test_names_of_tensorflow_1_are_explained():
    from taut._missing import FORMER

    for name, instead in FORMER.items():
        assert not hasattr(tf, name)
        thing = tf
        for part in instead.split(".")[1:] if instead.startswith("tf.") else ():
            thing = getattr(thing, part)
