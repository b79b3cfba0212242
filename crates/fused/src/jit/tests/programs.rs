//! Programs of many steps, and the memory they run on.

use super::*;
use proptest::prelude::*;
use taut_kernels::elementwise::{Binary, Unary};

fn step(code: Code, operands: &[TileOperand]) -> TileStep {
    TileStep { code, operands: operands.iter().copied().collect() }
}

fn constant(dtype: DType, x: f64) -> TileConstant {
    TileConstant { dtype, bytes: encode(dtype, x).to_le_bytes() }
}

fn number(x: f64) -> TileConstant {
    constant(DType::F32, x)
}

const INPUTS: [DType; 6] = [DType::F32, DType::F64, DType::Bool, DType::I32, DType::F32, DType::F16];

/// Operands for a code among the available ones, the first that fit from each pick on.
fn fit(code: Code, available: &[(TileOperand, DType)], picks: [u16; 3]) -> Option<Vec<TileOperand>> {
    let find = |k: usize, fits: &dyn Fn(DType) -> bool| {
        let from = picks[k] as usize % available.len();
        let mut rotated = available[from..].iter().chain(&available[..from]);
        rotated.find(|(_, dtype)| fits(*dtype)).copied()
    };
    let n = code.operands();
    if code == Code::Select {
        let (condition, _) = find(0, &|dtype| dtype == DType::Bool)?;
        let (a, dtype) = find(1, &|_| true)?;
        let (b, _) = find(2, &|other| other == dtype)?;
        return Some(vec![condition, a, b]);
    }
    let (first, dtype) = find(0, &|dtype| code.result(&[dtype; 3][..n]).is_some())?;
    let rest = (1..n).map(|k| find(k, &|other| other == dtype).map(|(operand, _)| operand));
    std::iter::once(Some(first)).chain(rest).collect()
}

/// A program of steps that random numbers select. Steps without machine code are left out.
fn draw(picks: &[(u16, [u16; 3])], inputs: &[DType], outputs: usize) -> Option<TileProgram> {
    let constants: Vec<TileConstant> =
        inputs.iter().flat_map(|&dtype| [constant(dtype, 0.7), constant(dtype, -3.0)]).collect();
    let mut codes: Vec<Code> = Unary::ALL.map(Code::Unary).to_vec();
    codes.extend(Binary::ALL.map(Code::Binary));
    codes.extend(DType::REAL.map(Code::Cast));
    codes.extend([Code::Select; 6]);
    codes.extend([Code::Clip; 3]);
    codes.extend([Binary::Mul, Binary::Add, Binary::Lt].map(Code::Binary).repeat(6));
    let build = |steps: &[TileStep], outputs: Vec<usize>| {
        TileProgram::new(inputs.to_vec(), constants.clone(), steps.to_vec(), outputs).unwrap()
    };
    let mut available: Vec<(TileOperand, DType)> =
        inputs.iter().enumerate().map(|(i, &dtype)| (TileOperand::Input(i), dtype)).collect();
    available
        .extend(constants.iter().enumerate().map(|(i, constant)| (TileOperand::Constant(i), constant.dtype)));
    let mut steps: Vec<TileStep> = Vec::new();
    for &(code, picks) in picks {
        let code = codes[code as usize % codes.len()];
        let Some(operands) = fit(code, &available, picks) else { continue };
        let last = steps.len();
        steps.push(step(code, &operands));
        let program = build(&steps, vec![last]);
        if compile(&program).is_none() {
            steps.pop();
            continue;
        }
        // Twice, so that chains get long.
        available.extend([(TileOperand::Step(last), program.step_type(last)); 2]);
    }
    let last = steps.len().checked_sub(1)?;
    Some(build(&steps, (0..outputs).map(|k| last.saturating_sub(2 * k)).collect()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn random_programs_agree_with_the_kernels(
        picks in prop::collection::vec(any::<(u16, [u16; 3])>(), 1..24),
        used in 1usize..=6,
        outputs in 1usize..4,
        n in 0usize..200,
        seed in any::<u64>(),
    ) {
        let inputs = &INPUTS[..used];
        if let Some(program) = draw(&picks, inputs, outputs) {
            let mut bits = Bits(seed);
            let versions = versions(&program);
            assert!(!versions.is_empty(), "every step has code");
            let arrays: Vec<Array> = inputs.iter().map(|&dtype| samples(dtype, n, 1, &mut bits)).collect();
            let want = reference(&program, &arrays, n);
            for code in versions {
                assert_same(&program, &arrays, &run(&code, &program, &arrays, n), &want);
            }
        }
    }
}

/// Sixty products that are all live until the sum: far more than there are registers.
#[test]
fn values_beyond_the_registers_are_spilled() {
    for dtype in [DType::F32, DType::F64, DType::I32] {
        let inputs = vec![dtype; 2];
        let mut steps =
            vec![step(Code::Binary(Binary::Add), &[TileOperand::Input(0), TileOperand::Input(1)])];
        for i in 0..60 {
            steps.push(step(Code::Binary(Binary::Add), &[TileOperand::Step(i), TileOperand::Input(i % 2)]));
        }
        let mut sum = 0;
        for i in (1..61).rev() {
            let product = steps.len();
            steps.push(step(Code::Binary(Binary::Mul), &[TileOperand::Step(i), TileOperand::Input(0)]));
            steps
                .push(step(Code::Binary(Binary::Sub), &[TileOperand::Step(sum), TileOperand::Step(product)]));
            sum = product + 1;
        }
        let outputs = vec![steps.len() - 1, 5, 40];
        let program = TileProgram::new(inputs, vec![], steps, outputs).unwrap();
        let versions = versions(&program);
        let mut bits = Bits(1);
        for n in [1, 8, 61, 500] {
            let arrays: Vec<Array> = (0..2).map(|_| samples(dtype, n, 1, &mut bits)).collect();
            let want = reference(&program, &arrays, n);
            for code in &versions {
                assert_same(&program, &arrays, &run(code, &program, &arrays, n), &want);
            }
        }
    }
}

#[test]
fn more_arrays_than_general_registers() {
    let n = 77;
    let inputs: Vec<DType> = [DType::F32, DType::F64, DType::I16, DType::Bool].repeat(3);
    let mut steps: Vec<TileStep> =
        (0..12).map(|i| step(Code::Cast(DType::F32), &[TileOperand::Input(i)])).collect();
    for i in 0..8 {
        steps.push(step(Code::Binary(Binary::Add), &[TileOperand::Step(i + 11), TileOperand::Step(i)]));
    }
    let program = TileProgram::new(inputs.clone(), vec![], steps, (8..20).collect()).unwrap();
    let code = compile(&program).unwrap();
    let mut bits = Bits(2);
    let arrays: Vec<Array> = inputs.iter().map(|&dtype| samples(dtype, n, 1, &mut bits)).collect();
    assert_same(&program, &arrays, &run(&code, &program, &arrays, n), &reference(&program, &arrays, n));
    // More than the limit.
    let copies = (0..30).map(|i| step(Code::Copy, &[TileOperand::Input(i)])).collect();
    let program = TileProgram::new(vec![DType::F32; 30], vec![], copies, vec![0]).unwrap();
    assert!(compile(&program).is_none());
}

/// Adam: gradient, parameter, and two moments; three outputs that may be in place.
fn adam() -> TileProgram {
    use TileOperand::{Constant, Input, Step};
    let (mul, add, sub) = (Code::Binary(Binary::Mul), Code::Binary(Binary::Add), Code::Binary(Binary::Sub));
    let steps = vec![
        step(mul, &[Constant(0), Input(1)]),
        step(mul, &[Constant(1), Input(0)]),
        step(add, &[Step(0), Step(1)]),
        step(mul, &[Constant(2), Input(2)]),
        step(Code::Unary(Unary::Square), &[Input(0)]),
        step(mul, &[Constant(3), Step(4)]),
        step(add, &[Step(3), Step(5)]),
        step(Code::Unary(Unary::Sqrt), &[Step(6)]),
        step(add, &[Step(7), Constant(4)]),
        step(Code::Binary(Binary::Div), &[Step(2), Step(8)]),
        step(mul, &[Step(9), Constant(5)]),
        step(sub, &[Input(3), Step(10)]),
    ];
    let constants = [0.9, 0.1, 0.999, 0.001, 1e-8, 0.01].map(number).to_vec();
    TileProgram::new(vec![DType::F32; 4], constants, steps, vec![2, 6, 11]).unwrap()
}

#[test]
fn inputs_may_be_in_place() {
    let (program, mut bits) = (adam(), Bits(3));
    let code = compile(&program).unwrap();
    for n in [0, 1, 7, 8, 33, 1000] {
        let arrays: Vec<Array> = (0..4).map(|_| samples(DType::F32, n, 1, &mut bits)).collect();
        let want = reference(&program, &arrays, n);
        let mut placed = arrays[1..].to_vec();
        let mut outputs: Vec<&mut [u8]> = placed.iter_mut().map(Array::get_mut).collect();
        code.run(&[arrays[0].get(), &[], &[], &[]], &mut outputs, &[None, Some(0), Some(1), Some(2)]);
        assert_same(&program, &arrays, &placed, &want);
    }
    // Each output overwrites the other one's operand: the last step reads what the first output overwrites.
    let steps = vec![
        step(Code::Unary(Unary::Neg), &[TileOperand::Input(0)]),
        step(Code::Binary(Binary::Sub), &[TileOperand::Input(0), TileOperand::Input(1)]),
    ];
    let program = TileProgram::new(vec![DType::F64; 2], vec![], steps, vec![0, 1]).unwrap();
    let code = compile(&program).unwrap();
    let arrays: Vec<Array> = (0..2).map(|_| samples(DType::F64, 90, 1, &mut bits)).collect();
    let want = reference(&program, &arrays, 90);
    let mut placed = vec![arrays[1].clone(), arrays[0].clone()];
    let mut outputs: Vec<&mut [u8]> = placed.iter_mut().map(Array::get_mut).collect();
    code.run(&[&[], &[]], &mut outputs, &[Some(1), Some(0)]);
    assert_same(&program, &arrays, &placed, &want);
}

/// Slices in the middle of larger ones, at odd offsets: bytes around the output stay.
#[test]
fn nothing_beyond_an_array_is_written() {
    for from in DType::REAL {
        for to in [DType::F32, DType::F64, DType::Bool, DType::U8, DType::F16, DType::I16] {
            let (_, Some(code)) = single(Code::Cast(to), &[from]).unwrap() else { continue };
            for n in 0..40 {
                let input = vec![1u8; n * from.size() + 3];
                let mut output = vec![0xa5u8; n * to.size() + 200];
                code.run(&[&input[3..]], &mut [&mut output[101..101 + n * to.size()]], &[None]);
                let (before, rest) = output.split_at(101);
                assert!(
                    before.iter().chain(&rest[n * to.size()..]).all(|&byte| byte == 0xa5),
                    "{from} to {to}, {n}"
                );
            }
        }
    }
}

/// An array that ends at the end of a page: reading one byte more would be a fault.
#[test]
fn nothing_beyond_an_array_is_read() {
    let page = 4096;
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping of two pages.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), 2 * page, access, kind, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    // SAFETY: the second page belongs to the mapping.
    assert_eq!(unsafe { libc::mprotect(start.byte_add(page), page, libc::PROT_NONE) }, 0);
    for dtype in DType::REAL {
        let (_, code) = single(Code::Copy, &[dtype]).unwrap();
        for n in 0..40 {
            let bytes = n * dtype.size();
            // SAFETY: the first page is readable, and nothing writes to it.
            let input =
                unsafe { std::slice::from_raw_parts(start.byte_add(page - bytes).cast::<u8>(), bytes) };
            let mut output = vec![1u8; bytes];
            code.as_ref().unwrap().run(&[input], &mut [&mut output], &[None]);
            assert!(output.iter().all(|&byte| byte == 0));
        }
    }
    // SAFETY: this is the mapping made above.
    unsafe { libc::munmap(start, 2 * page) };
}

/// Stores of outputs too large for the cache bypass it; aligned or not, whole blocks or not.
#[test]
fn large_outputs_are_streamed() {
    let (program, mut bits) = (adam(), Bits(4));
    let code = compile(&program).unwrap();
    let n = (4 << 20) / 4 + 13;
    let arrays: Vec<Array> = (0..4).map(|_| samples(DType::F32, n, 1, &mut bits)).collect();
    let want = reference(&program, &arrays, n);
    let mut buffers: Vec<Vec<u64>> = vec![vec![0; n / 2 + 10]; 3];
    for skip in [0, 4] {
        let mut outputs: Vec<&mut [u8]> = Vec::new();
        for buffer in &mut buffers {
            let bytes: &mut [u8] = cast_slice_mut(buffer);
            let start = bytes.as_ptr().align_offset(64) + skip;
            outputs.push(&mut bytes[start..start + 4 * n]);
        }
        let inputs: Vec<&[u8]> = arrays.iter().map(Array::get).collect();
        code.run(&inputs, &mut outputs, &[]);
        for (got, want) in outputs.iter().zip(&want) {
            let mut pairs = got.chunks(4).zip(want.get().chunks(4));
            assert!(pairs.all(|(got, want)| same(DType::F32, got, want)));
        }
    }
}

/// Linux allows some 65,000 mappings at a time: more programs than that, one after another.
#[test]
fn pages_are_unmapped() {
    let (program, _) = single(Code::Unary(Unary::Square), &[DType::F32]).unwrap();
    for _ in 0..70_000 {
        assert!(compile(&program).is_some());
    }
}

#[test]
fn threads_run_one_function_at_once() {
    let (program, mut bits) = (adam(), Bits(5));
    let code = compile(&program).unwrap();
    let arrays: Vec<Array> = (0..4).map(|_| samples(DType::F32, 5000, 1, &mut bits)).collect();
    let want = reference(&program, &arrays, 5000);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_same(&program, &arrays, &run(&code, &program, &arrays, 5000), &want);
                }
            });
        }
    });
}

#[test]
fn arrays_are_checked() {
    let (_, code) = single(Code::Binary(Binary::Add), &[DType::F32; 2]).unwrap();
    let code = code.unwrap();
    let refused = |inputs: &[&[u8]], bytes: usize, in_place: &[Option<usize>]| {
        let mut output = vec![0u8; bytes];
        let run = std::panic::AssertUnwindSafe(|| code.run(inputs, &mut [&mut output], in_place));
        std::panic::catch_unwind(run).is_err()
    };
    assert!(!refused(&[&[0; 8], &[0; 8]], 8, &[None, None]));
    assert!(!refused(&[&[0; 8], &[]], 8, &[None, Some(0)]));
    assert!(refused(&[&[0; 8]], 8, &[None]));
    assert!(refused(&[&[0; 8], &[0; 4]], 8, &[None, None]));
    assert!(refused(&[&[0; 8], &[0; 8]], 7, &[None, None]));
    assert!(refused(&[&[0; 8], &[]], 8, &[None, Some(1)]));
}
