//! Sparse gradients: only the rows that they name are updated, each once, for any size of the variable. The peak is measured for the whole
//! process, so these tests run one at a time.

use std::collections::BTreeMap;
use taut_autodiff::{GradientTape, Variable};
use taut_core::ops::index::gather;
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::{cast, square, tanh};
use taut_core::{DType, ErrorKind, Gradient, IndexedSlices, Result, Shape, Tensor};
use taut_function::{Function, function};
use taut_memory::testing::ledger_check;
use taut_memory::{live_bytes, peak_bytes, reset_peak};
use taut_nn::optimizers::{
    Adadelta, Adagrad, Adam, AdamW, Adamax, Clip, Ftrl, Lion, Nadam, Optimizer, RmsProp, Sgd, UpdateRule,
};
use taut_testing::{exclusive, values};

/// Pseudorandom numbers in [-1, 1].
fn noise(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / f64::from(1 << 23) - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn tensor(values: &[f64], shape: &[usize], dtype: DType) -> Tensor {
    cast(Tensor::from_slice(values, shape).unwrap(), dtype).unwrap()
}

fn table(shape: &[usize], dtype: DType) -> Variable {
    Variable::new(tensor(&noise(shape.iter().product(), 1), shape, dtype)).unwrap()
}

fn gradient(ids: &[i64], shape: &[usize], dtype: DType, seed: u64) -> IndexedSlices {
    let mut rows = shape.to_vec();
    rows[0] = ids.len();
    let values = tensor(&noise(rows.iter().product(), seed), &rows, dtype);
    IndexedSlices::new(values, Tensor::from_slice(ids, [ids.len()]).unwrap(), Shape::from(shape)).unwrap()
}

fn bits(variable: &Variable) -> Vec<u64> {
    values(&variable.value()).into_iter().map(f64::to_bits).collect()
}

fn state(optimizer: &Optimizer) -> Vec<Vec<u64>> {
    let own = optimizer.named_variables().into_iter().map(|(_, variable)| variable);
    optimizer.variables().into_iter().chain(own).map(|variable| bits(&variable)).collect()
}

/// The rows of a gradient by id; rows of the same id are summed in order.
fn by_row(slices: &IndexedSlices) -> BTreeMap<usize, Vec<f64>> {
    let (ids, values) = (slices.indices.to_vec::<i64>().unwrap(), values(&slices.values));
    let row = values.len() / ids.len().max(1);
    let mut rows: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (id, values) in ids.iter().zip(values.chunks(row.max(1))) {
        let sums = rows.entry(*id as usize).or_insert_with(|| vec![0.0; row]);
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    rows
}

/// Adam by its definition, for the rows that are named.
struct NaiveAdam {
    values: Vec<f64>,
    m: Vec<f64>,
    v: Vec<f64>,
    step: i32,
}

impl NaiveAdam {
    fn apply(&mut self, slices: &IndexedSlices) {
        self.step += 1;
        let (b1, b2) = (0.9f64, 0.999f64);
        let rate = 0.1 * (1.0 - b2.powi(self.step)).sqrt() / (1.0 - b1.powi(self.step));
        for (id, gradient) in by_row(slices) {
            for (j, &g) in gradient.iter().enumerate() {
                let i = id * gradient.len() + j;
                self.m[i] = b1 * self.m[i] + (1.0 - b1) * g;
                self.v[i] = b2 * self.v[i] + (1.0 - b2) * g * g;
                self.values[i] -= rate * self.m[i] / (self.v[i].sqrt() + 1e-7);
            }
        }
    }
}

fn adam() -> Adam {
    Adam { rate: 0.1.into(), ..Adam::default() }
}

/// Lists of ids with different repetitions.
fn lists() -> Vec<Vec<i64>> {
    vec![vec![3, 0, 3, 6, 3, 0], vec![], vec![2], vec![5; 9], vec![6, 5, 4, 3, 2, 1, 0], vec![0, 0, 6, 6]]
}

#[test]
fn updated_rows_match_the_formula_of_adam() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    for (dtype, within) in [(DType::F32, 1e-5), (DType::F64, 1e-12)] {
        for shape in [&[7, 5][..], &[7], &[7, 2, 3], &[7, 1], &[7, 0]] {
            let v = table(shape, dtype);
            let len = v.shape().len();
            let optimizer = Optimizer::new(adam(), std::slice::from_ref(&v)).unwrap();
            let mut naive =
                NaiveAdam { values: values(&v.value()), m: vec![0.0; len], v: vec![0.0; len], step: 0 };
            for (seed, ids) in lists().iter().enumerate() {
                let slices = gradient(ids, shape, dtype, seed as u64);
                naive.apply(&slices);
                optimizer.apply(&[Some(slices.into())]).unwrap();
                for (got, wanted) in values(&v.value()).iter().zip(&naive.values) {
                    assert!(
                        (got - wanted).abs() <= within,
                        "{dtype} {shape:?} {ids:?}: {got} and not {wanted}"
                    );
                }
            }
        }
    }
}

/// A sparse update equals the dense update of a smaller variable that has only the named rows.
fn like_a_smaller_one(
    rule: impl UpdateRule + Clone,
    finish: impl Fn(Optimizer) -> Result<Optimizer>,
    dtype: DType,
) {
    let name = format!("{rule:?} {dtype}");
    let ids = [8i64, 1, 8, 4, 1, 8];
    let distinct = [1i64, 4, 8];
    let v = table(&[9, 4], dtype);
    let picked = Tensor::from_slice(&distinct, [3]).unwrap();
    let small = Variable::new(gather(v.value(), &picked, 0, 0).unwrap()).unwrap();
    let sparse = finish(Optimizer::new(rule.clone(), std::slice::from_ref(&v)).unwrap()).unwrap();
    let dense = finish(Optimizer::new(rule, std::slice::from_ref(&small)).unwrap()).unwrap();
    let address = v.address();
    for seed in 0..4 {
        let slices = gradient(&ids, &[9, 4], dtype, seed);
        let sums: Vec<f64> = by_row(&slices).into_values().flatten().collect();
        sparse.apply(&[Some(slices.into())]).unwrap();
        dense.apply(&[Some(tensor(&sums, &[3, 4], dtype).into())]).unwrap();
    }
    let pairs = sparse.named_variables().into_iter().chain([("value".to_owned(), v.clone())]);
    let others = dense.named_variables().into_iter().chain([("value".to_owned(), small)]);
    let within = if dtype == DType::F32 { 1e-6 } else { 0.02 };
    for ((what, whole), (_, part)) in pairs.zip(others) {
        let whole = if whole.shape().rank() == 0 {
            whole.value()
        } else {
            gather(whole.value(), &picked, 0, 0).unwrap()
        };
        for (got, wanted) in values(&whole).iter().zip(values(&part.value())) {
            assert!((got - wanted).abs() <= within, "{name} {what}: {got} and not {wanted}");
        }
    }
    assert_eq!(v.address(), address);
}

#[test]
fn every_rule_updates_rows_like_a_dense_variable_of_them() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let f32s = DType::F32;
    like_a_smaller_one(Sgd::default(), Ok, f32s);
    like_a_smaller_one(Sgd { momentum: 0.9, ..Sgd::default() }, Ok, f32s);
    like_a_smaller_one(Sgd { momentum: 0.9, nesterov: true, ..Sgd::default() }, Ok, f32s);
    like_a_smaller_one(RmsProp { momentum: 0.5, centered: true, ..RmsProp::default() }, Ok, f32s);
    like_a_smaller_one(Adagrad::default(), Ok, f32s);
    like_a_smaller_one(Adadelta::default(), Ok, f32s);
    like_a_smaller_one(Adam { amsgrad: true, ..adam() }, Ok, f32s);
    like_a_smaller_one(AdamW { weight_decay: 0.5, rate: 0.1.into(), ..AdamW::default() }, Ok, f32s);
    like_a_smaller_one(Adamax::default(), Ok, f32s);
    like_a_smaller_one(Nadam::default(), Ok, f32s);
    like_a_smaller_one(Lion::default(), Ok, f32s);
    like_a_smaller_one(Ftrl { l1: 0.1, ..Ftrl::default() }, Ok, f32s);
    for clip in [Clip::Value(0.3), Clip::Norm(0.5), Clip::GlobalNorm(0.5)] {
        like_a_smaller_one(Sgd { rate: 0.5.into(), ..Sgd::default() }, |o| o.clip(clip), f32s);
    }
    for dtype in [DType::F16, DType::BF16] {
        like_a_smaller_one(Sgd { rate: 0.1.into(), momentum: 0.9, ..Sgd::default() }, Ok, dtype);
        like_a_smaller_one(Adam { rate: 0.01.into(), ..adam() }, Ok, dtype);
    }
}

/// A function that applies a sparse gradient, given as rows and ids.
fn applying(optimizer: &Optimizer) -> Function<(Tensor, Tensor), ()> {
    let optimizer = optimizer.clone();
    function(move |(values, ids): &(Tensor, Tensor)| {
        let shape = optimizer.variables()[0].shape().clone();
        optimizer.apply(&[Some(IndexedSlices::new(values.clone(), ids.clone(), shape)?.into())])
    })
}

#[test]
fn traced_and_eager_updates_agree_to_the_bit() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    // Enough rows for several chunks, the last one not full.
    let shape = [4000, 32];
    let ids: Vec<i64> = noise(3000, 3).iter().map(|x| (x.abs() * 3999.0) as i64).collect();
    let run = |traced: bool| {
        let v = table(&shape, DType::F32);
        let optimizer = Optimizer::new(adam(), std::slice::from_ref(&v)).unwrap();
        let before = bits(&v);
        let f = applying(&optimizer);
        for seed in 0..3 {
            let slices = gradient(&ids, &shape, DType::F32, seed);
            if traced {
                f.call((slices.values, slices.indices)).unwrap();
            } else {
                optimizer.apply(&[Some(slices.into())]).unwrap();
            }
        }
        // Rows that were not named, and their slots, are unchanged.
        let slots = optimizer.named_variables();
        let (m, s) = (values(&slots[2].1.value()), values(&slots[3].1.value()));
        for (row, (old, new)) in before.chunks(32).zip(bits(&v).chunks(32)).enumerate() {
            let named = ids.contains(&(row as i64));
            let zero =
                m[row * 32..(row + 1) * 32].iter().chain(&s[row * 32..(row + 1) * 32]).all(|x| *x == 0.0);
            assert_eq!((old == new, zero), (!named, !named), "row {row}");
        }
        state(&optimizer)
    };
    let (plain, traced) = (run(false), run(true));
    assert!(plain == traced);
}

fn first_step_is_dense(rule: impl UpdateRule + Clone) {
    let run = |dense: bool| {
        let v = table(&[7, 5], DType::F32);
        let optimizer = Optimizer::new(rule.clone(), std::slice::from_ref(&v)).unwrap();
        let slices = gradient(&[3, 0, 3, 6], &[7, 5], DType::F32, 9);
        let gradient: Gradient = if dense { slices.to_dense().unwrap().into() } else { slices.into() };
        optimizer.apply(&[Some(gradient)]).unwrap();
        values(&v.value())
    };
    for (sparse, dense) in run(false).iter().zip(run(true)) {
        assert!((sparse - dense).abs() <= 1e-6, "{rule:?}: {sparse} and not {dense}");
    }
}

#[test]
fn the_first_sparse_step_equals_the_dense_one() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    first_step_is_dense(Sgd { momentum: 0.9, ..Sgd::default() });
    first_step_is_dense(Adam::default());
    first_step_is_dense(Adagrad::default());
    first_step_is_dense(RmsProp::default());
    first_step_is_dense(Lion::default());
}

#[test]
fn ids_out_of_range_are_rejected_and_change_nothing() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let v = table(&[7, 5], DType::F32);
    let optimizer = Optimizer::new(adam(), std::slice::from_ref(&v)).unwrap();
    let before = state(&optimizer);
    for (bad, text) in [(7, "got 7 at position 2"), (-1, "got -1 at position 2"), (i64::MIN, "at position 2")]
    {
        let slices = gradient(&[0, 1, bad, 3], &[7, 5], DType::F32, 1);
        let error = optimizer.apply(&[Some(slices.into())]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Index);
        assert!(error.to_string().contains(text), "{error}");
        assert!(error.to_string().contains("optimizers_sparse.rs"), "{error}");
        assert_eq!(state(&optimizer), before);
    }
}

#[test]
fn norms_use_the_sum_of_rows_with_the_same_id() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let v = Variable::new(tensor(&[0.0; 4], &[4], DType::F32)).unwrap();
    let w = Variable::new(tensor(&[0.0], &[1], DType::F32)).unwrap();
    let x = Variable::new(tensor(&[0.0], &[1], DType::F32)).unwrap();
    let rule = Sgd { rate: 1.0.into(), ..Sgd::default() };
    let all = [v.clone(), w.clone(), x.clone()];
    let optimizer = Optimizer::new(rule, &all).unwrap().clip(Clip::GlobalNorm(1.3)).unwrap();
    let elements = tensor(&[1.0, 4.0, 2.0], &[3], DType::F32);
    let rows = IndexedSlices::new(elements, Tensor::from_slice(&[2, 0, 2], [3]).unwrap(), [4]).unwrap();
    // The sum of squares is 4² + (1 + 2)² + 12², that of the norm 13.
    optimizer.apply(&[Some(rows.into()), Some(tensor(&[12.0], &[1], DType::F32).into()), None]).unwrap();
    let near = |v: &Variable, wanted: &[f64]| {
        for (got, wanted) in values(&v.value()).iter().zip(wanted) {
            assert!((got - wanted).abs() < 1e-6, "{got} and not {wanted}");
        }
    };
    near(&v, &[-0.4, 0.0, -0.3, 0.0]);
    near(&w, &[-1.2]);
    near(&x, &[0.0]);
}

/// The measured peak and the plan of a training step with an embedding.
fn embedding_step(rows: usize, width: usize, count: usize, clip: Option<Clip>) -> (usize, String) {
    let v = table(&[rows, width], DType::F32);
    let optimizer = Optimizer::new(adam(), std::slice::from_ref(&v)).unwrap();
    let optimizer = clip.map_or(Ok(optimizer.clone()), |clip| optimizer.clip(clip)).unwrap();
    let (inside, own) = (v.clone(), optimizer.clone());
    let f = function(move |ids: &Tensor| {
        let tape = GradientTape::new();
        let found = tanh(gather(&inside, ids, 0, 0)?)?;
        let loss = sum(square(found)?, None, false)?;
        own.apply(&[tape.gradient(&loss, &inside)?])?;
        Ok(loss)
    });
    let ids: Vec<i64> = noise(count, 5).iter().map(|x| (x.abs() * (rows - 1) as f64) as i64).collect();
    let ids = Tensor::from_slice(&ids, [count]).unwrap();
    let plan = f.plan(&ids).unwrap();
    let addresses = |optimizer: &Optimizer| -> Vec<usize> {
        let own = optimizer.named_variables().into_iter().map(|(_, variable)| variable);
        own.chain(optimizer.variables()).map(|variable| variable.address()).collect()
    };
    let (before, held) = (addresses(&optimizer), live_bytes());
    reset_peak();
    f.call(&ids).unwrap();
    let peak = peak_bytes() - held;
    assert_eq!(peak, plan.peak_bytes(), "{plan}");
    assert_eq!(addresses(&optimizer), before);
    (peak, plan.to_string())
}

#[test]
fn the_peak_of_a_sparse_step_is_the_gradients_rows_and_one_chunk() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (width, count) = (64, 10_000);
    let (peak, plan) = embedding_step(20_000, width, count, None);
    let rows = width * count * 4;
    // Two positions per id, and one chunk of rows: of the gradient, of the variable and of two slots.
    let beside = 8 * count + 4 * (128 << 10) + (8 << 10);
    assert!(peak <= rows + beside, "{peak} bytes, of which {rows} are the rows:\n{plan}");
    // For any size of the variable.
    assert_eq!(embedding_step(40_000, width, count, None).0, peak);
    let clipped = embedding_step(20_000, width, count, Some(Clip::GlobalNorm(1.0))).0;
    assert!(clipped <= rows + beside + (128 << 10), "{clipped}");
}
