//! When to keep a loop's states and when to compute them again, for a gradient in fixed memory.
