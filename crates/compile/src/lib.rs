//! Makes a graph smaller and its kernels fewer, without changing what it computes.
