//! The numbers that every engine starts from.

use crate::Outcome;
use taut::DType;
use taut::random::Generator;

/// A matrix in row-major order.
pub struct Matrix {
    pub data: Vec<f32>,
    pub shape: [usize; 2],
}

impl Matrix {
    fn normal(seed: u64, shape: [usize; 2], deviation: f64) -> Outcome<Matrix> {
        let data = Generator::from_seed(seed).normal(shape, 0.0, deviation, DType::F32)?.to_vec()?;
        Ok(Matrix { data, shape })
    }

    /// A layer's matrix, so scaled that a `relu` after it keeps the size of what goes in.
    fn layer(seed: u64, shape: [usize; 2]) -> Outcome<Matrix> {
        Matrix::normal(seed, shape, (2.0 / shape[0] as f64).sqrt())
    }
}

pub struct Classic {
    pub x: Matrix,
    pub y: Matrix,
    pub w: Matrix,
}

impl Classic {
    pub fn new() -> Outcome<Classic> {
        Ok(Classic {
            x: Matrix::normal(1, [32, 784], 1.0)?,
            y: Matrix::normal(2, [32, 10], 1.0)?,
            w: Matrix::normal(3, [784, 10], 0.03)?,
        })
    }
}

pub struct Mlp {
    pub x: Matrix,
    pub labels: Vec<i32>,
    /// The biases beside them start at zero.
    pub layers: Vec<Matrix>,
}

impl Mlp {
    pub fn new() -> Outcome<Mlp> {
        let sizes = [[784, 512], [512, 512], [512, 10]];
        let layers = sizes.iter().zip(10..).map(|(&shape, seed)| Matrix::layer(seed, shape));
        Ok(Mlp {
            x: Matrix::normal(1, [128, 784], 1.0)?,
            labels: Generator::from_seed(2).integers([128], 0, 10, DType::I32)?.to_vec()?,
            layers: layers.collect::<Outcome<_>>()?,
        })
    }
}

pub struct Deep {
    pub x: Matrix,
    pub layers: Vec<Matrix>,
}

impl Deep {
    pub fn new() -> Outcome<Deep> {
        let layers = (0..64).map(|i| Matrix::layer(10 + i, [256, 256]));
        Ok(Deep { x: Matrix::normal(1, [1024, 256], 1.0)?, layers: layers.collect::<Outcome<_>>()? })
    }
}
