//! Builds string tensors string by string, in buffers that the ledger counts.

use crate::tensor::{StringTensor, ends_spec};
use taut_core::{DType, Error, Result, Shape, Spec, Tensor, source_location};
use taut_memory::{Buffer, Category, Location};

/// A string tensor under construction.
///
/// ```
/// use taut_strings::StringBuilder;
/// let mut builder = StringBuilder::new(2, 10);
/// builder.push(b"one")?;
/// builder.append(b"tw")?; // parts of a string
/// builder.append(b"o")?;
/// builder.end()?;
/// assert_eq!(builder.finish([2])?.to_vec()?, [b"one".to_vec(), b"two".to_vec()]);
/// # Ok::<(), taut_core::Error>(())
/// ```
pub struct StringBuilder {
    ends: Buffer,
    count: usize,
    bytes: Buffer,
    len: usize,
    reserve: (usize, usize),
    at: Location,
}

const END: usize = size_of::<i64>();

impl StringBuilder {
    /// Expects `count` strings of `bytes` bytes in total; both may become more.
    #[track_caller]
    pub fn new(count: usize, bytes: usize) -> StringBuilder {
        let at = source_location(Location::caller());
        StringBuilder {
            ends: Buffer::default(),
            count: 0,
            bytes: Buffer::default(),
            len: 0,
            reserve: (count.saturating_mul(END), bytes),
            at,
        }
    }

    /// The bytes of the strings so far.
    pub fn byte_len(&self) -> usize {
        self.len
    }

    /// The number of complete strings.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds a string.
    #[inline]
    pub fn push(&mut self, value: &[u8]) -> Result<()> {
        self.append(value)?;
        self.end()
    }

    /// Adds bytes to the current string.
    #[inline]
    pub fn append(&mut self, part: &[u8]) -> Result<()> {
        let end = self.len + part.len();
        if end > self.bytes.len() {
            self.bytes = grown(&self.bytes, self.len, end.max(self.reserve.1), self.at)?;
        }
        self.bytes.as_mut_slice()[self.len..end].copy_from_slice(part);
        self.len = end;
        Ok(())
    }

    /// Ends the current string.
    #[inline]
    pub fn end(&mut self) -> Result<()> {
        let at = self.count * END;
        if at + END > self.ends.len() {
            self.ends = grown(&self.ends, at, (at + END).max(self.reserve.0), self.at)?;
        }
        self.ends.as_mut_slice()[at..at + END].copy_from_slice(&(self.len as i64).to_ne_bytes());
        self.count += 1;
        Ok(())
    }

    /// The tensor of the strings so far, which must fill the shape.
    pub fn finish(self, shape: impl Into<Shape>) -> Result<StringTensor> {
        let shape = shape.into();
        if shape.checked_len() != Some(self.count) {
            let message = format!("shape {shape} must have as many elements as the data, got {}", self.count);
            return Err(Error::shape(message).at(self.at));
        }
        let ends = fitted(self.ends, self.count * END, self.at)?;
        let bytes = fitted(self.bytes, self.len, self.at)?;
        let ends = Tensor::from_buffer(ends_spec(shape), ends)?;
        let bytes = Tensor::from_buffer(Spec::new(DType::U8, Shape::from([self.len])), bytes)?;
        Ok(StringTensor::from_valid_parts(ends, bytes))
    }

    /// The tensor of the strings so far, along one axis.
    pub fn finish_vector(self) -> Result<StringTensor> {
        let count = self.count;
        self.finish([count])
    }
}

/// A buffer of at least `needed` bytes that begins with the first `used` bytes of another.
fn grown(old: &Buffer, used: usize, needed: usize, at: Location) -> Result<Buffer> {
    let bytes = needed.max(old.len().saturating_mul(2)).max(16);
    let mut new = Buffer::new_at(bytes, Category::Tensor, at)?;
    new.as_mut_slice()[..used].copy_from_slice(&old.as_slice()[..used]);
    Ok(new)
}

/// The buffer, or a smaller one if more than an eighth of it is unused.
fn fitted(buffer: Buffer, used: usize, at: Location) -> Result<Buffer> {
    if buffer.len() - used <= buffer.len() / 8 { Ok(buffer) } else { exact(&buffer, used, at) }
}

fn exact(buffer: &Buffer, used: usize, at: Location) -> Result<Buffer> {
    let mut new = Buffer::new_at(used, Category::Tensor, at)?;
    new.as_mut_slice().copy_from_slice(&buffer.as_slice()[..used]);
    Ok(new)
}
