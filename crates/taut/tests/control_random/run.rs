//! Running programs: unrolled, and with the loops and branches under test.

use crate::program::{Block, Expression, Statement, Test};
use std::cell::Cell;
use taut::{
    Case, DType, Index, Loops, Result, Tensor, add, cast, concat, cond, less, matmul, mul, sin, slice, stack,
    sum, switch_case, tanh, transpose, zeros,
};

/// The gradient budgets of loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    None,
    /// This many states for each loop.
    Each(usize),
    /// This many bytes for each outermost loop.
    Outer(usize),
}

/// How a program is run.
pub enum How<'a> {
    /// With Rust loops, recording how far conditions are from their thresholds.
    Hand(&'a Cell<f64>),
    Api(Budget),
}

impl How<'_> {
    fn loops(&self, states: &[Tensor]) -> Loops {
        match self {
            How::Api(Budget::Each(count)) => {
                let one: usize = states.iter().map(|t| t.spec().bytes().next_multiple_of(64)).sum();
                Loops::new().grad_budget(one * count)
            }
            How::Api(Budget::Outer(bytes)) => Loops::new().grad_budget(*bytes),
            _ => Loops::new(),
        }
    }

    /// For nested bodies.
    fn inner(&self) -> How<'_> {
        match self {
            How::Hand(margin) => How::Hand(margin),
            How::Api(Budget::Outer(_)) => How::Api(Budget::None),
            How::Api(budget) => How::Api(*budget),
        }
    }
}

/// The results of a block, with these values in scope.
pub fn evaluate(block: &Block, visible: &[Tensor], how: &How<'_>) -> Result<Vec<Tensor>> {
    let mut scope = visible.to_vec();
    for statement in &block.statements {
        let new = match statement {
            Statement::Let(expression) => vec![compute(expression, &scope)?],
            statement => control(statement, &scope, how)?,
        };
        scope.extend(new);
    }
    // The last index refers to a value that was not known when the program was generated.
    Ok(block.results.iter().map(|&i| scope.get(i).or(scope.last()).unwrap().clone()).collect())
}

fn compute(expression: &Expression, scope: &[Tensor]) -> Result<Tensor> {
    match *expression {
        Expression::Sin(x) => sin(&scope[x]),
        Expression::Tanh(x) => tanh(&scope[x]),
        Expression::Scaled(x, by) if scope[x].dtype() == DType::I64 => mul(&scope[x], by as i64),
        Expression::Scaled(x, by) => mul(&scope[x], by),
        Expression::Mixed(x, y) => add(mul(&scope[x], 0.7)?, mul(&scope[y], 0.3)?),
        Expression::Product(x, y) => mul(&scope[x], &scope[y]),
        Expression::Matmul(x, y) => tanh(matmul(&scope[x], &scope[y])?),
        // Loops make their states contiguous; the bits of a product may depend on the layout of its factors.
        Expression::Transposed(x) => mul(transpose(&scope[x], None)?, 0.9),
        Expression::Sum(x) => mul(sum(&scope[x], None, false)?, 1.0 / 3.0),
        Expression::Wave(x) => sin(mul(cast(&scope[x], DType::F64)?, 0.7)?),
        Expression::Number(x) => Tensor::scalar(x),
        Expression::Vector(x) => Tensor::from_slice(&x, [3]),
        Expression::Plus(x, by) => add(&scope[x], by),
        Expression::Tick(clock, x) => add(&scope[clock], add(mul(tanh(&scope[x])?, 0.2)?, 0.5)?),
    }
}

/// The first of three rows.
fn first_rows(x: &Tensor, rows: usize) -> Result<Tensor> {
    if rows == 3 {
        return Ok(x.clone());
    }
    slice(x, &[Index::from(..rows as isize)])
}

/// Three rows; those of steps that were not made are zeros.
fn three_rows(rows: Tensor, steps: usize) -> Result<Tensor> {
    if steps == 3 {
        return Ok(rows);
    }
    let mut shape = rows.shape().to_vec();
    shape[0] = 3 - steps;
    let missing = zeros(shape, rows.dtype())?;
    concat(&[rows, missing], 0)
}

fn goes_on(test: Test, state: &Tensor, scope: &[Tensor]) -> Result<Tensor> {
    match test {
        Test::Counts(end) => less(state, end),
        Test::Clock { threshold, outside } => less(state, add(mul(tanh(&scope[outside])?, 0.1)?, threshold)?),
    }
}

/// Records how far a value is from its threshold.
fn note(margin: &Cell<f64>, number: &Tensor, threshold: &Tensor) -> Result<()> {
    let distance = (number.item::<f64>()? - threshold.item::<f64>()?).abs();
    margin.set(margin.get().min(distance));
    Ok(())
}

fn pick(scope: &[Tensor], places: &[usize]) -> Vec<Tensor> {
    places.iter().map(|&i| scope[i].clone()).collect()
}

fn seen(scope: &[Tensor], own: &[&[Tensor]]) -> Vec<Tensor> {
    [scope, &own.concat()].concat()
}

fn control(statement: &Statement, scope: &[Tensor], how: &How<'_>) -> Result<Vec<Tensor>> {
    if let How::Hand(margin) = how {
        return by_hand(statement, scope, margin);
    }
    let inner = how.inner();
    match statement {
        Statement::Let(_) => Ok(Vec::new()),
        Statement::For { range, states, body } => {
            let states = pick(scope, states);
            let step =
                |i: Tensor, states: Vec<Tensor>| evaluate(body, &seen(scope, &[&[i], &states]), &inner);
            how.loops(&states).fori_loop(range.clone(), step, states)
        }
        Statement::While { test, most, states, body } => {
            let states = pick(scope, states);
            let mut loops = how.loops(&states);
            if let Some(most) = most {
                loops = loops.maximum_iterations(*most);
            }
            loops.while_loop(
                |states: &Vec<Tensor>| goes_on(*test, &states[0], scope),
                |states| evaluate(body, &seen(scope, &[&states]), &inner),
                states,
            )
        }
        Statement::Scan { steps, backward, states, elements, body, .. } => {
            let states = pick(scope, states);
            let elements = rows(scope, elements, *steps)?;
            let count = states.len();
            let step = |states: Vec<Tensor>, element: Vec<Tensor>| {
                let mut after = evaluate(body, &seen(scope, &[&states, &element]), &inner)?;
                let made = after.split_off(count);
                Ok((after, made))
            };
            let loops = how.loops(&states);
            let (mut after, made) = if *backward {
                loops.scan_reversed(step, states, elements)?
            } else {
                loops.scan(step, states, elements)?
            };
            for made in made {
                after.push(three_rows(made, *steps)?);
            }
            Ok(after)
        }
        Statement::Fold { steps, backward, states, elements, body, .. } => {
            let states = pick(scope, states);
            let elements = rows(scope, elements, *steps)?;
            let step = |states: Vec<Tensor>, element: Vec<Tensor>| {
                evaluate(body, &seen(scope, &[&states, &element]), &inner)
            };
            let loops = how.loops(&states);
            if *backward { loops.foldr(step, elements, states) } else { loops.foldl(step, elements, states) }
        }
        Statement::If { number, threshold, branches: [yes, no] } => {
            // A branch does not change the loop depth.
            let condition = less(&scope[*number], *threshold)?;
            cond(condition, || evaluate(yes, scope, how), || evaluate(no, scope, how))
        }
        Statement::Switch { count, branches } => {
            let case = |branch| -> Case<'_, Vec<Tensor>> { Box::new(move || evaluate(branch, scope, how)) };
            switch_case(&scope[*count], branches.iter().map(case).collect())
        }
    }
}

fn rows(scope: &[Tensor], places: &[usize], steps: usize) -> Result<Vec<Tensor>> {
    places.iter().map(|&i| first_rows(&scope[i], steps)).collect()
}

fn by_hand(statement: &Statement, scope: &[Tensor], margin: &Cell<f64>) -> Result<Vec<Tensor>> {
    let how = &How::Hand(margin);
    match statement {
        Statement::Let(_) => Ok(Vec::new()),
        Statement::For { range, states, body } => {
            let mut states = pick(scope, states);
            for i in range.clone() {
                states = evaluate(body, &seen(scope, &[&[Tensor::scalar(i)?], &states]), how)?;
            }
            Ok(states)
        }
        Statement::While { test, most, states, body } => {
            let mut states = pick(scope, states);
            for _ in 0..most.unwrap_or(1000) {
                if let Test::Clock { threshold, outside } = *test {
                    let bound = add(mul(tanh(&scope[outside])?, 0.1)?, threshold)?;
                    note(margin, &states[0], &bound)?;
                }
                if !goes_on(*test, &states[0], scope)?.item::<bool>()? {
                    return Ok(states);
                }
                states = evaluate(body, &seen(scope, &[&states]), how)?;
            }
            assert!(most.is_some(), "every loop ends");
            Ok(states)
        }
        Statement::Scan { steps, backward, states, elements, made, body }
        | Statement::Fold { steps, backward, states, elements, made, body } => {
            let mut states = pick(scope, states);
            let count = states.len();
            let mut lists: Vec<Vec<Tensor>> = vec![Vec::new(); made.len()];
            for step in 0..*steps {
                let place = if *backward { steps - 1 - step } else { step } as isize;
                let element: Vec<Tensor> = elements
                    .iter()
                    .map(|&i| slice(&scope[i], &[Index::from(place)]))
                    .collect::<Result<_>>()?;
                let mut after = evaluate(body, &seen(scope, &[&states, &element]), how)?;
                lists.iter_mut().zip(after.split_off(count)).for_each(|(list, row)| list.push(row));
                states = after;
            }
            for (kind, mut list) in made.iter().zip(lists) {
                if *backward {
                    list.reverse();
                }
                let missing = zeros(kind.shape(), DType::F64)?;
                list.resize(3, missing);
                states.push(stack(&list, 0)?);
            }
            Ok(states)
        }
        Statement::If { number, threshold, branches: [yes, no] } => {
            let condition = less(&scope[*number], *threshold)?;
            note(margin, &scope[*number], &Tensor::scalar(*threshold)?)?;
            evaluate(if condition.item::<bool>()? { yes } else { no }, scope, how)
        }
        Statement::Switch { count, branches } => {
            let number = scope[*count].item::<i64>()?;
            let last = branches.len() - 1;
            let taken = usize::try_from(number).map_or(last, |number| number.min(last));
            evaluate(&branches[taken], scope, how)
        }
    }
}
