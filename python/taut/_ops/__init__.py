"""Python implementations of the public functions that are more than one op of the op table."""
