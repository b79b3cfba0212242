"""Implementation of `keras.ops`: neural networks."""
