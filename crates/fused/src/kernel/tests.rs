use super::*;
use crate::program::{TileOperand, TileStep};
use std::sync::{Arc, Mutex};
use taut_kernels::View;
use taut_kernels::elementwise::{Binary, Code};

/// Adds tiles of any length, and records their lengths.
struct Adder(Arc<Mutex<Vec<usize>>>);

impl TileExecutor for Adder {
    fn max_elements(&self) -> usize {
        usize::MAX
    }

    fn bytes(&self) -> usize {
        0
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], in_place: &[Option<usize>], _stream: bool) {
        let [out] = outputs else { panic!("one output") };
        let out: &mut [f32] = bytemuck::cast_slice_mut(out);
        self.0.lock().unwrap().push(out.len());
        for (i, out) in out.iter_mut().enumerate() {
            let element = |n: usize| match in_place[n] {
                Some(_) => *out,
                None => bytemuck::cast_slice::<u8, f32>(inputs[n])[i],
            };
            assert!((0..2).all(|n| in_place[n].is_none() || inputs[n].is_empty()));
            *out = element(0) + element(1);
        }
    }
}

/// Runs `a + b` by an [`Adder`] and checks it; returns the lengths of the tiles, sorted.
fn add(shape: &[usize], strides: [&[isize]; 2], in_place: bool) -> Vec<usize> {
    let operands = [TileOperand::Input(0), TileOperand::Input(1)].into_iter().collect();
    let add = TileStep { code: Code::Binary(Binary::Add), operands };
    let program = TileProgram::new(vec![DType::F32; 2], vec![], vec![add], vec![0]).unwrap();
    let lengths = Arc::default();
    let kernel = FusedKernel::with_executor(program, Box::new(Adder(Arc::clone(&lengths))));
    let len: usize = shape.iter().product();
    let data: Vec<f32> = (0..len).map(|i| i as f32).collect();
    let view = |n: usize| View::new(DType::F32, bytemuck::cast_slice(&data), 0, shape, strides[n]);
    let mut out = data.clone();
    let first = if in_place { Arg::InPlace(0) } else { Arg::View(view(0)) };
    let output = ViewMut::new(DType::F32, bytemuck::cast_slice_mut(&mut out), shape);
    kernel.run(&[first, Arg::View(view(1))], &mut [output]);

    let element = |n: usize, i: usize| {
        let (mut rest, mut at) = (i, 0);
        for (&dim, &stride) in shape.iter().zip(strides[n]).rev() {
            at += (rest % dim) as isize * stride;
            rest /= dim;
        }
        at as f32
    };
    assert!((0..len).all(|i| out[i] == element(0, i) + element(1, i)));
    let mut lengths = std::mem::take(&mut *lengths.lock().unwrap());
    lengths.sort_unstable();
    lengths
}

#[test]
fn contiguous_tiles_are_as_long_as_possible() {
    assert_eq!(add(&[10_000], [&[1], &[1]], false), [10_000]);
    assert_eq!(add(&[100, 100], [&[100, 1], &[100, 1]], true), [10_000]);
    assert_eq!(add(&[], [&[], &[]], true), [1]);
    assert_eq!(add(&[0], [&[1], &[1]], false), []);
    let chunks = add(&[100_000], [&[1], &[1]], false);
    assert!(chunks.iter().sum::<usize>() == 100_000 && chunks.iter().all(|n| *n <= LARGEST_CHUNK));
}

#[test]
fn long_rows_are_read_in_memory() {
    assert_eq!(add(&[3, 4000], [&[4000, 1], &[0, 1]], false), [4000; 3]);
}

#[test]
fn repeated_and_gathered_inputs_come_in_tiles() {
    for strides in [[0, 0], [100, 0], [1, 100], [0, 1]] {
        let lengths = add(&[100, 100], [&[100, 1], &strides], true);
        assert!(lengths.iter().sum::<usize>() == 10_000 && lengths.iter().all(|n| *n <= 2048), "{lengths:?}");
    }
}
