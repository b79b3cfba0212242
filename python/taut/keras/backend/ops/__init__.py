"""The functions behind `keras.ops`, by the modules in which Keras looks for them."""
