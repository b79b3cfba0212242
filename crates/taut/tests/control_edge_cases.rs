//! Edge cases of loops: states of all types, empty states, no states; a hundred captures; more steps than could be saved;
//! branches that must not run; random numbers.

use std::sync::Arc;
use taut::memory::testing::ledger_check;
use taut::{
    DType, Error, ErrorKind, GradientTape, Index, LoopReport, Loops, Result, Tensor, add, cast, cond,
    fori_loop, function, gather, less, logical_not, mul, random, scan, sin, slice, sum, switch_case, tanh,
    while_loop, zeros,
};
use taut_testing::{scalar, values, vector};

/// Several budgets, and no budget.
fn budgets() -> [Loops; 3] {
    [Loops::new(), Loops::new().grad_budget(256), Loops::new().grad_budget(1 << 20)]
}

#[test]
fn a_hundred_captures() {
    let _ledger = ledger_check();
    let captures: Vec<Tensor> = (0..100).map(|i| scalar(0.9 + 0.002 * f64::from(i))).collect();
    let x = scalar(0.5);
    for loops in budgets() {
        let run = move |(x, captures): &(Tensor, Vec<Tensor>)| {
            let body = |_: Tensor, x: Tensor| captures.iter().try_fold(x, |x, c| mul(x, c));
            loops.fori_loop(0..8, body, x.clone())
        };
        let inputs = (x.clone(), captures.clone());
        let f = function(run.clone());
        for traced in [false, true] {
            let tape = GradientTape::new();
            tape.watch(&captures);
            let y = if traced { f.call(&inputs) } else { run(&inputs) }.unwrap();
            let value = y.item::<f64>().unwrap();
            let found = tape.gradient(&y, &captures).unwrap();
            for (g, c) in found.into_iter().zip(&captures) {
                let g = g.unwrap().dense().unwrap().item::<f64>().unwrap();
                let want = 8.0 * value / c.item::<f64>().unwrap();
                assert!((g - want).abs() < 1e-11 * want.abs(), "{traced}: {g} {want}");
            }
        }
    }
}

#[test]
fn loops_without_states() {
    let _ledger = ledger_check();
    let (x, w) = (vector(&[0.1, 0.2, 0.3]), scalar(2.0));
    assert!(fori_loop(0..5, |_, ()| Ok(()), ()).is_ok());
    for loops in budgets() {
        let run = move |(x, w): &(Tensor, Tensor)| {
            let ((), y) = loops.scan(|(), x: Tensor| Ok(((), sin(mul(x, w)?)?)), (), x.clone())?;
            Ok(y)
        };
        let f = function(run.clone());
        for traced in [false, true] {
            let tape = GradientTape::new();
            tape.watch(&[&x, &w]);
            let inputs = (x.clone(), w.clone());
            let y = if traced { f.call(&inputs) } else { run(&inputs) }.unwrap();
            assert_eq!(values(&y), values(&sin(mul(&x, &w).unwrap()).unwrap()));
            let [gx, gw] = tape.gradient(&y, &[&x, &w]).unwrap().map(|g| g.unwrap().dense().unwrap());
            let slopes: Vec<f64> = values(&x).iter().map(|x| (2.0 * x).cos()).collect();
            let want: f64 = values(&x).iter().zip(&slopes).map(|(x, s)| x * s).sum();
            assert!(values(&gx).iter().zip(&slopes).all(|(g, s)| (g - 2.0 * s).abs() < 1e-14));
            assert!((gw.item::<f64>().unwrap() - want).abs() < 1e-14);
        }
    }
}

#[test]
fn empty_states() {
    let _ledger = ledger_check();
    let (empty, w) = (zeros([0, 3], DType::F64).unwrap(), scalar(0.7));
    for loops in budgets() {
        let run = move |(e, w): &(Tensor, Tensor)| loops.fori_loop(0..50, |_, e| mul(e, w), e.clone());
        let f = function(run.clone());
        for traced in [false, true] {
            let tape = GradientTape::new();
            tape.watch(&[&empty, &w]);
            let inputs = (empty.clone(), w.clone());
            let y = if traced { f.call(&inputs) } else { run(&inputs) }.unwrap();
            assert_eq!(y.spec(), empty.spec());
            let y = sum(&y, None, false).unwrap();
            let [ge, gw] = tape.gradient(&y, &[&empty, &w]).unwrap().map(|g| g.unwrap().dense().unwrap());
            assert_eq!((ge.spec(), values(&gw)), (empty.spec(), vec![0.0]));
        }
    }
}

#[test]
fn states_of_all_types() {
    let _ledger = ledger_check();
    let types = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::U16,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];
    let ones: Vec<Tensor> = types.iter().map(|&dtype| taut::ones([3], dtype).unwrap()).collect();
    let run = |ones: &Vec<Tensor>| {
        let step = |x: &Tensor, one: &Tensor| match x.dtype() {
            DType::Bool => logical_not(x),
            _ => add(x, one),
        };
        let body = |_: Tensor, list: Vec<Tensor>| {
            list.iter().zip(ones).map(|(x, one)| step(x, one)).collect::<Result<Vec<_>>>()
        };
        fori_loop(0..5, body, ones.clone())
    };
    for found in [run(&ones).unwrap(), function(run).call(&ones).unwrap()] {
        for (found, dtype) in found.iter().zip(types) {
            let want = if dtype == DType::Bool { 0.0 } else { 6.0 };
            assert_eq!(found.dtype(), dtype);
            assert_eq!(values(&cast(found, DType::F64).unwrap()), [want; 3], "{dtype}");
        }
    }
    // Half-precision states have gradients as well.
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        for loops in budgets() {
            let x = taut::ones([3], dtype).unwrap();
            let tape = GradientTape::new();
            tape.watch(&x);
            let y = loops.fori_loop(0..30, |_, y| mul(y, &x), x.clone()).unwrap();
            let g = tape.gradient(&y, &x).unwrap().unwrap().dense().unwrap();
            assert_eq!((g.dtype(), values(&cast(g, DType::F64).unwrap())), (dtype, vec![31.0; 3]));
        }
    }
}

#[test]
fn a_budget_does_not_change_random_numbers() {
    let _ledger = ledger_check();
    let x = scalar(1.0);
    let run = |x: &Tensor, loops: &Loops| -> Result<Tensor> {
        let generator = random::Generator::from_seed(5);
        let noisy = |x: Tensor| add(mul(x, 0.5)?, generator.normal([], 0.0, 1.0, DType::F64)?);
        loops.fori_loop(
            0..6,
            |_, x: Tensor| {
                let x = fori_loop(0..4, |_, x| noisy(x), x)?;
                let x = noisy(x)?;
                fori_loop(0..4, |_, x| noisy(x), x)
            },
            x.clone(),
        )
    };
    let want = values(&run(&x, &Loops::new()).unwrap());
    for loops in [Loops::new(), Loops::new().grad_budget(640)] {
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = run(&x, &loops).unwrap();
        assert_eq!(values(&y), want);
        let g = tape.gradient(&y, &x).unwrap().unwrap().dense().unwrap();
        assert_eq!(g.item::<f64>().unwrap(), 0.5f64.powi(54));
        let f = function(move |x: &Tensor| run(x, &loops));
        assert_eq!(values(&f.call(&x).unwrap()), want);
    }
}

#[test]
fn more_steps_than_could_be_saved() {
    let _ledger = ledger_check();
    let x = scalar(0.5);
    // Without a gradient; the condition ends it.
    let far = Loops::new().maximum_iterations(usize::MAX - 1);
    let y = far.while_loop(|x| less(x, 100.0), |x| mul(x, 2.0), x.clone()).unwrap();
    assert_eq!(values(&y), [128.0]);
    let refused = |error: Error| {
        assert!(matches!(error.kind(), ErrorKind::Shape | ErrorKind::OutOfMemory), "{error}");
        assert_eq!(error.location().unwrap().file(), file!(), "{error}");
    };
    let tape = GradientTape::new();
    tape.watch(&x);
    refused(fori_loop(0..i64::MAX, |_, y| mul(y, &x), x.clone()).unwrap_err());
    refused(fori_loop(i64::MIN..i64::MAX, |_, y| mul(y, &x), x.clone()).unwrap_err());
    drop(tape);
    // A function with it can be planned without being run.
    let f = function(|x: &Tensor| fori_loop(0..i64::MAX, |_, y| mul(y, x), x.clone()));
    assert!(f.plan(&x).unwrap().peak_bytes() <= 128);
    // A budget is the limit of what is saved.
    let report = Arc::new(LoopReport::new());
    let tape = GradientTape::new();
    tape.watch(&x);
    let start = (Tensor::scalar(0i64).unwrap(), scalar(1.0));
    let loops = Loops::new().maximum_iterations(1 << 60).grad_budget(1280).report(&report);
    let body = |(i, y): (Tensor, Tensor)| Ok((add(i, 1i64)?, mul(y, &x)?));
    let (_, y) = loops.while_loop(|(i, _)| less(i, 40i64), body, start).unwrap();
    let g = tape.gradient(&y, &x).unwrap().unwrap().dense().unwrap().item::<f64>().unwrap();
    let want = 40.0 * 0.5f64.powi(39);
    assert!((g - want).abs() < 1e-12 * want);
    assert_eq!((report.slots(), report.steps()), (10, 40));
}

#[test]
fn two_tapes_record_the_same_loop() {
    let _ledger = ledger_check();
    let (x, w) = (vector(&[0.3, 0.6]), vector(&[0.8, -0.9]));
    for loops in budgets() {
        let (one, other) = (GradientTape::persistent(), GradientTape::new());
        one.watch(&x);
        other.watch(&w);
        let start = (Tensor::scalar(0i64).unwrap(), x.clone());
        let body = |(i, y): (Tensor, Tensor)| Ok((add(i, 1i64)?, mul(y, &w)?));
        let (_, y) = loops.while_loop(|(i, _)| less(i, 20i64), body, start).unwrap();
        let gw = other.gradient(&y, &w).unwrap().unwrap().dense().unwrap();
        // A persistent tape can be used again: its residuals are not overwritten.
        for _ in 0..2 {
            let gx = one.gradient(&y, &x).unwrap().unwrap().dense().unwrap();
            let want = values(&w).iter().map(|w| w.powi(20)).collect::<Vec<_>>();
            assert!(values(&gx).iter().zip(&want).all(|(g, w)| (g - w).abs() < 1e-14));
        }
        let want = values(&x).iter().zip(values(&w)).map(|(x, w)| 20.0 * x * w.powi(19)).collect::<Vec<_>>();
        assert!(values(&gw).iter().zip(&want).all(|(g, w)| (g - w).abs() < 1e-13));
    }
    assert!(while_loop(|_| Tensor::scalar(false), Ok, x).is_ok());
}

#[test]
fn states_elements_and_captures_may_be_strided() {
    let _ledger = ledger_check();
    let matrix = Tensor::from_slice(&[0.1, -0.4, 0.8, 0.3, 0.9, -0.7], [2, 3]).unwrap();
    let across = taut::transpose(&matrix, None).unwrap();
    let backward = slice(&matrix, &[(..).into(), Index::from(..).by(-1)]).unwrap();
    let spread = taut::broadcast_to(Tensor::scalar(0.6).unwrap(), [3, 2]).unwrap();
    let turned = taut::transpose(&backward, None).unwrap();
    let step = |s: &Tensor, x: &Tensor, capture: &Tensor| tanh(add(mul(s, capture)?, x)?);
    let run = move |views: &[Tensor]| -> Result<(Tensor, Tensor)> {
        let (across, spread, turned) = (&views[0], &views[1], &views[2]);
        let row = slice(across, &[Index::from(1)])?;
        scan(
            |s: Tensor, (x, y): (Tensor, Tensor)| {
                let s = step(&s, &x, &mul(&row, y)?)?;
                Ok((s.clone(), s))
            },
            slice(spread, &[Index::from(0)])?,
            (across.clone(), turned.clone()),
        )
    };
    let views = [across, spread, turned];
    let plain = views.each_ref().map(|view| view.copy().unwrap());
    let gradients = |views: &[Tensor; 3], run: &dyn Fn(&[Tensor]) -> Result<(Tensor, Tensor)>| {
        let tape = GradientTape::new();
        tape.watch(views);
        let (last, all) = run(views).unwrap();
        let found = tape.gradient(&[&last, &all], views).unwrap();
        let found = found.map(|g| g.unwrap().dense().unwrap().to_vec::<f64>().unwrap());
        (last.to_vec::<f64>().unwrap(), all.to_vec::<f64>().unwrap(), found)
    };
    let want = gradients(&plain, &run);
    assert_eq!(gradients(&views, &run), want);
    let f = function(move |views: &Vec<Tensor>| run(views)).verify(true);
    assert_eq!(gradients(&views, &|views| f.call(views.to_vec())), want);
}

#[test]
fn the_branch_that_is_not_selected_does_not_run() {
    let _ledger = ledger_check();
    let x = vector(&[0.1, -0.7, 0.4]);
    let bad = Tensor::scalar(99i64).unwrap();
    let f = function(|(x, i, flag): &(Tensor, Tensor, Tensor)| {
        cond(flag, || sum(x, None, false), || gather(x, i, 0, 0))
    });
    let (yes, no) = (Tensor::scalar(true).unwrap(), Tensor::scalar(false).unwrap());
    assert!(f.call((&x, &bad, &yes)).is_ok());
    assert!(f.call((&x, &bad, &no)).is_err());
    assert!(cond(&yes, || sum(&x, None, false), || gather(&x, &bad, 0, 0)).is_ok());
    // A loop that never ends.
    let f = function(|(x, n): &(Tensor, Tensor)| {
        let forever = || while_loop(|_| Tensor::scalar(true), |x| mul(x, 0.5), x.clone());
        // Of constants alone, which constant folding must not evaluate.
        let for_good =
            || add(x, while_loop(|_| Tensor::scalar(true), |x| mul(x, 0.5), Tensor::scalar(1.0f64)?)?);
        switch_case(n, vec![Box::new(|| sin(x)), Box::new(forever), Box::new(for_good), Box::new(|| tanh(x))])
    });
    for (n, want) in [(0i64, sin(&x).unwrap()), (3, tanh(&x).unwrap()), (7, tanh(&x).unwrap())] {
        let n = Tensor::scalar(n).unwrap();
        assert_eq!(values(&f.call((&x, &n)).unwrap()), values(&want));
    }
    // Nor in the backward pass.
    let tape = GradientTape::new();
    tape.watch(&x);
    let zero = Tensor::scalar(0i64).unwrap();
    let y = f.call((&x, &zero)).unwrap();
    let g = tape.gradient(&y, &x).unwrap().unwrap().dense().unwrap();
    assert_eq!(values(&g), values(&taut::cos(&x).unwrap()));
}

/// The sum over a loop of this many steps, and each of its random numbers.
fn drawn(seed: u64, steps: i64, loops: &Loops, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let generator = random::Generator::from_seed(seed);
    let places = taut::range(0i64, steps, 1i64, DType::I64)?;
    loops.scan(
        |s: Tensor, _: Tensor| {
            let noise = generator.normal([2], 0.0, 1.0, DType::F64)?;
            let s = add(mul(s, 0.9)?, mul(&noise, x)?)?;
            Ok((s, noise))
        },
        zeros([2], DType::F64)?,
        places,
    )
}

#[test]
fn random_numbers_differ_from_step_to_step() {
    let _ledger = ledger_check();
    let x = vector(&[1.0, 2.0]);
    let loops = Loops::new();
    let (_, noise) = drawn(7, 50, &loops, &x).unwrap();
    let mut numbers = values(&noise);
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    assert_eq!(numbers.len(), 100, "no number twice");
    let all = values(&noise);
    let mean = all.iter().sum::<f64>() / 100.0;
    assert!(mean.abs() < 0.5, "{mean}");
    // The same seed gives the same numbers; a shorter loop draws the first of them; another seed gives others.
    assert_eq!(values(&drawn(7, 50, &loops, &x).unwrap().1), all);
    assert_eq!(values(&drawn(7, 10, &loops, &x).unwrap().1), all[..20]);
    assert_ne!(values(&drawn(8, 50, &loops, &x).unwrap().1), all);
    let f = function(|x: &Tensor| drawn(7, 50, &Loops::new(), x));
    assert_eq!(values(&f.call(&x).unwrap().1), all);
    // Neither a budget nor the backward pass changes them: the gradient is that of the numbers drawn.
    let report = Arc::new(LoopReport::new());
    for loops in [Loops::new(), Loops::new().grad_budget(128).report(&report)] {
        let tape = GradientTape::new();
        tape.watch(&x);
        let (last, again) = drawn(7, 50, &loops, &x).unwrap();
        assert_eq!(values(&again), all);
        let g = values(&tape.gradient(&last, &x).unwrap().unwrap().dense().unwrap());
        let want = (0..50).fold([0.0; 2], |g, i| [g[0] * 0.9 + all[2 * i], g[1] * 0.9 + all[2 * i + 1]]);
        assert!((g[0] - want[0]).abs() < 1e-12 && (g[1] - want[1]).abs() < 1e-12, "{g:?} {want:?}");
    }
}

#[test]
fn random_numbers_of_loops_of_unknown_length() {
    let _ledger = ledger_check();
    let x = scalar(1.0);
    let steps = 40i64;
    let run = move |x: &Tensor, loops: &Loops| -> Result<Tensor> {
        let generator = random::Generator::from_seed(3);
        let start = (Tensor::scalar(0i64)?, zeros([40], DType::F64)?);
        let body = |(i, s): (Tensor, Tensor)| {
            let noise = mul(generator.uniform([], 1.0, 2.0, DType::F64)?, x)?;
            // Each step stores its number in an element of its own.
            let place = cast(taut::equal(taut::range(0i64, steps, 1i64, DType::I64)?, &i)?, DType::F64)?;
            Ok((add(i, 1i64)?, add(s, mul(place, noise)?)?))
        };
        Ok(loops.while_loop(|(i, _)| less(i, steps), body, start)?.1)
    };
    let want = values(&run(&x, &Loops::new()).unwrap());
    let mut numbers = want.clone();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    assert_eq!(numbers.len(), 40, "no number twice: {want:?}");
    let f = function(move |x: &Tensor| run(x, &Loops::new()));
    assert_eq!(values(&f.call(&x).unwrap()), want);
    // Tracked or not, with and without a limit and a budget.
    for loops in [Loops::new(), Loops::new().maximum_iterations(50), Loops::new().grad_budget(4096)] {
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = run(&x, &loops).unwrap();
        assert_eq!(values(&y), want);
        let g = tape.gradient(&y, &x).unwrap().unwrap().dense().unwrap().item::<f64>().unwrap();
        assert!((g - want.iter().sum::<f64>()).abs() < 1e-12, "{g}");
    }
}

#[test]
fn nested_loops_draw_their_own_random_numbers() {
    let _ledger = ledger_check();
    let run = |(): &()| {
        let generator = random::Generator::from_seed(11);
        let rows = zeros([5], DType::F64)?;
        let (_, all) = scan(
            |s: Tensor, _: Tensor| {
                let (_, inner) = scan(
                    |s: Tensor, _: Tensor| Ok((s, generator.normal([], 0.0, 1.0, DType::F64)?)),
                    s.clone(),
                    rows.clone(),
                )?;
                Ok((s, inner))
            },
            scalar(0.0),
            rows.clone(),
        )?;
        Ok(all)
    };
    let all: Tensor = run(&()).unwrap();
    let mut numbers = values(&all);
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    assert_eq!(numbers.len(), 25);
    assert_eq!(values(&function(run).call(()).unwrap()), values(&all));
}
