//! plan
#![allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod search;
pub mod shape;
