//! Gradients of loops that read and write rows of a tensor: the values of the unrolled steps, and work that is linear in the
//! number of steps.

use taut::memory::testing::ledger_check;
use taut::{
    DType, DenseGradient, GradientTape, Loops, Result, Spec, Tensor, Variable, add, cond, fori_loop,
    function, gather, gather_nd, less, mul, reshape, s, sin, slice, stack, sub, sum, take_along_axis, tanh,
    tensor_scatter_update, vectorized_map, zeros,
};
use taut_testing::{assert_close, values};

/// The elements of a row.
const WIDTH: usize = 8;

/// A step: from its index, the state and the table to the new state.
type Step = fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>;

fn table(rows: usize) -> Tensor {
    let values: Vec<f64> = (0..rows * WIDTH).map(|i| ((i * 7 + 3) % 23) as f64 / 23.0 - 0.4).collect();
    Tensor::from_vec(values, [rows, WIDTH]).unwrap()
}

fn state() -> Tensor {
    let values: Vec<f64> = (0..WIDTH).map(|i| ((i * 5 + 1) % 13) as f64 / 13.0 - 0.4).collect();
    Tensor::from_vec(values, [WIDTH]).unwrap()
}

/// The index of a row that several steps read.
fn half(i: &Tensor) -> Result<Tensor> {
    taut::floor_div(i, 2i64)
}

fn one_row(i: &Tensor, x: &Tensor, z: &Tensor) -> Result<Tensor> {
    sin(add(mul(x, 0.7)?, gather(z, i, 0, 0)?)?)
}

fn rows_of_a_list(i: &Tensor, x: &Tensor, z: &Tensor) -> Result<Tensor> {
    // A list in which an index may occur twice.
    let list = stack(&[i.clone(), half(i)?, half(i)?], 0)?;
    sin(add(x, mul(sum(gather(z, list, 0, 0)?, 0, false)?, 0.3)?)?)
}

fn a_column(i: &Tensor, x: &Tensor, z: &Tensor) -> Result<Tensor> {
    let columns = taut::transpose(z, None)?;
    sin(add(x, mul(gather(columns, i, 1, 0)?, 0.5)?)?)
}

fn coordinates(i: &Tensor, x: &Tensor, z: &Tensor) -> Result<Tensor> {
    let at = reshape(stack(&[i.clone(), half(i)?], 0)?, &[2, 1])?;
    tanh(add(x, sum(gather_nd(z, at, 0)?, 0, false)?)?)
}

fn along_an_axis(i: &Tensor, x: &Tensor, z: &Tensor) -> Result<Tensor> {
    let at = taut::broadcast_to(reshape(i, &[1, 1])?, [1, WIDTH])?;
    tanh(add(x, reshape(take_along_axis(z, at, 0)?, &[WIDTH as isize])?)?)
}

fn two_reads_and_all(i: &Tensor, x: &Tensor, z: &Tensor) -> Result<Tensor> {
    let (a, b) = (gather(z, i, 0, 0)?, gather(z, half(i)?, 0, 0)?);
    add(mul(sin(x)?, a)?, mul(b, sum(z, None, false)?)?)
}

fn a_fixed_row(i: &Tensor, x: &Tensor, z: &Tensor) -> Result<Tensor> {
    let fixed = slice(z, &s![1])?;
    sin(add(mul(x, fixed)?, gather(z, i, 0, 0)?)?)
}

fn in_a_branch(i: &Tensor, x: &Tensor, z: &Tensor) -> Result<Tensor> {
    let even = taut::equal(mul(half(i)?, 2i64)?, i)?;
    cond(even, || add(sin(x)?, gather(z, i, 0, 0)?), || mul(x, 0.9))
}

fn in_a_loop(i: &Tensor, x: &Tensor, z: &Tensor) -> Result<Tensor> {
    fori_loop(0..2, |_, x| sin(add(x, gather(z, i, 0, 0)?)?), x.clone())
}

const STEPS: [(&str, Step); 9] = [
    ("one row", one_row),
    ("rows of a list", rows_of_a_list),
    ("a column", a_column),
    ("coordinates", coordinates),
    ("along an axis", along_an_axis),
    ("two reads, and all", two_reads_and_all),
    ("a fixed row", a_fixed_row),
    ("in a branch", in_a_branch),
    ("in a loop", in_a_loop),
];

/// Runs so many steps: unrolled, or by loops of several kinds.
#[derive(Clone, Copy, Debug)]
enum Form {
    Unrolled,
    For,
    While,
    LimitedWhile,
    Checkpoints,
}

const LOOPS: [Form; 4] = [Form::For, Form::While, Form::LimitedWhile, Form::Checkpoints];

fn run(form: Form, step: Step, count: usize, x: &Tensor, z: &Tensor) -> Result<Tensor> {
    let count = count as i64;
    let while_loop = |loops: Loops| {
        let start = (Tensor::scalar(0i64)?, x.clone());
        let body = |(i, x): (Tensor, Tensor)| Ok((add(&i, 1i64)?, step(&i, &x, z)?));
        Ok(loops.while_loop(|(i, _)| less(i, count), body, start)?.1)
    };
    match form {
        Form::Unrolled => (0..count).try_fold(x.clone(), |x, i| step(&Tensor::scalar(i)?, &x, z)),
        Form::For => fori_loop(0..count, |i, x| step(&i, &x, z), x.clone()),
        Form::While => while_loop(Loops::new()),
        Form::LimitedWhile => while_loop(Loops::new().maximum_iterations(count as usize + 3)),
        Form::Checkpoints => {
            Loops::new().grad_budget(3 * 64).fori_loop(0..count, |i, x| step(&i, &x, z), x.clone())
        }
    }
}

/// The gradients for the state and the table of the sum of the squares of the last state.
fn gradients(form: Form, step: Step, count: usize, x: &Tensor, z: &Tensor) -> Result<(Tensor, Tensor)> {
    let tape = GradientTape::new();
    tape.watch(&[x, z]);
    let y = run(form, step, count, x, z)?;
    let found = tape.gradient(&sum(mul(&y, &y)?, None, false)?, &[x, z])?;
    let dense = |i: usize| match &found[i] {
        Some(gradient) => gradient.clone().dense(),
        None => zeros([x, z][i].shape().clone(), DType::F64),
    };
    Ok((dense(0)?, dense(1)?))
}

/// The gradients of the sum of the squares of the gradients.
fn second(form: Form, step: Step, count: usize, x: &Tensor, z: &Tensor) -> Result<(Tensor, Tensor)> {
    let tape = GradientTape::new();
    tape.watch(&[x, z]);
    let (gx, gz) = gradients(form, step, count, x, z)?;
    let total = add(sum(mul(&gx, &gx)?, None, false)?, sum(mul(&gz, &gz)?, None, false)?)?;
    let found = tape.gradient(&total, &[x, z])?;
    let dense =
        |i: usize| found[i].clone().map_or_else(|| zeros(z.shape().clone(), DType::F64), |g| g.dense());
    Ok((dense(0)?, dense(1)?))
}

fn pair((x, z): (Tensor, Tensor)) -> Vec<f64> {
    [values(&x), values(&z)].concat()
}

#[test]
fn gradients_are_those_of_the_unrolled_steps() {
    let _ledger = ledger_check();
    for (name, step) in STEPS {
        // As many steps as a table with columns allows.
        for count in [0, 1, WIDTH] {
            let (x, z) = (state(), table(WIDTH));
            let first_order = pair(gradients(Form::Unrolled, step, count, &x, &z).unwrap());
            let second_order = pair(second(Form::Unrolled, step, count, &x, &z).unwrap());
            for form in LOOPS {
                println!("{name}, {count} steps, {form:?}");
                assert_close(&pair(gradients(form, step, count, &x, &z).unwrap()), &first_order, 1e-12);
                let f = function(move |(x, z): &(Tensor, Tensor)| gradients(form, step, count, x, z));
                assert_close(&pair(f.verify(true).call((&x, &z)).unwrap()), &first_order, 1e-12);
                if matches!(form, Form::While) {
                    continue;
                }
                assert_close(&pair(second(form, step, count, &x, &z).unwrap()), &second_order, 1e-10);
                let f = function(move |(x, z): &(Tensor, Tensor)| second(form, step, count, x, z));
                assert_close(&pair(f.verify(true).call((&x, &z)).unwrap()), &second_order, 1e-10);
            }
        }
    }
}

#[test]
fn gradients_are_slopes() {
    let _ledger = ledger_check();
    let (x, z) = (state(), table(WIDTH));
    for (name, step) in STEPS {
        let loss = |z: &Tensor| {
            let y = run(Form::For, step, WIDTH, &x, z).unwrap();
            values(&y).iter().map(|y| y * y).sum::<f64>()
        };
        let first = gradients(Form::For, step, WIDTH, &x, &z).unwrap();
        let squares = |z: &Tensor| {
            let (gx, gz) = gradients(Form::For, step, WIDTH, &x, z).unwrap();
            [values(&gx), values(&gz)].concat().iter().map(|g| g * g).sum::<f64>()
        };
        let (_, second) = second(Form::For, step, WIDTH, &x, &z).unwrap();
        for element in [0, 9, WIDTH * WIDTH - 1] {
            let moved = |by: f64| {
                let mut all = values(&z);
                all[element] += by;
                Tensor::from_vec(all, [WIDTH, WIDTH]).unwrap()
            };
            let slope = |f: &dyn Fn(&Tensor) -> f64| (f(&moved(1e-5)) - f(&moved(-1e-5))) / 2e-5;
            println!("{name}, element {element}");
            assert_close(&[values(&first.1)[element]], &[slope(&loss)], 1e-6);
            assert_close(&[values(&second)[element]], &[slope(&squares)], 1e-5);
        }
    }
}

/// Writes a row per step to an array that starts at zero, reads the row before, and weighs all rows: a TensorArray.
fn written(count: usize, x: &Tensor, z: &Tensor, looped: bool) -> Result<Tensor> {
    let array = zeros([count, WIDTH], DType::F64)?;
    let step = |i: &Tensor, array: &Tensor| {
        let before = gather(array, taut::maximum(sub(i, 1i64)?, 0i64)?, 0, 0)?;
        let new = sin(add(add(before, x)?, gather(z, i, 0, 0)?)?)?;
        tensor_scatter_update(array, reshape(i, &[1, 1])?, reshape(new, &[1, -1])?)
    };
    let array = if looped {
        fori_loop(0..count as i64, |i, array| step(&i, &array), array)?
    } else {
        (0..count as i64).try_fold(array, |array, i| step(&Tensor::scalar(i)?, &array))?
    };
    sum(mul(mul(&array, &array)?, z)?, None, false)
}

fn gradient_of_written(count: usize, x: &Tensor, z: &Tensor, looped: bool) -> Result<(Tensor, Tensor)> {
    let tape = GradientTape::new();
    tape.watch(&[x, z]);
    let y = written(count, x, z, looped)?;
    let found = tape.gradient(&y, &[x, z])?;
    Ok((found[0].clone().dense()?, found[1].clone().dense()?))
}

#[test]
fn gradients_of_written_rows_are_those_of_the_unrolled_steps() {
    let _ledger = ledger_check();
    let (x, z) = (state(), table(5));
    let want = pair(gradient_of_written(5, &x, &z, false).unwrap());
    assert_close(&pair(gradient_of_written(5, &x, &z, true).unwrap()), &want, 1e-12);
    let f = function(|(x, z): &(Tensor, Tensor)| gradient_of_written(5, x, z, true)).verify(true);
    assert_close(&pair(f.call((&x, &z)).unwrap()), &want, 1e-12);
}

#[test]
fn loops_that_read_rows_are_mapped() {
    let _ledger = ledger_check();
    let (xs, z) = (table(3), table(WIDTH));
    for (name, step) in STEPS {
        println!("{name}");
        let all = vectorized_map(
            |x: Tensor| {
                let (gx, gz) = gradients(Form::For, step, 4, &x, &z)?;
                Ok((gx, gz))
            },
            xs.clone(),
        );
        let (gx, gz) = all.unwrap();
        for i in 0..3 {
            let x = slice(&xs, &s![i]).unwrap();
            let want = pair(gradients(Form::Unrolled, step, 4, &x, &z).unwrap());
            let got = pair((slice(&gx, &s![i]).unwrap(), slice(&gz, &s![i]).unwrap()));
            assert_close(&got, &want, 1e-12);
        }
    }
}

#[test]
fn rows_of_a_variable() {
    let _ledger = ledger_check();
    let v = Variable::new(table(6)).unwrap();
    let (x, z) = (state(), table(6));
    let want = values(&gradients(Form::Unrolled, one_row, 6, &x, &z).unwrap().1);
    let inside = v.clone();
    let f = function(move |x: &Tensor| {
        let tape = GradientTape::new();
        let y = fori_loop(0..6, |i, x| one_row(&i, &x, &inside.read()), x.clone())?;
        tape.gradient(&sum(mul(&y, &y)?, None, false)?, &inside)?.dense()
    });
    assert_close(&values(&f.call(&x).unwrap()), &want, 1e-12);
}

/// The bytes that the calls of a gradient move, and its planned peak, for tables of so many rows.
fn work(
    step: Step,
    rows: usize,
    order: fn(Form, Step, usize, &Tensor, &Tensor) -> Result<(Tensor, Tensor)>,
) -> (u64, usize) {
    let f = function(move |(x, z): &(Tensor, Tensor)| order(Form::For, step, rows, x, z));
    let spec = |shape: &[usize]| Tensor::placeholder(Spec::new(DType::F64, shape));
    let arguments = (spec(&[WIDTH]), spec(&[rows, WIDTH]));
    let graph = f.graph((&arguments.0, &arguments.1)).unwrap();
    (graph.cost().bytes, f.plan((&arguments.0, &arguments.1)).unwrap().peak_bytes())
}

/// Fails unless the work per row is the same for all lengths but for a part that does not depend on them.
fn assert_linear(name: &str, measure: impl Fn(usize) -> (u64, usize)) {
    let [(a, first), (b, second), (c, third)] = [64, 1024, 16384].map(&measure);
    println!("{name}: {a} {b} {c} bytes moved, peaks {first} {second} {third}");
    let slope = (b - a) as f64 / (1024 - 64) as f64;
    assert!(((c - b) as f64 / (16384 - 1024) as f64 - slope).abs() < 1e-3 * slope, "{name}: {a} {b} {c}");
    assert_eq!((third - second) * (1024 - 64), (second - first) * (16384 - 1024), "{name}");
}

#[test]
fn the_work_of_a_gradient_is_linear_in_the_steps() {
    let _ledger = ledger_check();
    for (name, step) in STEPS {
        // These read all of the table at every step.
        if name == "two reads, and all" || name == "a column" {
            continue;
        }
        assert_linear(name, |rows| work(step, rows, gradients));
    }
    assert_linear("one row, second order", |rows| work(one_row, rows, second));
    assert_linear("written rows", |rows| {
        let f = function(move |(x, z): &(Tensor, Tensor)| gradient_of_written(rows, x, z, true));
        let spec = |shape: &[usize]| Tensor::placeholder(Spec::new(DType::F64, shape));
        let arguments = (spec(&[WIDTH]), spec(&[rows, WIDTH]));
        let graph = f.graph((&arguments.0, &arguments.1)).unwrap();
        (graph.cost().bytes, f.plan((&arguments.0, &arguments.1)).unwrap().peak_bytes())
    });
}

#[test]
fn a_long_table_is_read_row_by_row() {
    let _ledger = ledger_check();
    let (x, z) = (state(), table(16384));
    let f = function(|(x, z): &(Tensor, Tensor)| gradients(Form::For, one_row, 16384, x, z));
    let want = pair(gradients(Form::Unrolled, one_row, 16384, &x, &z).unwrap());
    assert_close(&pair(f.call((&x, &z)).unwrap()), &want, 1e-12);
    // The gradient of the table, and the cosines of all steps: the sines' arguments are saved.
    let plan = f.plan((&x, &z)).unwrap();
    let whole = 16384 * WIDTH * 8;
    assert!(plan.peak_bytes() < 2 * whole + 16384 * 16 + 4096, "{}", plan.explain_peak());
}
