//! The one error type of the project.

use crate::op::Spec;
use smallvec::SmallVec;
use std::fmt;
use taut_memory::{Location, OutOfMemory};

/// The result of every public call that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of mistake an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Shapes that do not fit together, or a size that overflows.
    Shape,
    /// An element type that the op does not take.
    DType,
    /// An axis that the tensor does not have.
    Axis,
    /// An index outside the tensor.
    Index,
    /// An argument that makes no sense.
    Value,
    /// A computation without a result, such as the inverse of a singular matrix.
    Numeric,
    /// No memory, or the limit reached. Everything is as it was before the call.
    OutOfMemory,
    /// A file that could not be read or written.
    Io,
    /// A file whose content is not what it claims to be.
    Format,
    /// A value asked of a tensor that is being traced, or a graph that contradicts itself.
    Graph,
}

/// An error that names the op, what it was given and the caller's line.
///
/// ```
/// # use taut_core::{Error, ErrorKind};
/// let error = Error::new(ErrorKind::Axis, "axis 2 is out of range for rank 2").help("axes go from -2 to 1");
/// assert_eq!(error.kind(), ErrorKind::Axis);
/// ```
pub struct Error(Box<Details>);

struct Details {
    kind: ErrorKind,
    message: String,
    op: Option<&'static str>,
    gradient_of: Option<&'static str>,
    inputs: SmallVec<[Spec; 2]>,
    location: Option<Location>,
    help: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of this kind. [`apply`](crate::apply()) adds the op, its inputs and the caller's line.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Details {
            kind,
            message: message.into(),
            op: None,
            gradient_of: None,
            inputs: SmallVec::new(),
            location: None,
            help: None,
            source: None,
        }))
    }

    /// Shapes that do not fit.
    #[cold]
    pub fn shape(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Shape, message)
    }

    /// An element type that is not taken.
    #[cold]
    pub fn dtype(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::DType, message)
    }

    /// An argument that makes no sense.
    #[cold]
    pub fn value(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Value, message)
    }

    /// An index outside the tensor.
    #[cold]
    pub fn index(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Index, message)
    }

    /// Says what would work.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Error {
        self.0.help = Some(help.into());
        self
    }

    /// Adds the caller's line, unless one is known already.
    #[must_use]
    pub fn at(mut self, location: Location) -> Error {
        self.0.location.get_or_insert(location);
        self
    }

    /// Names another line than the one it has. Where a program in another language calls, the lines that matter are that
    /// program's.
    #[must_use]
    pub fn moved_to(mut self, location: Location) -> Error {
        self.0.location = Some(location);
        if let Some(shortage) = self.out_of_memory() {
            // A shortage says its line in its own words.
            let moved = shortage.clone().moved_to(location);
            self.0.message = moved.to_string();
            self.0.source = Some(Box::new(moved));
        }
        self
    }

    /// Adds the op, unless one is known already.
    #[must_use]
    pub fn in_op<'a>(mut self, op: &'static str, inputs: impl IntoIterator<Item = &'a Spec>) -> Error {
        if self.0.op.is_none() {
            self.0.op = Some(op);
            self.0.inputs = inputs.into_iter().cloned().collect();
        }
        self
    }

    /// NaN or infinity where there should be none.
    #[cold]
    pub(crate) fn not_finite(spec: &Spec, nans: usize, infinities: usize) -> Error {
        let mut found = Vec::new();
        if nans > 0 {
            found.push(format!("{nans} NaN"));
        }
        if infinities > 0 {
            found.push(format!("{infinities} infinite"));
        }
        let message = format!("the result {spec} has {} elements", found.join(" and "));
        Error::new(ErrorKind::Numeric, message)
            .help("look at what went into this op; checking every op stops at the first that makes one")
    }

    /// Says that it happened in the gradient of an op, unless it says so already.
    #[must_use]
    pub(crate) fn in_gradient_of(mut self, op: &'static str) -> Error {
        self.0.gradient_of.get_or_insert(op);
        self
    }

    /// The op whose gradient was being computed, if one was.
    pub fn gradient_of(&self) -> Option<&'static str> {
        self.0.gradient_of
    }

    /// Says what it is about: a file, a part of one.
    #[must_use]
    pub fn about(mut self, what: impl fmt::Display) -> Error {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// What kind of mistake it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What went wrong, without op and line.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The op that refused, if an op did.
    pub fn op(&self) -> Option<&'static str> {
        self.0.op
    }

    /// Types and shapes of what the op was given.
    pub fn inputs(&self) -> &[Spec] {
        &self.0.inputs
    }

    /// The line that made the call.
    pub fn location(&self) -> Option<Location> {
        self.0.location
    }

    /// Says what it comes from. Where a program in another language calls, its own exceptions travel like this.
    #[must_use]
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        self.0.source = Some(Box::new(source));
        self
    }

    /// What it comes from, to be looked at or cloned.
    pub fn cause<T: std::error::Error + 'static>(&self) -> Option<&T> {
        self.0.source.as_ref()?.downcast_ref()
    }

    /// Who holds the memory, if memory was the trouble.
    pub fn out_of_memory(&self) -> Option<&OutOfMemory> {
        self.cause()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = &*self.0;
        if let Some(op) = details.gradient_of {
            write!(f, "in the gradient of {op}: ")?;
        }
        if let Some(op) = details.op {
            write!(f, "{op}: ")?;
        }
        f.write_str(&details.message)?;
        if !details.inputs.is_empty() {
            f.write_str("\n  given: ")?;
            for (i, spec) in details.inputs.iter().enumerate() {
                write!(f, "{}{spec}", if i == 0 { "" } else { ", " })?;
            }
        }
        // A shortage of memory names the line in its own words.
        if let Some(location) = details.location.filter(|_| details.kind != ErrorKind::OutOfMemory) {
            write!(f, "\n  at {location}")?;
        }
        if let Some(help) = &details.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

impl From<OutOfMemory> for Error {
    #[cold]
    fn from(source: OutOfMemory) -> Error {
        let mut error = Error::new(ErrorKind::OutOfMemory, source.to_string());
        error.0.location = Some(source.location);
        error.0.source = Some(Box::new(source));
        error
    }
}

impl From<std::io::Error> for Error {
    #[cold]
    fn from(source: std::io::Error) -> Error {
        let mut error = Error::new(ErrorKind::Io, source.to_string());
        error.0.source = Some(Box::new(source));
        error
    }
}
