//! Images that shrink.

use super::builder::{Build, Builder, Make, some, work};
use super::conv::{Size, Slides, of_rank};
use crate::{Layer, Mode};
use taut_core::ops::Padding;
use taut_core::ops::contract::{PoolOptions, avg_pool_with, max_pool_with};
use taut_core::ops::reduce::{max, mean};
use taut_core::{Error, Result, Tensor};
use taut_memory::Location;

/// Refuses an input that is no image of `N` dimensions.
fn expect_image<const N: usize>(x: &Tensor) -> Result<()> {
    if x.rank() == N + 2 {
        return Ok(());
    }
    let spatial = of_rank(N, ["steps", "height, width", "depth, height, width"]);
    Err(Error::shape(format!("built for [batch, {spatial}, channels], and got {}", x.spec())))
}

fn checked(mut pool: PoolOptions) -> Result<PoolOptions> {
    if pool.strides.is_empty() {
        pool.strides.clone_from(&pool.ksize);
    }
    let sizes = pool.ksize.iter().map(|&size| ("the window", size));
    some(&sizes.chain(pool.strides.iter().map(|&step| ("strides", step))).collect::<Vec<_>>())?;
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
            pub fn new(window: impl Into<Size<N>>) -> Builder<$name<N>> {
                let pool = PoolOptions { ksize: window.into().into(), ..PoolOptions::default() };
                Builder::new(pool, Location::caller())
            }
        }

        impl<const N: usize> Build for $name<N> {
            const NAME: &'static str = of_rank(N, [$(stringify!($alias)),*]);
            type Options = PoolOptions;

            fn build(options: &PoolOptions, make: &Make) -> Result<$name<N>> {
                Ok($name { pool: checked(options.clone())?, at: make.at })
            }
        }

        impl<const N: usize> Slides for $name<N> {
            type Size = Size<N>;

            fn strides(options: &mut PoolOptions) -> &mut Vec<usize> {
                &mut options.strides
            }

            fn padding(options: &mut PoolOptions) -> &mut Padding {
                &mut options.padding
            }
        }

        impl<const N: usize> Layer for $name<N> {
            fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
                work(Self::NAME, self.at, x, || {
                    expect_image::<N>(x)?;
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
    /// The mean of every window of `[batch, spatial.., channels]`, per channel; padding does not count.
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
            #[expect(clippy::new_without_default, reason = "a default has no line of its own")]
            pub fn new() -> $name<N> {
                $name { keepdims: false, at: Location::caller() }
            }

            /// Whether the spatial dimensions stay, with size 1. They do not, unless it is said here.
            #[must_use]
            pub fn keepdims(self, keepdims: bool) -> $name<N> {
                $name { keepdims, ..self }
            }
        }

        impl<const N: usize> Layer for $name<N> {
            fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
                work(of_rank(N, [$(stringify!($alias)),*]), self.at, x, || {
                    expect_image::<N>(x)?;
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
