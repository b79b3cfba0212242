//! Views of tensor memory: bytes, a dtype, a shape and strides.

use crate::dtype::{DType, Element};
use std::ops::{Deref, DerefMut};

/// A read-only strided view of typed elements.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    dtype: DType,
    bytes: &'a [u8],
    offset: usize,
    shape: &'a [usize],
    strides: &'a [isize],
}

impl<'a> View<'a> {
    /// A view of `bytes` whose first element is number `offset`. Strides count elements and may be zero or
    /// negative.
    ///
    /// # Panics
    /// If an element of the view lies outside `bytes`: this is the check that lets kernels index unchecked.
    #[inline]
    pub fn new(
        dtype: DType,
        bytes: &'a [u8],
        offset: usize,
        shape: &'a [usize],
        strides: &'a [isize],
    ) -> View<'a> {
        assert_eq!(shape.len(), strides.len(), "a stride per dimension");
        let (mut low, mut high, mut empty) = (0isize, 0isize, false);
        for (&dim, &stride) in shape.iter().zip(strides) {
            empty |= dim == 0;
            // Saturating: an extent beyond `isize` is beyond every buffer.
            let reach = (dim as isize).saturating_sub(1).saturating_mul(stride);
            if reach < 0 { low = low.saturating_add(reach) } else { high = high.saturating_add(reach) }
        }
        let count = bytes.len() / dtype.size();
        let inside = offset < count && low >= -(offset as isize) && high < (count - offset) as isize;
        assert!(empty || inside, "view outside its buffer");
        // A buffer of smaller elements may end in the middle of one of these.
        let bytes = &bytes[..count * dtype.size()];
        View { dtype, bytes, offset: if empty { 0 } else { offset }, shape, strides }
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    #[inline]
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// Strides, in elements.
    #[inline]
    pub fn strides(&self) -> &'a [isize] {
        self.strides
    }

    /// The offset of the first element, in elements from the start of [`View::data`].
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// How many elements the view has.
    #[inline]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the view has no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The same buffer from the same first element, under another shape and strides.
    ///
    /// # Panics
    /// As [`View::new`].
    #[inline]
    #[must_use]
    pub fn with_layout<'b>(self, shape: &'b [usize], strides: &'b [isize]) -> View<'b>
    where
        'a: 'b,
    {
        View::new(self.dtype, self.bytes, self.offset, shape, strides)
    }

    /// The whole buffer behind the view, typed. Index it by offset and strides.
    ///
    /// # Panics
    /// If `T` has another size than the view's elements.
    #[inline]
    pub fn data<T: Element>(&self) -> &'a [T] {
        debug_assert_eq!(size_of::<T>(), self.dtype.size());
        bytemuck::cast_slice(self.bytes)
    }

    /// Whether the elements are contiguous in row-major order.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut expected = 1isize;
        for (&dim, &stride) in self.shape.iter().zip(self.strides).rev() {
            if dim != 1 && stride != expected {
                return false;
            }
            expected *= dim as isize;
        }
        true
    }

    /// The shape and strides of the parts of complex elements: those of the elements, and a last dimension of the two parts.
    pub(crate) fn part_layout(&self) -> (Small<usize>, Small<isize>) {
        let mut strides = Small::new();
        self.strides.iter().for_each(|stride| strides.push(2 * stride));
        strides.push(1);
        (with_parts(self.shape), strides)
    }

    /// The parts of complex elements, under the layout that [`View::part_layout`] returned.
    pub(crate) fn parts<'b>(&self, shape: &'b [usize], strides: &'b [isize]) -> View<'b>
    where
        'a: 'b,
    {
        View::new(self.dtype.part(), self.bytes, 2 * self.offset, shape, strides)
    }

    /// The bytes of the elements, if they are contiguous.
    #[inline]
    pub fn contiguous_bytes(&self) -> Option<&'a [u8]> {
        let size = self.dtype.size();
        self.is_contiguous().then(|| &self.bytes[self.offset * size..][..self.len() * size])
    }

    /// The elements as a slice, if they are contiguous.
    #[inline]
    pub fn contiguous<T: Element>(&self) -> Option<&'a [T]> {
        self.is_contiguous().then(|| &self.data()[self.offset..self.offset + self.len()])
    }
}

fn with_parts(shape: &[usize]) -> Small<usize> {
    let mut parts = Small::new();
    shape.iter().chain(&[2]).for_each(|&dim| parts.push(dim));
    parts
}

/// A contiguous row-major output.
#[derive(Debug)]
pub struct ViewMut<'a> {
    dtype: DType,
    bytes: &'a mut [u8],
    shape: &'a [usize],
}

impl<'a> ViewMut<'a> {
    /// An output over the first bytes of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is too short for the shape.
    #[inline]
    pub fn new(dtype: DType, bytes: &'a mut [u8], shape: &'a [usize]) -> ViewMut<'a> {
        let needed = shape.iter().product::<usize>() * dtype.size();
        ViewMut { dtype, bytes: &mut bytes[..needed], shape }
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    #[inline]
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// How many elements the output has.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size()
    }

    /// Whether the output has no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The elements.
    #[inline]
    pub fn slice<T: Element>(&mut self) -> &mut [T] {
        debug_assert_eq!(size_of::<T>(), self.dtype.size());
        bytemuck::cast_slice_mut(self.bytes)
    }

    /// The elements' bytes.
    #[inline]
    pub fn bytes(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// The shape of the parts of complex elements: that of the elements, and a last dimension of the two parts.
    pub(crate) fn part_shape(&self) -> Small<usize> {
        with_parts(self.shape)
    }

    /// The parts of complex elements, under the shape that [`ViewMut::part_shape`] returned.
    pub(crate) fn parts<'b>(&'b mut self, shape: &'b [usize]) -> ViewMut<'b> {
        ViewMut::new(self.dtype.part(), self.bytes, shape)
    }

    /// The same output, borrowed for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> ViewMut<'_> {
        ViewMut { dtype: self.dtype, bytes: self.bytes, shape: self.shape }
    }
}

/// An input of a kernel that may work in place.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// The input is read through this view.
    View(View<'a>),
    /// The input's elements are in the output of this number, with its dtype and shape, and are overwritten.
    InPlace(usize),
}

impl<'a> Arg<'a> {
    /// The view of an input that is not in place.
    ///
    /// # Panics
    /// If the input is in place: only an op that declared the alias gets such an input.
    #[inline]
    pub fn view(&self) -> View<'a> {
        match self {
            Arg::View(view) => *view,
            Arg::InPlace(_) => panic!("this op declared no alias of the input"),
        }
    }
}

/// A short list that stays on the stack up to six entries: one per dimension is all it ever holds.
#[derive(Clone)]
pub(crate) struct Small<T> {
    inline: [T; 6],
    len: usize,
    spill: Vec<T>,
}

impl<T: Copy + Default> Small<T> {
    #[inline]
    pub(crate) fn new() -> Small<T> {
        Small { inline: [T::default(); 6], len: 0, spill: Vec::new() }
    }

    /// `len` default entries.
    #[inline]
    pub(crate) fn zeros(len: usize) -> Small<T> {
        let mut list = Small::new();
        (0..len).for_each(|_| list.push(T::default()));
        list
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        if self.spill.is_empty() && self.len < self.inline.len() {
            self.inline[self.len] = value;
        } else {
            if self.spill.is_empty() {
                self.spill.extend_from_slice(&self.inline);
            }
            self.spill.push(value);
        }
        self.len += 1;
    }
}

impl<T> Deref for Small<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        if self.spill.is_empty() { &self.inline[..self.len] } else { &self.spill }
    }
}

impl<T> DerefMut for Small<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        if self.spill.is_empty() { &mut self.inline[..self.len] } else { &mut self.spill }
    }
}
