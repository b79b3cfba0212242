//! Layouts, compared with a model that stores every element's position.

use proptest::prelude::*;
use taut_core::{Index, Layout, Shape};
use taut_memory::testing::ledger_check;

/// A shape and, in row-major order, each element's position in the buffer.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    shape: Vec<usize>,
    at: Vec<usize>,
}

impl Model {
    /// The same as a layout.
    fn of(layout: &Layout) -> Model {
        let shape = layout.shape.to_vec();
        let position = |coordinates: Vec<usize>| {
            let steps = coordinates.iter().zip(&layout.strides).map(|(&i, &stride)| i as isize * stride);
            usize::try_from(layout.offset as isize + steps.sum::<isize>()).expect("before the buffer")
        };
        Model { at: coordinates(&shape).into_iter().map(position).collect(), shape }
    }

    /// The model whose element at some coordinates is this one's at `from(coordinates)`.
    fn map(&self, shape: Vec<usize>, from: impl Fn(&[usize]) -> Vec<usize>) -> Model {
        let at = coordinates(&shape).iter().map(|c| self.at[flat(&self.shape, &from(c))]).collect();
        Model { shape, at }
    }
}

/// All coordinates of a shape, in row-major order.
fn coordinates(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |all, &dim| {
        all.iter().flat_map(|c| (0..dim).map(move |i| [&c[..], &[i]].concat())).collect()
    })
}

fn flat(shape: &[usize], coordinates: &[usize]) -> usize {
    shape.iter().zip(coordinates).fold(0, |at, (&dim, &i)| at * dim + i)
}

/// A view of a view; the numbers select among what the shape allows.
#[derive(Clone, Debug)]
enum Step {
    Permute(u64),
    Slice { axis: usize, start: Option<isize>, end: Option<isize>, step: isize },
    Pick { axis: usize, position: usize },
    Insert(usize),
    Repeat { axis: usize, times: usize },
    Diagonal(isize),
    Reshape(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let end = || proptest::option::of(-6isize..7);
    let stride = prop_oneof![-3isize..0, 1isize..4, Just(isize::MAX), Just(isize::MIN)];
    prop_oneof![
        any::<u64>().prop_map(Step::Permute),
        (0usize..5, end(), end(), stride).prop_map(|(axis, start, end, step)| Step::Slice {
            axis,
            start,
            end,
            step
        }),
        (0usize..5, 0usize..5).prop_map(|(axis, position)| Step::Pick { axis, position }),
        (0usize..5).prop_map(Step::Insert),
        (0usize..5, 0usize..4).prop_map(|(axis, times)| Step::Repeat { axis, times }),
        (-5isize..6).prop_map(Step::Diagonal),
        any::<u64>().prop_map(Step::Reshape),
    ]
}

/// The numbers `0..len` in an order that the seed chooses.
fn permutation(len: usize, mut seed: u64) -> Vec<usize> {
    let mut left: Vec<usize> = (0..len).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        order.push(left.remove((seed % left.len() as u64) as usize));
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407) >> 1;
    }
    order
}

/// A shape of `len` elements, by the seed: its prime factors in other groups.
fn shape_of(mut len: usize, mut seed: u64) -> Vec<usize> {
    if len == 0 {
        return [vec![0, 3], vec![2, 0], vec![0]][(seed % 3) as usize].clone();
    }
    let mut shape = vec![1; (seed % 4) as usize + 1];
    let mut factor = 2;
    while len > 1 {
        if len.is_multiple_of(factor) {
            seed = seed.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let axis = (seed % shape.len() as u64) as usize;
            shape[axis] *= factor;
            len /= factor;
        } else {
            factor += 1;
        }
    }
    shape
}

/// Python's `range(dim)[start:end:step]`, element by element.
fn positions(start: Option<isize>, end: Option<isize>, step: isize, dim: usize) -> Vec<usize> {
    let dim = dim as isize;
    let place = |at: isize| if at < 0 { at + dim } else { at };
    let mut at = match (start.map(place), step > 0) {
        (None, true) => 0,
        (None, false) => dim - 1,
        (Some(at), true) => at.max(0),
        (Some(at), false) => at.min(dim - 1),
    };
    let mut found = Vec::new();
    while (0..dim).contains(&at) {
        let over = end.map(place).is_some_and(|end| if step > 0 { at >= end } else { at <= end });
        if over {
            break;
        }
        found.push(at as usize);
        at = at.saturating_add(step);
    }
    found
}

/// Applies a step to both; `None` if the shape does not allow it.
fn take(layout: &Layout, model: &Model, step: &Step) -> Option<(Layout, Model)> {
    let rank = model.shape.len();
    let replaced = |axis: usize, by: &[usize]| [&model.shape[..axis], by, &model.shape[axis + 1..]].concat();
    Some(match *step {
        Step::Permute(seed) => {
            let order = permutation(rank, seed);
            let shape = order.iter().map(|&axis| model.shape[axis]).collect();
            let back = |c: &[usize]| {
                let mut from = vec![0; rank];
                order.iter().zip(c).for_each(|(&axis, &i)| from[axis] = i);
                from
            };
            (layout.permute(&order), model.map(shape, back))
        }
        Step::Slice { axis, start, end, step } => {
            let axis = axis % rank.max(1);
            let found = positions(start, end, step, *model.shape.get(axis)?);
            let mut indices = vec![Index::from(..); axis];
            indices.push(Index::Range { start, end, step });
            let from = |c: &[usize]| [&c[..axis], &[found[c[axis]]], &c[axis + 1..]].concat();
            (layout.slice(&indices).unwrap(), model.map(replaced(axis, &[found.len()]), from))
        }
        Step::Pick { axis, position } => {
            let axis = axis % rank.max(1);
            let position = position % (*model.shape.get(axis)?).max(1);
            let mut indices = vec![Index::from(..); axis];
            indices.push(Index::At(position as isize));
            if model.shape[axis] == 0 {
                assert!(layout.slice(&indices).is_err());
                return None;
            }
            let from = |c: &[usize]| [&c[..axis], &[position], &c[axis..]].concat();
            (layout.slice(&indices).unwrap(), model.map(replaced(axis, &[]), from))
        }
        Step::Insert(axis) => {
            let axis = axis % (rank + 1);
            let shape = [&model.shape[..axis], &[1], &model.shape[axis..]].concat();
            let inserted = layout.insert_axis(axis);
            assert_eq!(&inserted.remove_axis(axis), layout);
            (inserted, model.map(shape, |c| [&c[..axis], &c[axis + 1..]].concat()))
        }
        Step::Repeat { axis, times } => {
            let axis = axis % rank.max(1);
            if *model.shape.get(axis)? != 1 {
                return None;
            }
            let shape = [&[2], &replaced(axis, &[times])[..]].concat();
            let from = |c: &[usize]| [&c[1..=axis], &[0], &c[axis + 2..]].concat();
            (layout.broadcast(&Shape::from(&shape)).unwrap(), model.map(shape, from))
        }
        Step::Diagonal(k) => {
            let [outer @ .., rows, columns] = &model.shape[..] else { return None };
            let (top, left) = (if k < 0 { -k as usize } else { 0 }, if k > 0 { k as usize } else { 0 });
            let len = (0..*rows).filter(|i| i + top < *rows && i + left < *columns).count();
            let from = |c: &[usize]| [&c[..rank - 2], &[c[rank - 2] + top, c[rank - 2] + left]].concat();
            (layout.diagonal(k), model.map([outer, &[len]].concat(), from))
        }
        Step::Reshape(seed) => {
            let shape = shape_of(model.at.len(), seed);
            let Some(reshaped) = layout.reshape(&Shape::from(&shape)) else {
                assert!(!layout.is_contiguous() && !model.at.is_empty(), "{layout:?} to {shape:?}");
                return None;
            };
            (reshaped, Model { shape, at: model.at.clone() })
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// However views are chained, a layout finds the elements that the model finds; what cannot be reshaped as a
    /// view is an error, never wrong.
    #[test]
    fn views_of_views_find_their_elements(
        shape in proptest::collection::vec(prop_oneof![1 => Just(0usize), 9 => 1usize..5], 0..5),
        steps in proptest::collection::vec(step(), 1..6),
    ) {
        let _ledger = ledger_check();
        let mut layout = Layout::contiguous(Shape::from(&shape));
        let len: usize = shape.iter().product();
        let mut model = Model { shape, at: (0..len).collect() };
        for step in steps {
            let Some((next, expected)) = take(&layout, &model, &step) else { continue };
            prop_assert_eq!(&Model::of(&next), &expected, "{:?} of {:?}", step, layout);
            let row_major = expected.at.windows(2).all(|pair| pair[1] == pair[0] + 1);
            prop_assert_eq!(next.is_contiguous() || expected.at.is_empty(), row_major || expected.at.is_empty());
            (layout, model) = (next, expected);
        }
    }

    /// Adding and removing axes of size one, and restoring the shape, never needs a copy.
    #[test]
    fn ones_never_force_a_copy(
        shape in proptest::collection::vec(0usize..4, 0..4),
        seed in any::<u64>(),
        place in 0usize..5,
    ) {
        let _ledger = ledger_check();
        let layout = Layout::contiguous(Shape::from(&shape)).permute(&permutation(shape.len(), seed));
        let place = place % (shape.len() + 1);
        let with_one = layout.reshape(&layout.shape.clone().with_inserted(place, 1)).expect("a view");
        let back = with_one.reshape(&layout.shape).expect("a view");
        prop_assert_eq!(Model::of(&back), Model::of(&layout));
    }
}
