"""Implementation of `keras.ops`. The modules in which Keras looks for them are those of `taut.keras.backend`."""
