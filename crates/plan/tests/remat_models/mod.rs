//! Problems like those of real training steps, for tests and measurements of the rematerialisation search.

#![allow(dead_code)]

pub mod random;

use taut_plan::remat::{Problem, RematStep, RematValue, Residence};

/// Picoseconds of a product of so many multiplications and additions.
const FLOP: f64 = 12.5;
/// Picoseconds of reading or writing a byte.
const BYTE: f64 = 100.0;

/// Makes a problem step by step.
#[derive(Default)]
pub struct Builder {
    pub values: Vec<RematValue>,
    pub steps: Vec<RematStep>,
    pub before: Vec<(u32, u32)>,
    /// Per external value, the steps that read it.
    readers: Vec<Vec<u32>>,
}

impl Builder {
    pub fn value(&mut self, bytes: usize, residence: Residence) -> u32 {
        self.values.push(RematValue { bytes, residence });
        self.readers.push(Vec::new());
        self.values.len() as u32 - 1
    }

    pub fn external(&mut self) -> u32 {
        self.value(0, Residence::External)
    }

    /// A step that may be repeated and writes values of these sizes.
    pub fn step(&mut self, reads: &[u32], sizes: &[usize], cost: f64) -> Vec<u32> {
        let writes: Vec<u32> = sizes.iter().map(|&bytes| self.value(bytes, Residence::Arena)).collect();
        self.push(reads, writes.clone(), cost);
        writes
    }

    pub fn push(&mut self, reads: &[u32], writes: Vec<u32>, cost: f64) -> &mut RematStep {
        let number = self.steps.len() as u32;
        reads.iter().for_each(|&v| self.readers[v as usize].push(number));
        self.steps.push(RematStep {
            reads: reads.to_vec(),
            writes,
            cost: cost as u64,
            scratch: 0,
            repeatable: true,
            prunable: false,
            in_place: Vec::new(),
        });
        self.steps.last_mut().unwrap()
    }

    /// One output of the size of its first operand, computed over it if that is possible.
    pub fn elementwise(&mut self, reads: &[u32]) -> u32 {
        let bytes = self.values[reads[0] as usize].bytes;
        let writes = self.step(reads, &[bytes], bytes as f64 * (1 + reads.len()) as f64 * BYTE);
        let over = reads.iter().filter(|&&v| {
            self.values[v as usize].bytes == bytes && self.values[v as usize].residence == Residence::Arena
        });
        self.steps.last_mut().unwrap().in_place = over.map(|&v| (v, writes[0])).collect();
        writes[0]
    }

    /// A product of matrices m × k and k × n.
    pub fn matmul(&mut self, reads: &[u32], m: usize, k: usize, n: usize) -> u32 {
        self.step(reads, &[4 * m * n], 2.0 * (m * k * n) as f64 * FLOP)[0]
    }

    /// A variable's update: it runs once, after all that read the old value.
    pub fn update(&mut self, variable: u32, gradient: u32) {
        let bytes = self.values[gradient as usize].bytes;
        let new = self.value(0, Residence::Result);
        let readers = self.readers[variable as usize].clone();
        let number = self.steps.len() as u32;
        self.before.extend(readers.into_iter().map(|reader| (reader, number)));
        self.push(&[variable, gradient], vec![new], 3.0 * bytes as f64 * BYTE).repeatable = false;
    }

    /// A value that is returned.
    pub fn result(&mut self, reads: &[u32], bytes: usize, cost: f64) -> u32 {
        let new = self.value(bytes, Residence::Result);
        self.push(reads, vec![new], cost).repeatable = false;
        new
    }

    pub fn finish(self) -> Problem {
        Problem::new(self.values, self.steps, self.before).unwrap()
    }
}

/// Steps in the order in which they were added.
pub fn own_order(problem: &Problem) -> Vec<u32> {
    (0..problem.steps().len() as u32).collect()
}

/// A training step of a stack of dense layers with ReLU: 5 steps a layer.
pub fn mlp(layers: usize, batch: usize, width: usize) -> Problem {
    let mut b = Builder::default();
    let x = b.external();
    let weights: Vec<u32> = (0..layers).map(|_| b.external()).collect();
    let mut outputs = vec![x];
    for &w in &weights {
        let h = b.matmul(&[*outputs.last().unwrap(), w], batch, width, width);
        outputs.push(h);
    }
    let last = *outputs.last().unwrap();
    b.result(&[last], 4, 1e6);
    let mut g = b.elementwise(&[last]);
    for i in (0..layers).rev() {
        let pre = b.elementwise(&[g, outputs[i + 1]]);
        let dw = b.matmul(&[outputs[i], pre], width, batch, width);
        if i > 0 {
            g = b.matmul(&[pre, weights[i]], batch, width, width);
        }
        b.update(weights[i], dw);
    }
    b.finish()
}

/// The forward values of a block that its backward pass reads.
struct Block {
    w: [u32; 4],
    scales: [u32; 2],
    x: u32,
    n1: Vec<u32>,
    qkv: u32,
    attention: Vec<u32>,
    mid: u32,
    n2: Vec<u32>,
    act: Vec<u32>,
}

/// A training step of a transformer with pre-normalisation: 28 steps a block.
pub fn transformer(blocks: usize, tokens: usize, d: usize, length: usize) -> Problem {
    let mut b = Builder::default();
    let mut x = b.external();
    let act = 4 * tokens * d;
    let norm_cost = 4.0 * act as f64 * BYTE;
    let scores = 4.0 * (tokens * length * d) as f64 * FLOP;
    let mut list = Vec::new();
    let embedding = b.external();
    x = b.step(&[x, embedding], &[act], 2.0 * act as f64 * BYTE)[0];
    for _ in 0..blocks {
        let w = [b.external(), b.external(), b.external(), b.external()];
        let scales = [b.external(), b.external()];
        let n1 = b.step(&[x, scales[0]], &[act, 8 * tokens], norm_cost);
        let qkv = b.matmul(&[n1[0], w[0]], tokens, d, 3 * d);
        let attention = b.step(&[qkv], &[act, 4 * tokens * 8], scores);
        let mid = b.matmul(&[attention[0], w[1], x], tokens, d, d);
        let n2 = b.step(&[mid, scales[1]], &[act, 8 * tokens], norm_cost);
        let up = b.matmul(&[n2[0], w[2]], tokens, d, 4 * d);
        let gelu = b.step(&[up], &[4 * act, 4 * act], 4.0 * act as f64 * 8.0 * BYTE);
        let next = b.matmul(&[gelu[0], w[3], mid], tokens, 4 * d, d);
        list.push(Block { w, scales, x, n1, qkv, attention, mid, n2, act: gelu });
        x = next;
    }
    b.result(&[x], 4, 1e9);
    let mut g = b.elementwise(&[x]);
    for block in list.iter().rev() {
        let Block { w, scales, x, n1, qkv, attention, mid, n2, act: gelu } = block;
        let dgelu = b.matmul(&[g, w[3]], tokens, d, 4 * d);
        let dw = b.matmul(&[gelu[0], g], 4 * d, tokens, d);
        b.update(w[3], dw);
        let dup = b.elementwise(&[dgelu, gelu[1]]);
        let dn2 = b.matmul(&[dup, w[2]], tokens, 4 * d, d);
        let dw = b.matmul(&[n2[0], dup], d, tokens, 4 * d);
        b.update(w[2], dw);
        let dmid = b.step(&[dn2, *mid, n2[1], scales[1]], &[act, 4 * d], 1.5 * norm_cost);
        b.update(scales[1], dmid[1]);
        let g2 = b.elementwise(&[g, dmid[0]]);
        let datt = b.matmul(&[g2, w[1]], tokens, d, d);
        let dw = b.matmul(&[attention[0], g2], d, tokens, d);
        b.update(w[1], dw);
        let dqkv = b.step(&[datt, *qkv, attention[0], attention[1]], &[3 * act], 2.5 * scores)[0];
        let dn1 = b.matmul(&[dqkv, w[0]], tokens, 3 * d, d);
        let dw = b.matmul(&[n1[0], dqkv], d, tokens, 3 * d);
        b.update(w[0], dw);
        let dx = b.step(&[dn1, *x, n1[1], scales[0]], &[act, 4 * d], 1.5 * norm_cost);
        b.update(scales[0], dx[1]);
        g = b.elementwise(&[g2, dx[0]]);
    }
    b.finish()
}

/// A convolution with batch norm and ReLU: the values that its backward pass reads.
struct Unit {
    w: u32,
    input: u32,
    conv: u32,
    stats: u32,
    out: u32,
    size: usize,
    flops: f64,
    skip: bool,
}

/// A training step of a residual network with batch norm: feature maps shrink by halves in three stages.
pub fn resnet(blocks_per_stage: usize, batch: usize) -> Problem {
    let mut b = Builder::default();
    let input = b.external();
    let shapes: Vec<(usize, usize)> = [(16, 1024), (32, 256), (64, 64)].to_vec();
    let mut units: Vec<Unit> = Vec::new();
    let mut x = input;
    let conv_cost = |c: usize, p: usize| 2.0 * (batch * p * c * c * 9) as f64 * FLOP;
    for &(c, p) in &shapes {
        let size = 4 * batch * c * p;
        for _ in 0..blocks_per_stage {
            let start = x;
            for half in 0..2 {
                let w = b.external();
                let conv = b.step(&[x, w], &[size], conv_cost(c, p))[0];
                let stats = b.step(&[conv], &[8 * c], size as f64 * BYTE)[0];
                let skip = half == 1 && b.values[start as usize].bytes == size;
                let reads = if skip { vec![conv, stats, start] } else { vec![conv, stats] };
                let out = b.step(&reads, &[size], 3.0 * size as f64 * BYTE)[0];
                units.push(Unit { w, input: x, conv, stats, out, size, flops: conv_cost(c, p), skip });
                x = out;
            }
        }
    }
    b.result(&[x], 4, 1e7);
    let mut g = b.elementwise(&[x]);
    let mut carried: Option<u32> = None;
    for unit in units.iter().rev() {
        let Unit { w, input, conv, stats, out, size, flops, skip } = *unit;
        let mut masked = b.elementwise(&[g, out]);
        if let Some(other) = carried.take().filter(|&v| b.values[v as usize].bytes == size && !skip) {
            masked = b.elementwise(&[masked, other]);
        }
        if skip {
            carried = Some(masked);
        }
        let sums = b.step(&[masked, conv, stats], &[8 * size / (4 * batch)], 2.0 * size as f64 * BYTE)[0];
        let dconv = b.elementwise(&[masked, conv, stats, sums]);
        let dw = b.step(&[input, dconv], &[64 << 10], flops)[0];
        b.update(w, dw);
        let bytes = b.values[input as usize].bytes.max(64);
        g = b.step(&[dconv, w], &[bytes], flops)[0];
    }
    b.finish()
}

/// A chain of equal steps, each computed over its operand, and their reversal: the problem that Revolve solves. The first
/// state is external, and gradients take no bytes.
pub fn chain(length: usize) -> Problem {
    let mut b = Builder::default();
    let mut states = vec![b.external()];
    for i in 1..length {
        let writes = b.step(&[states[i - 1]], &[1], 1.0);
        if i > 1 {
            b.steps.last_mut().unwrap().in_place = vec![(states[i - 1], writes[0])];
        }
        states.push(writes[0]);
    }
    let mut gradient = b.external();
    for &state in states.iter().rev() {
        gradient = b.step(&[state, gradient], &[0], 1.0)[0];
    }
    b.result(&[gradient], 0, 0.0);
    b.finish()
}
