//! Errors of loops and branches: the kind, the variable, both shapes, the line of the call. And loops of zero steps, which are
//! valid.

use std::cell::RefCell;
use std::collections::BTreeMap;
use taut::memory::testing::ledger_check;
use taut::{
    Case, DType, Error, ErrorKind, GradientTape, Loops, Result, Tensor, Variable, add, cast, concat, cond,
    foldl, foldr, fori_loop, function, gather, less, matmul, mul, scan, sin, sum, switch_case,
    vectorized_map, while_loop, zeros,
};
use taut_testing::{scalar, values, vector};

fn count(i: i64) -> Tensor {
    Tensor::scalar(i).unwrap()
}

/// Checks an error: its kind, the op, the line, and parts of its text.
fn assert_error<T>(result: Result<T>, kind: ErrorKind, op: &str, line: u32, says: &[&str]) {
    let Err(error) = result else { panic!("no error: {op} {says:?}") };
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    assert_eq!(error.op(), Some(op), "{text}");
    let location = error.location().unwrap_or_else(|| panic!("no line: {text}"));
    assert_eq!((location.file(), location.line()), (file!(), line), "{text}");
    for part in says {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

/// The same in a function: the error comes from the line inside it.
fn in_function<T: 'static>(run: impl Fn() -> Result<T> + Send + Sync + 'static) -> Result<()> {
    function(move |_: &Tensor| {
        run()?;
        Ok(())
    })
    .call(&count(0))
}

#[test]
fn bodies_that_return_another_structure() {
    let _ledger = ledger_check();
    let longer = || {
        let start = vec![scalar(1.0), scalar(2.0)];
        let body = |_: Tensor, s: Vec<Tensor>| Ok(vec![s[0].clone(), s[1].clone(), s[0].clone()]);
        (line!(), fori_loop(0..3, body, start))
    };
    let says = ["(tensor, tensor, tensor)", "(tensor, tensor)"];
    let (line, result) = longer();
    assert_error(result, ErrorKind::Value, "fori_loop", line, &says);
    assert_error(in_function(move || longer().1), ErrorKind::Value, "fori_loop", line, &says);

    let shorter = |s: Vec<Tensor>| Ok(s[..1].to_vec());
    let start = vec![scalar(1.0), scalar(2.0)];
    let result = while_loop(|s: &Vec<Tensor>| less(&s[0], 5.0), shorter, start);
    let says = ["returned (tensor)", "(tensor, tensor)"];
    assert_error(result, ErrorKind::Value, "while_loop", line!() - 2, &says);

    let named = |name: &str| BTreeMap::from([(name.to_string(), scalar(0.5))]);
    let result = fori_loop(0..3, |_, _: BTreeMap<String, Tensor>| Ok(named("speed")), named("place"));
    assert_error(result, ErrorKind::Value, "fori_loop", line!() - 1, &["speed: tensor", "place: tensor"]);

    let result =
        scan(|s: Option<Tensor>, x: Tensor| Ok((None, (s, x))), Some(scalar(0.0)), vector(&[1.0, 2.0]));
    assert_error(result, ErrorKind::Value, "scan", line!() - 1, &["returned ()", "(tensor)"]);

    let body = |_: Tensor, (s, flag): (Tensor, bool)| Ok((s, !flag));
    let result = fori_loop(0..3, body, (scalar(1.0), true));
    assert_error(result, ErrorKind::Value, "fori_loop", line!() - 1, &["false", "true"]);
}

#[test]
fn states_that_change_their_shape() {
    let _ledger = ledger_check();
    let grow = |x: &Tensor| concat(&[x.clone(), x.clone()], 0);
    let result = fori_loop(0..3, |_, x| grow(&x), vector(&[1.0, 2.0]));
    let says = ["the loop variable", "float64[2]", "float64[4]", "shape_invariants"];
    assert_error(result, ErrorKind::Shape, "fori_loop", line!() - 2, &says);

    let start = (count(0), vector(&[1.0, 2.0]));
    let result = while_loop(|(i, _)| less(i, 3i64), |(i, x)| Ok((i, grow(&x)?)), start.clone());
    let says = ["loop variable 1 ", "float64[2]", "float64[4]", "shape_invariants"];
    assert_error(result, ErrorKind::Shape, "while_loop", line!() - 2, &says);

    // The path to it has names and positions.
    let named = |x: Tensor| (scalar(0.0), BTreeMap::from([("speed".to_string(), vec![count(1), x])]));
    let body = |_: Tensor, (a, mut b): (Tensor, BTreeMap<String, Vec<Tensor>>)| {
        b.get_mut("speed").unwrap()[1] = zeros([7], DType::F64)?;
        Ok((a, b))
    };
    let result = fori_loop(0..3, body, named(vector(&[1.0])));
    let says = ["loop variable 1.speed.1 ", "float64[1]", "float64[7]"];
    assert_error(result, ErrorKind::Shape, "fori_loop", line!() - 2, &says);

    let result = scan(|s: Tensor, x: Tensor| Ok((grow(&s)?, x)), vector(&[1.0]), vector(&[1.0, 2.0]));
    assert_error(result, ErrorKind::Shape, "scan", line!() - 1, &["float64[1]", "float64[2]"]);
    for right in [false, true] {
        let body = |s: Tensor, _: Tensor| grow(&s);
        let (start, elements) = (vector(&[1.0]), vector(&[1.0, 2.0]));
        let line = line!() + 1;
        let result = if right { foldr(body, elements, start) } else { foldl(body, elements, start) };
        let op = if right { "foldr" } else { "foldl" };
        assert_error(result, ErrorKind::Shape, op, line, &["float64[1]", "float64[2]"]);
    }
    let inside = || fori_loop(0..3, |_, x: Tensor| concat(&[x.clone(), x], 0), vector(&[1.0, 2.0]));
    let line = line!() - 1;
    assert_error(in_function(inside), ErrorKind::Shape, "fori_loop", line, &["float64[2]", "float64[4]"]);
}

#[test]
fn states_that_change_their_type() {
    let _ledger = ledger_check();
    let result = fori_loop(0..3, |_, x| cast(x, DType::F32), scalar(1.0));
    let says = ["the loop variable", "float64[]", "float32[]", "cast"];
    assert_error(result, ErrorKind::DType, "fori_loop", line!() - 2, &says);
    // An integer that becomes a float.
    let start = BTreeMap::from([("steps".to_string(), count(0))]);
    let body = |mut s: BTreeMap<String, Tensor>| {
        s.insert("steps".into(), add(&s["steps"], scalar(0.5))?);
        Ok(s)
    };
    let result = while_loop(|s: &BTreeMap<String, Tensor>| less(&s["steps"], 3i64), body, start);
    let says = ["loop variable steps ", "int64[]", "float64[]"];
    assert_error(result, ErrorKind::DType, "while_loop", line!() - 2, &says);
}

#[test]
fn conditions_that_are_not_a_boolean() {
    let _ledger = ledger_check();
    let result = while_loop(|x| mul(x, 2.0), Ok, scalar(1.0));
    let says = ["float64[]", "boolean"];
    assert_error(result, ErrorKind::DType, "while_loop", line!() - 2, &says);
    let result = while_loop(|x| less(x, 3.0), Ok, vector(&[1.0, 2.0]));
    let says = ["bool[2]", "all()", "any()"];
    assert_error(result, ErrorKind::Shape, "while_loop", line!() - 2, &says);
    let open = Loops::new().shape_invariants(vec![vec![None]]);
    let result = open.while_loop(|x| less(x, 3.0), Ok, vector(&[1.0, 2.0]));
    assert_error(result, ErrorKind::Shape, "while_loop", line!() - 1, &says);
}

#[test]
fn invalid_choices() {
    let _ledger = ledger_check();
    let one = || Ok(scalar(1.0));
    let result = cond(scalar(1.0), one, one);
    assert_error(result, ErrorKind::DType, "cond", line!() - 1, &["float64[]", "boolean"]);
    let flags = Tensor::from_slice(&[true, false], [2]).unwrap();
    let result = cond(&flags, one, one);
    assert_error(result, ErrorKind::Shape, "cond", line!() - 1, &["bool[2]", "all()"]);
    let result = switch_case(scalar(1.0), vec![Box::new(one), Box::new(one)]);
    assert_error(result, ErrorKind::DType, "switch_case", line!() - 1, &["float64[]", "integer"]);
    let result = switch_case(Tensor::from_slice(&[0i64, 1], [2]).unwrap(), vec![Box::new(one)]);
    assert_error(result, ErrorKind::DType, "switch_case", line!() - 1, &["int64[2]"]);
    let none: Vec<Case<'_, Tensor>> = Vec::new();
    let result = switch_case(count(0), none);
    assert_error(result, ErrorKind::Value, "switch_case", line!() - 1, &["no branch"]);
    let empty = function(|n: &Tensor| switch_case(n, Vec::<Case<'_, Tensor>>::new()));
    let line = line!() - 1;
    assert_error(empty.call(count(0)), ErrorKind::Value, "switch_case", line, &["no branch"]);
}

#[test]
fn branches_that_differ() {
    let _ledger = ledger_check();
    let x = vector(&[1.0, 2.0]);
    let flag = Tensor::scalar(true).unwrap();
    let shapes = function(|(x, flag): &(Tensor, Tensor)| cond(flag, || sin(x), || sum(x, None, false)));
    // Shapes that depend on the choice have no plan: the function runs op by op.
    let line = line!() - 2;
    assert_eq!(values(&shapes.call((&x, &flag)).unwrap()), values(&sin(&x).unwrap()));
    let error = shapes.plan((&x, &flag)).unwrap_err();
    assert_eq!((error.kind(), error.location().unwrap().line()), (ErrorKind::DynamicShape, line));
    for part in ["runs op by op", "float64[2]", "float64[]", "branch 1"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let types = function(|(x, flag): &(Tensor, Tensor)| cond(flag, || sin(x), || cast(x, DType::F32)));
    let says = ["float64[2]", "float32[2]"];
    assert_error(types.call((&x, &flag)), ErrorKind::DType, "cond", line!() - 2, &says);
    let parts = function(|(x, flag): &(Tensor, Tensor)| {
        cond(flag, || Ok(vec![sin(x)?]), || Ok(vec![x.clone(), x.clone()]))
    });
    let says = ["(tensor, tensor)", "(tensor)"];
    assert_error(parts.call((&x, &flag)), ErrorKind::Value, "cond", line!() - 3, &says);
    let named = function(|(x, n): &(Tensor, Tensor)| {
        let case = |name: &'static str, x: Tensor| -> Case<'_, BTreeMap<String, Tensor>> {
            Box::new(move || Ok(BTreeMap::from([(name.to_string(), x)])))
        };
        let small = sum(x, None, false)?;
        switch_case(n, vec![case("a", x.clone()), case("a", x.clone()), case("a", small)])
    });
    let error = named.plan((&x, &count(0))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DynamicShape);
    for part in ["result a ", "float64[2]", "float64[]", "branch 2"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn elements_of_different_lengths() {
    let _ledger = ledger_check();
    let body = |s: Tensor, (x, y): (Tensor, Tensor)| Ok((add(s, mul(x, y)?)?, ()));
    let elements = (vector(&[1.0, 2.0]), vector(&[1.0, 2.0, 3.0]));
    let result = scan(body, scalar(0.0), elements);
    assert_error(result, ErrorKind::Shape, "scan", line!() - 1, &["input 1 ", "float64[2]", "float64[3]"]);
    let result = scan(body, scalar(0.0), (vector(&[1.0]), scalar(2.0)));
    assert_error(result, ErrorKind::Shape, "scan", line!() - 1, &["input 1 ", "float64[]"]);
    let result = foldl(|s: Tensor, x: Tensor| add(s, x), scalar(1.0), scalar(0.0));
    assert_error(result, ErrorKind::Shape, "foldl", line!() - 1, &["the input ", "float64[]"]);
    let result = foldr(|s: Tensor, ()| Ok(s), (), scalar(0.0));
    assert_error(result, ErrorKind::Value, "foldr", line!() - 1, &["no elements"]);
}

#[test]
fn budgets_below_one_state() {
    let _ledger = ledger_check();
    let start = (scalar(1.0), vector(&[0.5; 100]));
    let body = |_: Tensor, (a, b): (Tensor, Tensor)| Ok((sin(a)?, sin(b)?));
    // 8 bytes and 800, each aligned to 64.
    let result = Loops::new().grad_budget(895).fori_loop(0..9, body, start.clone());
    let says = ["895", "896", "float64[]", "float64[100]"];
    assert_error(result, ErrorKind::Value, "fori_loop", line!() - 2, &says);
    let result = Loops::new().grad_budget(0).while_loop(|x| less(x, 2.0), |x| mul(x, 2.0), scalar(1.0));
    assert_error(result, ErrorKind::Value, "while_loop", line!() - 1, &["0 bytes", "64"]);
    let enough = Loops::new().grad_budget(896);
    assert!(enough.fori_loop(0..9, body, start.clone()).is_ok());
    // The share of an inner loop is too small: the error has the line of that loop.
    let inner = |_: Tensor, s: (Tensor, Tensor)| fori_loop(0..9, body, s);
    let line = line!() - 1;
    let result = enough.fori_loop(0..9, inner, start);
    assert_error(result, ErrorKind::Value, "fori_loop", line, &["448", "896"]);
}

#[test]
fn infinite_loops_end_at_their_limit() {
    let _ledger = ledger_check();
    for most in [0usize, 1, 7, 100] {
        let loops = Loops::new().maximum_iterations(most);
        let run = move |x: &Tensor| loops.while_loop(|_| Tensor::scalar(true), |x| add(x, 1.0), x.clone());
        let x = scalar(0.0);
        assert_eq!(run(&x).unwrap().item::<f64>().unwrap(), most as f64);
        assert_eq!(function(run).call(&x).unwrap().item::<f64>().unwrap(), most as f64);
    }
    // Op by op as well.
    let loops = Loops::new().maximum_iterations(5).shape_invariants(vec![vec![None]]);
    let x = vector(&[1.0]);
    let y = loops.while_loop(|_| Tensor::scalar(true), |y| concat(&[y, x.clone()], 0), x.clone()).unwrap();
    assert_eq!(values(&y), [1.0; 6]);
}

#[test]
fn shape_invariants_that_do_not_hold() {
    let _ledger = ledger_check();
    let x = vector(&[1.0, 2.0]);
    let grow = |y: Tensor| concat(&[y, vector(&[3.0])], 0);
    let test = |y: &Tensor| Tensor::scalar(y.len() < 5);
    let loops = Loops::new().shape_invariants(vec![vec![None], vec![]]);
    let result = loops.while_loop(test, grow, x.clone());
    let says = ["expected 1 shape invariants", "got 2"];
    assert_error(result, ErrorKind::Value, "while_loop", line!() - 2, &says);
    // Before the first step, and after one.
    for (invariant, says) in [(vec![None, None], "[?, ?]"), (vec![Some(3)], "[3]"), (vec![Some(2)], "[2]")] {
        let loops = Loops::new().shape_invariants(vec![invariant]);
        let line = line!() + 1;
        let result = loops.while_loop(test, grow, x.clone());
        let Err(error) = &result else { panic!("{says}") };
        let text = error.to_string();
        assert!(
            text.contains("float64[2]") && (text.contains(says) || text.contains("float64[3]")),
            "{text}"
        );
        assert_error(result, ErrorKind::Shape, "while_loop", line, &["loop variable"]);
    }
    let loops = Loops::new().shape_invariants(vec![vec![None, Some(2)]]);
    let rows = zeros([1, 2], DType::F64).unwrap();
    let wider = |y: Tensor| concat(&[y.clone(), y], 1);
    let result = loops.while_loop(|y| Tensor::scalar(y.len() < 50), wider, rows.clone());
    assert_error(result, ErrorKind::Shape, "while_loop", line!() - 1, &["float64[1, 4]", "[?, 2]"]);
    let retyped = |y: Tensor| cast(y, DType::F32);
    let result = loops.while_loop(|_| Tensor::scalar(true), retyped, rows);
    assert_error(result, ErrorKind::DType, "while_loop", line!() - 1, &["float64[1, 2]", "float32[1, 2]"]);
}

#[test]
fn shape_invariants_with_open_dimensions() {
    let _ledger = ledger_check();
    let loops = Loops::new().shape_invariants(vec![vec![], vec![None]]);
    let x = vector(&[0.5, -0.25]);
    let run = move |x: &Tensor| {
        let start = (count(0), x.clone());
        let body = |(i, y): (Tensor, Tensor)| Ok((add(i, 1i64)?, concat(&[mul(&y, &y)?, x.clone()], 0)?));
        Ok(loops.while_loop(|(i, _)| less(i, 3i64), body, start)?.1)
    };
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = run(&x).unwrap();
    // x, then x² x, then x⁴ x² x, then x⁸ x⁴ x² x.
    let powers = |x: f64| [x.powi(8), x.powi(4), x.powi(2), x];
    let want: Vec<f64> = (0..4).flat_map(|i| [powers(0.5)[i], powers(-0.25)[i]]).collect();
    assert_eq!(values(&y), want);
    let g = tape.gradient(&y, &x).unwrap().unwrap().dense().unwrap();
    let slope = |x: f64| 8.0 * x.powi(7) + 4.0 * x.powi(3) + 2.0 * x + 1.0;
    assert_eq!(values(&g), [slope(0.5), slope(-0.25)]);
    drop(tape);
    // In a function, shapes are static: it runs op by op, and has no plan.
    let f = function(move |x: &Tensor| run(x));
    assert_eq!(values(&f.call(&x).unwrap()), want);
    let error = f.plan(&x).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DynamicShape, "{error}");
    assert_eq!(error.location().unwrap().file(), file!());
    // Invariants without open dimensions are allowed in functions.
    let closed = Loops::new().shape_invariants(vec![vec![Some(2)]]).maximum_iterations(3);
    let f =
        function(move |x: &Tensor| closed.while_loop(|_| Tensor::scalar(true), |x| mul(x, 2.0), x.clone()));
    assert_eq!(values(&f.call(&x).unwrap()), [4.0, -2.0]);
}

#[test]
fn loops_of_zero_steps() {
    let _ledger = ledger_check();
    let (x, w, rows) = (vector(&[1.0, 2.0]), vector(&[3.0, 4.0]), zeros([0, 2], DType::F64).unwrap());
    let runs: [fn(&(Tensor, Tensor, Tensor)) -> Result<Tensor>; 7] = [
        |(x, w, _)| fori_loop(0..0, |_, x| mul(x, w), x.clone()),
        |(x, w, _)| {
            let (from, to) = (5, -5);
            fori_loop(from..to, |_, x| mul(x, w), x.clone())
        },
        |(x, w, _)| while_loop(|_| Tensor::scalar(false), |x| mul(x, w), x.clone()),
        |(x, w, _)| {
            Loops::new().maximum_iterations(0).while_loop(|_| Tensor::scalar(true), |x| mul(x, w), x.clone())
        },
        |(x, w, rows)| foldl(|x: Tensor, row: Tensor| mul(mul(x, w)?, row), rows.clone(), x.clone()),
        |(x, w, rows)| foldr(|x: Tensor, row: Tensor| mul(mul(x, w)?, row), rows.clone(), x.clone()),
        |(x, w, _)| Loops::new().grad_budget(64).fori_loop(0..0, |_, x| mul(x, w), x.clone()),
    ];
    for (i, run) in runs.into_iter().enumerate() {
        for traced in [false, true] {
            let inputs = (x.clone(), w.clone(), rows.clone());
            let tape = GradientTape::new();
            tape.watch(&[&x, &w, &rows]);
            let y = if traced { function(run).call(&inputs) } else { run(&inputs) };
            let y = y.unwrap_or_else(|e| panic!("{i} {traced}: {e}"));
            assert_eq!((y.spec(), values(&y)), (x.spec(), vec![1.0, 2.0]), "{i} {traced}");
            let [gx, gw, gr] = tape
                .gradient(&sum(mul(&y, 5.0).unwrap(), None, false).unwrap(), &[&x, &w, &rows])
                .unwrap()
                .map(|g| g.map(|g| g.dense().unwrap()));
            assert_eq!(values(&gx.unwrap()), [5.0, 5.0], "{i} {traced}");
            assert!(gw.is_none_or(|g| values(&g) == [0.0, 0.0]), "{i} {traced}");
            assert!(gr.is_none_or(|g| g.spec() == rows.spec()), "{i} {traced}");
        }
    }
}

#[test]
fn scans_of_no_elements() {
    let _ledger = ledger_check();
    let (x, w, rows) = (vector(&[1.0, 2.0]), vector(&[3.0, 4.0]), zeros([0, 2], DType::F64).unwrap());
    let run = |(x, w, rows): &(Tensor, Tensor, Tensor)| {
        let body = |s: Tensor, row: Tensor| {
            let s = mul(add(s, row)?, w)?;
            Ok((s.clone(), (sum(&s, None, false)?, cast(s, DType::F32)?)))
        };
        scan(body, x.clone(), rows.clone())
    };
    for traced in [false, true] {
        let inputs = (x.clone(), w.clone(), rows.clone());
        let tape = GradientTape::new();
        tape.watch(&[&x, &w]);
        let (last, (sums, casts)) = if traced { function(run).call(&inputs) } else { run(&inputs) }.unwrap();
        assert_eq!(values(&last), [1.0, 2.0]);
        assert_eq!(
            (sums.spec().to_string(), casts.spec().to_string()),
            ("float64[0]".into(), "float32[0, 2]".into())
        );
        let y = add(sum(&last, None, false).unwrap(), sum(&sums, None, false).unwrap()).unwrap();
        let [gx, gw] = tape.gradient(&y, &[&x, &w]).unwrap().map(|g| g.map(|g| g.dense().unwrap()));
        assert_eq!(values(&gx.unwrap()), [1.0, 1.0]);
        assert!(gw.is_none_or(|g| values(&g) == [0.0, 0.0]));
    }
}

#[test]
fn errors_inside_bodies_are_those_of_the_ops() {
    let _ledger = ledger_check();
    let (x, m) = (vector(&[1.0, 2.0]), zeros([3, 3], DType::F64).unwrap());
    let product = |_: Tensor, x: Tensor| matmul(x, &m);
    let result = fori_loop(0..3, product, x.clone());
    assert_error(result, ErrorKind::Shape, "matmul", line!() - 2, &["float64[2]", "float64[3, 3]"]);
    let own = || Err::<Tensor, Error>(Error::value("my own"));
    let result = fori_loop(0..3, |_, _| own(), x.clone());
    assert_error(result, ErrorKind::Value, "fori_loop", line!() - 1, &["my own"]);
    // An index that is out of range in the third step.
    let pick = |x: &Tensor, i: &Tensor| gather(x, i, 0, 0);
    let line = line!() - 1;
    let run = move |x: &Tensor| fori_loop(0..5, |i, s| add(s, pick(x, &i)?), scalar(0.0));
    let error = run(&x).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Index, Some("gather")), "{error}");
    assert!(error.to_string().contains('2'), "{error}");
    assert_eq!(error.location().unwrap().line(), line, "{error}");
    let error = function(move |x: &Tensor| run(x)).call(&x).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Index, Some("gather")), "{error}");
    assert_eq!(error.location().unwrap().line(), line, "{error}");
    // Under a tape as well.
    let tape = GradientTape::new();
    tape.watch(&x);
    let error = run(&x).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Index, Some("gather")), "{error}");
    assert_eq!(tape.bytes_held(), 0);
}

#[test]
fn a_function_that_fails_leaves_variables_as_they_were() {
    let _ledger = ledger_check();
    let v = Variable::new(vector(&[1.0, 2.0])).unwrap();
    let inside = v.clone();
    let f = function(move |n: &Tensor| {
        let body = |(i, x): (Tensor, Tensor)| {
            let element = gather(&x, &i, 0, 0)?;
            Ok((add(i, 1i64)?, mul(x, add(element, 1.0)?)?))
        };
        let (_, x) = while_loop(|(i, _)| less(i, n), body, (Tensor::scalar(0i64)?, inside.read()))?;
        inside.assign(x)?;
        Ok(())
    });
    let address = v.address();
    for steps in [3i64, 100] {
        let error = f.call(count(steps)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Index, "{error}");
        assert_eq!((values(&v.read()), v.address()), (vec![1.0, 2.0], address));
    }
    f.call(count(2)).unwrap();
    // [1, 2] times 1 + 1, and that times 1 + 4.
    assert_eq!(values(&v.read()), [10.0, 20.0]);
}

#[test]
fn variables_cannot_be_assigned_in_recomputed_or_vectorised_code() {
    let _ledger = ledger_check();
    let v = Variable::new(scalar(1.0)).unwrap();
    let inside = v.clone();
    let line = line!() + 2;
    let again = taut::recompute_grad(move |x: &[Tensor]| {
        inside.assign(&x[0])?;
        Ok(x.to_vec())
    });
    let error = in_function(move || Ok(again.call(vec![scalar(5.0)])?.swap_remove(0))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Graph, "{error}");
    assert_eq!(error.location().unwrap().line(), line, "{error}");
    let inside = v.clone();
    let at_once = move || {
        let body = |x: Tensor| {
            inside.assign(&x)?;
            Ok(x)
        };
        let elements = Tensor::from_slice(&[1.0, 2.0], [2]).unwrap();
        (line!(), vectorized_map(body, elements))
    };
    let (line, result) = at_once();
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.location().unwrap().line()), (ErrorKind::Graph, line), "{error}");
    let error = in_function(move || at_once().1).unwrap_err();
    assert_eq!((error.kind(), error.location().unwrap().line()), (ErrorKind::Graph, line), "{error}");
    assert_eq!(v.read().item::<f64>().unwrap(), 1.0);
    // Reading a variable is allowed: it is a capture.
    let y = fori_loop(0..3, |_, x| add(x, v.read()), scalar(5.0)).unwrap();
    assert_eq!(y.item::<f64>().unwrap(), 8.0);
    let tape = GradientTape::new();
    let y = fori_loop(0..3, |_, x| mul(x, v.read()), scalar(5.0)).unwrap();
    let g = tape.gradient(&y, &v).unwrap().unwrap().dense().unwrap();
    assert_eq!(g.item::<f64>().unwrap(), 15.0);
}

#[test]
fn tensors_that_leak_out_of_a_body_are_rejected() {
    let _ledger = ledger_check();
    let leaked: RefCell<Option<Tensor>> = RefCell::new(None);
    let leak = |x: &Tensor| {
        let y = sin(x)?;
        *leaked.borrow_mut() = Some(y.clone());
        Ok(y)
    };
    let y = fori_loop(0..3, |_, x| leak(&x), scalar(1.0)).unwrap();
    let stray = leaked.take().unwrap();
    assert!(stray.is_traced());
    assert_graph_error(stray.item::<f64>());
    assert_graph_error(add(&stray, 1.0));
    // Nor in another body.
    assert_graph_error(fori_loop(0..3, |_, x| add(x, &stray), scalar(1.0)));
    assert_graph_error(cond(Tensor::scalar(true).unwrap(), || sin(&stray), || Ok(scalar(2.0))));
    assert_graph_error(function(move |x: &Tensor| mul(x, &stray)).call(&y));
    drop(y);
    // From an inner body to the outer one.
    let result = fori_loop(
        0..3,
        |_, x: Tensor| {
            fori_loop(0..3, |_, x| leak(&x), x)?;
            leaked.take().ok_or_else(|| Error::value("nothing leaked"))
        },
        scalar(1.0),
    );
    assert_graph_error(result);
}

fn assert_graph_error<T>(result: Result<T>) {
    let Err(error) = result else { panic!("no error") };
    assert_eq!(error.kind(), ErrorKind::Graph, "{error}");
    assert_eq!(error.location().map(taut::memory::Location::file), Some(file!()), "{error}");
}
