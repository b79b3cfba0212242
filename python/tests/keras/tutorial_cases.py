"""The steps of TensorFlow's tutorials on data, with synthetic data: CSV, pandas, TFRecord, text, images, time series, and
preprocessing layers. Their results must be the same with TensorFlow.

`python/tools/answers.py` runs them with TensorFlow and writes `tutorial_answers.json`; the tests compare. What is random in a
tutorial (orders, first weights) is fixed here: no shuffling, constant weights.
"""

import os

import numpy as np

LABEL, NUMBERS, TEXTS = "survived", ("age", "n_siblings", "fare"), ("sex", "class", "alone")


def people(count=24):
    """Columns of a table: numbers and texts."""
    rng = np.random.default_rng(3)
    return {
        LABEL: rng.integers(0, 2, count).tolist(),
        "sex": rng.choice(["male", "female"], count).tolist(),
        "age": np.round(rng.uniform(1, 80, count), 1).tolist(),
        "n_siblings": rng.integers(0, 4, count).tolist(),
        "fare": np.round(rng.uniform(5, 90, count), 2).tolist(),
        "class": rng.choice(["First", "Second", "Third"], count).tolist(),
        "alone": rng.choice(["y", "n"], count).tolist(),
    }


def csv_file(folder, name="people.csv", columns=None):
    columns = columns or people()
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(",".join(columns) + "\n")
        for row in zip(*columns.values()):
            file.write(",".join(map(str, row)) + "\n")
    return path


def constant(model):
    """The model with weights that do not depend on random numbers."""
    for weight in model.trainable_variables:
        values = np.arange(int(np.prod(weight.shape)), dtype="f4").reshape(weight.shape)
        weight.assign(0.1 * np.cos(values))
    return model


def fitted(keras, model, data, epochs=2, **options):
    """Losses of training by gradient descent, without shuffling."""
    model.compile(keras.optimizers.SGD(0.01), **({"loss": "mse"} | options))
    history = model.fit(data, epochs=epochs, verbose=0, shuffle=False).history
    return [[float(value) for value in values] for _, values in sorted(history.items())]


def batches(tf, *arrays, size=8):
    return tf.data.Dataset.from_tensor_slices(arrays if len(arrays) > 1 else arrays[0]).batch(size)


# CSV.


def csv_in_memory(keras, tf, _):
    rng = np.random.default_rng(0)
    features, labels = rng.random((32, 7)).astype("f4"), rng.random(32).astype("f4")
    normalize = keras.layers.Normalization()
    normalize.adapt(features)
    model = keras.Sequential([normalize, keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
    model.build((None, 7))
    return fitted(keras, constant(model), batches(tf, features, labels))


def csv_mixed_types(keras, tf, _):
    columns = people()
    labels = np.array(columns.pop(LABEL), "f4")
    inputs = {
        name: keras.Input(shape=(1,), name=name, dtype="string" if name in TEXTS else "float32") for name in columns
    }
    joined = keras.layers.Concatenate()([inputs[name] for name in NUMBERS])
    normalize = keras.layers.Normalization()
    normalize.adapt(np.stack([np.array(columns[name], "f4") for name in NUMBERS], 1))
    parts = [normalize(joined)]
    for name in TEXTS:
        lookup = keras.layers.StringLookup(vocabulary=np.unique(columns[name]).tolist())
        one_hot = keras.layers.CategoryEncoding(num_tokens=lookup.vocabulary_size())
        parts.append(one_hot(lookup(inputs[name])))
    preprocess = keras.Model(inputs, keras.layers.Concatenate()(parts))
    arrays = {name: np.array(values, object if name in TEXTS else "f4")[:, None] for name, values in columns.items()}
    first = {name: tf.constant(values[:2]) for name, values in arrays.items()}
    encoded = batches(tf, arrays, labels).map(lambda features, label: (preprocess(features), label))
    model = keras.Sequential([keras.Input((encoded.element_spec[0].shape[-1],)), keras.layers.Dense(1)])
    return [preprocess(first), fitted(keras, constant(model), encoded)]


def csv_slices(keras, tf, _):
    columns = {name: np.array(values) for name, values in people(5).items()}
    return list(tf.data.Dataset.from_tensor_slices(columns).take(2))


def csv_dataset(keras, tf, folder, **options):
    made = tf.data.experimental.make_csv_dataset(
        csv_file(folder),
        batch_size=5,
        label_name=LABEL,
        num_epochs=1,
        ignore_errors=True,
        shuffle=False,
        **options,
    )
    return list(made.take(2))


def csv_compressed(keras, tf, folder):
    import gzip

    path = os.path.join(folder, "people.csv.gz")
    with gzip.open(path, "wb") as file, open(csv_file(folder), "rb") as plain:
        file.write(plain.read())
    made = tf.data.experimental.make_csv_dataset(
        path, batch_size=5, label_name=LABEL, num_epochs=1, compression_type="GZIP", shuffle=False
    )
    return list(made.take(1))


def csv_cached(keras, tf, folder):
    made = tf.data.experimental.make_csv_dataset(
        csv_file(folder), batch_size=6, label_name=LABEL, num_epochs=1, shuffle=False
    )
    cached = made.cache(os.path.join(folder, "cache")).map(lambda features, label: (features["fare"], label))
    return [list(cached), list(cached)]


def fonts(folder):
    rng = np.random.default_rng(5)
    for font in ("ARIAL", "BELL", "CALIBRI"):
        columns = {"font": [font] * 6, "bold": rng.integers(0, 2, 6).tolist()}
        columns |= {f"r{i}c{j}": rng.integers(0, 255, 6).tolist() for i in range(2) for j in range(3)}
        csv_file(folder, f"{font}.csv", columns)
    return os.path.join(folder, "*.csv")


def csv_many_files(keras, tf, folder):
    made = tf.data.experimental.make_csv_dataset(
        file_pattern=fonts(folder), batch_size=4, num_epochs=1, num_parallel_reads=20, shuffle=False
    )

    def images(features):
        image, columns = [None] * 6, {}
        for name, value in features.items():
            if name[0] == "r" and "c" in name:
                i, j = map(int, name[1:].split("c"))
                image[i * 3 + j] = value
            else:
                columns[name] = value
        columns["image"] = tf.reshape(tf.stack(image, -1), (-1, 2, 3))
        return columns

    return sorted((row for batch in made.map(images) for row in rows_of(batch)), key=str)


def rows_of(batch):
    arrays = {name: np.asarray(values).tolist() for name, values in batch.items()}
    return [list(row) for row in zip(*(arrays[name] for name in sorted(arrays)))]


def csv_lines(keras, tf, folder):
    path = csv_file(folder)
    with open(path) as file:
        lines = file.read().split("\n")[1:-1]
    types = [0, "", 0.0, 0, 0.0, "", ""]
    columns = tf.io.decode_csv(lines[:6], record_defaults=types)
    parsed = tf.data.TextLineDataset(path).skip(1).map(lambda line: tf.io.decode_csv(line, types))
    rows = tf.data.experimental.CsvDataset(path, record_defaults=types, header=True)
    few = tf.data.experimental.CsvDataset(path, record_defaults=[0, 0.0], header=True, select_cols=[0, 4])
    return [columns, list(parsed.take(2)), list(rows.take(2)), list(few.batch(5).take(1))]


def csv_interleaved(keras, tf, folder):
    types = ["", 0, *[0] * 6]

    def font(path):
        return tf.data.experimental.CsvDataset(path, record_defaults=types, header=True)

    rows = tf.data.Dataset.list_files(fonts(folder), shuffle=False).interleave(font, cycle_length=3)
    return list(rows.batch(4).map(lambda font, bold, *pixels: (font, tf.stack(pixels, 1))).take(3))


# pandas.


def frame():
    import pandas as pd

    return pd.DataFrame(people())


def pandas_arrays(keras, tf, _):
    table = frame()
    target, numbers = table.pop(LABEL), table[list(NUMBERS)]
    normalize = keras.layers.Normalization(axis=-1)
    normalize.adapt(np.array(numbers, "f4"))
    model = keras.Sequential([normalize, keras.layers.Dense(4, activation="relu"), keras.layers.Dense(1)])
    model.build((None, len(NUMBERS)))
    rows = tf.data.Dataset.from_tensor_slices((numbers.astype("f4"), target.astype("f4")))
    tensor = tf.convert_to_tensor(numbers.astype("f4"))
    return [tensor, normalize(tensor[:3]), list(rows.take(2)), fitted(keras, constant(model), rows.batch(8))]


def pandas_dictionary(keras, tf, _):
    table = frame()
    target, numbers = table.pop(LABEL), table[list(NUMBERS)].astype("f4")
    made = tf.data.Dataset.from_tensor_slices((dict(numbers), target))
    texts = tf.data.Dataset.from_tensor_slices(dict(table[list(TEXTS)]))

    def stack(features, label):
        return tf.stack([features[name] for name in sorted(features)], axis=-1), label

    return [list(made.take(2)), list(made.batch(4).map(stack).take(1)), list(texts.batch(3).take(1))]


# TFRecord.


def features_of(tf, n):
    def feature(value):
        # As in the tutorial: tensors are converted to what they hold.
        value = value.numpy() if isinstance(value, type(tf.constant(0))) else value
        if isinstance(value, bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        if isinstance(value, (float, np.floating)):
            return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    names = (b"cat", b"dog", b"chicken", b"horse", b"goat")
    values = (int(n % 3 == 0), n % 5, names[n % 5], float(np.float32(n * 0.37 - 1)))
    return {f"feature{i}": feature(value) for i, value in enumerate(values)}


def record_file(tf, folder):
    path = os.path.join(folder, "data.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for n in range(12):
            example = tf.train.Example(features=tf.train.Features(feature=features_of(tf, n)))
            writer.write(example.SerializeToString())
    return path


def records_messages(keras, tf, _):
    example = tf.train.Example(features=tf.train.Features(feature=features_of(tf, 6)))
    again = tf.train.Example.FromString(example.SerializeToString())
    kinds = {key: feature.WhichOneof("kind") for key, feature in sorted(again.features.feature.items())}
    values = {key: list(getattr(feature, kinds[key]).value) for key, feature in sorted(again.features.feature.items())}
    return [kinds, values, again == example]


def records_parsed(keras, tf, folder):
    raw = tf.data.TFRecordDataset([record_file(tf, folder)])
    description = {
        "feature0": tf.io.FixedLenFeature([], tf.int64, default_value=0),
        "feature1": tf.io.FixedLenFeature([], tf.int64, default_value=0),
        "feature2": tf.io.FixedLenFeature([], tf.string, default_value=""),
        "feature3": tf.io.FixedLenFeature([], tf.float32, default_value=0.0),
    }
    single = raw.map(lambda record: tf.io.parse_single_example(record, description))
    many = raw.batch(5).map(lambda records: tf.io.parse_example(records, description))
    return [list(single.take(3)), list(many)]


def records_generated(keras, tf, folder):
    rows = tf.data.Dataset.range(4)

    def serialized():
        for n in rows:
            yield tf.train.Example(features=tf.train.Features(feature=features_of(tf, int(n)))).SerializeToString()

    made = tf.data.Dataset.from_generator(serialized, output_types=tf.string, output_shapes=())
    path = os.path.join(folder, "generated.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for record in made:
            writer.write(record.numpy())
    example = tf.train.Example()
    example.ParseFromString(next(iter(tf.data.TFRecordDataset(path).skip(2))).numpy())
    return [
        len(list(made)),
        sorted(example.features.feature),
        list(example.features.feature["feature2"].bytes_list.value),
    ]


def records_of_images(keras, tf, folder):
    pixels = (np.arange(8 * 6 * 3).reshape(8, 6, 3) * 3 % 255).astype("uint8")
    image = tf.io.encode_png(pixels).numpy()
    feature = {
        "height": tf.train.Feature(int64_list=tf.train.Int64List(value=[8])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[1])),
        "image_raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
    }
    path = os.path.join(folder, "images.tfrecords")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    description = {
        "height": tf.io.FixedLenFeature([], tf.int64),
        "label": tf.io.FixedLenFeature([], tf.int64),
        "image_raw": tf.io.FixedLenFeature([], tf.string),
    }
    parsed = next(iter(tf.data.TFRecordDataset(path).map(lambda one: tf.io.parse_single_example(one, description))))
    return [parsed["height"], parsed["label"], tf.io.decode_png(parsed["image_raw"])]


# Text.


REVIEWS = {
    "csharp": ["how to cast an int", "what is a delegate, really?", "LINQ and an index"],
    "java": ["null pointer in a stream", "why is this class final?", "how to sort a list"],
}


def text_folder(folder):
    for name, lines in REVIEWS.items():
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        for i, line in enumerate(lines):
            with open(os.path.join(folder, name, f"{i}.txt"), "w") as file:
                file.write(line)
    return folder


def text_vectorized(keras, tf, folder):
    raw = keras.utils.text_dataset_from_directory(text_folder(folder), batch_size=2, shuffle=False, verbose=False)
    binary = keras.layers.TextVectorization(max_tokens=40, output_mode="multi_hot")
    ids = keras.layers.TextVectorization(max_tokens=40, output_mode="int", output_sequence_length=7)
    text = raw.map(lambda text, labels: text)
    binary.adapt(text)
    ids.adapt(text)
    vectors = raw.map(lambda text, label: (ids(tf.expand_dims(text, -1)), label)).cache().prefetch(2)
    model = keras.Sequential(
        [
            keras.Input((7,)),
            keras.layers.Embedding(41, 4, mask_zero=True),
            keras.layers.Conv1D(3, 3, padding="valid", activation="relu", strides=2),
            keras.layers.GlobalMaxPooling1D(),
            keras.layers.Dense(2),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    losses = fitted(keras, constant(model), vectors, loss=loss, metrics=["accuracy"])
    return [raw.class_names, ids.get_vocabulary(), list(vectors), binary(["a null delegate"]), losses]


def text_lines(keras, tf, folder):
    labelled = []
    for i, (name, lines) in enumerate(REVIEWS.items()):
        path = os.path.join(folder, f"{name}.txt")
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")
        labelled.append(tf.data.TextLineDataset(path).map(lambda line, i=i: (line, tf.cast(i, tf.int64))))
    joined = labelled[0].concatenate(labelled[1])
    tokenized = joined.map(lambda text, _: tf.strings.split(tf.strings.lower(text)))
    counts = {}
    for tokens in tokenized:
        for token in tokens.numpy():
            counts[token] = counts.get(token, 0) + 1
    vocabulary = [token for token, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))][:10]
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(
            vocabulary, range(2, len(vocabulary) + 2), key_dtype=tf.string, value_dtype=tf.int64
        ),
        1,
    )
    encoded = joined.map(lambda text, label: (table.lookup(tf.strings.split(tf.strings.lower(text))), label))
    valid = encoded.take(4).padded_batch(3, padded_shapes=([None], []))
    return [list(encoded), list(valid), list(encoded.skip(4))]


# Images.


def image_folder(tf, folder):
    rng = np.random.default_rng(2)
    for name in ("daisy", "roses"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        for i in range(3):
            pixels = rng.integers(0, 255, [10, 12, 3]).astype("uint8")
            tf.io.write_file(os.path.join(folder, name, f"{i}.png"), tf.io.encode_png(pixels))
    return folder


def images_of_keras(keras, tf, folder):
    made = keras.utils.image_dataset_from_directory(
        image_folder(tf, folder), image_size=(6, 8), batch_size=4, shuffle=False, verbose=False
    )
    rescale = keras.layers.Rescaling(1.0 / 255)
    normalized = made.map(lambda x, y: (rescale(x), y)).cache().prefetch(2)
    model = keras.Sequential(
        [
            keras.Input((6, 8, 3)),
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(2),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return [made.class_names, list(normalized), fitted(keras, constant(model), normalized, loss=loss)]


def images_of_files(keras, tf, folder):
    image_folder(tf, folder)
    files = tf.data.Dataset.list_files(os.path.join(folder, "*", "*.png"), shuffle=False)
    class_names = np.array(sorted(os.listdir(folder)))
    train, valid = files.skip(2), files.take(2)

    def process(path):
        label = tf.argmax(tf.strings.split(path, os.path.sep)[-2] == class_names)
        image = tf.io.decode_png(tf.io.read_file(path), channels=3)
        return tf.image.resize(image, [5, 5]), label

    train = train.map(process, num_parallel_calls=tf.data.AUTOTUNE).cache().batch(3).prefetch(tf.data.AUTOTUNE)
    return [list(train), list(valid.map(process).batch(2)), int(train.cardinality())]


# Time series.


def window(keras, tf, _):
    data = np.stack([np.sin(np.arange(40) / 5), np.arange(40) / 40, np.cos(np.arange(40) / 3)], 1).astype("f4")
    input_width, label_width, shift = 6, 3, 3
    total = input_width + shift
    made = keras.utils.timeseries_dataset_from_array(
        data=data, targets=None, sequence_length=total, sequence_stride=1, shuffle=False, batch_size=8
    )

    def split_window(features):
        inputs = features[:, :input_width, :]
        labels = tf.stack([features[:, total - label_width :, 0]], axis=-1)
        inputs.set_shape([None, input_width, None])
        labels.set_shape([None, label_width, None])
        return inputs, labels

    windows = made.map(split_window)
    linear = keras.Sequential([keras.Input((input_width, 3)), keras.layers.Dense(1), keras.layers.Cropping1D((3, 0))])
    recurrent = keras.Sequential(
        [keras.Input((input_width, 3)), keras.layers.LSTM(4), keras.layers.Dense(3), keras.layers.Reshape([3, 1])]
    )
    return [
        list(windows.take(1)),
        fitted(keras, constant(linear), windows),
        fitted(keras, constant(recurrent), windows, metrics=["mae"]),
    ]


# Preprocessing layers.


def preprocessing(keras, tf, _):
    columns = people()
    labels = np.array(columns.pop(LABEL), "f4")
    arrays = {name: np.array(values, object if name in TEXTS else "f4")[:, None] for name, values in columns.items()}
    made = batches(tf, arrays, labels, size=6).prefetch(6)
    encoders = {}
    for name in NUMBERS:
        encoders[name] = keras.layers.Normalization(axis=None)
        encoders[name].adapt(made.map(lambda x, y, name=name: x[name]))
    for name in TEXTS:
        index = keras.layers.StringLookup(max_tokens=5)
        index.adapt(made.map(lambda x, y, name=name: x[name]))
        encoder = keras.layers.CategoryEncoding(num_tokens=index.vocabulary_size())
        encoders[name] = lambda feature, index=index, encoder=encoder: encoder(index(feature))
    ages = keras.layers.Discretization(bin_boundaries=[18.0, 40.0, 60.0])

    def encode(features, label):
        parts = [encoders[name](features[name]) for name in (*NUMBERS, *TEXTS)]
        return tf.concat([*parts, tf.cast(ages(features["age"]), tf.float32)], 1), label

    encoded = made.map(encode)
    width = next(iter(encoded))[0].shape[1]
    model = keras.Sequential([keras.Input((width,)), keras.layers.Dense(4, activation="relu"), keras.layers.Dense(1)])
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    return [list(encoded.take(1)), fitted(keras, constant(model), encoded, loss=loss)]


CASES = {
    "csv_in_memory": csv_in_memory,
    "csv_mixed_types": csv_mixed_types,
    "csv_slices": csv_slices,
    "csv_dataset": csv_dataset,
    "csv_dataset_columns": lambda k, tf, folder: csv_dataset(
        k, tf, folder, select_columns=["class", LABEL, "age"], num_rows_for_inference=3
    ),
    "csv_compressed": csv_compressed,
    "csv_cached": csv_cached,
    "csv_many_files": csv_many_files,
    "csv_lines": csv_lines,
    "csv_interleaved": csv_interleaved,
    "pandas_arrays": pandas_arrays,
    "pandas_dictionary": pandas_dictionary,
    "records_messages": records_messages,
    "records_parsed": records_parsed,
    "records_generated": records_generated,
    "records_of_images": records_of_images,
    "text_vectorized": text_vectorized,
    "text_lines": text_lines,
    "images_of_keras": images_of_keras,
    "images_of_files": images_of_files,
    "time_series": window,
    "preprocessing": preprocessing,
}
