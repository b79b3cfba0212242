//! burn's version, once per backend for CPUs.

use crate::data::{Classic, Deep, Matrix, Mlp};
use crate::{Engine, Outcome, RATE, Step};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Int, Tensor, TensorData};

pub const FLEX: Engine = Engine {
    name: "burn, flex",
    classic: |data| classic(data, &Device::flex().autodiff()),
    mlp: |data| mlp(data, &Device::flex().autodiff()),
    deep: |data| deep(data, &Device::flex().autodiff()),
};

pub const NDARRAY: Engine = Engine {
    name: "burn, ndarray",
    classic: |data| classic(data, &ndarray()),
    mlp: |data| mlp(data, &ndarray()),
    deep: |data| deep(data, &ndarray()),
};

#[allow(deprecated)] // burn recommends flex since 0.22, and many programs still run on this one.
fn ndarray() -> Device {
    Device::ndarray().autodiff()
}

fn tensor(matrix: &Matrix, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(matrix.data.clone(), matrix.shape), device)
}

fn classic(data: &Classic, device: &Device) -> Outcome<Step> {
    let (x, y) = (tensor(&data.x, device), tensor(&data.y, device));
    let w = tensor(&data.w, device).require_grad();
    Ok(Box::new(move || {
        let loss = (relu(x.clone().matmul(w.clone())) - y.clone()).square().mean();
        let mut gradients = loss.backward();
        w.grad_remove(&mut gradients).ok_or("no gradient")?;
        Ok(loss.into_scalar::<f32>())
    }))
}

/// The new value of a parameter, as a leaf of its own.
fn updated<const D: usize>(parameter: Tensor<D>, gradient: Tensor<D>) -> Tensor<D> {
    (parameter.inner() - gradient.mul_scalar(RATE)).autodiff().require_grad()
}

fn mlp(data: &Mlp, device: &Device) -> Outcome<Step> {
    let x = tensor(&data.x, device);
    let labels: Tensor<1, Int> =
        Tensor::from_data(TensorData::new(data.labels.clone(), [data.labels.len()]), device);
    let mut layers: Vec<(Tensor<2>, Tensor<1>)> = (data.layers.iter())
        .map(|layer| {
            let bias = Tensor::zeros([layer.shape[1]], device);
            (tensor(layer, device).require_grad(), bias.require_grad())
        })
        .collect();
    let cross_entropy = CrossEntropyLossConfig::new().init(device);
    Ok(Box::new(move || {
        let mut h = x.clone();
        for (i, (w, b)) in layers.iter().enumerate() {
            h = h.matmul(w.clone()) + b.clone().unsqueeze();
            if i + 1 < layers.len() {
                h = relu(h);
            }
        }
        let loss = cross_entropy.forward(h, labels.clone());
        let mut gradients = loss.backward();
        for (w, b) in std::mem::take(&mut layers) {
            let of_w = w.grad_remove(&mut gradients).ok_or("no gradient")?;
            let of_b = b.grad_remove(&mut gradients).ok_or("no gradient")?;
            layers.push((updated(w, of_w), updated(b, of_b)));
        }
        Ok(loss.into_scalar::<f32>())
    }))
}

fn deep(data: &Deep, device: &Device) -> Outcome<Step> {
    let x = tensor(&data.x, device);
    let layers: Vec<Tensor<2>> =
        data.layers.iter().map(|layer| tensor(layer, device).require_grad()).collect();
    Ok(Box::new(move || {
        let mut h = x.clone();
        for w in &layers {
            h = relu(h.matmul(w.clone()));
        }
        let loss = h.square().mean();
        let gradients = loss.backward();
        assert!(layers.iter().all(|w| w.grad(&gradients).is_some()));
        Ok(loss.into_scalar::<f32>())
    }))
}
