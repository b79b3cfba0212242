//! Why a batch is not computed in parts.

use std::fmt;
use taut_core::graph::Node;
use taut_core::{Error, ErrorKind, Location};

/// Why a graph cannot compute its batch in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MixedRows {
    /// No argument has rows.
    NoBatch,
    /// No result depends on the rows.
    NoRows,
    /// A call needs all rows at once, and rows depend on its result.
    Mixed {
        /// The op that mixes the rows.
        op: &'static str,
        /// The line that called it.
        at: Location,
        /// The op that needs its result for every row, and that line.
        needed_by: Option<(&'static str, Location)>,
    },
    /// A call on rows has side effects, which would occur once per part.
    SideEffect {
        /// The op.
        op: &'static str,
        /// The line that called it.
        at: Location,
    },
}

impl MixedRows {
    pub(crate) fn mixed(mixer: &Node, needed_by: Option<&Node>) -> MixedRows {
        let needed_by = needed_by.map(|node| (node.op.name(), node.at));
        MixedRows::Mixed { op: mixer.op.name(), at: mixer.at, needed_by }
    }

    pub(crate) fn side_effect(node: &Node) -> MixedRows {
        MixedRows::SideEffect { op: node.op.name(), at: node.at }
    }

    /// The op and the line that prevent the split, if one does.
    pub fn location(&self) -> Option<(&'static str, Location)> {
        match *self {
            MixedRows::NoBatch | MixedRows::NoRows => None,
            MixedRows::Mixed { op, at, .. } | MixedRows::SideEffect { op, at } => Some((op, at)),
        }
    }
}

impl fmt::Display for MixedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MixedRows::NoBatch => write!(f, "no argument has a batch of at least two rows as its first axis"),
            MixedRows::NoRows => write!(f, "no result depends on the rows of the batch"),
            MixedRows::Mixed { op, at, needed_by: None } => write!(f, "{op} at {at} mixes the rows"),
            MixedRows::Mixed { op, at, needed_by: Some((reader, line)) } => {
                write!(
                    f,
                    "{op} at {at} mixes the rows, and {reader} at {line} needs the result for every row"
                )
            }
            MixedRows::SideEffect { op, at } => {
                write!(f, "{op} at {at} has side effects, which would occur once per part of the batch")
            }
        }
    }
}

impl std::error::Error for MixedRows {}

impl From<MixedRows> for Error {
    fn from(refusal: MixedRows) -> Error {
        let error = Error::new(ErrorKind::Value, format!("the batch is not split: {refusal}"));
        match refusal.location() {
            Some((_, at)) => error.at(at),
            None => error,
        }
    }
}
