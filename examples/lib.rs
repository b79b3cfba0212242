//! What the examples share: nothing yet.
