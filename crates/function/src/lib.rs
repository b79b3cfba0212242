//! Turns a function into planned programs: traced once per signature.
