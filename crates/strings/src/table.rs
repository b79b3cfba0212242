//! Tables of strings: the position of a string among many.

use crate::hash::fingerprint64;
use crate::tensor::{StringTensor, StringValues};
use taut_core::{DType, Error, Result, Spec, Tensor, source_location};
use taut_memory::{Buffer, Category, Location};

/// An immutable hash table of strings. Keys and slots are on the ledger.
///
/// ```
/// use taut_strings::{StringTable, StringTensor};
/// let table = StringTable::new(StringTensor::from_values(["a", "b"], [2])?)?;
/// let words = StringTensor::from_values(["b", "?", "a"], [3])?;
/// assert_eq!(table.positions(&words)?.to_vec::<i64>()?, [1, -1, 0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
pub struct StringTable {
    keys: StringTensor,
    /// Open addressing with linear probing: `u32` positions of keys plus one, zero for a free slot.
    slots: Buffer,
    mask: usize,
}

impl StringTable {
    /// A table of distinct strings.
    #[track_caller]
    pub fn new(keys: StringTensor) -> Result<StringTable> {
        let at = source_location(Location::caller());
        let count = keys.len();
        if count >= u32::MAX as usize / 2 {
            return Err(Error::value(format!("a table must have fewer than 2^31 keys, got {count}")).at(at));
        }
        let capacity = (count * 2).next_power_of_two().max(16);
        let mut slots = Buffer::zeroed_at(capacity * size_of::<u32>(), Category::Tensor, at)?;
        let mask = capacity - 1;
        let values = keys.values()?;
        let words: &mut [u32] = bytemuck::cast_slice_mut(slots.as_mut_slice());
        for (position, key) in values.iter().enumerate() {
            match find(&values, words, mask, key) {
                Ok(other) => {
                    let text = String::from_utf8_lossy(key);
                    let message =
                        format!("keys must be distinct, got {text:?} at positions {other} and {position}");
                    return Err(Error::value(message).at(at));
                }
                Err(free) => words[free] = position as u32 + 1,
            }
        }
        Ok(StringTable { keys, slots, mask })
    }

    /// The keys.
    pub fn keys(&self) -> &StringTensor {
        &self.keys
    }

    /// The position of each string among the keys, or -1 (`int64`).
    #[track_caller]
    pub fn positions(&self, x: &StringTensor) -> Result<Tensor> {
        let at = source_location(Location::caller());
        let (keys, wanted) = (self.keys.values()?, x.values()?);
        let slots: &[u32] = bytemuck::cast_slice(self.slots.as_slice());
        Tensor::build(Spec::new(DType::I64, x.shape().clone()), Category::Tensor, at, |out| {
            for (out, value) in out.slice::<i64>().iter_mut().zip(wanted.iter()) {
                *out = find(&keys, slots, self.mask, value).map_or(-1, |position| position as i64);
            }
        })
    }
}

/// The position of a key, or the free slot where it would be.
#[inline]
fn find(
    keys: &StringValues<'_>,
    slots: &[u32],
    mask: usize,
    key: &[u8],
) -> std::result::Result<usize, usize> {
    let mut slot = fingerprint64(key) as usize & mask;
    loop {
        match slots[slot] {
            0 => return Err(slot),
            position if keys.get(position as usize - 1) == key => return Ok(position as usize - 1),
            _ => slot = (slot + 1) & mask,
        }
    }
}
