//! Loops and branches in traced functions: the same values, planned to the byte.

use taut::memory::testing::ledger_check;
use taut::{
    GradientTape, Loops, Result, Tensor, add, cond, fori_loop, function, less, matmul, mul, sin, sum,
    switch_case, while_loop,
};
use taut_testing::values;

fn matrix(n: usize) -> Tensor {
    let values: Vec<f64> = (0..n * n).map(|i| ((i * 7 + 3) % 11) as f64 / 11.0 - 0.4).collect();
    Tensor::from_vec(values, [n, n]).unwrap()
}

fn power(x: &Tensor, a: &Tensor, loops: &Loops) -> Result<Tensor> {
    let y = loops.fori_loop(0..10, |_, y| sin(matmul(y, a)?), x.clone())?;
    sum(mul(&y, &y)?, None, false)
}

#[test]
fn a_loop_in_a_function_computes_what_it_computes_eagerly() {
    let _ledger = ledger_check();
    let (x, a) = (matrix(4), matrix(4));
    for loops in [Loops::new(), Loops::new().grad_budget(1000)] {
        let eager = power(&x, &a, &loops).unwrap();
        let own = loops.clone();
        let f = function(move |(x, a): &(Tensor, Tensor)| power(x, a, &own));
        let traced = f.call(&(x.clone(), a.clone())).unwrap();
        assert_eq!(values(&eager), values(&traced));
        let gradient = |run: &dyn Fn() -> Result<Tensor>| {
            let tape = GradientTape::new();
            tape.watch(&[&x, &a]);
            let y = run().unwrap();
            let found = tape.gradient(&y, &[&x, &a]).unwrap();
            found.map(|g| values(&g.unwrap().dense().unwrap()))
        };
        let by_hand = gradient(&|| {
            let mut y = x.clone();
            for _ in 0..10 {
                y = sin(matmul(y, &a)?)?;
            }
            sum(mul(&y, &y)?, None, false)
        });
        let eager = gradient(&|| power(&x, &a, &loops));
        assert_eq!(by_hand, eager);
        let around = gradient(&|| f.call(&(x.clone(), a.clone())));
        assert_eq!(eager, around);
        let own = loops.clone();
        let inside = function(move |(x, a): &(Tensor, Tensor)| {
            let tape = GradientTape::new();
            tape.watch(&[x, a]);
            let y = power(x, a, &own)?;
            let [gx, ga] = tape.gradient(&y, &[x, a])?;
            Ok((gx.unwrap().dense()?, ga.unwrap().dense()?))
        });
        let (gx, ga) = inside.call(&(x.clone(), a.clone())).unwrap();
        assert_eq!(eager, [values(&gx), values(&ga)]);
    }
}

#[test]
fn branches_in_functions() {
    let _ledger = ledger_check();
    let f = function(|(x, y): &(Tensor, Tensor)| {
        let r = cond(less(x, 0.0)?, || mul(x, y), || add(x, sin(y)?))?;
        switch_case(
            taut::cast(x, taut::DType::I32)?,
            vec![Box::new(|| sin(&r)), Box::new(|| mul(&r, 2.0)), Box::new(|| mul(&r, y))],
        )
    });
    for x in [-1.0f64, 0.5, 1.5, 7.0] {
        let (x, y) = (Tensor::scalar(x).unwrap(), Tensor::scalar(0.7f64).unwrap());
        let x0 = x.item::<f64>().unwrap();
        let r = if x0 < 0.0 { x0 * 0.7 } else { x0 + 0.7f64.sin() };
        let want = match x0 as i32 {
            0 => r.sin(),
            1 => r * 2.0,
            _ => r * 0.7,
        };
        let tape = GradientTape::new();
        tape.watch(&[&x, &y]);
        let got = f.call(&(x.clone(), y.clone())).unwrap();
        assert!((got.item::<f64>().unwrap() - want).abs() < 1e-14);
        let [gx, gy] = tape.gradient(&got, &[&x, &y]).unwrap();
        let dr = if x0 < 0.0 { (0.7, x0) } else { (1.0, 0.7f64.cos()) };
        let outer = match x0 as i32 {
            0 => (r.cos(), 0.0),
            1 => (2.0, 0.0),
            _ => (0.7, r),
        };
        let (wx, wy) = (outer.0 * dr.0, outer.0 * dr.1 + outer.1);
        assert!((gx.unwrap().dense().unwrap().item::<f64>().unwrap() - wx).abs() < 1e-14);
        assert!((gy.unwrap().dense().unwrap().item::<f64>().unwrap() - wy).abs() < 1e-14);
    }
}

#[test]
fn second_order() {
    let _ledger = ledger_check();
    // f(x) after n steps of x = x * x is x^(2^n).
    for budget in [None, Some(200), Some(100_000)] {
        for traced in [false, true] {
            let x = Tensor::scalar(1.1f64).unwrap();
            let loops = budget.map_or(Loops::new(), |b| Loops::new().grad_budget(b));
            let run = move |x: &Tensor| -> Result<(Tensor, Tensor)> {
                let outer = GradientTape::new();
                outer.watch(x);
                let inner = GradientTape::new();
                inner.watch(x);
                let y = loops.fori_loop(0..3, |_, x| mul(&x, &x), x.clone())?;
                let g = inner.gradient(&y, x)?.unwrap().dense()?;
                let h = outer.gradient(&g, x)?.unwrap().dense()?;
                Ok((g, h))
            };
            let (g, h) = if traced { function(run).call(&x) } else { run(&x) }.unwrap();
            assert!((g.item::<f64>().unwrap() - 8.0 * 1.1f64.powi(7)).abs() < 1e-12, "{budget:?} {traced}");
            assert!((h.item::<f64>().unwrap() - 56.0 * 1.1f64.powi(6)).abs() < 1e-11, "{budget:?} {traced}");
        }
    }
}

#[test]
fn loops_in_loops() {
    let _ledger = ledger_check();
    let run = |x: &Tensor, loops: &Loops| {
        loops.fori_loop(
            0..4,
            |_, x: Tensor| {
                let (_, y) = while_loop(
                    |(i, _)| less(i, 3i64),
                    |(i, y)| Ok(((i + 1i64)?, sin(mul(&y, &x)?)?)),
                    (Tensor::scalar(0i64)?, x.clone()),
                )?;
                cond(less(sum(&y, None, false)?, 0.0)?, || mul(&y, 0.5), || add(&y, &x))
            },
            x.clone(),
        )
    };
    let by_hand = |x: &Tensor| -> Result<Tensor> {
        let mut x = x.clone();
        for _ in 0..4 {
            let mut y = x.clone();
            for _ in 0..3 {
                y = sin(mul(&y, &x)?)?;
            }
            x = if sum(&y, None, false)?.item::<f64>()? < 0.0 { mul(&y, 0.5)? } else { add(&y, &x)? };
        }
        Ok(x)
    };
    let x = Tensor::from_slice(&[0.9f64, -1.4, 0.2], [3]).unwrap();
    let gradient = |run: &dyn Fn(&Tensor) -> Result<Tensor>| {
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = run(&x).unwrap();
        (values(&y), values(&tape.gradient(&y, &x).unwrap().unwrap().dense().unwrap()))
    };
    // The gradient of a capture is summed loop by loop: another order than unrolled.
    let (by_hand, want) = (gradient(&by_hand), gradient(&|x| run(x, &Loops::new())));
    assert_eq!(by_hand.0, want.0);
    assert!(by_hand.1.iter().zip(&want.1).all(|(a, b)| (a - b).abs() < 1e-13));
    for loops in [Loops::new(), Loops::new().grad_budget(600)] {
        assert_eq!(gradient(&|x| run(x, &loops)), want);
        let own = loops.clone();
        let f = function(move |x: &Tensor| run(x, &own));
        assert_eq!(gradient(&|x| f.call(x)), want);
    }
    drop(fori_loop(0..1, |_, x| Ok(x), x).unwrap());
}

#[test]
fn graphs_print_and_verify_their_bodies() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| {
        let y = fori_loop(0..10, |i, y| add(mul(y, x)?, taut::cast(i, taut::DType::F64)?), x.clone())?;
        cond(less(sum(&y, None, false)?, 0.0)?, || Ok(y.clone()), || sin(&y))
    });
    let x = Tensor::from_slice(&[0.5f64, 0.25], [2]).unwrap();
    let mut graph = f.graph(&x).unwrap();
    let want = "\
graph(%0: float64[2]) {
  %3: float64[] = constant
  %1: float64[2] = fori_loop(%0, %0) {steps=10, states=1}
    body(%0: int64[], %1: float64[2], %2: float64[2]) {
      %3: float64[2] = mul(%1, %2)
      %4: float64[] = cast(%0) {to=float64}
      %5: float64[2] = add(%3, %4)
      return %5
    }
  %2: float64[] = sum(%1) {axes=all}
  %4: bool[] = less(%2, %3)
  %5: float64[2] = cond(%4, %1)
    branch(%0: float64[2]) {
      return %0
    }
    branch(%0: float64[2]) {
      %1: float64[2] = sin(%0)
      return %1
    }
  return %5
}
";
    assert_eq!(graph.to_string(), want);
    graph.verify().unwrap();
    // Verifying a graph verifies the bodies of its ops.
    let broken = graph.nodes[0].op.subgraphs().unwrap().map_graphs(&mut |body| {
        let mut body = body.clone();
        body.nodes.pop();
        Ok(body)
    });
    graph.nodes[0].op = broken.unwrap();
    let error = graph.verify().unwrap_err();
    assert_eq!(error.location().unwrap().file(), file!());
    assert!(error.to_string().contains("no node computes"), "{error}");
}
