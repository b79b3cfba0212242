//! What people should know although nothing failed.

use std::sync::{PoisonError, RwLock};

type Sink = Box<dyn Fn(&str) + Send + Sync>;

static SINK: RwLock<Option<Sink>> = RwLock::new(None);

/// Tells people something. It goes to standard error, unless [`set_warning_sink`] says where else.
pub fn warn(message: &str) {
    match &*SINK.read().unwrap_or_else(PoisonError::into_inner) {
        Some(sink) => sink(message),
        None => eprintln!("taut: {message}"),
    }
}

/// Sends warnings here from now on; to standard error again with `None`.
pub fn set_warning_sink(sink: Option<Box<dyn Fn(&str) + Send + Sync>>) {
    *SINK.write().unwrap_or_else(PoisonError::into_inner) = sink;
}
