//! Kernels against formulas, and edge cases.

mod common;

use common::{Choices, Data, Random, constant, step, step_by_step};
use taut_fused::TileOperand::{Constant as C, Input as I, Step as S};
use taut_fused::{FusedKernel, TileProgram};
use taut_kernels::elementwise::{Binary, Code, Unary};
use taut_kernels::reduce::Reduce;
use taut_kernels::{Arg, DType, View, pool};

const ADD: Code = Code::Binary(Binary::Add);
const SUB: Code = Code::Binary(Binary::Sub);
const MUL: Code = Code::Binary(Binary::Mul);
const DIV: Code = Code::Binary(Binary::Div);
const SQUARE: Code = Code::Unary(Unary::Square);

/// `2x² + 1`.
fn parabola() -> TileProgram {
    let steps = vec![step(SQUARE, &[I(0)]), step(MUL, &[C(0), S(0)]), step(ADD, &[S(1), C(1)])];
    TileProgram::new(vec![DType::F32], vec![constant(2f32), constant(1f32)], steps, vec![2]).unwrap()
}

/// `a - b`, `(a - b) * a` and `a + b`, as outputs.
fn three(dtype: DType) -> TileProgram {
    let steps = vec![step(SUB, &[I(0), I(1)]), step(MUL, &[S(0), I(0)]), step(ADD, &[I(0), I(1)])];
    TileProgram::new(vec![dtype; 2], vec![], steps, vec![0, 1, 2]).unwrap()
}

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 7 % 23) as f32 - 11.0).collect()
}

fn run(program: &TileProgram, inputs: &[&Data], shape: &[usize]) -> Vec<Data> {
    let mut outputs: Vec<Data> = program.output_types().map(|dtype| Data::zeros(dtype, shape)).collect();
    let args: Vec<Arg<'_>> = inputs.iter().map(|input| Arg::View(input.view())).collect();
    let mut views: Vec<_> = outputs.iter_mut().map(Data::out).collect();
    FusedKernel::new(program.clone()).run(&args, &mut views);
    outputs
}

#[test]
fn a_chain_is_its_formula() {
    for n in [0, 1, 63, 64, 65, 2047, 2049, 16383, 16384, 100_000] {
        let x = numbers(n);
        let out = &run(&parabola(), &[&Data::from(&x, &[n])], &[n])[0];
        let expected: Vec<f32> = x.iter().map(|x| 2.0 * x * x + 1.0).collect();
        assert_eq!(out.slice::<f32>(), expected);
    }
}

#[test]
fn a_scalar_has_one_element() {
    let out = &run(&parabola(), &[&Data::from(&[3f32], &[])], &[])[0];
    assert_eq!(out.slice::<f32>(), [19.0]);
}

#[test]
fn empty_shapes_compute_nothing() {
    for shape in [&[0][..], &[3, 0, 2], &[0, 0]] {
        let out = run(
            &three(DType::F64),
            &[&Data::zeros(DType::F64, shape), &Data::zeros(DType::F64, shape)],
            shape,
        );
        assert_eq!(out.len(), 3);
    }
}

#[test]
fn every_layout_is_read_in_row_major_order() {
    let (rows, columns) = (300, 130);
    let values = numbers(rows * columns);
    let at = |r: usize, c: usize| values[r * columns + c];
    let bytes = bytemuck::cast_slice(&values);
    let shape = [rows, columns];
    let layouts: [(usize, [isize; 2], &dyn Fn(usize, usize) -> f32); 6] = [
        (0, [columns as isize, 1], &at),
        (rows * columns - 1, [-(columns as isize), -1], &|r, c| at(rows - 1 - r, columns - 1 - c)),
        (0, [0, 1], &|_, c| at(0, c)),
        (0, [columns as isize, 0], &|r, _| at(r, 0)),
        (5, [0, 0], &|_, _| values[5]),
        (0, [1, rows as isize], &|r, c| values[c * rows + r]),
    ];
    for (offset, strides, element) in layouts {
        let mut out = Data::zeros(DType::F32, &shape);
        let view = View::new(DType::F32, bytes, offset, &shape, &strides);
        FusedKernel::new(parabola()).run(&[Arg::View(view)], &mut [out.out()]);
        for r in 0..rows {
            for c in 0..columns {
                let x = element(r, c);
                assert_eq!(out.slice::<f32>()[r * columns + c], 2.0 * x * x + 1.0, "{strides:?} at {r}, {c}");
            }
        }
    }
}

#[test]
fn inputs_are_overwritten_in_place() {
    for n in [1, 100, 5000, 70_000] {
        let (a, b) = (numbers(n), numbers(2 * n)[n..].to_vec());
        // Each output in turn overwrites `a`, and the next one `b`.
        for k in 0..3 {
            let mut outputs = [DType::F32; 3].map(|dtype| Data::zeros(dtype, &[n]));
            outputs[k] = Data::from(&a, &[n]);
            outputs[(k + 1) % 3] = Data::from(&b, &[n]);
            let mut views: Vec<_> = outputs.iter_mut().map(Data::out).collect();
            FusedKernel::new(three(DType::F32))
                .run(&[Arg::InPlace(k), Arg::InPlace((k + 1) % 3)], &mut views);
            for i in 0..n {
                let expected = [a[i] - b[i], (a[i] - b[i]) * a[i], a[i] + b[i]];
                assert_eq!(outputs.each_ref().map(|output| output.slice::<f32>()[i]), expected);
            }
        }
    }
}

#[test]
fn two_inputs_can_be_in_place_in_one_output() {
    let n = 3000;
    let x = numbers(n);
    let mut out = Data::from(&x, &[n]);
    let steps = vec![step(MUL, &[I(0), I(1)]), step(ADD, &[S(0), I(1)])];
    let program = TileProgram::new(vec![DType::F32; 2], vec![], steps, vec![1]).unwrap();
    FusedKernel::new(program).run(&[Arg::InPlace(0), Arg::InPlace(0)], &mut [out.out()]);
    assert!(out.slice::<f32>().iter().zip(&x).all(|(out, x)| *out == x * x + x));
}

/// Adam on f64, so that the formula in the test rounds as the steps do.
#[test]
fn an_update_writes_its_state_in_place() {
    let n = 40_000;
    let (shape, rate) = ([n], Data::from(&[0.01f64], &[1]));
    let [beta, gamma, tiny] = [0.9, 0.999, 1e-8];
    // Inputs: weight, gradient, m, v, rate.
    let steps = vec![
        step(MUL, &[I(2), C(0)]),
        step(MUL, &[I(1), C(1)]),
        step(ADD, &[S(0), S(1)]),
        step(MUL, &[I(3), C(2)]),
        step(SQUARE, &[I(1)]),
        step(MUL, &[S(4), C(3)]),
        step(ADD, &[S(3), S(5)]),
        step(Code::Unary(Unary::Sqrt), &[S(6)]),
        step(ADD, &[S(7), C(4)]),
        step(DIV, &[S(2), S(8)]),
        step(MUL, &[S(9), I(4)]),
        step(SUB, &[I(0), S(10)]),
    ];
    let constants = [beta, 1.0 - beta, gamma, 1.0 - gamma, tiny].map(constant).to_vec();
    let kernel =
        FusedKernel::new(TileProgram::new(vec![DType::F64; 5], constants, steps, vec![11, 2, 6]).unwrap());
    let random = &mut Random(5);
    let mut values = || (0..n).map(|_| random.unit()).collect::<Vec<f64>>();
    let (weight, gradient, m) = (values(), values(), values());
    let v: Vec<f64> = values().iter().map(|v| v.abs()).collect();
    let mut outputs = [&weight, &m, &v].map(|values| Data::from(values, &[n]));
    let mut views: Vec<_> = outputs.iter_mut().map(Data::out).collect();
    let gradients = Data::from(&gradient, &[n]);
    let rates = View::new(DType::F64, bytemuck::cast_slice(&rate.words), 0, &shape, &[0]);
    let args =
        [Arg::InPlace(0), Arg::View(gradients.view()), Arg::InPlace(1), Arg::InPlace(2), Arg::View(rates)];
    kernel.run(&args, &mut views);
    for i in 0..n {
        let new_m = m[i] * beta + gradient[i] * (1.0 - beta);
        let new_v = v[i] * gamma + gradient[i] * gradient[i] * (1.0 - gamma);
        let new = weight[i] - new_m / (new_v.sqrt() + tiny) * 0.01;
        assert_eq!(outputs.each_ref().map(|output| output.slice::<f64>()[i]), [new, new_m, new_v]);
    }
}

#[test]
fn outputs_can_be_duplicates_copies_and_constants() {
    let x = numbers(1000);
    let steps = vec![step(Code::Copy, &[I(0)]), step(Code::Copy, &[C(0)]), step(ADD, &[S(0), S(1)])];
    let program = TileProgram::new(vec![DType::F32], vec![constant(4f32)], steps, vec![2, 0, 2, 1]).unwrap();
    let outputs = run(&program, &[&Data::from(&x, &[1000])], &[1000]);
    for (i, &x) in x.iter().enumerate() {
        let found: Vec<f32> = outputs.iter().map(|output| output.slice::<f32>()[i]).collect();
        assert_eq!(found, [x + 4.0, x, x + 4.0, 4.0]);
    }
}

#[test]
fn a_program_may_have_no_inputs() {
    let steps = vec![step(SQUARE, &[C(0)])];
    let program = TileProgram::new(vec![], vec![constant(3i16)], steps, vec![0]).unwrap();
    assert!(run(&program, &[], &[3000])[0].slice::<i16>().iter().all(|x| *x == 9));
}

/// With more live values and operands than the per-thread buffers hold, the buffers are allocated.
#[test]
fn programs_with_many_live_values_run() {
    let (n, shape) = (60, [130, 70]);
    let mut steps: Vec<_> = (0..n).map(|i| step(SQUARE, &[I(i)])).collect();
    for i in 0..n - 1 {
        let sum = if i == 0 { S(0) } else { S(n + i - 1) };
        steps.push(step(ADD, &[sum, S(n - 1 - i)]));
    }
    let last = steps.len() - 1;
    let program = TileProgram::new(vec![DType::F64; n], vec![], steps, vec![last]).unwrap();
    let random = &mut Random(3);
    let data: Vec<Data> = (0..n)
        .map(|i| {
            Data::random(
                &mut Choices::new((0..9).map(|c| (i * 31 + c * 7) as u32).collect()),
                random,
                DType::F64,
                &shape,
            )
        })
        .collect();
    let plain: Vec<Data> = data.iter().map(Data::materialised).collect();
    let out = run(&program, &data.iter().collect::<Vec<_>>(), &shape);
    assert!(step_by_step(&program, &plain, &shape)[0].same(&out[0]));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let n = 300_000;
    let (x, y) = (Data::from(&numbers(n), &[n]), Data::from(&numbers(2 * n)[n..], &[n]));
    let steps = vec![step(SUB, &[I(0), I(1)]), step(Code::Unary(Unary::Tanh), &[S(0)])];
    let kernel = FusedKernel::new(TileProgram::new(vec![DType::F32; 2], vec![], steps, vec![1]).unwrap());
    let args = [Arg::View(x.view()), Arg::View(y.view())];
    let results = [1, 2, 3].map(|threads| {
        pool::set_threads(threads);
        let (mut out, mut sum) = (Data::zeros(DType::F32, &[n]), Data::zeros(DType::F32, &[]));
        kernel.run(&args, &mut [out.out()]);
        kernel.reduce(&args, &[n], Reduce::Sum, &[true], sum.out(), &mut []);
        (out.words, sum.words)
    });
    pool::set_threads(0);
    assert!(results[0] == results[1] && results[1] == results[2]);
}

#[test]
fn a_sum_ends_a_chain() {
    let (rows, columns) = (128, 512);
    let random = &mut Random(2);
    let values: Vec<f32> = (0..rows * columns).map(|_| random.unit() as f32).collect();
    let x = Data::from(&values, &[rows, columns]);
    let bias: Vec<f32> = (0..columns).map(|c| c as f32 / 512.0).collect();
    let steps = vec![step(SUB, &[I(0), I(1)]), step(SQUARE, &[S(0)])];
    let kernel = FusedKernel::new(TileProgram::new(vec![DType::F32; 2], vec![], steps, vec![1]).unwrap());
    let shape = [rows, columns];
    let strides = [0, 1];
    let bias_view = View::new(DType::F32, bytemuck::cast_slice(&bias), 0, &shape, &strides);
    let args = [Arg::View(x.view()), Arg::View(bias_view)];
    let term = |r: usize, c: usize| (values[r * columns + c] - bias[c]) as f64;
    let sum = |axes: [bool; 2], kept: &[usize]| {
        let mut out = Data::zeros(DType::F32, kept);
        let mut scratch = vec![0u64; FusedKernel::reduce_scratch(&shape, &axes) / 8];
        kernel.reduce(&args, &shape, Reduce::Sum, &axes, out.out(), bytemuck::cast_slice_mut(&mut scratch));
        out
    };
    let near = |found: f32, terms: &mut dyn Iterator<Item = f64>| {
        let expected: f64 = terms.map(|x| x * x).sum();
        assert!((found as f64 - expected).abs() <= 1e-6 * expected, "{found} for {expected}");
    };
    let all = sum([true, true], &[]);
    near(all.slice::<f32>()[0], &mut (0..rows * columns).map(|i| term(i / columns, i % columns)));
    for (c, &found) in sum([true, false], &[columns]).slice::<f32>().iter().enumerate() {
        near(found, &mut (0..rows).map(|r| term(r, c)));
    }
    for (r, &found) in sum([false, true], &[rows]).slice::<f32>().iter().enumerate() {
        near(found, &mut (0..columns).map(|c| term(r, c)));
    }
    let none = sum([false, false], &shape);
    assert!((0..rows * columns).all(|i| {
        let term = values[i] - bias[i % columns];
        none.slice::<f32>()[i] == term * term
    }));
}

/// `relu((y + a) * y - b)` of elements `y` that are produced block by block equals that of all elements at once.
#[test]
fn an_epilogue_is_applied_block_by_block() {
    let steps = vec![
        step(ADD, &[I(1), I(0)]),
        step(MUL, &[S(0), I(1)]),
        step(SUB, &[S(1), I(2)]),
        step(Code::Unary(Unary::Relu), &[S(2)]),
    ];
    let program = TileProgram::new(vec![DType::F32; 3], vec![], steps, vec![3]).unwrap();
    for (rows, columns) in [(1, 1), (7, 10), (60, 64), (90, 301), (3, 4000), (4000, 3)] {
        let shape = [rows, columns];
        let (made, operands) = (numbers(rows * columns), numbers(rows * columns + 5));
        let (r, c) = (rows as isize, columns as isize);
        let last = rows * columns - 1;
        let layouts = [
            (0, [c, 1]),
            (5, [0, 1]),
            (0, [1, 0]),
            (3, [0, 0]),
            (last, [-c, -1]),
            (0, [1, r]),
            (columns - 1, [0, -1]),
        ];
        for (i, a) in layouts.iter().enumerate() {
            let b = &layouts[(i * 3 + 1) % layouts.len()];
            let element = |(offset, strides): &(usize, [isize; 2]), at: usize| {
                let (row, column) = ((at / columns) as isize, (at % columns) as isize);
                operands[(*offset as isize + row * strides[0] + column * strides[1]) as usize]
            };
            let expected: Vec<f32> = (made.iter().enumerate())
                .map(|(at, y)| ((y + element(a, at)) * y - element(b, at)).max(0.0))
                .collect();
            let bytes = bytemuck::cast_slice(&operands);
            let args = [
                Arg::View(View::new(DType::F32, bytes, a.0, &shape, &a.1)),
                Arg::InPlace(0),
                Arg::View(View::new(DType::F32, bytes, b.0, &shape, &b.1)),
            ];
            for kernel in [FusedKernel::new(program.clone()), FusedKernel::compiled(program.clone())] {
                for block in [1, 37, columns, 5 * columns, rows * columns] {
                    let mut out = made.clone();
                    let count = kernel.with_epilogue(&args, &shape, |epilogue| {
                        // The last blocks first: they are independent.
                        let blocks = out.chunks_mut(block).enumerate().rev();
                        blocks.map(|(i, part)| epilogue(i * block, bytemuck::cast_slice_mut(part))).count()
                    });
                    assert_eq!(count, (rows * columns).div_ceil(block));
                    assert!(out == expected, "{shape:?} by {block}: {a:?} {b:?}");
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "elements must be within the output")]
fn an_epilogue_beyond_the_output_is_refused() {
    let mut part = [0f32; 3];
    FusedKernel::new(parabola()).with_epilogue(&[Arg::InPlace(0)], &[4], |epilogue| {
        epilogue(2, bytemuck::cast_slice_mut(&mut part));
    });
}

#[test]
#[should_panic(expected = "the program must have one output")]
fn an_epilogue_with_several_outputs_is_refused() {
    FusedKernel::new(three(DType::F32)).with_epilogue(&[Arg::InPlace(0), Arg::InPlace(0)], &[4], |_| ());
}

#[test]
fn sums_of_integers_widen() {
    let x = Data::from(&[100i8; 1000], &[1000]);
    let program =
        TileProgram::new(vec![DType::I8], vec![], vec![step(Code::Copy, &[I(0)])], vec![0]).unwrap();
    let mut out = Data::zeros(DType::I64, &[]);
    FusedKernel::new(program).reduce(
        &[Arg::View(x.view())],
        &[1000],
        Reduce::Sum,
        &[true],
        out.out(),
        &mut [],
    );
    assert_eq!(out.slice::<i64>(), [100_000]);
    assert!(!FusedKernel::reduces(Reduce::Mean, DType::I8) && FusedKernel::reduces(Reduce::Mean, DType::F16));
}

#[test]
fn every_nonzero_byte_is_true() {
    let a = Data::from(&[0u8, 1, 2, 255, 0, 1, 2, 255], &[8]);
    let mask = Data { dtype: DType::Bool, ..a.clone() };
    let (x, y) = (Data::from(&[1u16; 8], &[8]), Data::from(&[7u16; 8], &[8]));
    let program = TileProgram::new(
        vec![DType::Bool, DType::U16, DType::U16],
        vec![],
        vec![step(Code::Select, &[I(0), I(1), I(2)])],
        vec![0],
    );
    let out = run(&program.unwrap(), &[&mask, &x, &y], &[8]);
    assert_eq!(out[0].slice::<u16>(), [7, 1, 1, 1, 7, 1, 1, 1]);
}

#[test]
#[should_panic(expected = "type of an input")]
fn inputs_of_another_type_are_refused() {
    run(&parabola(), &[&Data::zeros(DType::F64, &[4])], &[4]);
}

#[test]
#[should_panic(expected = "inputs must have the output's shape")]
fn inputs_of_another_shape_are_refused() {
    run(&parabola(), &[&Data::zeros(DType::F32, &[5])], &[4]);
}

#[test]
#[should_panic(expected = "a reduction must not have inputs in place")]
fn a_reduction_in_place_is_refused() {
    let mut out = Data::zeros(DType::F32, &[]);
    FusedKernel::new(parabola()).reduce(&[Arg::InPlace(0)], &[4], Reduce::Sum, &[true], out.out(), &mut []);
}

#[test]
#[should_panic(expected = "the maximum of no elements")]
fn the_maximum_of_nothing_is_refused() {
    let (x, mut out) = (Data::zeros(DType::F32, &[0]), Data::zeros(DType::F32, &[]));
    FusedKernel::new(parabola()).reduce(
        &[Arg::View(x.view())],
        &[0],
        Reduce::Max,
        &[true],
        out.out(),
        &mut [],
    );
}
