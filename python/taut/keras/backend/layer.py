"""What every Keras layer inherits from the backend: nothing beyond what Keras gives it."""


class Layer:
    """The backend's part of `keras.Layer`."""
