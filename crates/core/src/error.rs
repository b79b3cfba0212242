//! The one error type of the project.

use crate::op::Spec;
use smallvec::SmallVec;
use std::fmt;
use taut_memory::{Location, OutOfMemory};

/// The result of every public call that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Shapes that do not fit together, or a size that overflows.
    Shape,
    /// An element type that the op does not support.
    DType,
    /// An axis that the tensor does not have.
    Axis,
    /// An index outside the tensor.
    Index,
    /// An invalid argument.
    Value,
    /// A computation without a result, such as the inverse of a singular matrix.
    Numeric,
    /// No memory, or the memory limit reached. The call has had no effect.
    OutOfMemory,
    /// A file that could not be read or written.
    Io,
    /// A file whose content is invalid.
    Format,
    /// The value of a traced tensor was needed, or a graph is inconsistent.
    Graph,
    /// A shape depends on the value of a traced tensor. A traced function that needs one runs op by op instead.
    DynamicShape,
    /// Another process cannot be reached, has ended, or does something else.
    Unavailable,
}

/// An error with the op, the specs of its inputs and the caller's line.
///
/// ```
/// # use taut_core::{Error, ErrorKind};
/// let error = Error::new(ErrorKind::Axis, "axis must be in [-2, 2), got 2").help("the last axis is -1");
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

    /// An element type that is not supported.
    #[cold]
    pub fn dtype(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::DType, message)
    }

    /// An invalid argument.
    #[cold]
    pub fn value(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Value, message)
    }

    /// An index outside the tensor.
    #[cold]
    pub fn index(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Index, message)
    }

    /// The shape of a result depends on the value of a traced tensor of this spec.
    #[cold]
    pub fn dynamic_shape(spec: &Spec) -> Error {
        let message = format!("a shape depends on the value of a traced tensor, {spec}");
        Error::new(ErrorKind::DynamicShape, message)
    }

    /// Adds a line that says what to do.
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

    /// Replaces its line. For a caller in another language, the lines that matter are those of its program.
    #[must_use]
    pub fn moved_to(mut self, location: Location) -> Error {
        self.0.location = Some(location);
        if let Some(shortage) = self.out_of_memory() {
            // The message of an out-of-memory error contains its line.
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

    /// NaN or infinity in a result that is checked.
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
        Error::new(ErrorKind::Numeric, message).help(
            "check the inputs of this op: with every op checked, it is the first whose result is not finite",
        )
    }

    /// Adds the op whose gradient was being computed, unless one is known already.
    #[must_use]
    pub(crate) fn in_gradient_of(mut self, op: &'static str) -> Error {
        self.0.gradient_of.get_or_insert(op);
        self
    }

    /// The op whose gradient was being computed, if one was.
    pub fn gradient_of(&self) -> Option<&'static str> {
        self.0.gradient_of
    }

    /// Prepends what it is about to the message: a file, or a part of one.
    #[must_use]
    pub fn about(mut self, what: impl fmt::Display) -> Error {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// Its kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message, without op and line.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The op that failed, if an op did.
    pub fn op(&self) -> Option<&'static str> {
        self.0.op
    }

    /// Types and shapes of the op's inputs.
    pub fn inputs(&self) -> &[Spec] {
        &self.0.inputs
    }

    /// The line that made the call.
    pub fn location(&self) -> Option<Location> {
        self.0.location
    }

    /// Adds its cause. The exceptions of a caller in another language are carried like this.
    #[must_use]
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        self.0.source = Some(Box::new(source));
        self
    }

    /// Its cause, if it is of this type.
    pub fn cause<T: std::error::Error + 'static>(&self) -> Option<&T> {
        self.0.source.as_ref()?.downcast_ref()
    }

    /// The largest holders of memory, if it is an out-of-memory error.
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
        // The message of an out-of-memory error contains its line.
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
