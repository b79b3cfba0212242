//! The records of CSV files, split into fields with TensorFlow's rules.
//!
//! Not the crate `csv`: it reads an unterminated quoted field, characters behind a closing quotation mark and quotation marks
//! inside of other fields as text, and skips empty lines. Here the first three are errors, and an empty line is a record of one
//! empty field.

use super::files::ReadFailure;
use super::{format_error, read_error};
use std::io::{BufRead, ErrorKind};
use taut_core::{Error, Result};
use taut_memory::reserve;

/// What separates fields and encloses them.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldSyntax {
    /// The byte between fields.
    pub(super) delimiter: u8,
    /// Whether fields may be in quotation marks; else these are text.
    pub(super) quote: bool,
}

#[cold]
pub(super) fn unterminated() -> Error {
    format_error("a quoted field must end with a quotation mark, got the end of the data")
        .help("if quotation marks are text, turn quoting off (use_quote_delim=False)")
}

#[cold]
pub(super) fn behind_quote(byte: u8) -> Error {
    let byte = byte.escape_ascii();
    let message = format!(
        "a closing quotation mark must be followed by a delimiter or the end of the row, got '{byte}'"
    );
    format_error(message).help("inside of a quoted field, a quotation mark is written twice")
}

#[cold]
pub(super) fn inner_quote() -> Error {
    format_error("a field that is not quoted must not have quotation marks")
        .help("quote the whole field; if quotation marks are text, turn quoting off (use_quote_delim=False)")
}

/// Reads records. They end with `\n`, `\r\n` or `\r`.
pub(super) struct RecordReader<R> {
    contents: R,
    syntax: FieldSyntax,
    /// Bytes that end a run of plain bytes of a field.
    special: [bool; 256],
    /// The last record ended with `\r`: a `\n` belongs to its end.
    after_return: bool,
    /// The line at which the record begins, from 1, and that behind its end.
    line: u64,
    next_line: u64,
    /// The fields of the record, one behind the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Where in a record the next byte is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Outside of quotation marks.
    Plain,
    /// Between quotation marks.
    Quoted,
    /// Behind a quotation mark that closes the field, unless another one follows.
    Closing,
}

impl<R: BufRead> RecordReader<R> {
    pub(super) fn new(contents: R, syntax: FieldSyntax) -> RecordReader<R> {
        let mut special = [false; 256];
        for byte in [syntax.delimiter, b'\n', b'\r'] {
            special[usize::from(byte)] = true;
        }
        special[usize::from(b'"')] |= syntax.quote;
        let (bytes, ends) = (Vec::new(), Vec::new());
        RecordReader { contents, syntax, special, after_return: false, line: 0, next_line: 1, bytes, ends }
    }

    /// Reads the next record. False at the end of the file. A record with an error is read to its end: the next one can be read.
    pub(super) fn read(&mut self) -> Result<bool, ReadFailure> {
        self.bytes.clear();
        self.ends.clear();
        self.line = self.next_line;
        match self.read_fields() {
            Ok(None) => Ok(true),
            Ok(Some(error)) => {
                Err(ReadFailure { error: error.about(format_args!("line {}", self.line)), ends_file: false })
            }
            Err(None) => Ok(false),
            Err(Some(error)) => Err(ReadFailure { error, ends_file: true }),
        }
    }

    /// The first error in the record. `Err(None)` at the end of the file, `Err(Some(_))` if the file cannot be read.
    fn read_fields(&mut self) -> Result<Option<Error>, Option<Error>> {
        let (mut place, mut error, mut is_empty) = (Place::Plain, None, true);
        loop {
            let buffer = match self.contents.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Some(read_error(error))),
            };
            if buffer.is_empty() {
                if is_empty {
                    return Err(None);
                }
                if place == Place::Quoted {
                    error.get_or_insert_with(unterminated);
                }
                break;
            }
            if is_empty && self.after_return {
                self.after_return = false;
                if buffer[0] == b'\n' {
                    self.contents.consume(1);
                    continue;
                }
            }
            is_empty = false;
            reserve(&mut self.bytes, buffer.len()).map_err(|error| Some(error.into()))?;
            reserve(&mut self.ends, buffer.len()).map_err(|error| Some(error.into()))?;
            let (mut at, mut ended) = (0, false);
            while at < buffer.len() && !ended {
                let rest = &buffer[at..];
                match place {
                    Place::Plain => {
                        let is_special = |&byte: &u8| self.special[usize::from(byte)];
                        let len = rest.iter().position(is_special).unwrap_or(rest.len());
                        self.bytes.extend_from_slice(&rest[..len]);
                        at += len + 1;
                        match rest.get(len) {
                            None => {}
                            Some(&byte) if byte == self.syntax.delimiter => self.ends.push(self.bytes.len()),
                            Some(&byte @ (b'\n' | b'\r')) => {
                                self.after_return = byte == b'\r';
                                ended = true;
                            }
                            Some(_) if self.bytes.len() == self.ends.last().copied().unwrap_or(0) => {
                                place = Place::Quoted;
                            }
                            Some(_) => {
                                error.get_or_insert_with(inner_quote);
                            }
                        }
                    }
                    Place::Quoted => {
                        let len = rest.iter().position(|&byte| byte == b'"').unwrap_or(rest.len());
                        self.bytes.extend_from_slice(&rest[..len]);
                        self.next_line +=
                            rest[..len].iter().map(|&byte| u64::from(byte == b'\n')).sum::<u64>();
                        at += len + 1;
                        if len < rest.len() {
                            place = Place::Closing;
                        }
                    }
                    Place::Closing => match rest[0] {
                        byte if byte == self.syntax.delimiter => place = Place::Plain,
                        b'\n' | b'\r' => place = Place::Plain,
                        byte => {
                            if byte != b'"' {
                                error.get_or_insert_with(|| behind_quote(byte));
                            }
                            self.bytes.push(byte);
                            at += 1;
                            place = Place::Quoted;
                        }
                    },
                }
            }
            let read = at.min(buffer.len());
            self.contents.consume(read);
            if ended {
                break;
            }
        }
        self.ends.push(self.bytes.len());
        self.next_line += 1;
        Ok(error)
    }

    /// The number of fields of the record.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A field of the record; it must have it.
    pub(super) fn field(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    /// The line at which the record begins, from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }
}

/// Appends the first `most` fields of a string that is one record, and where each ends. An empty string has no fields.
pub(super) fn split_fields(
    line: &[u8],
    syntax: FieldSyntax,
    most: usize,
    out: &mut Vec<u8>,
    ends: &mut Vec<usize>,
) -> Result<()> {
    let mut at = 0;
    while at < line.len() || !ends.is_empty() {
        let rest = &line[at..];
        if syntax.quote && rest.first() == Some(&b'"') {
            at += 1;
            loop {
                match (line.get(at), line.get(at + 1)) {
                    (Some(b'"'), Some(b'"')) => {
                        out.push(b'"');
                        at += 2;
                    }
                    (Some(b'"'), _) => {
                        at += 1;
                        break;
                    }
                    (Some(&byte), _) => {
                        out.push(byte);
                        at += 1;
                    }
                    (None, _) => return Err(unterminated()),
                }
            }
            if let Some(&byte) = line.get(at)
                && byte != syntax.delimiter
            {
                return Err(behind_quote(byte));
            }
        } else {
            let len = rest.iter().position(|&byte| byte == syntax.delimiter).unwrap_or(rest.len());
            let field = &rest[..len];
            if field.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
                return Err(format_error("a field that is not quoted must not have line breaks")
                    .help("each string must be one row; a field with line breaks must be quoted"));
            }
            if syntax.quote && field.contains(&b'"') {
                return Err(inner_quote());
            }
            out.extend_from_slice(field);
            at += len;
        }
        ends.push(out.len());
        if at == line.len() || ends.len() == most {
            break;
        }
        at += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// The records of a text, read with buffers of several sizes; `Err` has the line of an error.
    fn records(text: &str, quote: bool) -> Vec<Result<Vec<String>, u64>> {
        let read = |capacity: usize| {
            let contents = BufReader::with_capacity(capacity, text.as_bytes());
            let mut reader = RecordReader::new(contents, FieldSyntax { delimiter: b',', quote });
            let mut found = Vec::new();
            loop {
                match reader.read() {
                    Ok(false) => return found,
                    Ok(true) => {
                        let fields =
                            (0..reader.len()).map(|i| String::from_utf8_lossy(reader.field(i)).into());
                        found.push(Ok(fields.collect()));
                    }
                    Err(failure) => {
                        assert!(!failure.ends_file);
                        found.push(Err(reader.line()));
                    }
                }
            }
        };
        let whole = read(1 << 10);
        for capacity in 1..8 {
            assert_eq!(read(capacity), whole, "{text:?} with a buffer of {capacity} bytes");
        }
        whole
    }

    fn row(fields: &[&str]) -> Vec<String> {
        fields.iter().map(|&field| field.to_owned()).collect()
    }

    #[test]
    fn line_ends_and_empty_lines() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("1,2{end}{end},{end}3{end}");
            assert_eq!(
                records(&text, true),
                [Ok(row(&["1", "2"])), Ok(row(&[""])), Ok(row(&["", ""])), Ok(row(&["3"]))]
            );
        }
        assert_eq!(records("", true), []);
        assert_eq!(records("a", true), [Ok(row(&["a"]))]);
        assert_eq!(records("a,", true), [Ok(row(&["a", ""]))]);
    }

    #[test]
    fn quoted_fields() {
        assert_eq!(
            records("\"a\"\"b\",\"c,\r\nd\"\n\"\",\"\"\"\"", true),
            [Ok(row(&["a\"b", "c,\r\nd"])), Ok(row(&["", "\""]))]
        );
        assert_eq!(records("\"a\"b,c\"\n", false), [Ok(row(&["\"a\"b", "c\""]))]);
    }

    /// Where the next record begins after an error is where TensorFlow's reader finds it.
    #[test]
    fn quotation_marks_out_of_place() {
        assert_eq!(records("1,\"2\n3,4\n", true), [Err(1)]);
        assert_eq!(records("1\n\"2\"x,1\n3,4\n", true), [Ok(row(&["1"])), Err(2)]);
        assert_eq!(records("\"a\"b,\"d\n3,4\n5\",6\n7,8\n", true), [Err(1), Ok(row(&["7", "8"]))]);
        assert_eq!(
            records("a\"b\n\"c\nd\",1\n3\"\n4", true),
            [Err(1), Ok(row(&["c\nd", "1"])), Err(4), Ok(row(&["4"]))]
        );
    }
}
