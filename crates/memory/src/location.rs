//! Lines of somebody's program.

use std::collections::HashSet;
use std::fmt;
use std::panic;
use std::sync::{LazyLock, Mutex};

use crate::lock;

/// A line of somebody's program: of the Rust code that calls, or of the program in another language that calls through it.
///
/// It is what every buffer, call and error can be traced back to; copying it costs nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(Place);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Place {
    Here(&'static panic::Location<'static>),
    Elsewhere(&'static Elsewhere),
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Elsewhere {
    file: String,
    line: u32,
}

/// Lines of other languages that were named. They stay: a program has a limited number of them.
static ELSEWHERE: LazyLock<Mutex<HashSet<&'static Elsewhere>>> = LazyLock::new(Mutex::default);

impl Location {
    /// The line that called the function that asks, and its callers as far as they are marked `#[track_caller]`.
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn caller() -> Location {
        Location(Place::Here(panic::Location::caller()))
    }

    /// A line of a program in another language. Asking takes a lock, and each line is remembered for good: keep what comes back.
    #[must_use]
    pub fn elsewhere(file: &str, line: u32) -> Location {
        let wanted = Elsewhere { file: file.to_owned(), line };
        let mut known = lock(&ELSEWHERE);
        if let Some(found) = known.get(&wanted) {
            return Location(Place::Elsewhere(found));
        }
        let found: &'static Elsewhere = Box::leak(Box::new(wanted));
        known.insert(found);
        Location(Place::Elsewhere(found))
    }

    /// Whether it is a line of another language.
    #[must_use]
    pub fn is_elsewhere(self) -> bool {
        matches!(self.0, Place::Elsewhere(_))
    }

    /// The file, as its compiler or interpreter calls it.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self.0 {
            Place::Here(location) => location.file(),
            Place::Elsewhere(place) => &place.file,
        }
    }

    /// The line's number; the first is 1.
    #[must_use]
    pub fn line(self) -> u32 {
        match self.0 {
            Place::Here(location) => location.line(),
            Place::Elsewhere(place) => place.line,
        }
    }

    /// File and number, the same on every machine: of a path from the root, the end has to do.
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
            Place::Here(location) => location.fmt(f),
            Place::Elsewhere(Elsewhere { file, line }) => write!(f, "{file}:{line}"),
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
    fn lines_are_equal_where_they_are_the_same() {
        let [a, b] = [(); 2].map(|()| Location::caller());
        assert_eq!(a, b);
        assert_eq!((a.file(), a.line()), (file!(), line!() - 2));
        assert_ne!(a, Location::caller());
        let other = Location::elsewhere("/home/me/project/train.py", 7);
        assert_eq!(other, Location::elsewhere("/home/me/project/train.py", 7));
        assert_ne!(other, Location::elsewhere("/home/me/project/train.py", 8));
        assert_eq!(other.to_string(), "/home/me/project/train.py:7");
        assert_eq!(other.short().to_string(), "project/train.py:7");
        assert_eq!(Location::elsewhere("train.py", 7).short().to_string(), "train.py:7");
        assert_eq!(Location::elsewhere("<stdin>", 1).short().to_string(), "<stdin>:1");
        assert_eq!(Location::elsewhere("C:\\a\\b.py", 1).short().to_string(), "a\\b.py:1");
    }
}
