"""Containers of tensors keep their form: keys in order, lists apart from tuples, extension types. Answers are TensorFlow's."""

import collections
import dataclasses
from collections.abc import Mapping

import pytest

import taut as tf

Point = collections.namedtuple("Point", "a b")
Other = collections.namedtuple("Other", "a b")


class Masked(tf.experimental.ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor

    def with_default(self, default):
        return tf.where(self.mask, self.values, default)


class Negated(tf.experimental.ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor

    def with_default(self, default):
        return tf.where(self.mask, self.values, -default)


class Pencil(tf.experimental.ExtensionType):
    color: str = "black"
    count: int = 3
    length: tf.Tensor = 1.0


class Player(tf.experimental.ExtensionType):
    name: tf.Tensor
    attributes: Mapping[str, tf.Tensor]


class Node(tf.experimental.ExtensionType):
    value: tf.Tensor
    children: tuple["Node", ...] = ()


class Toy(tf.experimental.ExtensionType):
    name: str
    price: tf.Tensor
    note: tf.Tensor | None = None

    def __init__(self, name, price, discount=0):
        self.name = name
        self.price = price * (1 - discount)

    def __validate__(self):
        assert self.name, "a toy must have a name"


def test_datasets_keep_the_order_of_keys():
    dataset = tf.data.Dataset.from_tensor_slices({"b": [1, 2], "a": [3.0, 4.0]})
    for stage in (dataset, dataset.batch(2), dataset.shuffle(2).repeat(2).prefetch(1), dataset.map(lambda row: row)):
        assert list(next(iter(stage))) == ["b", "a"] == list(stage.element_spec)
    assert list(next(iter(dataset.map(lambda row: {"z": row["a"], "k": row["b"]})))) == ["z", "k"]
    seen = []
    list(dataset.map(lambda row: seen.append(list(row)) or row["a"]))
    assert seen and all(keys == ["b", "a"] for keys in seen)
    (window,) = dataset.window(2)
    assert list(window) == ["b", "a"]


def test_columns_are_stacked_in_the_order_of_the_dict():
    rows = tf.data.Dataset.from_tensor_slices({"width": [1.0], "height": [2.0], "area": [3.0]})
    stacked = rows.map(lambda row: tf.stack(list(row.values())))
    assert next(iter(stacked)).numpy().tolist() == [1.0, 2.0, 3.0]


def test_functions_keep_the_order_of_keys():
    f = tf.function(lambda x: {"z": x["b"], **x})
    assert list(f({"b": tf.constant(1), "a": tf.constant(2)})) == ["z", "b", "a"]
    g = tf.function(lambda **named: list(named.values()))
    assert [int(one) for one in g(second=tf.constant(2), first=tf.constant(1))] == [2, 1]


def test_lists_tuples_and_named_tuples_have_traces_of_their_own():
    traced = []

    @tf.function
    def f(x):
        traced.append(type(x).__name__)
        if isinstance(x, Point):
            return x.a - x.b
        if isinstance(x, list):
            return x[0] * x[1]
        return x[0] + x[1]

    a, b = tf.constant(3.0), tf.constant(2.0)
    for _ in range(2):
        found = [float(f(x)) for x in ((a, b), Point(a, b), [a, b], Other(a, b))]
        assert found == [5.0, 1.0, 6.0, 5.0]
    assert traced == ["tuple", "Point", "list", "Other"]
    assert float(f((a, b))) == 5.0 and len(traced) == 4


def test_inner_containers_and_keywords_count():
    traced = []

    @tf.function
    def f(x, *, y):
        traced.append((type(x["p"]).__name__, type(y).__name__))
        return x["p"][0] + y[0]

    a, b = tf.constant(3.0), tf.constant(2.0)
    for x, y in (((a,), (b,)), ([a], (b,)), ([a], [b]), ((a,), (b,))):
        assert float(f({"p": x}, y=y)) == 5.0
    assert traced == [("tuple", "tuple"), ("list", "tuple"), ("list", "list")]
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = f({"p": [a * a]}, y=[b])
    assert float(tape.gradient(y, a)) == 6.0


def test_fields_of_extension_types():
    assert repr(Pencil()) == "Pencil(color='black', count=3, length=<tf.Tensor: shape=(), dtype=float32, numpy=1.0>)"
    assert Pencil(length=0.5, color="blue").length.numpy() == 0.5
    for arguments, message in (((1,), "color"), (("a", "b"), "count"), (("a", True), "count")):
        with pytest.raises(TypeError, match=f"{message}: expected"):
            Pencil(*arguments)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        Pencil(size=1)
    with pytest.raises(TypeError, match="missing a required argument: 'mask'"):
        Masked([1])
    with pytest.raises(TypeError, match="mask: expected a Tensor, got 'NoneType'"):
        Masked([1, 2], None)
    with pytest.raises(AssertionError, match="abstract"):
        tf.experimental.ExtensionType()
    anne = Player("Anne", {"height": 8.3, "speed": 28.1})
    assert tf.type_spec_from_value(anne).attributes == {"height": tf.TensorSpec([]), "speed": tf.TensorSpec([])}
    with pytest.raises(TypeError, match="item assignment"):
        anne.attributes["height"] = 1.0
    tree = Node(3, [Node(5), Node(2)])
    assert [int(child.value) for child in tree.children] == [5, 2] and isinstance(tree.children, tuple)


def test_extension_types_are_immutable_and_validated():
    toy = Toy("ball", 5.0, discount=0.2)
    assert float(toy.price) == 4.0 and toy.note is None
    with pytest.raises(AssertionError, match="a name"):
        Toy("", 5.0)
    for change in (lambda: setattr(toy, "name", "x"), lambda: delattr(toy, "name")):
        with pytest.raises(AttributeError, match="Cannot mutate attribute `name`"):
            change()
    one = Masked([1, 2], [True, False])
    assert (
        bool(one == one)
        and not bool(one == Masked([1, 3], [True, False]))
        and bool(one != Masked([1, 3], [True, False]))
    )
    assert (one == 3) is False and (one == Negated([1, 2], [True, False])) is False
    with pytest.raises(ValueError, match="name of a field"):
        type("Bad", (tf.experimental.ExtensionType,), {"__annotations__": {"Spec": tf.Tensor}})


def test_extension_types_in_traced_functions():
    traced = []

    @tf.function
    def f(x):
        traced.append(type(x).__name__)
        return x.with_default(7)

    values, mask = [1, 2], [True, False]
    assert f(Masked(values, mask)).numpy().tolist() == [1, 7]
    assert f(Masked([3, 4], mask)).numpy().tolist() == [3, 7]
    assert f(Negated(values, mask)).numpy().tolist() == [1, -7]
    assert f(Masked([3, 4, 5], [True, False, True])).numpy().tolist() == [3, 7, 5]
    assert traced == ["Masked", "Negated", "Masked"]
    assert f.plan(Masked(values, mask)).peak_bytes > 0
    double = tf.function(lambda x: Masked(x.values * 2, x.mask))(Masked(values, mask))
    assert isinstance(double, Masked) and double.values.numpy().tolist() == [2, 4]
    scale = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = f(Masked([scale * scale, 1.0], [True, True]))
    assert float(tape.gradient(y, scale)) == 4.0


def test_static_fields_are_part_of_the_signature():
    counts = []

    @tf.function
    def f(x):
        counts.append(x.count)
        return x.length * float(x.count)

    assert [float(f(Pencil(count=n, length=2.0))) for n in (1, 2, 1)] == [2.0, 4.0, 2.0] and counts == [1, 2]


def test_specs_of_extension_types():
    one, other = Masked([1, 2], [True, False]), Masked([5, 6], [True, True])
    spec = tf.type_spec_from_value(one)
    assert spec == tf.type_spec_from_value(other) and spec != tf.type_spec_from_value(Masked([1], [True]))
    assert (
        spec == Masked.Spec(tf.TensorSpec([2], tf.int32), mask=tf.TensorSpec([2], tf.bool))
        and spec.value_type is Masked
    )
    assert spec.is_compatible_with(other) and not spec.is_compatible_with(3)
    with pytest.raises(TypeError, match="mask"):
        Masked.Spec(tf.TensorSpec([2]))


@dataclasses.dataclass
class Named:
    name: str
    value: object

    def __tf_flatten__(self):
        return (self.name,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(*metadata, *components)


def test_dataclasses_with_components_are_structures_everywhere():
    @tf.function
    def f(named):
        return Named(named.name + "!", {"a": named.value + 1.0})

    results = [f(Named(name, tf.constant(x))) for name, x in (("a", 1.0), ("a", 2.0), ("b", 2.0))]
    assert [(one.name, float(one.value["a"])) for one in results] == [("a!", 2.0), ("a!", 3.0), ("b!", 3.0)]
    assert f.experimental_get_tracing_count() == 2  # The name is a part of the signature, as in TensorFlow.

    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.gradient(y, Named("v", v)) == Named("v", 6.0)

    def step(one):
        return (Named(one.name, one.value + 1.0),)

    (last,) = tf.while_loop(lambda one: one.value < 5.0, step, [Named("last", tf.constant(0.0))])
    assert last == Named("last", 5.0)
    assert tf.cond(v > 0.0, lambda: Named("c", v + 1.0), lambda: Named("c", v)) == Named("c", 4.0)


def test_arguments_that_compare_by_a_content_that_may_change_are_refused():
    @dataclasses.dataclass
    class Plain:
        value: object

    @tf.function
    def f(plain, x):
        return plain.value * x

    with pytest.raises(TypeError, match="must be hashable, got .*Plain"):
        f(Plain(2.0), tf.constant(1.0))
    # In a trace, the code of a function is called with the object itself.
    plain = Plain(2.0)
    outer = tf.function(lambda x: f(plain, x))
    assert float(outer(tf.constant(3.0))) == 6.0
    assert float(tf.recompute_grad(lambda plain, x: plain.value * x)(plain, tf.constant(3.0))) == 6.0
