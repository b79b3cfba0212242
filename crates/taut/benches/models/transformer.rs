//! A decoder-only transformer: norms before attention and before the two products behind it, GELU between those.

use crate::dense::cross_entropy;
use std::collections::BTreeMap;
use taut::{Result, Tensor, Variable, nn, s};

const HEADS: usize = 4;
const EPSILON: f64 = 1e-5;

/// The variables by their names in `workloads.transformer_layout`.
pub struct Transformer(pub BTreeMap<String, Variable>);

impl Transformer {
    /// What is trained, in the order of the names.
    pub fn variables(&self) -> Vec<Variable> {
        self.0.values().cloned().collect()
    }

    fn get(&self, name: &str) -> Tensor {
        self.0[name].read()
    }

    fn norm(&self, name: &str, h: &Tensor) -> Result<Tensor> {
        let (scale, offset) = (self.get(&format!("{name}.g")), self.get(&format!("{name}.b")));
        nn::layer_norm(h, Some(&scale), Some(&offset), 1, EPSILON)
    }

    fn dense(&self, name: &str, h: &Tensor) -> Result<Tensor> {
        taut::matmul(h, self.get(&format!("{name}.w")))? + self.get(&format!("{name}.b"))
    }

    fn attention(&self, layer: usize, h: &Tensor, batch: usize) -> Result<Tensor> {
        let (rows, width) = (h.shape()[0], h.shape()[1]);
        let all = self.dense(&format!("{layer}.qkv"), h)?;
        let shape = [batch, rows / batch, 3, HEADS, width / HEADS].map(|size| size as isize);
        let parts = taut::transpose(taut::reshape(all, &shape)?, &[2, 0, 3, 1, 4][..])?;
        let [q, k, v] = [0, 1, 2].map(|part| taut::slice(&parts, &s![part]));
        let h = nn::attention(q?, k?, v?, None, true, None)?;
        let h = taut::reshape(taut::transpose(h, &[0, 2, 1, 3][..])?, &[rows as isize, width as isize])?;
        self.dense(&format!("{layer}.o"), &h)
    }

    /// What the last layer is given: a row per word.
    pub fn features(&self, words: &Tensor) -> Result<Tensor> {
        let batch = words.shape()[0];
        let width = self.0["pos"].shape()[1] as isize;
        let h = (nn::embedding_lookup(self.get("tok"), words)? + self.get("pos"))?;
        let mut h = taut::reshape(h, &[-1, width])?;
        let layers = self.0.keys().filter(|name| name.ends_with(".qkv.w")).count();
        for layer in 0..layers {
            let seen = self.attention(layer, &self.norm(&format!("{layer}.ln1"), &h)?, batch)?;
            h = (h + seen)?;
            let up = self.dense(&format!("{layer}.up"), &self.norm(&format!("{layer}.ln2"), &h)?)?;
            h = (h + self.dense(&format!("{layer}.down"), &taut::gelu(up, true)?)?)?;
        }
        self.norm("lnf", &h)
    }

    /// The mean cross-entropy of the next words, `[batch, length]` like the words themselves.
    pub fn loss(&self, words: &Tensor, next: &Tensor) -> Result<Tensor> {
        let logits = taut::matmul(self.features(words)?, self.get("head.w"))?;
        cross_entropy(&taut::reshape(next, &[-1])?, logits)
    }
}
