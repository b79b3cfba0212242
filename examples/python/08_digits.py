"""A convolutional network for handwritten digits, trained with validation and early stopping."""

import taut as tf
from common import digits, is_quick

keras = tf.keras
keras.utils.set_random_seed(1)
train, test = digits()
batches = tf.data.Dataset.from_tensor_slices(train).shuffle(2000, seed=1).batch(64).prefetch(2)

model = keras.Sequential(
    [
        keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
        keras.layers.MaxPooling2D(2),
        keras.layers.Flatten(),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(0.003),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
stop = keras.callbacks.EarlyStopping(patience=4, restore_best_weights=True)
model.fit(batches, validation_data=test, epochs=2 if is_quick() else 20, callbacks=[stop], verbose=2)
loss, accuracy = model.evaluate(*test, verbose=0)
print(f"on the test set: loss {loss:.4f}, accuracy {accuracy:.4f}")
assert accuracy > (0.75 if is_quick() else 0.97)
