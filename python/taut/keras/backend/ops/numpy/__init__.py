"""Implementation of `keras.ops`: NumPy's functions."""
