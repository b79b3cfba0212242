//! Source locations.

use std::collections::HashSet;
use std::fmt;
use std::panic;
use std::sync::{LazyLock, Mutex};

use crate::lock;

/// A source location: a line of the calling Rust program, or of a program in another language (Python) that calls the
/// engine.
///
/// Every buffer, call and error is attributed to one. It is one word and cheap to copy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(LocationSource);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum LocationSource {
    Rust(&'static panic::Location<'static>),
    Foreign(&'static ForeignLocation),
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ForeignLocation {
    file: String,
    line: u32,
}

/// Interned foreign locations. They are never freed: the number of lines of a program is limited.
static FOREIGN_LOCATIONS: LazyLock<Mutex<HashSet<&'static ForeignLocation>>> = LazyLock::new(Mutex::default);

impl Location {
    /// The location of the caller; through functions marked `#[track_caller]`, the location of their caller.
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn caller() -> Location {
        Location(LocationSource::Rust(panic::Location::caller()))
    }

    /// A line of a program in another language. The call takes a lock and interns the location for good: cache the result.
    #[must_use]
    pub fn foreign(file: &str, line: u32) -> Location {
        let location = ForeignLocation { file: file.to_owned(), line };
        let mut interned = lock(&FOREIGN_LOCATIONS);
        if let Some(found) = interned.get(&location) {
            return Location(LocationSource::Foreign(found));
        }
        let location: &'static ForeignLocation = Box::leak(Box::new(location));
        interned.insert(location);
        Location(LocationSource::Foreign(location))
    }

    /// Whether it is a line of another language than Rust.
    #[must_use]
    pub fn is_foreign(self) -> bool {
        matches!(self.0, LocationSource::Foreign(_))
    }

    /// The file name, as the compiler or interpreter gives it.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self.0 {
            LocationSource::Rust(location) => location.file(),
            LocationSource::Foreign(location) => &location.file,
        }
    }

    /// The line number; the first line is 1.
    #[must_use]
    pub fn line(self) -> u32 {
        match self.0 {
            LocationSource::Rust(location) => location.line(),
            LocationSource::Foreign(location) => location.line,
        }
    }

    /// `file:line`, with an absolute path shortened to its last two components, so that it is the same on every machine.
    #[must_use]
    pub fn short(self) -> impl fmt::Display {
        let file = self.file();
        let is_absolute = file.starts_with('/') || file.chars().nth(1) == Some(':');
        let mut cuts = file.rmatch_indices(['/', '\\']).map(|(at, _)| at + 1);
        let start = if is_absolute { cuts.nth(1).unwrap_or(0) } else { 0 };
        let line = self.line();
        fmt::from_fn(move |f| write!(f, "{}:{line}", &file[start..]))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            LocationSource::Rust(location) => location.fmt(f),
            LocationSource::Foreign(ForeignLocation { file, line }) => write!(f, "{file}:{line}"),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_are_equal_locations() {
        let [a, b] = [(); 2].map(|()| Location::caller());
        assert_eq!(a, b);
        assert_eq!((a.file(), a.line()), (file!(), line!() - 2));
        assert_ne!(a, Location::caller());
        let other = Location::foreign("/home/me/project/train.py", 7);
        assert_eq!(other, Location::foreign("/home/me/project/train.py", 7));
        assert_ne!(other, Location::foreign("/home/me/project/train.py", 8));
        assert_eq!(other.to_string(), "/home/me/project/train.py:7");
        assert_eq!(other.short().to_string(), "project/train.py:7");
        assert_eq!(Location::foreign("train.py", 7).short().to_string(), "train.py:7");
        assert_eq!(Location::foreign("<stdin>", 1).short().to_string(), "<stdin>:1");
        assert_eq!(Location::foreign("C:\\a\\b.py", 1).short().to_string(), "a\\b.py:1");
    }
}
