//! Every operation of every type.

use super::*;
use taut_kernels::elementwise::{Binary, Unary};

const N: usize = 1000;

/// Runs a program at many lengths and compares the results with the kernels'.
fn check(program: &TileProgram, n: usize) {
    let versions = versions(program);
    let mut bits = Bits(n as u64);
    let first = program.inputs().first().map_or(1, |dtype| specials(*dtype).len());
    let strides = [1, first, 1];
    let stride = |i: usize| if program.inputs().len() == 1 { 1 } else { strides[i] };
    let inputs: Vec<Array> = program
        .inputs()
        .iter()
        .enumerate()
        .map(|(i, dtype)| samples(*dtype, n, stride(i), &mut bits))
        .collect();
    let want = reference(program, &inputs, n);
    for length in (0..70).chain([n]) {
        let cut: Vec<Array> =
            inputs.iter().zip(program.inputs()).map(|(array, dtype)| array.cut(*dtype, length)).collect();
        let want: Vec<Array> =
            want.iter().zip(program.output_types()).map(|(array, dtype)| array.cut(dtype, length)).collect();
        for version in &versions {
            assert_same(program, &cut, &run(version, program, &cut, length), &want);
        }
    }
}

/// Whether an operation is defined and has no code: it has no branch-free form for both precisions.
fn missing_unary(code: Unary, dtype: DType) -> bool {
    dtype.is_float() && code.lanes(1.0f64).is_none()
}

fn missing_binary(code: Binary, dtype: DType) -> bool {
    use Binary::*;
    match code {
        FloorDiv | Mod | TruncateMod | Atan2 | Complex => true,
        Pow => !dtype.is_float(),
        ShiftRight => dtype == DType::I64,
        _ => false,
    }
}

#[test]
fn unary_codes_agree_with_the_kernels() {
    for code in Unary::ALL.into_iter().chain([Unary::LeakyRelu(-0.3), Unary::Elu(0.7)]) {
        for dtype in DType::REAL {
            let Some((program, machine_code)) = single(Code::Unary(code), &[dtype]) else { continue };
            assert_eq!(machine_code.is_none(), missing_unary(code, dtype), "{code:?} of {dtype}");
            if machine_code.is_some() {
                check(&program, N);
            }
        }
    }
}

#[test]
fn binary_codes_agree_with_the_kernels() {
    for code in Binary::ALL {
        for dtype in DType::REAL {
            let Some((program, machine_code)) = single(Code::Binary(code), &[dtype; 2]) else { continue };
            assert_eq!(machine_code.is_none(), missing_binary(code, dtype), "{code:?} of {dtype}");
            if machine_code.is_some() {
                check(&program, 12 * N);
            }
        }
    }
}

#[test]
fn selections_and_bounds_agree_with_the_kernels() {
    for dtype in DType::REAL {
        for (code, first) in [(Code::Select, DType::Bool), (Code::Clip, dtype)] {
            let Some((program, machine_code)) = single(code, &[first, dtype, dtype]) else { continue };
            assert!(machine_code.is_some());
            check(&program, N);
        }
        let (program, machine_code) = single(Code::Copy, &[dtype]).unwrap();
        assert!(machine_code.is_some());
        check(&program, N);
    }
}

#[test]
fn conversions_agree_with_the_kernels() {
    let long = |dtype: DType| dtype.is_integer() && dtype.size() == 8;
    for from in DType::REAL {
        for to in DType::REAL {
            let (program, machine_code) = single(Code::Cast(to), &[from]).unwrap();
            let missing = from.is_float() && long(to) || long(from) && to == DType::F32;
            assert_eq!(machine_code.is_none(), missing, "{from} to {to}");
            if machine_code.is_some() {
                check(&program, 10 * N);
            }
        }
    }
}

/// Uniform samples of the ranges where the piecewise definitions of the functions meet, which random bits seldom hit.
#[test]
fn functions_agree_over_their_ranges() {
    let mut bits = Bits(11);
    for code in Unary::ALL {
        for dtype in [DType::F32, DType::F64] {
            let Some((program, Some(machine_code))) = single(Code::Unary(code), &[dtype]) else { continue };
            let n = 20_000;
            let mut x = Array::zeros(n * dtype.size());
            for (i, to) in x.get_mut().chunks_mut(dtype.size()).enumerate() {
                let value = [0.1, 1.0, 3.0, 20.0, 100.0, 760.0][i % 6] * bits.unit();
                to.copy_from_slice(&encode(dtype, value).to_le_bytes()[..dtype.size()]);
            }
            let x = [x];
            assert_same(&program, &x, &run(&machine_code, &program, &x, n), &reference(&program, &x, n));
        }
    }
}
