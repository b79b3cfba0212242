//! Variables that are assigned inside loops and branches: the same as in the unrolled program.

use taut::memory::testing::ledger_check;
use taut::{
    DenseGradient, GradientTape, Loops, Tensor, Variable, add, cond, fori_loop, function, less, map_fn, mul,
    random, scan, square, switch_case, vectorized_map, while_loop,
};
use taut_testing::scalar;

fn variable(value: f64) -> Variable {
    Variable::new(scalar(value)).unwrap()
}

fn number(tensor: &Tensor) -> f64 {
    tensor.item().unwrap()
}

fn now(variable: &Variable) -> f64 {
    number(&variable.read())
}

#[test]
fn a_branch_assigns_only_if_it_is_selected() {
    let _ledger = ledger_check();
    let (v, w) = (variable(1.0), variable(10.0));
    let (inner, other) = (v.clone(), w.clone());
    let f = function(move |x: &Tensor| {
        let y = cond(
            less(x, 0.0)?,
            || {
                inner.assign_add(scalar(1.0))?;
                // It reads the value that it assigned.
                mul(inner.read(), 100.0)
            },
            || {
                other.assign(x)?;
                inner.read() + 0.5
            },
        )?;
        // So does the code after it.
        add(y, add(inner.read(), other.read())?)
    });
    for (x, y, v_after, w_after) in
        [(-1.0, 200.0 + 2.0 + 10.0, 2.0, 10.0), (5.0, 2.5 + 2.0 + 5.0, 2.0, 5.0), (-2.0, 308.0, 3.0, 5.0)]
    {
        assert_eq!(number(&f.call(&scalar(x)).unwrap()), y, "{x}");
        assert_eq!((now(&v), now(&w)), (v_after, w_after), "{x}");
    }
    assert_eq!(f.trace_count(), 1);
}

#[test]
fn the_last_of_several_branches_assigns_too() {
    let _ledger = ledger_check();
    let v = variable(0.0);
    let inner = v.clone();
    let f = function(move |i: &Tensor| {
        let branch = |by: f64| {
            let v = &inner;
            Box::new(move || {
                v.assign_add(scalar(by))?;
                Ok(())
            }) as taut::Case<'_, ()>
        };
        switch_case(i, vec![branch(1.0), Box::new(|| Ok(())), branch(100.0)])?;
        Ok(inner.read())
    });
    let found: Vec<f64> =
        [0i64, 1, 2, 7].iter().map(|&i| number(&f.call(&Tensor::scalar(i).unwrap()).unwrap())).collect();
    assert_eq!(found, [1.0, 1.0, 101.0, 201.0]);
}

#[test]
fn every_step_reads_what_the_previous_one_assigned() {
    let _ledger = ledger_check();
    let count = |is_function: bool| {
        let (v, inner) = (variable(1.0), variable(0.0));
        let (mine, seen) = (v.clone(), inner.clone());
        let run = move |n: &Tensor| {
            let body = |(i, sum): (Tensor, Tensor)| {
                mine.assign(mul(mine.read(), 2.0)?)?;
                seen.assign_add(scalar(1.0))?;
                Ok(((i + 1.0)?, add(sum, mine.read())?))
            };
            // The condition reads what the body assigns.
            let test = |(i, _): &(Tensor, Tensor)| taut::logical_and(less(i, n)?, less(mine.read(), 100.0)?);
            Ok(while_loop(test, body, (scalar(0.0), scalar(0.0)))?.1)
        };
        let sums: Vec<f64> = if is_function {
            let f = function(run);
            (0..3).map(|_| number(&f.call(&scalar(4.0)).unwrap())).collect()
        } else {
            (0..3).map(|_| number(&run(&scalar(4.0)).unwrap())).collect()
        };
        (sums, now(&v), now(&inner))
    };
    let want = (vec![2.0 + 4.0 + 8.0 + 16.0, 32.0 + 64.0 + 128.0, 0.0], 128.0, 7.0);
    assert_eq!(count(false), want);
    assert_eq!(count(true), want);
}

#[test]
fn nested_loops_and_branches_assign() {
    let _ledger = ledger_check();
    let v = variable(0.0);
    let inner = v.clone();
    let f = function(move |n: &Tensor| {
        let outer = |i: Tensor, total: Tensor| {
            let within = |j: Tensor, (): ()| cond(less(&j, &i)?, || inner.assign_add(scalar(1.0)), || Ok(()));
            fori_loop(0..5, within, ())?;
            add(total, inner.read())
        };
        let total = fori_loop(0..4, outer, n.clone())?;
        Ok((total, inner.read()))
    });
    // 0 + 1 + 2 + 3 steps, and the total adds 0, 1, 3, 6.
    let (total, count) = f.call(&scalar(0.0)).unwrap();
    assert_eq!((number(&total), number(&count), now(&v)), (10.0, 6.0, 6.0));
}

#[test]
fn elements_assign_one_by_one() {
    let _ledger = ledger_check();
    let v = variable(0.0);
    let x = Tensor::from_slice(&[1.0f64, 2.0, 3.0], [3]).unwrap();
    let running = |x: Tensor| {
        v.assign_add(&x)?;
        Ok(v.read())
    };
    let sums = map_fn(running, x.clone()).unwrap();
    assert_eq!((sums.to_vec::<f64>().unwrap(), now(&v)), (vec![1.0, 3.0, 6.0], 6.0));
    let step = |(): (), x: Tensor| Ok(((), running(x)?));
    let ((), sums) = scan(step, (), x.clone()).unwrap();
    assert_eq!((sums.to_vec::<f64>().unwrap(), now(&v)), (vec![7.0, 9.0, 12.0], 12.0));
    let empty = map_fn(running, Tensor::from_slice(&[0.0f64; 0], [0]).unwrap()).unwrap();
    assert_eq!((empty.shape().to_vec(), now(&v)), (vec![0], 12.0));
    let error = vectorized_map(running, x).unwrap_err().to_string();
    assert!(error.contains("must not assign to variables") && error.contains("use map_fn"), "{error}");
    assert_eq!(now(&v), 12.0);
}

#[test]
fn a_condition_must_not_assign_and_a_failure_changes_no_variable() {
    let _ledger = ledger_check();
    let v = variable(1.0);
    let writes = |i: &Tensor| {
        v.assign_add(scalar(1.0))?;
        less(i, 3.0)
    };
    let error = while_loop(writes, |i| i + 1.0, scalar(0.0)).unwrap_err().to_string();
    assert!(error.contains("the condition of a loop must not assign to variables"), "{error}");
    let fails = |i: Tensor| {
        v.assign_add(scalar(1.0))?;
        taut::check_numerics(taut::div(&i, taut::sub(&i, &i)?)?, "here")
    };
    assert!(while_loop(|i| less(i, 3.0), fails, scalar(1.0)).is_err());
    assert_eq!(now(&v), 1.0);
}

#[test]
fn training_steps_in_a_loop_match_the_unrolled_ones() {
    let _ledger = ledger_check();
    let x = Tensor::from_slice(&[1.0f64, 2.0, 3.0, 4.0], [4]).unwrap();
    let step = |w: &Variable, x: &Tensor| -> taut::Result<Tensor> {
        let tape = GradientTape::new();
        let loss = square(taut::sub(mul(w.read(), x)?, 3.0)?)?;
        let gradient = tape.gradient(&loss, w)?.dense()?;
        w.assign_sub(mul(gradient, 0.01)?)?;
        Ok(loss)
    };
    let by_hand = variable(0.5);
    let mut losses = Vec::new();
    for i in 0..4 {
        let one = taut::gather(&x, Tensor::scalar(i as i64).unwrap(), 0, 0).unwrap();
        losses.push(number(&step(&by_hand, &one).unwrap()));
    }
    for looped in [false, true] {
        let w = variable(0.5);
        let inner = w.clone();
        let run =
            move |x: &Tensor| Ok(scan(|(): (), x: Tensor| Ok(((), step(&inner, &x)?)), (), x.clone())?.1);
        let found = if looped { function(run).call(&x).unwrap() } else { run(&x).unwrap() };
        assert_eq!(found.to_vec::<f64>().unwrap(), losses);
        assert_eq!(now(&w), now(&by_hand));
    }
}

/// The gradient of `body` with respect to the variable that it assigns and to one that it does not, in a loop and in a plain
/// program. An assignment ends the history of a variable: a read after it is a new leaf.
#[test]
fn a_tape_outside_tracks_reads_and_not_assignments() {
    let _ledger = ledger_check();
    for budget in [None, Some(256)] {
        let gradients = |looped: bool| {
            let (v, w) = (variable(1.5), variable(0.5));
            let body = |y: Tensor| {
                let y = add(y, mul(v.read(), w.read())?)?;
                v.assign(mul(v.read(), w.read())?)?;
                add(y, square(v.read())?)
            };
            let tape = GradientTape::new();
            let y = if looped {
                let loops = budget.map_or(Loops::new(), |bytes| Loops::new().grad_budget(bytes));
                loops.fori_loop(0..3, |_, y| body(y), scalar(0.0)).unwrap()
            } else {
                (0..3).fold(scalar(0.0), |y, _| body(y).unwrap())
            };
            let (of_v, of_w) = tape.gradient(&y, &(&v, &w)).unwrap();
            (number(&y), number(&of_v.dense().unwrap()), number(&of_w.dense().unwrap()), now(&v))
        };
        assert_eq!(gradients(true), gradients(false), "{budget:?}");
    }
    let choice = |x: f64, traced: bool| {
        let v = variable(1.5);
        let run = move |x: &Tensor| {
            let body = || {
                v.assign(mul(v.read(), 2.0)?)?;
                square(v.read())
            };
            let tape = GradientTape::new();
            let y = cond(less(x, 0.0)?, body, || mul(v.read(), 3.0))?;
            tape.gradient(&y, &v)?.dense()
        };
        // Outside of a function, only the selected branch is called, and nothing is traced.
        let x = scalar(x);
        number(&if traced { function(run).call(&x).unwrap() } else { run(&x).unwrap() })
    };
    for x in [-1.0, 1.0] {
        assert_eq!(choice(x, true), choice(x, false), "{x}");
    }
    // The same around a function, which is one recorded call.
    let around = |traced: bool| {
        let v = variable(1.5);
        let inner = v.clone();
        let run = move |x: &Tensor| {
            let y = mul(inner.read(), x)?;
            inner.assign(mul(inner.read(), 2.0)?)?;
            inner.assign_add(x)?;
            add(y, square(inner.read())?)
        };
        let x = scalar(3.0);
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = if traced { function(run).call(&x).unwrap() } else { run(&x).unwrap() };
        let (of_v, of_x) = tape.gradient(&y, &(&v, &x)).unwrap();
        (number(&of_v.dense().unwrap()), number(&of_x.dense().unwrap()))
    };
    assert_eq!(around(false), (3.0 + 2.0 * 6.0, 1.5));
    assert_eq!(around(true), around(false));
}

#[test]
fn random_numbers_do_not_depend_on_assignments() {
    let _ledger = ledger_check();
    let v = variable(0.0);
    let draws = |writes: bool| {
        random::set_seed(5);
        let body = |_: Tensor, sum: Tensor| {
            if writes {
                v.assign_add(scalar(1.0))?;
            }
            add(sum, random::uniform([], 0.0, 1.0, taut::DType::F64)?)
        };
        let first = fori_loop(0..6, body, scalar(0.0)).unwrap();
        (number(&first), number(&random::uniform([], 0.0, 1.0, taut::DType::F64).unwrap()))
    };
    assert_eq!(draws(true), draws(false));
}

#[test]
fn an_assigned_variable_costs_as_much_as_a_state() {
    let _ledger = ledger_check();
    let big = || Tensor::from_vec(vec![0.5f32; 1 << 16], [1 << 16]).unwrap();
    let step = |x: Tensor| add(mul(x, 0.5)?, 1.0);
    let v = Variable::new(big()).unwrap();
    let inner = v.clone();
    let writes = function(move |n: &Tensor| {
        fori_loop(
            0..9,
            |_, i: Tensor| {
                inner.assign(&step(inner.value())?)?;
                Ok(i)
            },
            n.clone(),
        )
    });
    let w = Variable::new(big()).unwrap();
    let inner = w.clone();
    let carries = function(move |n: &Tensor| {
        let (n, value) =
            fori_loop(0..9, |_, (i, x): (Tensor, Tensor)| Ok((i, step(x)?)), (n.clone(), inner.value()))?;
        inner.assign(&value)?;
        Ok(n)
    });
    let n = scalar(0.0);
    writes.call(&n).unwrap();
    carries.call(&n).unwrap();
    assert_eq!(v.read().to_vec::<f32>().unwrap(), w.read().to_vec::<f32>().unwrap());
    assert_eq!(writes.plan(&n).unwrap().peak_bytes(), carries.plan(&n).unwrap().peak_bytes());
}
