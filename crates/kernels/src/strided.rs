//! strided
