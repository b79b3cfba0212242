//! Layers.
//!
//! A layer that has variables or options is made in two steps: `Dense::new(784, 64)` takes the required sizes, methods of the
//! [`LayerBuilder`] change options whose defaults are those of Keras, and [`build`](LayerBuilder::build) makes the variables. Images
//! and sequences are channels-last; variables have the names and the layouts of Keras.
//!
//! ```
//! use taut_core::{DType, ops::{Padding, creation::zeros}};
//! use taut_nn::layers::{Activation, Conv2D, Dense, Flatten, MaxPooling2D, Sequential};
//! use taut_nn::{Layer, Mode};
//! let model = Sequential::new()
//!     .with(Conv2D::new(1, 8, 3).padding(Padding::Same).activation(Activation::Relu).build()?)
//!     .with(MaxPooling2D::new(2).build()?)
//!     .with(Flatten::new())
//!     .with(Dense::new(4 * 4 * 8, 10).build()?);
//! let logits = model.call(&zeros([5, 8, 8, 1], DType::F32)?, Mode::Infer)?;
//! assert_eq!(logits.shape()[..], [5, 10]);
//! # Ok::<(), taut_core::Error>(())
//! ```

mod attention;
mod builder;
mod combine;
mod conv;
mod dense;
mod depthwise;
mod dropout;
mod embedding;
mod norm;
mod pooling;
mod recurrent;
mod sequential;
mod shape;
mod summary;
mod transpose;

pub use crate::activation::Activation;
pub use attention::MultiHeadAttention;
pub use builder::LayerBuilder;
pub use combine::{Bidirectional, MergeMode, Residual};
pub use conv::{Conv, Conv1D, Conv2D, Conv3D, SpatialSize};
pub use dense::Dense;
pub use depthwise::{
    DepthwiseConv, DepthwiseConv1D, DepthwiseConv2D, SeparableConv, SeparableConv1D, SeparableConv2D,
};
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use norm::{BatchNorm, GroupNorm, LayerNorm, RMSNorm};
pub use pooling::{
    AveragePooling, AveragePooling1D, AveragePooling2D, AveragePooling3D, GlobalAveragePooling,
    GlobalAveragePooling1D, GlobalAveragePooling2D, GlobalAveragePooling3D, GlobalMaxPooling,
    GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D, MaxPooling, MaxPooling1D, MaxPooling2D,
    MaxPooling3D,
};
pub use recurrent::{GRU, LSTM, SimpleRNN};
pub use sequential::Sequential;
pub use shape::{Flatten, Lambda, Reshape};
pub use summary::{Summary, SummaryRow};
pub use taut_core::ops::Padding;
pub use transpose::{Conv1DTranspose, Conv2DTranspose, Conv3DTranspose, ConvTranspose};
