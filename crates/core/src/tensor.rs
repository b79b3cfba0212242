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
use taut_memory::{Buffer, Category, Location};

/// An n-dimensional array. Cloning shares; nothing can change a tensor that somebody else holds.
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
    /// Where it stands with those who follow how it came about. They are the handle's, not the memory's: a view of it,
    /// or the same value as a constant, keeps the memory and nothing of its history.
    links: Option<Arc<Links>>,
}

struct Inner {
    spec: Spec,
    strides: Strides,
    offset: usize,
    data: Data,
    /// Its own number, once somebody watches it; zero before.
    mark: AtomicU64,
}

impl Inner {
    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        match &self.data {
            Data::Own(buffer) => Some(buffer.as_slice()),
            Data::View(base) => base.bytes(),
            Data::Borrowed(lender) => Some((**lender).as_ref()),
            Data::Traced(_) => None,
        }
    }

    #[inline]
    fn new(spec: Spec, strides: Strides, offset: usize, data: Data) -> Inner {
        Inner { spec, strides, offset, data, mark: AtomicU64::new(0) }
    }
}

type Lender = dyn AsRef<[u8]> + Send + Sync;

enum Data {
    /// Its own buffer.
    Own(Buffer),
    /// Part of the memory of another one, which owns it.
    View(Arc<Inner>),
    /// Somebody else's memory, only to be read.
    Borrowed(Box<Lender>),
    /// A value of a graph being traced: no bytes.
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
            let message = format!("{} elements do not fill shape {shape}", data.len());
            return Err(Error::shape(message).at(at));
        }
        Tensor::build(Spec::new(dtype_of::<T>(), shape), Category::Tensor, at, |out| {
            for (to, &from) in out.slice::<T::Element>().iter_mut().zip(data) {
                *to = from.into_element();
            }
        })
    }

    /// A tensor of one number.
    #[track_caller]
    pub fn scalar<T: Host>(value: T) -> Result<Tensor> {
        Tensor::from_slice(&[value], Shape::scalar())
    }

    /// A number as a tensor of the given type.
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

    /// Allocates a tensor and lets `fill` write every element of it.
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

    /// A contiguous tensor over a buffer that holds its elements.
    #[inline]
    pub(crate) fn from_exact_buffer(spec: Spec, buffer: Buffer) -> Tensor {
        debug_assert!(buffer.len() >= spec.bytes());
        let strides = spec.shape.strides();
        Tensor::of(Inner::new(spec, strides, 0, Data::Own(buffer)))
    }

    /// A tensor over memory that somebody else owns, without a copy. It is never written to, and the ledger does not count
    /// it. The owner is kept until the last tensor that looks at the memory is gone.
    ///
    /// The memory begins at a multiple of eight bytes, and the layout lies within it.
    #[track_caller]
    pub fn borrowed(
        dtype: DType,
        layout: Layout,
        owner: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Result<Tensor> {
        let at = Location::caller();
        let (address, len) = (owner.as_ref().as_ptr().addr(), owner.as_ref().len());
        if !address.is_multiple_of(8) {
            let message = format!("the memory begins at {address:#x}, and only a multiple of 8 will do");
            return Err(Error::value(message).help("copy it").at(at));
        }
        let Layout { shape, strides, offset } = layout;
        let fits = strides.len() == shape.rank() && shape.checked_len().is_some();
        let tensor =
            Tensor::of(Inner::new(Spec { dtype, shape }, strides, offset, Data::Borrowed(Box::new(owner))));
        let (low, high) = if fits { tensor.reach() } else { (-1, 0) };
        if low < 0 || high as usize > len / dtype.size() {
            let message =
                format!("a layout of shape {} outside the {len} bytes it is a layout of", tensor.shape());
            return Err(Error::shape(message).at(at));
        }
        Ok(tensor)
    }

    /// A value of a graph being traced.
    pub(crate) fn traced(spec: Spec, value: ValueRef) -> Tensor {
        let strides = spec.shape.strides();
        Tensor::of(Inner::new(spec, strides, 0, Data::Traced(value)))
    }

    /// A tensor without a value: it stands for one of this type and shape where only those matter, as in planning.
    pub fn placeholder(spec: Spec) -> Tensor {
        // A shape that cannot be has no strides either; whoever plans for it is told.
        let strides = match spec.shape.checked_len() {
            Some(_) => spec.shape.strides(),
            None => Strides::from_elem(0, spec.shape.rank()),
        };
        Tensor::of(Inner::new(spec, strides, 0, Data::Traced(ValueRef::NOWHERE)))
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

    /// The same value, which nobody follows.
    pub(crate) fn unlinked(&self) -> Tensor {
        if self.mark() == 0 {
            return Tensor { inner: self.inner.clone(), links: None };
        }
        // Those who watch it know its memory by number: another handle would not do.
        let inner = &*self.inner;
        Tensor::of(Inner::new(inner.spec.clone(), inner.strides.clone(), inner.offset, self.shared_data()))
    }

    /// The same tensor without its links; those who watch it still know it.
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

    /// Its places with those who follow it.
    #[inline]
    pub(crate) fn links(&self) -> &[Link] {
        self.links.as_deref().map_or(&[], |links| links)
    }

    /// Its own number, or zero if nobody ever watched it.
    #[inline]
    pub(crate) fn mark(&self) -> u64 {
        self.inner.mark.load(Ordering::Relaxed)
    }

    /// Gives it a number, unless it has one; returns the one it has.
    pub(crate) fn set_mark(&self, mark: u64) -> u64 {
        let outcome = self.inner.mark.compare_exchange(0, mark, Ordering::Relaxed, Ordering::Relaxed);
        outcome.map_or_else(|had| had, |_| mark)
    }

    /// Whether somebody may follow it.
    #[inline]
    pub(crate) fn is_tracked(&self) -> bool {
        self.links.is_some() || self.mark() != 0
    }

    /// A contiguous tensor over a buffer that holds its elements, and perhaps more.
    pub fn from_buffer(spec: Spec, buffer: Buffer) -> Result<Tensor> {
        match spec.shape.checked_len().and_then(|len| len.checked_mul(spec.dtype.size())) {
            Some(bytes) if bytes <= buffer.len() => Ok(Tensor::from_exact_buffer(spec, buffer)),
            _ => Err(Error::shape(format!("{spec} does not fit into {} bytes", buffer.len()))),
        }
    }

    /// The bytes from its lowest element to the end of its highest one; `None` if it has no data.
    pub fn span(&self) -> Option<&[u8]> {
        let (size, (low, high)) = (self.dtype().size(), self.reach());
        Some(&self.bytes()?[low as usize * size..high as usize * size])
    }

    /// Its lowest element, and the one after its highest, counted from the start of the buffer.
    fn reach(&self) -> (isize, isize) {
        if self.is_empty() {
            return (0, 0);
        }
        let mut low = self.inner.offset as isize;
        let mut high = low.saturating_add(1);
        for (&dim, &stride) in self.shape().iter().zip(self.strides()) {
            // Saturating: a reach beyond `isize` stays beyond every buffer.
            let reach = (dim as isize - 1).saturating_mul(stride);
            if reach < 0 { low = low.saturating_add(reach) } else { high = high.saturating_add(reach) }
        }
        (low, high)
    }

    /// The same memory as a tensor of another type and layout. The layout's offset counts from this tensor's lowest
    /// element, where its [`span`](Tensor::span) begins.
    pub fn with_layout(&self, dtype: DType, layout: &Layout) -> Result<Tensor> {
        let bytes = self.bytes().ok_or_else(|| no_value(self.spec()))?;
        let start = self.reach().0 as usize * self.dtype().size();
        if !start.is_multiple_of(dtype.size()) {
            let message = format!("a {dtype} cannot begin at byte {start}");
            return Err(Error::new(ErrorKind::Graph, message));
        }
        let offset = (start / dtype.size()).saturating_add(layout.offset);
        let other = self.with_inner_layout(dtype, Layout { offset, ..layout.clone() });
        let ((low, high), elements) = (other.reach(), bytes.len() / dtype.size());
        if low < 0 || high as usize > elements {
            return Err(Error::new(ErrorKind::Graph, "a layout outside the memory it is a layout of"));
        }
        Ok(other)
    }

    /// Whether [`Tensor::take_buffer`] would find a buffer.
    pub fn is_uniquely_owned(&self) -> bool {
        matches!(self.inner.data, Data::Own(_)) && !self.is_shared()
    }

    /// Takes the buffer out of a tensor that nobody else holds and that fills it in row-major order. Until
    /// [`Tensor::give_buffer`] gives one back, the tensor has no value.
    #[inline]
    pub fn take_buffer(&mut self) -> Option<Buffer> {
        let inner = Arc::get_mut(&mut self.inner)?;
        match &mut inner.data {
            Data::Own(buffer) => {
                let buffer = std::mem::take(buffer);
                inner.data = Data::Traced(ValueRef::NOWHERE);
                Some(buffer)
            }
            _ => None,
        }
    }

    /// Gives a buffer back to the tensor that [`Tensor::take_buffer`] took it from.
    pub fn give_buffer(&mut self, buffer: Buffer) {
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

    /// Whether somebody else holds it too, or a view of it.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
    }

    /// The address and the length of the memory that it looks at, or at a part of; `None` if it has no data.
    pub fn memory(&self) -> Option<(usize, usize)> {
        self.bytes().map(|bytes| (bytes.as_ptr() as usize, bytes.len()))
    }

    /// A number that no other tensor has while this one is there.
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.inner) as usize
    }

    /// Whether two handles are the same tensor.
    pub fn is_same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether two handles are the same tensor, and the same to all who follow it.
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

    /// The elements as kernels see them, under another shape and strides of the same offset. A traced tensor has none.
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
            let message = format!("the elements are {}, not {}", self.dtype(), dtype_of::<T>());
            return Err(Error::dtype(message).at(at).help("cast the tensor first"));
        }
        let view = self.view().map_err(|e| e.at(at))?;
        if let Some(slice) = view.contiguous::<T::Element>() {
            return Ok(slice.iter().map(|&e| T::from_element(e)).collect());
        }
        self.copy_at(at)?.to_vec()
    }

    /// The only element.
    #[track_caller]
    pub fn item<T: Host>(&self) -> Result<T> {
        if self.len() != 1 {
            let message = format!("item() needs one element, and shape {} has {}", self.shape(), self.len());
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
    Error::new(ErrorKind::Graph, format!("this {spec} is being traced and has no value yet"))
        .help(
            "return it from the traced function, or compute with it there; shapes are known before a program runs, so none can \
             depend on it (`where(mask, x, 0)` keeps the shape)",
        )
}

#[inline]
const fn dtype_of<T: Host>() -> DType {
    <T::Element as taut_kernels::Element>::DTYPE
}
