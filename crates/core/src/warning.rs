//! Warnings.

use std::sync::{PoisonError, RwLock};

type Sink = Box<dyn Fn(&str) + Send + Sync>;

static SINK: RwLock<Option<Sink>> = RwLock::new(None);

/// Emits a warning: to standard error, or to the sink of [`set_warning_sink`].
pub fn warn(message: &str) {
    match &*SINK.read().unwrap_or_else(PoisonError::into_inner) {
        Some(sink) => sink(message),
        None => eprintln!("taut: {message}"),
    }
}

/// Sets where warnings go; `None` is standard error.
pub fn set_warning_sink(sink: Option<Box<dyn Fn(&str) + Send + Sync>>) {
    *SINK.write().unwrap_or_else(PoisonError::into_inner) = sink;
}
