"""`tf.keras.preprocessing` has what TensorFlow's has and `keras.preprocessing` has not."""

import numpy as np

import taut as tf


def test_tokenizers_count_words():
    from taut.keras.preprocessing.text import Tokenizer

    assert Tokenizer is tf.keras.preprocessing.text.Tokenizer
    tokenizer = Tokenizer(num_words=5, oov_token="?")
    tokenizer.fit_on_texts(["the cat sat on the mat", "the dog"])
    # TensorFlow 2.21 has the same.
    assert tokenizer.texts_to_sequences(["the cat ate"]) == [[2, 3, 1]]
    assert tf.keras.preprocessing.sequence.pad_sequences([[1], [2, 3]]).tolist() == [[0, 1], [2, 3]]


def test_generators_make_batches():
    series = tf.keras.preprocessing.sequence.TimeseriesGenerator(np.arange(6), np.arange(6), length=2, batch_size=2)
    windows, targets = series[0]
    assert (len(series), windows.tolist(), targets.tolist()) == (2, [[0, 1], [1, 2]], [2, 3])
    images = tf.keras.preprocessing.image.ImageDataGenerator(rescale=0.5)
    batches = images.flow(np.ones([4, 3, 3, 1], np.float32), np.arange(4), batch_size=2, shuffle=False)
    pictures, labels = next(batches)
    assert (pictures.sum(), labels.tolist()) == (9.0, [0, 1])
