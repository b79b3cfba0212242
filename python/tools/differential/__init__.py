"""Comparison with TensorFlow; see `__main__.py`."""
