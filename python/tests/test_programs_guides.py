"""Programs of the kinds that TensorFlow's guides and tutorials show, written anew, as tests of what they compute."""

import numpy as np
import pytest

import taut as tf


class Linear(tf.Module):
    """A line with a name scope for its variables."""

    def __init__(self, name=None):
        super().__init__(name=name)
        with self.name_scope:
            self.w = tf.Variable(5.0, name="w")
            self.b = tf.Variable(0.0, name="b")

    @tf.Module.with_name_scope
    def __call__(self, x):
        return self.w * x + self.b


def points():
    x = tf.linspace(-2.0, 2.0, 201)
    return x, 3.0 * x + 2.0


def test_a_line_is_fitted_by_a_training_loop():
    model, (x, y) = Linear(), points()

    @tf.function
    def train(x, y, rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(y - model(x)))
        dw, db = tape.gradient(loss, [model.w, model.b])
        model.w.assign_sub(rate * dw)
        model.b.assign_sub(rate * db)
        return loss

    losses = [float(train(x, y, 0.1)) for _ in range(60)]
    assert losses[0] > 8 and losses[-1] < 1e-4 and losses == sorted(losses, reverse=True)
    np.testing.assert_allclose([model.w, model.b], [3, 2], atol=0.01)
    assert train.trace_count == 1
    assert [v.name for v in model.variables] == ["linear/b:0", "linear/w:0"]
    assert model.name_scope.name == "linear/"


def test_training_goes_on_after_a_restart(tmp_path):
    def run(steps):
        model, optimizer = Linear(), tf.optimizers.Adam(0.1)
        data = iter(tf.data.Dataset.from_tensor_slices(points()).repeat().batch(10))
        step = tf.Variable(0)
        checkpoint = tf.train.Checkpoint(step=step, optimizer=optimizer, net=model, iterator=data)
        manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=2)
        checkpoint.restore(manager.latest_checkpoint)
        first = int(step)
        for _ in range(steps):
            x, y = next(data)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.abs(model(x) - y))
            optimizer.minimize(loss, model.trainable_variables, tape=tape)
            step.assign_add(1)
            if int(step) % 5 == 0:
                manager.save()
        return first, float(model.w), len(manager.checkpoints)

    assert run(10)[0] == 0
    first, halves, kept = run(10)
    assert first == 10 and kept == 2
    for path in tmp_path.iterdir():
        path.unlink()
    assert run(20)[1] == pytest.approx(halves, abs=1e-6)


def test_a_function_takes_batches_from_an_iterator():
    data = iter(tf.data.Dataset.range(10).map(lambda x: (x, x * x)).batch(2, drop_remainder=True))
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def steps(iterator, count):
        for _ in tf.range(count):
            x, y = next(iterator)
            total.assign_add(tf.reduce_sum(y - x))

    steps(data, 2)
    assert int(total) == sum(x * x - x for x in range(4))
    steps(data, 3)
    assert int(total) == sum(x * x - x for x in range(10))
    with pytest.raises(tf.errors.OutOfRangeError):
        steps(data, 1)


def test_windows_of_a_series_become_inputs_and_labels():
    series = tf.data.Dataset.range(12)
    windows = series.window(5, shift=2, drop_remainder=True).flat_map(lambda window: window.batch(5))
    pairs = windows.map(lambda row: (row[:-1], row[-1:])).batch(2)
    x, y = next(iter(pairs))
    assert x.numpy().tolist() == [[0, 1, 2, 3], [2, 3, 4, 5]] and y.numpy().tolist() == [[4], [6]]


def test_classes_are_balanced_by_sampling():
    rare = tf.data.Dataset.from_tensors(1).repeat()
    common = tf.data.Dataset.from_tensors(0).repeat()
    mixed = tf.data.Dataset.sample_from_datasets([common, rare], weights=[0.5, 0.5], seed=1).batch(200)
    assert 60 < int(tf.reduce_sum(next(iter(mixed)))) < 140


def test_gradients_follow_the_branch_that_runs():
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        first, second = x * 2.0, x**2
        result = first if x > 3.0 else second
    assert tape.gradient(result, x).numpy() == 4.0
    assert tape.gradient(first, x).numpy() == 2.0
    assert tape.gradient(tf.constant(1.0), x) is None


def test_the_jacobian_of_a_layer_and_its_hessian():
    x = tf.constant([[0.5, -1.0, 2.0]])
    kernel = tf.Variable(np.arange(6.0, dtype=np.float32).reshape(3, 2) / 10)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_mean(tf.nn.tanh(tf.matmul(x, kernel)) ** 2)
        gradient = inner.gradient(loss, kernel)
    hessian = outer.jacobian(gradient, kernel)
    assert hessian.shape == [3, 2, 3, 2]
    flat = tf.reshape(hessian, [6, 6]).numpy()
    np.testing.assert_allclose(flat, flat.T, rtol=1e-5, atol=1e-7)
    # A step of Newton's method with strong damping lowers the loss.
    step = tf.linalg.solve(tf.reshape(hessian, [6, 6]) + 10.0 * tf.eye(6), tf.reshape(gradient, [6, 1]))
    kernel.assign_sub(tf.reshape(step, [3, 2]))
    assert float(tf.reduce_mean(tf.nn.tanh(tf.matmul(x, kernel)) ** 2)) < float(loss)


def test_a_generator_and_a_discriminator_learn_against_each_other():
    tf.random.set_seed(1)
    scale, threshold = tf.Variable(0.1), tf.Variable([0.0, 0.0])
    optimizers = tf.optimizers.SGD(0.1), tf.optimizers.SGD(0.1)

    def judged(values):
        return threshold[0] * values + threshold[1]

    @tf.function
    def step(noise, real):
        with tf.GradientTape() as for_generator, tf.GradientTape() as for_judge:
            made = scale * noise
            loss_made = tf.reduce_mean(tf.nn.softplus(-judged(made)))
            loss_judge = tf.reduce_mean(tf.nn.softplus(-judged(real)) + tf.nn.softplus(judged(made)))
        optimizers[0].apply_gradients([(for_generator.gradient(loss_made, scale), scale)])
        optimizers[1].apply_gradients([(for_judge.gradient(loss_judge, threshold), threshold)])
        return loss_made, loss_judge

    noise = tf.abs(tf.random.normal([256]))
    first = [float(loss) for loss in step(noise, 2.0 * noise)]
    for _ in range(150):
        last = [float(loss) for loss in step(noise, 2.0 * noise)]
    assert all(np.isfinite(first + last)) and float(scale) > 1.0 and step.trace_count == 1


def test_augmentation_in_a_pipeline_is_repeatable():
    images = tf.random.stateless_uniform([6, 8, 8, 3], [1, 2])
    counter = tf.data.Dataset.counter()

    def augmented(image, number):
        seed = tf.stack([number, number + 1])
        image = tf.image.stateless_random_flip_left_right(image, seed)
        image = tf.image.stateless_random_brightness(image, 0.2, seed)
        return tf.clip_by_value(image, 0.0, 1.0)

    data = tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices(images), counter)).map(augmented).batch(3)
    one, other = (np.concatenate(list(data.as_numpy_iterator())) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert one.shape == (6, 8, 8, 3) and np.any(one != images.numpy())


def test_variables_of_a_creator_scope_and_a_constraint():
    made = []

    def creator(next_creator, **kwargs):
        made.append(kwargs["name"])
        return next_creator(**{**kwargs, "trainable": False})

    with tf.variable_creator_scope(creator):
        v = tf.Variable(1.0, name="v")
    assert made == ["v"] and not v.trainable
    positive = tf.Variable([1.0, -1.0], constraint=tf.abs)
    tf.optimizers.SGD(2.0).apply_gradients([(tf.constant([1.0, 0.0]), positive)])
    assert positive.numpy().tolist() == [1.0, 1.0]
    assert (positive.synchronization, positive.aggregation) == (
        tf.VariableSynchronization.AUTO,
        tf.VariableAggregation.NONE,
    )


def test_a_log_softmax_with_a_gradient_of_its_own_and_a_straight_through_step():
    @tf.custom_gradient
    def clipped(x):
        return tf.identity(x), lambda upstream: tf.clip_by_norm(upstream, 0.5)

    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = clipped(v * v)
    assert tape.gradient(y, v).numpy() == 2.0  # the gradient of the output, 1, is clipped to 0.5
    rounded = tf.grad_pass_through(tf.round)
    x = tf.Variable([0.4, 1.6])
    with tf.GradientTape() as tape:
        z = tf.reduce_sum(rounded(x) * [1.0, 3.0])
    assert rounded(x).numpy().tolist() == [0.0, 2.0] and tape.gradient(z, x).numpy().tolist() == [1.0, 3.0]


def test_hessians_inside_a_function():
    @tf.function
    def found(x):
        return tf.hessians(x[0] * x[1] * x[1], x)

    assert found(tf.constant([3.0, 2.0]))[0].numpy().tolist() == [[0.0, 4.0], [4.0, 6.0]]


def test_features_of_a_table_are_stacked_in_the_order_of_its_columns():
    table = {"survived": [0, 1, 1], "age": [22.0, 38.0, 26.0], "fare": [7.25, 71.5, 8.0]}
    labels = table.pop("survived")
    rows = tf.data.Dataset.from_tensor_slices((table, labels)).batch(2)
    packed = rows.map(lambda features, label: (tf.stack(list(features.values()), axis=1), label))
    x, y = next(iter(packed))
    assert x.numpy().tolist() == [[22.0, 7.25], [38.0, 71.5]] and y.numpy().tolist() == [0, 1]


def test_variables_that_are_reached_by_several_paths_are_restored_by_each(tmp_path):
    saved = tf.train.Checkpoint()
    saved.listed = [tf.Variable(1.0)]
    saved.listed.append(tf.Variable(2.0))
    saved.mapped = {"one": saved.listed[0]}
    saved.mapped["two"] = saved.listed[1]
    path = saved.save(tmp_path / "lists")
    found = tf.Variable(0.0)
    restored = tf.train.Checkpoint(mapped={"two": found})
    restored.restore(path).expect_partial()
    assert found.numpy() == 2.0


def test_ragged_rows_beside_a_column():
    rows = tf.ragged.constant([[10, 87, 12], [19, 53], [12, 32]])
    assert (rows + [[1000], [2000], [3000]]).to_list() == [[1010, 1087, 1012], [2019, 2053], [3012, 3032]]
    assert (3 - rows).to_list() == [[-7, -84, -9], [-16, -50], [-9, -29]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="do not broadcast"):
        rows + tf.constant([1, 2, 3, 4, 5, 6, 7])  # as many as there are values
    blocks = tf.ragged.constant([[[1, 2], [3, 4], [5, 6]], [[7, 8]]], ragged_rank=1)
    assert (blocks + tf.constant([[10]])).to_list() == [[[11, 12], [13, 14], [15, 16]], [[17, 18]]]
    assert (blocks * tf.constant([[[10, 20]], [[30, 40]]])).to_list() == [
        [[10, 40], [30, 80], [50, 120]],
        [[210, 320]],
    ]
    deep = tf.ragged.constant([[[1], [2, 3]], [[4, 5, 6]]])
    assert (deep + tf.constant([[[100]], [[200]]])).to_list() == [[[101], [102, 103]], [[204, 205, 206]]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="do not broadcast"):
        tf.ragged.constant([[1, 2], [3]]) + tf.ragged.constant([[1], [2, 3]])


def test_windows_of_a_time_series_have_an_open_batch():
    series = tf.keras.utils.timeseries_dataset_from_array(np.arange(101.0), None, 5, batch_size=32)
    sizes = [batch.shape[0] for batch in series]
    assert sizes == [32, 32, 32, 1] and series.element_spec.shape[0] is None
    inputs = series.map(lambda batch: batch[:, :3])
    assert inputs.element_spec.shape[0] is None and next(iter(inputs)).shape == (32, 3)


def test_a_signature_names_what_does_not_fit():
    @tf.function(input_signature=(tf.TensorSpec(shape=[None], dtype=tf.int32),))
    def next_collatz(x):
        return tf.where(x % 2 == 0, x // 2, 3 * x + 1)

    assert next_collatz(tf.constant([1, 2])).numpy().tolist() == [4, 1]
    for wrong in (tf.constant([[1, 2], [3, 4]]), tf.constant([1.0, 2.0])):
        with pytest.raises(TypeError, match="by its input signature"):
            next_collatz(wrong)


def test_lengths_of_a_timeline_grow_from_no_rows():
    steps = tf.zeros([0, 1], dtype=tf.string)
    for name in ("open", "read"):
        steps = tf.concat([steps, [[name]]], axis=0)
    assert steps.numpy().tolist() == [[b"open"], [b"read"]]


def test_tensors_with_the_methods_of_arrays():
    names = ("__pos__", "astype", "clip", "data", "flatten", "max", "mean", "min", "ravel", "reshape", "transpose")
    before = {name: vars(tf.Tensor).get(name) for name in names}
    tf.experimental.numpy.experimental_enable_numpy_behavior()
    try:
        x = tf.reshape(tf.range(6), [2, 3])
        assert x.reshape(3, 2).shape == (3, 2) and x.reshape((-1,)).shape == (6,) and x.ravel().shape == (6,)
        assert x.astype("float32").dtype == tf.float32 and x.transpose().shape == (3, 2)
        assert (int(x.max()), x.min(axis=0).numpy().tolist(), float(x.mean())) == (5, [0, 1, 2], 2.5)
        assert x.max(axis=1, keepdims=True).numpy().tolist() == [[2], [5]]
        assert x.clip(1, 3).numpy().tolist() == [[1, 1, 2], [3, 3, 3]]
        flat = tf.function(lambda y: y.reshape(-1).astype(tf.float32))(x)
        assert flat.numpy().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    finally:
        for name, member in before.items():
            delattr(tf.Tensor, name) if member is None else setattr(tf.Tensor, name, member)


def test_the_next_number_has_the_gradient_of_its_argument():
    x, towards = tf.constant([1.0, 2.0]), tf.constant([[3.0], [0.0]])
    with tf.GradientTape() as tape:
        tape.watch([x, towards])
        y = tf.math.nextafter(x, towards)
    dx, dy = tape.gradient(y, [x, towards])
    assert dx.numpy().tolist() == [2.0, 2.0] and dy.numpy().tolist() == [[0.0], [0.0]]
    assert tf.math.nextafter(0.0, 1.0).numpy() == np.nextafter(np.float32(0), np.float32(1))


def test_options_of_the_graph_optimizer_are_kept():
    tf.config.optimizer.set_experimental_options({"constant_folding": True})
    assert tf.config.optimizer.get_experimental_options()["constant_folding"] is True
    with pytest.raises(ValueError, match="unknown option 'folding'"):
        tf.config.optimizer.set_experimental_options({"folding": True})


def test_a_variable_of_a_loop_that_runs_no_step_has_no_value():
    @tf.function
    def last_of(n):
        for i in tf.range(n):
            last = i * 2
        return last

    @tf.function
    def until(n):
        i = 0
        while i < n:
            found = i
            i += 1
        return found

    @tf.function
    def with_temporary(n):
        total = 0
        for i in tf.range(n):
            double = i * 2
            total += double
        return total

    assert [int(f(tf.constant(3))) for f in (last_of, until, with_temporary)] == [4, 2, 6]
    for f, name in ((last_of, "last"), (until, "found")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"`{name}` is set only inside .*, which ran no step"):
            f(tf.constant(0))
    assert int(with_temporary(tf.constant(0))) == 0


def test_integers_have_no_negative_powers():
    x = tf.constant([2, 3])
    assert (x ** tf.constant([2, 0])).numpy().tolist() == [4, 1] and tf.pow(x, 3).numpy().tolist() == [8, 27]
    for call in (
        lambda: x**-1,
        lambda: tf.pow(x, tf.constant([1, -2])),
        lambda: tf.pow(tf.constant([1]), [-1]),
        lambda: tf.function(lambda a, b: a**b)(x, tf.constant([1, -2])),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="negative power"):
            call()
    assert (tf.constant([2.0]) ** -1).numpy().tolist() == [0.5]
    assert tf.pow(tf.constant([2], tf.uint8), tf.constant([3], tf.uint8)).numpy().tolist() == [8]


def test_the_state_of_a_reduction_keeps_its_form():
    numbers, zero = tf.data.Dataset.range(3), tf.constant(0, tf.int64)
    assert int(numbers.reduce(zero, lambda total, x: total + x)) == 3
    total, count = numbers.reduce((zero, zero), lambda state, x: [state[0] + x, state[1] + 1])
    assert (int(total), int(count)) == (3, 3)
    assert numbers.reduce(tf.zeros([0], tf.int64), lambda s, x: tf.concat([s, [x]], 0)).numpy().tolist() == [0, 1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="structure of the state"):
        numbers.reduce(zero, lambda state, x: [state, x])
    with pytest.raises(TypeError, match="keep its type int64, got float32"):
        numbers.reduce(zero, lambda state, x: tf.cast(state + x, tf.float32))


def test_datasets_of_other_elements_are_not_joined():
    one = tf.data.Dataset.from_tensors([1, 2])
    assert len(list(one.concatenate(tf.data.Dataset.from_tensors([1, 2, 3])))) == 2
    for other in (tf.data.Dataset.from_tensors([1.5]), tf.data.Dataset.from_tensors((1, 2))):
        with pytest.raises(TypeError, match="concatenate: elements must have one"):
            one.concatenate(other)
    with pytest.raises(tf.errors.InvalidArgumentError, match="window_size must be >= 1"):
        list(one.group_by_window(lambda _: tf.constant(0, tf.int64), lambda key, window: window, 0))


def test_windows_without_overlap_are_inverted_where_they_are_not_zero():
    window = tf.signal.inverse_stft_window_fn(64)(64).numpy()
    forward = tf.signal.hann_window(64).numpy()
    assert window[0] == 0.0 and np.isfinite(window).all()
    np.testing.assert_allclose(window[1:], 1 / forward[1:], rtol=1e-5)
