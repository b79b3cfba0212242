//! Pooling.

use super::builder::{Build, LayerBuilder, VariableFactory, in_layer, require_nonzero};
use super::conv::{HasWindow, SpatialSize, of_rank};
use crate::{Layer, Mode};
use taut_core::ops::Padding;
use taut_core::ops::contract::{PoolOptions, avg_pool_with, max_pool_with};
use taut_core::ops::reduce::{max, mean};
use taut_core::{Error, Result, Tensor};
use taut_memory::Location;

/// Rejects an input that does not have `N` spatial dimensions.
fn check_image<const N: usize>(x: &Tensor) -> Result<()> {
    if x.rank() == N + 2 {
        return Ok(());
    }
    let spatial = of_rank(N, ["steps", "height, width", "depth, height, width"]);
    Err(Error::shape(format!("expected [batch, {spatial}, channels], got {}", x.spec())))
}

fn checked(mut pool: PoolOptions) -> Result<PoolOptions> {
    if pool.strides.is_empty() {
        pool.strides.clone_from(&pool.ksize);
    }
    let sizes = pool.ksize.iter().map(|&size| ("window", size));
    require_nonzero(&sizes.chain(pool.strides.iter().map(|&step| ("strides", step))).collect::<Vec<_>>())?;
    Ok(pool)
}

macro_rules! pooling {
    ($(#[$doc:meta])* $name:ident = $op:ident; $($alias:ident, $text:literal, $rank:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<const N: usize> {
            pool: PoolOptions,
            at: Location,
        }

        $(#[doc = $text] pub type $alias = $name<$rank>;)*

        impl<const N: usize> $name<N> {
            /// A layer with windows of this size.
            #[track_caller]
            pub fn new(window: impl Into<SpatialSize<N>>) -> LayerBuilder<$name<N>> {
                let pool = PoolOptions { ksize: window.into().into(), ..PoolOptions::default() };
                LayerBuilder::new(pool, Location::caller())
            }
        }

        impl<const N: usize> Build for $name<N> {
            const NAME: &'static str = of_rank(N, [$(stringify!($alias)),*]);
            type Options = PoolOptions;

            fn build(options: &PoolOptions, factory: &VariableFactory) -> Result<$name<N>> {
                Ok($name { pool: checked(options.clone())?, at: factory.at })
            }
        }

        impl<const N: usize> HasWindow for $name<N> {
            type Size = SpatialSize<N>;

            fn strides(options: &mut PoolOptions) -> &mut Vec<usize> {
                &mut options.strides
            }

            fn padding(options: &mut PoolOptions) -> &mut Padding {
                &mut options.padding
            }
        }

        impl<const N: usize> Layer for $name<N> {
            fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
                in_layer(Self::NAME, self.at, x, || {
                    check_image::<N>(x)?;
                    $op(x, &self.pool)
                })
            }
        }
    };
}

pooling! {
    /// The largest element of every window of `[batch, spatial.., channels]`, per channel.
    MaxPooling = max_pool_with;
    MaxPooling1D, "The largest element of every window of sequences.", 1;
    MaxPooling2D, "The largest element of every window of images.", 2;
    MaxPooling3D, "The largest element of every window of volumes.", 3;
}

pooling! {
    /// The mean of every window of `[batch, spatial.., channels]`, per channel, without the padding.
    AveragePooling = avg_pool_with;
    AveragePooling1D, "The mean of every window of sequences.", 1;
    AveragePooling2D, "The mean of every window of images.", 2;
    AveragePooling3D, "The mean of every window of volumes.", 3;
}

macro_rules! global_pooling {
    ($(#[$doc:meta])* $name:ident = $op:ident; $($alias:ident, $text:literal, $rank:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<const N: usize> {
            keepdims: bool,
            at: Location,
        }

        $(#[doc = $text] pub type $alias = $name<$rank>;)*

        impl<const N: usize> $name<N> {
            /// The layer.
            #[track_caller]
            #[expect(clippy::new_without_default, reason = "`new` records the caller's source location")]
            pub fn new() -> $name<N> {
                $name { keepdims: false, at: Location::caller() }
            }

            /// Whether the spatial dimensions are kept with size 1. Default: false.
            #[must_use]
            pub fn keepdims(self, keepdims: bool) -> $name<N> {
                $name { keepdims, ..self }
            }
        }

        impl<const N: usize> Layer for $name<N> {
            fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
                in_layer(of_rank(N, [$(stringify!($alias)),*]), self.at, x, || {
                    check_image::<N>(x)?;
                    let axes: [isize; N] = std::array::from_fn(|i| i as isize + 1);
                    $op(x, axes, self.keepdims)
                })
            }
        }
    };
}

global_pooling! {
    /// The largest element of every channel of `[batch, spatial.., channels]`.
    GlobalMaxPooling = max;
    GlobalMaxPooling1D, "The largest element of every channel of sequences.", 1;
    GlobalMaxPooling2D, "The largest element of every channel of images.", 2;
    GlobalMaxPooling3D, "The largest element of every channel of volumes.", 3;
}

global_pooling! {
    /// The mean of every channel of `[batch, spatial.., channels]`.
    GlobalAveragePooling = mean;
    GlobalAveragePooling1D, "The mean of every channel of sequences.", 1;
    GlobalAveragePooling2D, "The mean of every channel of images.", 2;
    GlobalAveragePooling3D, "The mean of every channel of volumes.", 3;
}
