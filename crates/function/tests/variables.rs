//! Variables in traced functions: by reference, updated in their own memory, owned by the function that created them.

use std::sync::{Arc, OnceLock};
use taut_autodiff::{DenseGradient, GradientTape, Variable};
use taut_core::ops::binary::{add, div, mul, sub};
use taut_core::ops::contract::matmul;
use taut_core::ops::index::gather;
use taut_core::ops::nn::sparse_softmax_cross_entropy_with_logits;
use taut_core::ops::random::Generator;
use taut_core::ops::reduce::mean;
use taut_core::ops::unary::{relu, sqrt, square};
use taut_core::{DType, ErrorKind, Result, Tensor};
use taut_function::function;
use taut_memory::testing::ledger_check;
use taut_testing::{values_f32, vector_f32};

#[test]
fn each_call_reads_the_current_value_of_a_variable() {
    let _ledger = ledger_check();
    let w = Variable::new(vector_f32(&[1.0, 2.0])).unwrap();
    let inside = w.clone();
    let f = function(move |x: &Tensor| mul(x, &inside));
    let x = vector_f32(&[3.0, 4.0]);
    assert_eq!(values_f32(&f.call(&x).unwrap()), [3.0, 8.0]);
    w.assign(vector_f32(&[10.0, 20.0])).unwrap();
    assert_eq!(values_f32(&f.call(&x).unwrap()), [30.0, 80.0]);
    assert_eq!(f.trace_count(), 1);
}

fn variable(value: f32) -> Variable {
    Variable::new(vector_f32(&[value])).unwrap()
}

#[test]
fn one_trace_serves_all_variables_of_a_spec() {
    let _ledger = ledger_check();
    let (a, b) = (variable(1.0), variable(5.0));
    let f = function(|(v, x): &(Variable, Tensor)| add(v, x));
    let x = vector_f32(&[1.0]);
    assert_eq!(values_f32(&f.call((&a, &x)).unwrap()), [2.0]);
    assert_eq!(values_f32(&f.call((&b, &x)).unwrap()), [6.0]);
    assert_eq!(values_f32(&f.call((&a, &x)).unwrap()), [2.0]);
    assert_eq!(f.trace_count(), 1);
    let constant = Variable::builder().trainable(false).build(vector_f32(&[7.0])).unwrap();
    assert_eq!(values_f32(&f.call((&constant, &x)).unwrap()), [8.0]);
    assert_eq!(f.trace_count(), 2);
}

#[test]
fn updates_go_to_the_variables_of_the_call() {
    let _ledger = ledger_check();
    let f = function(|(v, w): &(Variable, Variable)| {
        v.assign_add(w.read())?;
        w.assign(mul(w.read(), 10.0)?)
    });
    let (a, b) = (variable(1.0), variable(2.0));
    let addresses = (a.address(), b.address());
    // In either order of their ids, which is that of their locks.
    f.call((&a, &b)).unwrap();
    f.call((&b, &a)).unwrap();
    assert_eq!((values_f32(&a.read()), values_f32(&b.read())), (vec![30.0], vec![23.0]));
    assert_eq!((f.trace_count(), addresses), (1, (a.address(), b.address())));
    // The same variable twice is another signature: (30 + 30) * 10.
    f.call((&a, &a)).unwrap();
    f.call((&b, &b)).unwrap();
    assert_eq!((values_f32(&a.read()), values_f32(&b.read())), (vec![600.0], vec![460.0]));
    assert_eq!(f.trace_count(), 2);
}

#[test]
fn a_variable_that_is_captured_and_passed_is_a_trace_of_its_own() {
    let _ledger = ledger_check();
    let (captured, a) = (variable(5.0), variable(1.0));
    let own = captured.clone();
    let f = function(move |v: &Variable| {
        v.assign_add(1.0)?;
        mul(own.read(), 1.0)
    });
    let call = |v: &Variable| values_f32(&f.call(v).unwrap())[0];
    assert_eq!([call(&a), call(&captured), call(&a), call(&captured)], [5.0, 6.0, 6.0, 7.0]);
    assert_eq!(f.trace_count(), 2);
    let reason = f.traces()[1].reason.to_string();
    assert!(reason.contains("which the function also captures"), "{reason}");
}

#[test]
fn a_function_that_depends_on_which_variable_it_is_given_is_traced_for_each() {
    let _ledger = ledger_check();
    let (a, b) = (variable(1.0), variable(2.0));
    let first = a.id();
    let by_id = function(move |v: &Variable| mul(v.read(), if v.id() == first { 10.0 } else { 100.0 }));
    let returned = function(|v: &Variable| Ok(v.clone()));
    let around = function(move |v: &Variable| mul(by_id.call(v)?, 2.0));
    for v in [&a, &b, &a] {
        let expected = if v.id() == first { 20.0 } else { 400.0 };
        assert_eq!(values_f32(&around.call(v).unwrap()), [expected]);
        assert_eq!(returned.call(v).unwrap().id(), v.id());
    }
    assert_eq!((around.trace_count(), returned.trace_count()), (2, 2));
}

#[test]
fn gradients_are_those_of_the_variables_of_the_call() {
    let _ledger = ledger_check();
    let cube = function(|v: &Variable| mul(mul(v.read(), v.read())?, v.read()));
    let inside = function(|v: &Variable| {
        let tape = GradientTape::new();
        let y = mul(mul(v.read(), v.read())?, v.read())?;
        tape.gradient(&y, v)?.dense()
    });
    for value in [2.0, 3.0] {
        let v = variable(value);
        let tape = GradientTape::new();
        let y = cube.call(&v).unwrap();
        let gradient = tape.gradient(&y, &v).unwrap().dense().unwrap();
        assert_eq!(values_f32(&gradient), [3.0 * value * value]);
        assert_eq!(values_f32(&inside.call(&v).unwrap()), [3.0 * value * value]);
    }
    assert_eq!((cube.trace_count(), inside.trace_count()), (1, 1));
}

#[test]
fn each_variable_is_traced_on_request() {
    let _ledger = ledger_check();
    let f = function(|v: &Variable| mul(v.read(), 2.0)).trace_each_variable(true);
    for value in [1.0, 2.0] {
        assert_eq!(values_f32(&f.call(&variable(value)).unwrap()), [2.0 * value]);
    }
    assert_eq!(f.trace_count(), 2);
}

#[test]
fn a_trace_keeps_no_argument_alive() {
    let _ledger = ledger_check();
    let f = function(|v: &Variable| mul(v.read(), 2.0));
    let a = variable(1.0);
    f.call(&a).unwrap();
    assert!(!a.is_shared());
    // One that is traced for its identity is kept until the next trace finds that it has no other handle.
    let by_id = function(|v: &Variable| mul(v.read(), v.id() as f32));
    by_id.call(&a).unwrap();
    assert!(a.is_shared());
}

#[test]
fn updates_happen_in_place_in_the_order_of_the_code() {
    let _ledger = ledger_check();
    let v = Variable::new(vector_f32(&[1.0, 2.0])).unwrap();
    let address = v.address();
    let inside = v.clone();
    let f = function(move |x: &Tensor| -> Result<(Tensor, Tensor)> {
        let before = mul(&inside, 1.0)?;
        inside.assign_add(x)?;
        let between = mul(&inside, 10.0)?;
        inside.assign_sub(vector_f32(&[0.5, 0.5]))?;
        Ok((before, between))
    });
    let x = vector_f32(&[1.0, 1.0]);
    let (before, between) = f.call(&x).unwrap();
    assert_eq!((values_f32(&before), values_f32(&between)), (vec![1.0, 2.0], vec![20.0, 30.0]));
    assert_eq!(values_f32(&v.read()), [1.5, 2.5]);
    drop((before, between));
    f.call(&x).unwrap();
    assert_eq!((values_f32(&v.read()), v.address()), (vec![2.0, 3.0], address));
}

#[test]
fn a_tensor_read_before_keeps_its_value() {
    let _ledger = ledger_check();
    let v = Variable::new(vector_f32(&[1.0, 2.0])).unwrap();
    let inside = v.clone();
    let f = function(move |x: &Tensor| inside.assign_add(x));
    let held = v.read();
    f.call(&vector_f32(&[1.0, 1.0])).unwrap();
    assert_eq!((values_f32(&held), values_f32(&v.read())), (vec![1.0, 2.0], vec![2.0, 3.0]));
    let g_inside = v.clone();
    let g = function(move |(): &()| {
        g_inside.assign_add(vector_f32(&[1.0, 1.0]))?;
        Ok(g_inside.read())
    });
    let returned = g.call(()).unwrap();
    g.call(()).unwrap();
    assert_eq!((values_f32(&returned), values_f32(&v.read())), (vec![3.0, 4.0], vec![4.0, 5.0]));
}

#[test]
fn values_can_be_exchanged() {
    let _ledger = ledger_check();
    let (a, b) = (Variable::new(vector_f32(&[1.0])).unwrap(), Variable::new(vector_f32(&[2.0])).unwrap());
    let (x, y) = (a.clone(), b.clone());
    let swap = function(move |(): &()| {
        let (old, new) = (x.read(), y.read());
        x.assign(new)?;
        y.assign(old)
    });
    swap.call(()).unwrap();
    assert_eq!((values_f32(&a.read()), values_f32(&b.read())), (vec![2.0], vec![1.0]));
}

#[test]
fn a_variable_can_take_an_argument_or_a_constant() {
    let _ledger = ledger_check();
    let v = Variable::new(vector_f32(&[0.0, 0.0])).unwrap();
    let (inside, address) = (v.clone(), v.address());
    let f = function(move |x: &Tensor| inside.assign(x));
    let x = vector_f32(&[7.0, 8.0]);
    f.call(&x).unwrap();
    assert_eq!((values_f32(&v.read()), v.address()), (vec![7.0, 8.0], address));
    assert!(!v.value().shares_memory(&x));
    let inside = v.clone();
    let g = function(move |(): &()| inside.assign(3.0));
    g.call(()).unwrap();
    assert_eq!(values_f32(&v.read()), [3.0, 3.0]);
    g.call(()).unwrap();
    assert_eq!(values_f32(&v.read()), [3.0, 3.0]);
}

#[test]
fn variables_of_the_first_trace_belong_to_the_function() {
    let _ledger = ledger_check();
    let slot: Arc<OnceLock<Variable>> = Arc::default();
    let generator = Arc::new(Generator::from_seed(7));
    let draws = generator.clone();
    let f = function(move |x: &Tensor| {
        if slot.get().is_none() {
            let start = draws.normal([3], 0.0, 1.0, DType::F32)?;
            let _ = slot.set(Variable::new(mul(start, 2.0)?)?);
        }
        let w = slot.get().expect("just set");
        w.assign_add(x)?;
        mul(w, 1.0)
    });
    let start = Generator::from_seed(7).normal([3], 0.0, 1.0, DType::F32).unwrap();
    let start: Vec<f32> = values_f32(&start).iter().map(|x| x * 2.0).collect();
    let x = vector_f32(&[1.0, 1.0, 1.0]);
    for n in 1..4 {
        let want: Vec<f32> = start.iter().map(|w| (0..n).fold(*w, |w, _| w + 1.0)).collect();
        assert_eq!(values_f32(&f.call(&x).unwrap()), want);
    }
    assert_eq!(f.variables().len(), 1);
    assert_eq!(generator.state().1, 1, "drawn once, not by each call");
}

#[test]
fn a_variable_created_by_a_later_trace_is_rejected() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| {
        let w = Variable::new(vector_f32(&[2.0]))?;
        mul(w.read(), x)
    });
    assert_eq!(values_f32(&f.call(&vector_f32(&[3.0])).unwrap()), [6.0]);
    assert_eq!(
        values_f32(&f.call(&vector_f32(&[4.0])).unwrap()),
        [8.0],
        "the same signature: the same variable"
    );
    let error = f.call(&vector_f32(&[3.0, 4.0])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Graph);
    assert!(error.to_string().contains("a function must create its variables in its first trace"), "{error}");
    assert_eq!(error.location().unwrap().file(), file!());
    assert_eq!(values_f32(&f.call(&vector_f32(&[5.0])).unwrap()), [10.0], "still usable");
}

#[test]
fn a_variable_cannot_be_initialised_from_an_argument() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| {
        let w = Variable::new(mul(x, 2.0)?)?;
        Ok(w.read())
    });
    let error = f.call(&vector_f32(&[3.0])).unwrap_err();
    assert!(error.to_string().contains("depends on an argument of the function"), "{error}");
}

#[test]
fn an_error_in_a_call_leaves_variables_as_they_were() {
    let _ledger = ledger_check();
    let v = Variable::new(vector_f32(&[1.0, 2.0, 3.0])).unwrap();
    let inside = v.clone();
    let f = function(move |ids: &Tensor| {
        let row = gather(&inside, ids, 0, 0)?;
        inside.assign_add(&row)
    });
    let ids = |list: [i64; 3]| Tensor::from_slice(&list, [3]).unwrap();
    f.call(&ids([0, 0, 0])).unwrap();
    assert_eq!(values_f32(&v.read()), [2.0, 3.0, 4.0]);
    let error = f.call(&ids([0, 9, 0])).unwrap_err();
    assert_eq!(error.location().unwrap().file(), file!());
    assert_eq!(values_f32(&v.read()), [2.0, 3.0, 4.0]);
    f.call(&ids([2, 2, 2])).unwrap();
    assert_eq!(values_f32(&v.read()), [6.0, 7.0, 8.0]);
}

/// A dense net with Adam, forward, backward and update, as one function or as eager ops.
struct Net {
    weights: Vec<Variable>,
    moments: Vec<(Variable, Variable)>,
    step: Variable,
}

impl Net {
    fn new(widths: &[usize], seed: u64) -> Net {
        let generator = Generator::from_seed(seed);
        let (mut weights, mut moments) = (Vec::new(), Vec::new());
        for pair in widths.windows(2) {
            let scale = (2.0 / pair[0] as f64).sqrt();
            for value in [
                generator.normal([pair[0], pair[1]], 0.0, scale, DType::F32).unwrap(),
                generator.normal([pair[1]], 0.0, 0.01, DType::F32).unwrap(),
            ] {
                let zeros = || Variable::builder().trainable(false).build(mul(&value, 0.0).unwrap()).unwrap();
                moments.push((zeros(), zeros()));
                weights.push(Variable::new(&value).unwrap());
            }
        }
        let step = Variable::builder().trainable(false).build(Tensor::scalar(0.0f32).unwrap()).unwrap();
        Net { weights, moments, step }
    }

    fn train(&self, x: &Tensor, labels: &Tensor) -> Result<Tensor> {
        let tape = GradientTape::new();
        let mut h = x.clone();
        let layers = self.weights.len() / 2;
        for layer in 0..layers {
            h = add(matmul(h, &self.weights[2 * layer])?, &self.weights[2 * layer + 1])?;
            if layer + 1 < layers {
                h = relu(h)?;
            }
        }
        let loss = mean(sparse_softmax_cross_entropy_with_logits(labels, h)?, None, false)?;
        let gradients = tape.gradient(&loss, &self.weights)?;
        self.step.assign_add(1.0)?;
        let t = self.step.read();
        let (b1, b2) = (0.9, 0.999);
        let correct = |b: f64| sub(1.0, taut_core::ops::binary::pow(b, &t)?);
        let rate = div(mul(sqrt(correct(b2)?)?, 1e-3)?, correct(b1)?)?;
        for ((w, (m, v)), g) in self.weights.iter().zip(&self.moments).zip(gradients) {
            let g = g.dense()?;
            m.assign(add(mul(m, b1)?, mul(&g, 1.0 - b1)?)?)?;
            v.assign(add(mul(v, b2)?, mul(square(&g)?, 1.0 - b2)?)?)?;
            w.assign_sub(div(mul(m, &rate)?, add(sqrt(v)?, 1e-7)?)?)?;
        }
        Ok(loss)
    }

    fn addresses(&self) -> Vec<usize> {
        let moments = self.moments.iter().flat_map(|(m, v)| [m, v]);
        self.weights.iter().chain(moments).map(Variable::address).collect()
    }
}

fn batch(n: usize, width: usize, classes: i64) -> (Tensor, Tensor) {
    let generator = Generator::from_seed(99);
    let x = generator.normal([n, width], 0.0, 1.0, DType::F32).unwrap();
    (x, generator.integers([n], 0, classes, DType::I64).unwrap())
}

#[test]
fn a_traced_train_step_is_the_eager_one() {
    let _ledger = ledger_check();
    let widths = [20, 16, 12, 5];
    let (eager, traced) = (Net::new(&widths, 3), Arc::new(Net::new(&widths, 3)));
    let (x, labels) = batch(8, 20, 5);
    let inside = traced.clone();
    let step = function(move |(x, labels): &(Tensor, Tensor)| inside.train(x, labels));
    let addresses = traced.addresses();
    for _ in 0..5 {
        let want: f32 = eager.train(&x, &labels).unwrap().item().unwrap();
        let got: f32 = step.call((&x, &labels)).unwrap().item().unwrap();
        assert!((want - got).abs() < 1e-5, "{want} {got}");
    }
    for (a, b) in eager.weights.iter().zip(&traced.weights) {
        let (a, b) = (values_f32(&a.read()), values_f32(&b.read()));
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5));
    }
    assert_eq!(traced.addresses(), addresses);
    assert_eq!(step.trace_count(), 1);
}

#[test]
fn gradients_of_a_step_are_never_all_alive() {
    let _ledger = ledger_check();
    let net = Arc::new(Net::new(&[784, 512, 512, 10], 3));
    let bytes: usize = net.weights.iter().map(|w| w.spec().bytes()).sum();
    let (x, labels) = batch(128, 784, 10);
    let inside = net.clone();
    let step = function(move |(x, labels): &(Tensor, Tensor)| inside.train(x, labels));
    let plan = step.plan((&x, &labels)).unwrap();
    // The largest gradient and what the backward pass needs at that moment; never all 2.7 MB of gradients besides the
    // activations.
    let widest = 784 * 512 * 4;
    assert!(plan.peak_bytes() < widest + 4 * 128 * 512 * 4, "{} of {bytes}", plan.peak_bytes());
    assert!(
        plan.peak_bytes() - plan.lower_bound() < 64,
        "nothing is lost in packing but the end of a cache line"
    );
    let addresses = net.addresses();
    for _ in 0..2 {
        step.call((&x, &labels)).unwrap();
    }
    assert_eq!(net.addresses(), addresses);
}

#[test]
fn calls_that_read_what_others_write_do_not_deadlock() {
    let (a, b) = (Variable::new(vector_f32(&[0.0])).unwrap(), Variable::new(vector_f32(&[0.0])).unwrap());
    let crossed = |to: &Variable, from: &Variable| {
        let (to, from) = (to.clone(), from.clone());
        function(move |(): &()| to.assign(add(&from, 1.0)?))
    };
    let (forth, back) = (crossed(&a, &b), crossed(&b, &a));
    std::thread::scope(|scope| {
        scope.spawn(|| (0..2000).for_each(|_| forth.call(()).unwrap()));
        scope.spawn(|| (0..2000).for_each(|_| back.call(()).unwrap()));
    });
    assert!(values_f32(&a.read())[0] > 0.0 && values_f32(&b.read())[0] > 0.0);
}

#[test]
fn under_a_tape_updates_stay_in_their_memory() {
    let _ledger = ledger_check();
    let w = Variable::new(vector_f32(&[3.0, 4.0])).unwrap();
    let count = Variable::builder().trainable(false).build(vector_f32(&[0.0])).unwrap();
    let (inside, counted) = (w.clone(), count.clone());
    let f = function(move |x: &Tensor| {
        counted.assign_add(1.0)?;
        mean(mul(&inside, x)?, None, false)
    });
    let (address, x) = (count.address(), vector_f32(&[1.0, 2.0]));
    for _ in 0..3 {
        let tape = GradientTape::new();
        let y = f.call(&x).unwrap();
        assert_eq!(values_f32(&tape.gradient(&y, &w).unwrap().dense().unwrap()), [0.5, 1.0]);
    }
    assert_eq!((values_f32(&count.read()), count.address()), (vec![3.0], address));
}

#[test]
fn threads_that_call_first_at_once_share_the_first_trace() {
    for _ in 0..20 {
        let f = function(|x: &Tensor| {
            let w = Variable::new(vector_f32(&[2.0]))?;
            w.assign_add(x)?;
            Ok(w.read())
        });
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| f.call(&vector_f32(&[1.0])).unwrap());
            }
        });
        assert_eq!((f.trace_count(), f.variables().len()), (1, 1));
        assert_eq!(values_f32(&f.variables()[0].read()), [5.0]);
    }
}

#[test]
fn a_variable_can_be_initialised_from_another() {
    let _ledger = ledger_check();
    let w = Variable::new(vector_f32(&[3.0])).unwrap();
    let (inside, slot) = (w.clone(), Arc::new(OnceLock::<Variable>::new()));
    let average = slot.clone();
    let f = function(move |(): &()| {
        if average.get().is_none() {
            let _ = average.set(Variable::new(mul(&inside, 0.5)?)?);
        }
        average.get().expect("just set").assign_add(1.0)
    });
    f.call(()).unwrap();
    assert_eq!(values_f32(&slot.get().unwrap().read()), [2.5]);
}

#[test]
fn traces_for_dropped_variables_are_removed() {
    let _ledger = ledger_check();
    let f = function(|v: &Variable| mul(v, 2.0)).trace_each_variable(true);
    let mut most = 0;
    for i in 0..50 {
        let v = Variable::new(vector_f32(&[i as f32; 1000])).unwrap();
        assert_eq!(values_f32(&f.call(&v).unwrap())[0], 2.0 * i as f32);
        most = most.max(taut_memory::thread_live_bytes());
        let w = v.clone();
        drop(v);
        assert_eq!(values_f32(&f.call(&w).unwrap())[0], 2.0 * i as f32);
    }
    assert_eq!(f.trace_count(), 50);
    f.forget();
    assert_eq!(f.cached_bytes(), 0);
    assert!(most < 20 * 4000, "{most}");
}

#[test]
fn a_hundred_variables_have_gradients() {
    let _ledger = ledger_check();
    let weights: Vec<Variable> =
        (0..100).map(|i| Variable::new(vector_f32(&[i as f32, 1.0])).unwrap()).collect();
    let inside = weights.clone();
    let f = function(move |x: &Tensor| {
        let all = inside.iter().try_fold(mul(x, 0.0)?, |all, w| add(all, square(w)?))?;
        mean(all, None, false)
    });
    let x = vector_f32(&[1.0, 1.0]);
    let tape = GradientTape::new();
    let y = f.call(&x).unwrap();
    assert_eq!(tape.num_entries(), 1);
    let gradients = tape.gradient(&y, &weights).unwrap();
    for (i, gradient) in gradients.into_iter().enumerate() {
        assert_eq!(values_f32(&gradient.dense().unwrap()), [i as f32, 1.0]);
    }
}
