//! Taut's version.

use crate::data::{Classic, Deep, Matrix, Mlp};
use crate::{Engine, Outcome, RATE, Step};
use taut::{DType, Dense, GradientTape, Tensor, Variable, nn};

pub const ENGINE: Engine = Engine { name: "taut", classic, mlp, deep };

fn tensor(matrix: &Matrix) -> taut::Result<Tensor> {
    Tensor::from_slice(&matrix.data, matrix.shape)
}

fn classic(data: &Classic) -> Outcome<Step> {
    let (x, y, w) = (tensor(&data.x)?, tensor(&data.y)?, Variable::new(tensor(&data.w)?)?);
    Ok(Box::new(move || {
        let tape = GradientTape::new();
        let off = (taut::relu(taut::matmul(&x, &w)?)? - &y)?;
        let loss = taut::mean(taut::square(off)?, None, false)?;
        tape.gradient(&loss, &w)?.dense()?;
        Ok(loss.item()?)
    }))
}

fn mlp(data: &Mlp) -> Outcome<Step> {
    let x = tensor(&data.x)?;
    let labels = Tensor::from_slice(&data.labels, [data.labels.len()])?;
    let mut variables = Vec::new();
    for layer in &data.layers {
        variables.push(Variable::new(tensor(layer)?)?);
        variables.push(Variable::new(taut::zeros([layer.shape[1]], DType::F32)?)?);
    }
    Ok(Box::new(move || {
        let tape = GradientTape::new();
        let mut h = x.clone();
        for (i, layer) in variables.chunks(2).enumerate() {
            h = (taut::matmul(h, &layer[0])? + &layer[1])?;
            if (i + 1) * 2 < variables.len() {
                h = taut::relu(h)?;
            }
        }
        let loss = taut::mean(nn::sparse_softmax_cross_entropy_with_logits(&labels, h)?, None, false)?;
        for (variable, gradient) in variables.iter().zip(tape.gradient(&loss, &variables)?) {
            variable.assign_sub((gradient.dense()? * RATE)?)?;
        }
        Ok(loss.item()?)
    }))
}

fn deep(data: &Deep) -> Outcome<Step> {
    let x = tensor(&data.x)?;
    let layers: Vec<Variable> =
        data.layers.iter().map(|layer| Variable::new(tensor(layer)?)).collect::<taut::Result<_>>()?;
    Ok(Box::new(move || {
        let tape = GradientTape::new();
        let mut h = x.clone();
        for w in &layers {
            h = taut::relu(taut::matmul(h, w)?)?;
        }
        let loss = taut::mean(taut::square(h)?, None, false)?;
        let gradients = tape.gradient(&loss, &layers)?;
        assert!(gradients.iter().all(Option::is_some));
        Ok(loss.item()?)
    }))
}
