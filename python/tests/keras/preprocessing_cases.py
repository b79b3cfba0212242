"""Calls of Keras's preprocessing layers and utilities, whose results must be the same with TensorFlow.

`python/tools/answers.py` runs them with TensorFlow and writes `preprocessing_answers.json`; the tests compare.
"""

import os

import numpy as np

TEXTS = ["the cat sat", "on the mat!", "The dog"]


def vectorized(keras, tf, **options):
    layer = keras.layers.TextVectorization(**options)
    layer.adapt(TEXTS)
    return [layer(["the dog sat", "unknown cat on mat ok"]), layer.get_vocabulary()]


def vectorized_dataset(keras, tf):
    layer = keras.layers.TextVectorization()
    batches = tf.data.Dataset.from_tensor_slices(["a b", "b c c"]).batch(1)
    layer.adapt(batches)
    return [*batches.map(layer), layer.get_vocabulary()]


def string_lookup(keras, tf, **options):
    return keras.layers.StringLookup(vocabulary=["a", "b", "c"], **options)([["a", "z"], ["c", "b"]])


def adapted(layer, data, values):
    layer.adapt(data)
    return [layer.get_vocabulary(), layer(values)]


def discretization(keras, tf):
    layer = keras.layers.Discretization(num_bins=4)
    layer.adapt(np.arange(100, dtype="f4"))
    return [np.asarray(layer.bin_boundaries).tolist(), layer([3.0, 50.0])]


def normalization(keras, tf):
    layer = keras.layers.Normalization()
    layer.adapt(tf.data.Dataset.from_tensor_slices(np.array([[1.0, 2.0], [3.0, 6.0]], "f4")).batch(1))
    return layer([[1.0, 2.0]])


def crossing(keras, tf, **options):
    return keras.layers.HashedCrossing(5, **options)((np.array(["a", "b", "a"]), np.array([1, 2, 3])))


def time_series(keras, tf, **options):
    return list(
        keras.utils.timeseries_dataset_from_array(
            np.arange(10), np.arange(10) + 100, sequence_length=3, batch_size=4, **options
        )
    )


def feature_space(keras, tf):
    space = keras.utils.FeatureSpace(
        features={"s": "string_categorical", "f": "float_normalized", "i": "integer_categorical"}, output_mode="concat"
    )
    space.adapt(tf.data.Dataset.from_tensor_slices({"s": ["a", "b", "a"], "f": [1.0, 2.0, 3.0], "i": [1, 2, 1]}))
    return space({"s": "a", "f": 1.0, "i": 2})


def written(tf, folder):
    """A folder of texts and one of pictures, with two classes each."""
    for kind in "ab":
        for name in ("text", "image"):
            os.makedirs(os.path.join(folder, name, kind), exist_ok=True)
        for i in range(3):
            with open(os.path.join(folder, "text", kind, f"{i}.txt"), "w") as file:
                file.write(f"text {kind} {i}")
            pixels = (np.arange(6 * 5 * 3).reshape(6, 5, 3) * (i + 1) % 255).astype("uint8")
            tf.io.write_file(os.path.join(folder, "image", kind, f"{i}.png"), tf.io.encode_png(pixels))
    return folder


def texts(keras, tf, folder, **options):
    made = keras.utils.text_dataset_from_directory(
        os.path.join(written(tf, folder), "text"), batch_size=4, shuffle=False, verbose=False, **options
    )
    return [made.class_names, *made]


def images(keras, tf, folder, **options):
    made = keras.utils.image_dataset_from_directory(
        os.path.join(written(tf, folder), "image"),
        batch_size=4,
        shuffle=False,
        image_size=(4, 4),
        verbose=False,
        **options,
    )
    return [made.class_names, *made]


CASES = {
    "text": lambda k, tf, _: vectorized(k, tf),
    "text_length": lambda k, tf, _: vectorized(k, tf, output_sequence_length=3, max_tokens=5),
    "text_multi_hot": lambda k, tf, _: vectorized(k, tf, output_mode="multi_hot"),
    "text_count": lambda k, tf, _: vectorized(k, tf, output_mode="count"),
    "text_tf_idf": lambda k, tf, _: vectorized(k, tf, output_mode="tf_idf"),
    "text_ngrams": lambda k, tf, _: vectorized(k, tf, ngrams=2),
    "text_characters": lambda k, tf, _: vectorized(k, tf, split="character"),
    "text_dataset": lambda k, tf, _: vectorized_dataset(k, tf),
    "string_lookup": lambda k, tf, _: string_lookup(k, tf),
    "string_lookup_two_oov": lambda k, tf, _: string_lookup(k, tf, num_oov_indices=2),
    "string_lookup_mask": lambda k, tf, _: string_lookup(k, tf, mask_token=""),
    "string_lookup_multi_hot": lambda k, tf, _: string_lookup(k, tf, output_mode="multi_hot"),
    "string_lookup_inverse": lambda k, tf, _: k.layers.StringLookup(vocabulary=["a", "b"], invert=True)([0, 1, 2]),
    "string_lookup_one_hot": lambda k, tf, _: k.layers.StringLookup(vocabulary=["a", "b"], output_mode="one_hot")(
        ["b", "z"]
    ),
    "string_lookup_adapted": lambda k, tf, _: adapted(k.layers.StringLookup(), [["a", "b"], ["a", "c"]], ["a", "x"]),
    "integer_lookup": lambda k, tf, _: k.layers.IntegerLookup(vocabulary=[10, 20, 30])([[10, 99], [30, 20]]),
    "integer_lookup_multi_hot": lambda k, tf, _: k.layers.IntegerLookup(
        vocabulary=[10, 20, 30], output_mode="multi_hot"
    )([[10, 99], [30, 20]]),
    "integer_lookup_adapted": lambda k, tf, _: adapted(k.layers.IntegerLookup(), [[1, 1, 2], [3, 1, 2]], [1, 7]),
    "hashing": lambda k, tf, _: k.layers.Hashing(10)([["a"], ["bb"]]),
    "hashing_integers": lambda k, tf, _: k.layers.Hashing(10)([[1], [22]]),
    "hashing_salt": lambda k, tf, _: k.layers.Hashing(10, salt=[1, 2])([["a"], ["bb"]]),
    "hashing_mask": lambda k, tf, _: k.layers.Hashing(10, mask_value="")([["a"], [""]]),
    "hashed_crossing": lambda k, tf, _: crossing(k, tf),
    "hashed_crossing_one_hot": lambda k, tf, _: crossing(k, tf, output_mode="one_hot"),
    "category_multi_hot": lambda k, tf, _: k.layers.CategoryEncoding(4, output_mode="multi_hot")([[0, 1], [2, 2]]),
    "category_count": lambda k, tf, _: k.layers.CategoryEncoding(4, output_mode="count")([[0, 1], [2, 2]]),
    "discretization": lambda k, tf, _: k.layers.Discretization(bin_boundaries=[0.0, 1.0, 2.0])([[-1.0, 0.5], [1.5, 5]]),
    "discretization_adapted": lambda k, tf, _: discretization(k, tf),
    "normalization": lambda k, tf, _: normalization(k, tf),
    "time_series": lambda k, tf, _: time_series(k, tf),
    "time_series_stride": lambda k, tf, _: time_series(k, tf, sequence_stride=2, sampling_rate=2),
    "pad_sequences": lambda k, tf, _: k.utils.pad_sequences([[1], [2, 3]], maxlen=3).tolist(),
    "texts_of_a_folder": lambda k, tf, folder: texts(k, tf, folder),
    "texts_of_a_folder_split": lambda k, tf, folder: texts(
        k, tf, folder, validation_split=0.34, subset="training", seed=3
    ),
    "images_of_a_folder": lambda k, tf, folder: images(k, tf, folder),
    "images_of_a_folder_split": lambda k, tf, folder: images(
        k, tf, folder, label_mode="categorical", validation_split=0.34, subset="validation", seed=1
    ),
    "images_of_a_folder_grey": lambda k, tf, folder: images(k, tf, folder, color_mode="grayscale", label_mode=None),
    "images_of_a_folder_cropped": lambda k, tf, folder: images(k, tf, folder, crop_to_aspect_ratio=True),
    "feature_space": lambda k, tf, _: feature_space(k, tf),
}
