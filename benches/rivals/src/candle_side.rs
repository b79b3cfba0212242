//! candle's version.

use crate::data::{Classic, Deep, Matrix, Mlp};
use crate::{Engine, Outcome, RATE, Step};
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::optim::{Optimizer, SGD};

pub const ENGINE: Engine = Engine { name: "candle", classic, mlp, deep };

fn tensor(matrix: &Matrix) -> Result<Tensor> {
    Tensor::from_slice(&matrix.data, matrix.shape.as_slice(), &Device::Cpu)
}

fn variable(matrix: &Matrix) -> Result<Var> {
    Var::from_tensor(&tensor(matrix)?)
}

fn classic(data: &Classic) -> Outcome<Step> {
    let (x, y, w) = (tensor(&data.x)?, tensor(&data.y)?, variable(&data.w)?);
    Ok(Box::new(move || {
        let loss = (x.matmul(&w)?.relu()? - &y)?.sqr()?.mean_all()?;
        let gradients = loss.backward()?;
        assert!(gradients.get(&w).is_some());
        Ok(loss.to_scalar()?)
    }))
}

fn mlp(data: &Mlp) -> Outcome<Step> {
    let x = tensor(&data.x)?;
    let labels: Vec<u32> = data.labels.iter().map(|&label| label as u32).collect();
    let labels = Tensor::new(labels, &Device::Cpu)?;
    let mut variables = Vec::new();
    for layer in &data.layers {
        variables.push(variable(layer)?);
        variables.push(Var::zeros(layer.shape[1], DType::F32, &Device::Cpu)?);
    }
    let mut optimizer = SGD::new(variables.clone(), RATE)?;
    Ok(Box::new(move || {
        let mut h = x.clone();
        for (i, layer) in variables.chunks(2).enumerate() {
            h = h.matmul(&layer[0])?.broadcast_add(&layer[1])?;
            if (i + 1) * 2 < variables.len() {
                h = h.relu()?;
            }
        }
        let loss = candle_nn::loss::cross_entropy(&h, &labels)?;
        optimizer.backward_step(&loss)?;
        Ok(loss.to_scalar()?)
    }))
}

fn deep(data: &Deep) -> Outcome<Step> {
    let x = tensor(&data.x)?;
    let layers: Vec<Var> = data.layers.iter().map(variable).collect::<Result<_>>()?;
    Ok(Box::new(move || {
        let mut h = x.clone();
        for w in &layers {
            h = h.matmul(w)?.relu()?;
        }
        let loss = h.sqr()?.mean_all()?;
        // As in an ordinary program: only the loss keeps the last activation alive.
        drop(h);
        let gradients = loss.backward()?;
        assert!(layers.iter().all(|w| gradients.get(w).is_some()));
        Ok(loss.to_scalar()?)
    }))
}
