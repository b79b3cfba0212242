//! The op behind convolution, pooling and their gradients.

use super::contract::{ConvOptions, PoolOptions};
use super::window::{Slide, WindowGeometry};
use crate::apply::{Outputs, apply};
use crate::error::{Error, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Cost, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::vmap::batched_size;
use crate::rows::{RowCall, RowPart, RowRule, RowSplit};
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::fmt;
use std::sync::Arc;
use taut_kernels::conv::ConvParams;
use taut_kernels::pooling::{self, PoolParams};
use taut_kernels::{Arg, DType, ViewMut};

/// An op over sliding windows of an image. It relates an image, a window (filters, or the size of a pooling window) and a
/// result with one pixel per window; some of them are inputs, and one is the output.
#[derive(Clone)]
pub(super) struct Windowed {
    rule: &'static WindowRule,
    pub(super) options: WindowOptions,
    /// The shape of the image or of the filters, if it is the output and not that of an input.
    pub(super) shape: Option<Shape>,
}

/// The role of an operand of a [`Windowed`] op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The image that the window slides over, or its gradient.
    Image,
    /// The filters of a convolution, or their gradient.
    Filters,
    /// An image with a pixel per window, or its gradient.
    Result,
    /// The argmax of each window: the index of its tap with the first maximum, in row-major order.
    Argmax,
}

/// One of the ops: the data of its `infer`, and its kernel and gradient.
pub(super) struct WindowRule {
    pub name: &'static str,
    pub inputs: &'static [Role],
    pub output: Role,
    /// Whether it supports integers as well as floats.
    pub integers: bool,
    /// Arithmetic operations per element of the result.
    pub flops: fn(&WindowShapes) -> usize,
    pub scratch: fn(&WindowShapes, DType) -> usize,
    pub run: fn(&WindowShapes, &[Arg<'_>], ViewMut<'_>, &mut [u8]),
    pub vmap: fn(&Windowed, &VmapCall<'_>) -> Result<Option<Outputs>>,
    pub saves: fn(Set) -> Option<Saves>,
    /// See [`Differentiable::residual`].
    pub residual: fn(&Windowed, &VjpCall<'_>) -> Result<Option<Tensor>>,
    pub vjp: fn(&Windowed, &mut VjpCall<'_>) -> Result<Gradients>,
}

impl WindowRule {
    /// The defaults: an op over independent images without scratch memory and without a gradient.
    pub(super) const BASE: WindowRule = WindowRule {
        name: "",
        inputs: &[Role::Image],
        output: Role::Result,
        integers: false,
        flops: WindowShapes::compare,
        scratch: |_, _| 0,
        run: |_, _, _, _| {},
        vmap: Windowed::vmap_images,
        saves: |_| None,
        residual: |_, _| Ok(None),
        vjp: |_, _| Ok(Gradients::new()),
    };
}

/// The options of a [`Windowed`] op: strides, padding, dilations and layout, and the window.
#[derive(Clone, Debug)]
pub(super) struct WindowOptions {
    slide: Slide,
    window: WindowKind,
}

#[derive(Clone, Debug)]
enum WindowKind {
    /// The size of the filters, over all channels of a group.
    Filters { groups: usize },
    /// A window of this size over one channel.
    Pool { ksize: Vec<usize>, count_padding: bool },
}

/// The validated shapes of a call.
pub(super) struct WindowShapes {
    geometry: WindowGeometry,
    pub image: Shape,
    /// The shape of the filters, or the size of the pooling window.
    pub window: Shape,
    pub result: Shape,
    pub count_padding: bool,
}

impl WindowShapes {
    pub(super) fn conv(&self) -> ConvParams {
        self.geometry.conv()
    }

    pub(super) fn pool(&self) -> PoolParams {
        self.geometry.pool()
    }

    /// The number of taps of a window, over all channels of its group.
    fn taps(&self, filters: bool) -> usize {
        let axes = if filters { self.window.rank() - 1 } else { self.window.rank() };
        self.window[..axes].iter().product()
    }

    /// A multiplication and an addition per tap: the cost of a convolution and of its gradients.
    pub(super) fn multiply_add(&self) -> usize {
        2 * self.taps(true)
    }

    /// A comparison or an addition per tap: the cost of pooling.
    pub(super) fn compare(&self) -> usize {
        self.taps(false)
    }
}

impl From<&ConvOptions> for WindowOptions {
    fn from(options: &ConvOptions) -> WindowOptions {
        WindowOptions { slide: options.slide(), window: WindowKind::Filters { groups: options.groups } }
    }
}

impl From<&PoolOptions> for WindowOptions {
    fn from(options: &PoolOptions) -> WindowOptions {
        let PoolOptions { ksize, strides, padding, dilations, channels, count_padding } = options.clone();
        let slide = Slide { strides, padding, dilations, channels };
        WindowOptions { slide, window: WindowKind::Pool { ksize, count_padding } }
    }
}

impl WindowOptions {
    pub(super) fn groups(&self) -> usize {
        if let WindowKind::Filters { groups } = self.window { groups } else { 1 }
    }

    /// The channel axis of an image with `rank` spatial dimensions.
    pub(super) fn channel_axis(&self, rank: usize) -> usize {
        self.slide.channels.axis(rank)
    }

    /// The shapes of a call with this image, and these filters if it is a convolution.
    pub(super) fn resolve(&self, image: &Shape, filters: Option<&Shape>) -> Result<WindowShapes> {
        let channels = |rank: usize| image[self.channel_axis(rank)];
        let (geometry, window, result, count_padding) = match (&self.window, filters) {
            (WindowKind::Pool { ksize, count_padding }, _) => {
                let geometry = WindowGeometry::new(image, ksize, &self.slide)?;
                let taps = ksize.iter().try_fold(1u32, |taps, &k| taps.checked_mul(u32::try_from(k).ok()?));
                if taps.is_none() {
                    let message = format!("a window must have fewer than 2^32 elements, got {ksize:?}");
                    return Err(Error::shape(message));
                }
                let result = geometry.output(image[0], channels(ksize.len()));
                (geometry, ksize.as_slice().into(), result, *count_padding)
            }
            (WindowKind::Filters { groups }, Some(filters)) if filters.rank() >= 2 => {
                let rank = filters.rank() - 2;
                let geometry = WindowGeometry::new(image, &filters[..rank], &self.slide)?;
                let geometry = geometry.grouped(channels(rank), filters, *groups)?;
                (geometry, filters.clone(), geometry.output(image[0], filters[rank + 1]), false)
            }
            (WindowKind::Filters { .. }, filters) => {
                let got = filters.cloned().unwrap_or_default();
                let message = format!("filters must have input and output channels, got shape {got}");
                return Err(Error::shape(message));
            }
        };
        Ok(WindowShapes { geometry, image: image.clone(), window, result, count_padding })
    }

    fn attributes(&self) -> String {
        let Slide { strides, padding, dilations, channels } = &self.slide;
        let slide = format!("strides={strides:?}, padding={padding:?}, dilations={dilations:?}");
        match &self.window {
            WindowKind::Filters { groups } => format!("{slide}, groups={groups}, {channels:?}"),
            WindowKind::Pool { ksize, count_padding } => {
                let count = if *count_padding { ", count_padding" } else { "" };
                format!("ksize={ksize:?}, {slide}, {channels:?}{count}")
            }
        }
    }
}

impl Windowed {
    pub(super) fn new(rule: &'static WindowRule, options: impl Into<WindowOptions>) -> Windowed {
        Windowed { rule, options: options.into(), shape: None }
    }

    /// The op with an output of this shape, which is not that of an input.
    pub(super) fn shaped(
        rule: &'static WindowRule,
        options: impl Into<WindowOptions>,
        shape: impl Into<Shape>,
    ) -> Windowed {
        Windowed { rule, options: options.into(), shape: Some(shape.into()) }
    }

    /// Applies another op over the same windows.
    #[track_caller]
    pub(super) fn call<const N: usize>(
        &self,
        rule: &'static WindowRule,
        shape: Option<Shape>,
        inputs: [Tensor; N],
    ) -> Result<Tensor> {
        apply(&Windowed { rule, options: self.options.clone(), shape }, inputs)
    }

    /// The op for a batch of `size` merged into the channels: each example has its own groups.
    #[must_use]
    pub(super) fn with_groups_of(&self, size: usize) -> Windowed {
        let groups = self.options.groups().saturating_mul(size);
        let options = WindowOptions { window: WindowKind::Filters { groups }, ..self.options.clone() };
        Windowed { options, ..self.clone() }
    }

    /// The shape of an operand, given those of the inputs.
    fn operand<'a>(&'a self, role: Role, shapes: impl Fn(usize) -> &'a Shape) -> Option<&'a Shape> {
        match self.rule.inputs.iter().position(|&input| input == role) {
            Some(input) => Some(shapes(input)),
            None => self.shape.as_ref(),
        }
    }

    fn resolve<'a>(&'a self, shapes: impl Fn(usize) -> &'a Shape) -> Result<WindowShapes> {
        let image =
            self.operand(Role::Image, &shapes).ok_or_else(|| Error::shape("the image has no shape"))?;
        self.options.resolve(image, self.operand(Role::Filters, &shapes))
    }

    /// The common dtype of all inputs except the argmax, or an error.
    fn dtype(&self, inputs: &[&Spec]) -> Result<DType> {
        let mut dtypes = (self.rule.inputs.iter().zip(inputs))
            .filter(|(role, _)| **role != Role::Argmax)
            .map(|(_, input)| input.dtype);
        let dtype = dtypes.next().ok_or_else(|| Error::dtype("the op has no inputs"))?;
        if let Some(other) = dtypes.find(|&other| other != dtype) {
            return Err(Error::dtype(format!("inputs must have the same dtype, got {dtype} and {other}")));
        }
        if dtype.is_float() || (self.rule.integers && dtype.is_integer()) {
            return Ok(dtype);
        }
        Err(Error::dtype(format!("{dtype} is not supported")).help("cast to a float"))
    }

    /// The vmap rule of ops on independent images: the batch is merged into that of the images.
    pub(super) fn vmap_images(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let mut op = self.clone();
        if let Some(shape) = op.shape.take() {
            op.shape = Some(shape.clone().with(0, batched_size(shape[0], call.size)?));
        }
        call.apply_merged(&op)
    }
}

impl fmt::Debug for Windowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.rule.name, self.attributes())
    }
}

impl Op for Windowed {
    fn name(&self) -> &'static str {
        self.rule.name
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        let options = self.options.attributes();
        match &self.shape {
            None => options,
            Some(shape) if self.rule.output == Role::Filters => format!("filter_shape={shape}, {options}"),
            Some(shape) => format!("input_shape={shape}, {options}"),
        }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let dtype = self.dtype(inputs)?;
        let shapes = self.resolve(|i| &inputs[i].shape)?;
        let argmax = || Spec::new(pooling::winner_dtype(&shapes.pool()), shapes.result.clone());
        for (&role, input) in self.rule.inputs.iter().zip(inputs) {
            if role == Role::Result && input.shape != shapes.result {
                let (wanted, got) = (&shapes.result, &input.shape);
                let message = format!("the gradient must have the result's shape {wanted}, got {got}");
                return Err(Error::shape(message));
            }
            if role == Role::Argmax && **input != argmax() {
                return Err(Error::shape(format!("argmax must be {}, got {input}", argmax())));
            }
        }
        let shape = match self.rule.output {
            Role::Image => shapes.image,
            Role::Filters => shapes.window,
            Role::Result => shapes.result,
            Role::Argmax => return Ok(argmax().into()),
        };
        Ok(Spec { dtype, shape }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        match self.options.window {
            WindowKind::Filters { .. } => Kernel::Contract,
            WindowKind::Pool { .. } => Kernel::Custom,
        }
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let shapes: smallvec::SmallVec<[Shape; 2]> =
            inputs.iter().map(|input| input.view().shape().into()).collect();
        let shapes = self.resolve(|i| &shapes[i])?;
        (self.rule.run)(&shapes, inputs, outputs[0].reborrow(), scratch);
        Ok(())
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        self.resolve(|i| &inputs[i].shape).map_or(0, |shapes| (self.rule.scratch)(&shapes, inputs[0].dtype))
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let shapes = self.resolve(|i| &inputs[i].shape);
        let flops = shapes.map_or(0, |shapes| (self.rule.flops)(&shapes) as u64 * shapes.result.len() as u64);
        Cost { flops, bytes: Cost::traffic(inputs, outputs) }
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        (self.rule.vmap)(self, call)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl RowRule for Windowed {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        // Images are independent, and the gradient of filters is a sum over them.
        if call.first_rows()?.1.axis != 0 {
            return None;
        }
        let axis = |role: &Role| (*role != Role::Filters).then_some(0);
        let inputs: Vec<Option<usize>> = self.rule.inputs.iter().map(axis).collect();
        call.independent(&inputs, &[axis(&self.rule.output)])
    }

    fn resized(&self, part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        let shape = self.shape.as_ref().map(|_| part.outputs[0].shape.clone());
        Some(Arc::new(Windowed { shape, ..self.clone() }))
    }
}

impl Differentiable for Windowed {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        (self.rule.saves)(wanted)
    }

    fn residual(&self, call: &VjpCall<'_>) -> Result<Option<Tensor>> {
        (self.rule.residual)(self, call)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        (self.rule.vjp)(self, call)
    }
}
