//! The steps whose plans are searched: the sizes of `benches/peers/workloads.py`, and deep ones that show how the search grows.

use crate::adam::{adam, minimize};
use crate::initial::normal;
use crate::models::{Step, embedding, labels, lstm, mlp, resnet, tied};
use crate::transformer::Transformer;
use std::collections::BTreeMap;
use taut::{DType, GradientTape, Result, Variable};

type Build = fn() -> Result<Step>;

/// The steps by name.
pub const STEPS: &[(&str, Build)] = &[
    ("mlp 64 x 256", || mlp(64, 256, 16384)),
    ("transformer", || transformer(4)),
    ("resnet-20", || resnet(32, 32)),
    ("lstm", || lstm(256, 32, 64, 128)),
    ("embedding", || embedding(100_000, 64, 16384, 256)),
    ("tied weights", || tied(4096, 128, 4096)),
    ("transformer of 12 layers", || transformer(12)),
    ("mlp 832 x 64", || mlp(832, 64, 256)),
];

fn transformer(blocks: usize) -> Result<Step> {
    let (width, length, batch, words) = (256, 256, 8, 4096);
    let mut variables: BTreeMap<String, Variable> = BTreeMap::new();
    let mut add = |name: String, shape: &[usize]| -> Result<()> {
        let value = match name.rsplit('.').next() {
            Some("g") => taut::ones(shape, DType::F32)?,
            Some("b") => taut::zeros(shape, DType::F32)?,
            _ => normal(variables.len() as u64, shape, 0.05)?,
        };
        variables.insert(name, Variable::new(value)?);
        Ok(())
    };
    add("tok".into(), &[words, width])?;
    add("pos".into(), &[length, width])?;
    for block in 0..blocks {
        for (part, from, to) in [
            ("qkv", width, 3 * width),
            ("o", width, width),
            ("up", width, 4 * width),
            ("down", 4 * width, width),
        ] {
            add(format!("{block}.{part}.w"), &[from, to])?;
            add(format!("{block}.{part}.b"), &[to])?;
        }
    }
    let norms = (0..blocks).flat_map(|block| [format!("{block}.ln1"), format!("{block}.ln2")]);
    for norm in norms.chain(["lnf".into()]) {
        add(format!("{norm}.g"), &[width])?;
        add(format!("{norm}.b"), &[width])?;
    }
    add("head.w".into(), &[width, words])?;
    let net = Transformer(variables);
    let optimizer = adam(&net.variables(), 1e-3)?;
    let text = || taut::reshape(labels(batch * length, words)?, &[batch as isize, length as isize]);
    let variables = net.variables();
    Ok(Step::new("transformer", vec![text()?, text()?], variables, move |arguments| {
        let tape = GradientTape::new();
        let loss = net.loss(&arguments[0], &arguments[1])?;
        minimize(&optimizer, tape, &loss)?;
        Ok(loss)
    }))
}
