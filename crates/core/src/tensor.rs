//! The tensor: a shared handle on typed, strided memory, or on a value of a graph being traced.

use crate::error::{Error, ErrorKind, Result};
use crate::graph::ValueRef;
use crate::layout::{self, Layout};
use crate::mode;
use crate::op::Spec;
use crate::record::{Link, Links};
use crate::scalar::{Host, Scalar};
use crate::shape::{Shape, Strides};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use taut_kernels::{DType, View, ViewMut, elementwise};
use taut_memory::{Buffer, Category, Location, list_of};

/// An n-dimensional array. Clones share memory; a tensor with more than one handle never changes.
///
/// ```
/// # use taut_core::{Result, Tensor};
/// # fn main() -> Result<()> {
/// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(x.shape(), &[2, 2]);
/// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Tensor {
    inner: Arc<Inner>,
    /// The links to recorders. They belong to the handle, not to the memory: a view of it, or the same value as a constant,
    /// shares the memory and not the history.
    links: Option<Arc<Links>>,
}

struct Inner {
    spec: Spec,
    strides: Strides,
    offset: usize,
    data: Data,
    /// See [`watch_id`](crate::record::watch_id); zero if no recorder ever watched it.
    watch_id: AtomicU64,
}

impl Inner {
    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        match &self.data {
            Data::Own(buffer) => Some(buffer.as_slice()),
            Data::View(base) => base.bytes(),
            Data::Borrowed(owner) => Some((**owner).as_ref()),
            Data::Traced(_) => None,
        }
    }

    #[inline]
    fn new(spec: Spec, strides: Strides, offset: usize, data: Data) -> Inner {
        Inner { spec, strides, offset, data, watch_id: AtomicU64::new(0) }
    }
}

type BorrowedBytes = dyn AsRef<[u8]> + Send + Sync;

enum Data {
    /// Its own buffer.
    Own(Buffer),
    /// Part of the memory of another tensor, which owns it.
    View(Arc<Inner>),
    /// Foreign memory, read only.
    Borrowed(Box<BorrowedBytes>),
    /// A value of a graph being traced, without bytes.
    Traced(ValueRef),
}

impl Tensor {
    /// A tensor of these elements in row-major order.
    #[track_caller]
    pub fn from_vec<T: Host>(data: Vec<T>, shape: impl Into<Shape>) -> Result<Tensor> {
        Tensor::from_slice(&data, shape)
    }

    /// A tensor of a copy of these elements, in row-major order.
    #[track_caller]
    pub fn from_slice<T: Host>(data: &[T], shape: impl Into<Shape>) -> Result<Tensor> {
        let (shape, at) = (shape.into(), Location::caller());
        if shape.checked_len() != Some(data.len()) {
            let message = format!("shape {shape} must have as many elements as the data, got {}", data.len());
            return Err(Error::shape(message).at(at));
        }
        Tensor::build(Spec::new(dtype_of::<T>(), shape), Category::Tensor, at, |out| {
            for (to, &from) in out.slice::<T::Element>().iter_mut().zip(data) {
                *to = from.into_element();
            }
        })
    }

    /// A scalar tensor.
    #[track_caller]
    pub fn scalar<T: Host>(value: T) -> Result<Tensor> {
        Tensor::from_slice(&[value], Shape::scalar())
    }

    /// A scalar tensor of the given type.
    #[track_caller]
    pub fn constant(value: impl Into<Scalar>, dtype: DType) -> Result<Tensor> {
        let value = value.into();
        Tensor::build(Spec::new(dtype, Shape::scalar()), Category::Tensor, Location::caller(), |out| {
            out.bytes().copy_from_slice(&value.to_bytes(dtype));
        })
    }

    #[inline]
    fn of(inner: Inner) -> Tensor {
        Tensor { inner: Arc::new(inner), links: None }
    }

    /// Allocates a tensor; `fill` writes every element.
    pub fn build(
        spec: Spec,
        category: Category,
        at: Location,
        fill: impl FnOnce(&mut ViewMut<'_>),
    ) -> Result<Tensor> {
        let at = mode::source_location(at);
        let mut buffer = allocate(&spec, category, at)?;
        fill(&mut ViewMut::new(spec.dtype, buffer.as_mut_slice(), &spec.shape));
        Ok(Tensor::from_exact_buffer(spec, buffer))
    }

    /// A contiguous tensor in a buffer that holds its elements.
    #[inline]
    pub(crate) fn from_exact_buffer(spec: Spec, buffer: Buffer) -> Tensor {
        debug_assert!(buffer.len() >= spec.bytes());
        let strides = spec.shape.strides();
        Tensor::of(Inner::new(spec, strides, 0, Data::Own(buffer)))
    }

    /// A tensor over foreign memory, without a copy. The memory is never written to, and the ledger does not count it. The owner
    /// is kept until the last tensor over the memory is dropped.
    ///
    /// The memory must begin at a multiple of eight bytes, and the layout must lie within it.
    #[track_caller]
    pub fn borrowed(
        dtype: DType,
        layout: Layout,
        owner: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Result<Tensor> {
        let at = Location::caller();
        let (address, len) = (owner.as_ref().as_ptr().addr(), owner.as_ref().len());
        if !address.is_multiple_of(8) {
            let message = format!("the memory must begin at a multiple of 8 bytes, got address {address:#x}");
            return Err(Error::value(message).help("copy it").at(at));
        }
        let Layout { shape, strides, offset } = layout;
        let fits = strides.len() == shape.rank() && shape.checked_len().is_some();
        let tensor =
            Tensor::of(Inner::new(Spec { dtype, shape }, strides, offset, Data::Borrowed(Box::new(owner))));
        let (low, high) = if fits { tensor.element_range() } else { (-1, 0) };
        if low < 0 || high as usize > len / dtype.size() {
            let message = format!(
                "the layout must lie within {len} bytes, got one of shape {} beyond them",
                tensor.shape()
            );
            return Err(Error::shape(message).at(at));
        }
        Ok(tensor)
    }

    /// A value of a graph being traced.
    pub(crate) fn traced(spec: Spec, value: ValueRef) -> Tensor {
        let strides = spec.shape.strides();
        Tensor::of(Inner::new(spec, strides, 0, Data::Traced(value)))
    }

    /// A tensor without a value, for where only its type and shape matter, as in planning.
    pub fn placeholder(spec: Spec) -> Tensor {
        // A shape with too many elements has no strides; planning for it fails with an error.
        let strides = match spec.shape.checked_len() {
            Some(_) => spec.shape.strides(),
            None => Strides::from_elem(0, spec.shape.rank()),
        };
        Tensor::of(Inner::new(spec, strides, 0, Data::Traced(ValueRef::NO_TRACE)))
    }

    /// The same memory under another layout, which must lie within it.
    pub(crate) fn with_inner_layout(&self, dtype: DType, layout: Layout) -> Tensor {
        let spec = Spec { dtype, shape: layout.shape };
        Tensor::of(Inner::new(spec, layout.strides, layout.offset, self.shared_data()))
    }

    fn shared_data(&self) -> Data {
        match &self.inner.data {
            Data::View(base) => Data::View(base.clone()),
            Data::Own(_) | Data::Borrowed(_) => Data::View(self.inner.clone()),
            Data::Traced(value) => Data::Traced(*value),
        }
    }

    /// The same value without links, and not watched.
    pub(crate) fn unlinked(&self) -> Tensor {
        if self.watch_id() == 0 {
            return Tensor { inner: self.inner.clone(), links: None };
        }
        // Recorders that watch it find it by the id in `Inner`: the result needs an `Inner` of its own.
        let inner = &*self.inner;
        Tensor::of(Inner::new(inner.spec.clone(), inner.strides.clone(), inner.offset, self.shared_data()))
    }

    /// The same tensor without its links; it is still watched.
    pub(crate) fn without_links(&self) -> Tensor {
        Tensor { inner: self.inner.clone(), links: None }
    }

    /// The same value with these links instead of its own.
    pub(crate) fn with_links(&self, links: Links) -> Tensor {
        Tensor { links: Some(Arc::new(links)), ..self.unlinked() }
    }

    /// The tensor with one more link.
    pub(crate) fn linked(self, link: Link) -> Tensor {
        let mut links: Links = self.links().iter().cloned().collect();
        links.push(link);
        Tensor { inner: self.inner, links: Some(Arc::new(links)) }
    }

    /// The tensor with the links of another in place of its own.
    pub(crate) fn linked_like(self, other: &Tensor) -> Tensor {
        Tensor { links: other.links.clone(), ..self }
    }

    /// Its slots on recorders.
    #[inline]
    pub(crate) fn links(&self) -> &[Link] {
        self.links.as_deref().map_or(&[], |links| links)
    }

    /// Its id for recorders that watch it, or zero if none ever did.
    #[inline]
    pub(crate) fn watch_id(&self) -> u64 {
        self.inner.watch_id.load(Ordering::Relaxed)
    }

    /// Sets its id unless it has one; returns the id it has.
    pub(crate) fn set_watch_id(&self, id: u64) -> u64 {
        let outcome = self.inner.watch_id.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed);
        outcome.map_or_else(|had| had, |_| id)
    }

    /// Whether a recorder may track it.
    #[inline]
    pub(crate) fn is_tracked(&self) -> bool {
        self.links.is_some() || self.watch_id() != 0
    }

    /// A contiguous tensor in a buffer of at least its size.
    pub fn from_buffer(spec: Spec, buffer: Buffer) -> Result<Tensor> {
        match spec.shape.checked_len().and_then(|len| len.checked_mul(spec.dtype.size())) {
            Some(bytes) if bytes <= buffer.len() => Ok(Tensor::from_exact_buffer(spec, buffer)),
            _ => Err(Error::shape(format!("{spec} does not fit into {} bytes", buffer.len()))),
        }
    }

    /// The bytes from its element of the lowest address to the end of that of the highest; `None` if it has no data.
    pub fn span(&self) -> Option<&[u8]> {
        let (size, (low, high)) = (self.dtype().size(), self.element_range());
        Some(&self.bytes()?[low as usize * size..high as usize * size])
    }

    /// The lowest position of an element in the buffer, and the one after the highest, in elements.
    fn element_range(&self) -> (isize, isize) {
        if self.is_empty() {
            return (0, 0);
        }
        let mut low = self.inner.offset as isize;
        let mut high = low.saturating_add(1);
        for (&dim, &stride) in self.shape().iter().zip(self.strides()) {
            // Saturating: a position beyond `isize` is beyond every buffer.
            let extent = (dim as isize - 1).saturating_mul(stride);
            if extent < 0 { low = low.saturating_add(extent) } else { high = high.saturating_add(extent) }
        }
        (low, high)
    }

    /// The same memory as a tensor of another type and layout. The layout's offset counts from the start of this tensor's
    /// [`span`](Tensor::span).
    pub fn with_layout(&self, dtype: DType, layout: &Layout) -> Result<Tensor> {
        let bytes = self.bytes().ok_or_else(|| no_value(self.spec()))?;
        let start = self.element_range().0 as usize * self.dtype().size();
        if !start.is_multiple_of(dtype.size()) {
            let message =
                format!("a {dtype} must begin at a multiple of {} bytes, got byte {start}", dtype.size());
            return Err(Error::new(ErrorKind::Graph, message));
        }
        let offset = (start / dtype.size()).saturating_add(layout.offset);
        let other = self.with_inner_layout(dtype, Layout { offset, ..layout.clone() });
        let ((low, high), elements) = (other.element_range(), bytes.len() / dtype.size());
        if low < 0 || high as usize > elements {
            return Err(Error::new(ErrorKind::Graph, "a layout must lie within its memory"));
        }
        Ok(other)
    }

    /// Whether [`Tensor::take_buffer`] would return a buffer.
    pub fn is_uniquely_owned(&self) -> bool {
        matches!(self.inner.data, Data::Own(_)) && !self.is_shared()
    }

    /// Takes the buffer of a tensor that has no other handle and fills its buffer in row-major order. Until
    /// [`Tensor::restore_buffer`] restores it, the tensor has no value.
    #[inline]
    pub fn take_buffer(&mut self) -> Option<Buffer> {
        let inner = Arc::get_mut(&mut self.inner)?;
        match &mut inner.data {
            Data::Own(buffer) => {
                let buffer = std::mem::take(buffer);
                inner.data = Data::Traced(ValueRef::NO_TRACE);
                Some(buffer)
            }
            _ => None,
        }
    }

    /// Restores the buffer that [`Tensor::take_buffer`] took.
    pub fn restore_buffer(&mut self, buffer: Buffer) {
        if let Some(inner) = Arc::get_mut(&mut self.inner)
            && buffer.len() >= inner.spec.bytes()
        {
            inner.data = Data::Own(buffer);
        }
    }

    /// The graph value, if this is one.
    #[inline]
    pub(crate) fn traced_value(&self) -> Option<ValueRef> {
        match self.inner.data {
            Data::Traced(value) => Some(value),
            _ => None,
        }
    }

    /// Element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.inner.spec.dtype
    }

    /// Shape.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.inner.spec.shape
    }

    /// Type and shape.
    #[inline]
    pub fn spec(&self) -> &Spec {
        &self.inner.spec
    }

    /// Number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape().rank()
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.shape().len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape().is_empty()
    }

    /// Strides, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.inner.strides
    }

    /// Shape, strides and offset.
    pub fn layout(&self) -> Layout {
        Layout { shape: self.shape().clone(), strides: self.inner.strides.clone(), offset: self.inner.offset }
    }

    /// Whether the elements lie one after the other in row-major order.
    pub fn is_contiguous(&self) -> bool {
        layout::is_contiguous(self.shape(), &self.inner.strides)
    }

    /// Whether it is a value of a graph being traced, without data.
    pub fn is_traced(&self) -> bool {
        matches!(self.inner.data, Data::Traced(_))
    }

    /// Whether it has another handle, or a view.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
    }

    /// The address and the length of the buffer that its elements lie in; `None` if it has no data.
    pub fn memory(&self) -> Option<(usize, usize)> {
        self.bytes().map(|bytes| (bytes.as_ptr() as usize, bytes.len()))
    }

    /// A number that no other tensor has while this one exists.
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.inner) as usize
    }

    /// Whether two handles are the same tensor.
    pub fn is_same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether two handles are the same tensor with the same links.
    pub fn same_value_and_links(&self, other: &Tensor) -> bool {
        let (own, others) = (self.links(), other.links());
        self.is_same(other)
            && own.len() == others.len()
            && own.iter().zip(others).all(|(own, other)| own.is_same(other))
    }

    /// Whether two tensors share a buffer.
    pub fn shares_memory(&self, other: &Tensor) -> bool {
        match (self.bytes(), other.bytes()) {
            (Some(a), Some(b)) => a.as_ptr() == b.as_ptr() && !a.is_empty(),
            _ => false,
        }
    }

    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        self.inner.bytes()
    }

    /// The elements as kernels see them.
    #[inline]
    pub fn view(&self) -> Result<View<'_>> {
        let bytes = self.bytes().ok_or_else(|| no_value(self.spec()))?;
        let inner = &*self.inner;
        Ok(View::new(inner.spec.dtype, bytes, inner.offset, &inner.spec.shape, &inner.strides))
    }

    /// The elements as kernels see them, under another shape and strides of the same offset. A traced tensor has no elements.
    #[inline]
    pub(crate) fn view_as<'a>(&'a self, shape: &'a [usize], strides: &'a [isize]) -> View<'a> {
        let bytes = self.bytes().unwrap_or_default();
        View::new(self.dtype(), bytes, self.inner.offset, shape, strides)
    }

    /// How many elements of a float tensor are NaN, and how many infinite.
    pub(crate) fn count_non_finite(&self) -> Result<(usize, usize)> {
        Ok(taut_kernels::bits::count_non_finite(self.view()?))
    }

    /// A copy of the elements in row-major order.
    #[track_caller]
    pub fn to_vec<T: Host>(&self) -> Result<Vec<T>> {
        let at = Location::caller();
        if self.dtype() != dtype_of::<T>() {
            let message = format!("the element type must be {}, got {}", dtype_of::<T>(), self.dtype());
            return Err(Error::dtype(message).at(at).help("cast the tensor first"));
        }
        let view = self.view().map_err(|e| e.at(at))?;
        if let Some(slice) = view.contiguous::<T::Element>() {
            let values = slice.iter().map(|&e| T::from_element(e));
            return list_of(values).map_err(|e| Error::from(e.moved_to(at)));
        }
        self.copy_at(at)?.to_vec()
    }

    /// The only element.
    #[track_caller]
    pub fn item<T: Host>(&self) -> Result<T> {
        if self.len() != 1 {
            let message =
                format!("item() needs exactly one element, got {} (shape {})", self.len(), self.shape());
            return Err(Error::shape(message).at(Location::caller()));
        }
        Ok(self.to_vec::<T>()?[0])
    }

    /// A copy in row-major order, with a buffer of its own.
    #[track_caller]
    pub fn copy(&self) -> Result<Tensor> {
        self.copy_at(Location::caller())
    }

    pub(crate) fn copy_at(&self, at: Location) -> Result<Tensor> {
        let view = self.view().map_err(|e| e.at(at))?;
        Tensor::build(self.spec().clone(), Category::Tensor, at, |out| {
            elementwise::copy(view, out.reborrow());
        })
    }
}

impl From<&Tensor> for Tensor {
    /// Another handle on the same tensor: lets every op take its inputs by value or by reference.
    #[inline]
    fn from(tensor: &Tensor) -> Tensor {
        tensor.clone()
    }
}

/// A buffer for a contiguous tensor of this spec.
#[inline]
pub(crate) fn allocate(spec: &Spec, category: Category, at: Location) -> Result<Buffer> {
    let len = spec.shape.checked_len().ok_or_else(|| too_large(spec).at(at))?;
    Ok(Buffer::new_at(len * spec.dtype.size(), category, at)?)
}

#[cold]
fn too_large(spec: &Spec) -> Error {
    Error::shape(format!("shape {} has more elements than memory has addresses", spec.shape))
}

#[cold]
pub(crate) fn no_value(spec: &Spec) -> Error {
    Error::new(ErrorKind::Graph, format!("a tensor that is being traced has no value yet, got {spec}"))
        .help(
            "return it from the traced function, or compute with it there; shapes are known before a program runs, so none can \
             depend on it (`where(mask, x, 0)` keeps the shape)",
        )
}

#[inline]
const fn dtype_of<T: Host>() -> DType {
    <T::Element as taut_kernels::Element>::DTYPE
}
