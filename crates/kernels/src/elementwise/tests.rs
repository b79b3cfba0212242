//! Every operation on every type against plain scalar code, and the cases that `NumPy` is particular about.

mod reference;

use super::*;
use crate::dtype::{bf16, f16};
use crate::simd::{Level, restrict};

/// The elements as the bytes of a contiguous view's buffer.
fn bytes<T: Element>(x: &[T]) -> &[u8] {
    cast_slice(x)
}

fn run_unary<T: Element, U: Element>(code: Unary, x: &[T]) -> Vec<U> {
    let mut out = vec![U::from_f64(0.0); x.len()];
    let shape = [x.len()];
    let view = View::new(T::DTYPE, bytes(x), 0, &shape, &[1]);
    unary(code, Arg::View(view), ViewMut::new(U::DTYPE, cast_slice_mut(&mut out), &shape));
    out
}

fn run_binary<T: Element, U: Element>(code: Binary, a: &[T], b: &[T]) -> Vec<U> {
    let mut out = vec![U::from_f64(0.0); a.len()];
    let shape = [a.len()];
    let view = |x| Arg::View(View::new(T::DTYPE, bytes(x), 0, &shape, &[1]));
    binary(code, view(a), view(b), ViewMut::new(U::DTYPE, cast_slice_mut(&mut out), &shape));
    out
}

/// Values that every float operation has to handle.
const FLOATS: [f64; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    0.1,
    -0.3,
    3.0,
    7.0,
    -7.25,
    6.5,
    30.0,
    -30.0,
    100.0,
    1e-6,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

const INTEGERS: [i64; 16] =
    [0, 1, -1, 2, -2, 3, 5, -7, 8, 63, 64, -64, i64::MAX, i64::MIN, i64::MAX - 1, 100];

/// All pairs of `values`.
fn pairs<T: Copy>(values: &[T]) -> (Vec<T>, Vec<T>) {
    values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b))).unzip()
}

/// Equal, both NaN, or within `tolerance` of each other.
fn close(got: f64, want: f64, tolerance: f64) -> bool {
    got == want || (got.is_nan() && want.is_nan()) || (got - want).abs() <= tolerance * want.abs()
}

/// How far the result of a type may be from the reference computed in `f64`.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        DType::F32 => 4.0 * f32::EPSILON as f64,
        _ => 8.0 * f64::EPSILON,
    }
}

#[test]
fn unary_floats() {
    fn check<T: Element>(code: Unary) {
        let x: Vec<T> = FLOATS.iter().map(|x| T::from_f64(*x)).collect();
        match code.result(T::DTYPE) {
            None => {
                use Unary::{Angle, BitwiseNot, Conj, Imag, Real};
                assert!(matches!(code, BitwiseNot | Real | Imag | Conj | Angle), "{code:?}");
            }
            Some(DType::Bool) => {
                for (x, got) in x.iter().zip(run_unary::<T, Bool>(code, &x)) {
                    assert_eq!(got.get() as u8 as f64, reference::unary(code, x.to_f64()), "{code:?}({x:?})");
                }
            }
            Some(dtype) => {
                assert_eq!(dtype, T::DTYPE);
                for (x, got) in x.iter().zip(run_unary::<T, T>(code, &x)) {
                    // The reference must overflow and vanish where the type does.
                    let want = T::from_f64(reference::unary(code, x.to_f64())).to_f64();
                    let tiny = want.abs() < 1e-6 && (got.to_f64() - want).abs() < 1e-7;
                    assert!(
                        tiny || close(got.to_f64(), want, tolerance(dtype)),
                        "{code:?}({x:?}) = {got:?}, not {want:?}"
                    );
                }
            }
        }
    }
    for code in Unary::ALL {
        check::<f32>(code);
        check::<f64>(code);
        check::<f16>(code);
        check::<bf16>(code);
    }
}

/// Integers of every type, from the low bits of the interesting ones.
macro_rules! each_integer {
    ($check:ident($($arg:expr),*)) => {
        $check::<u8>($($arg,)* |x| x as u8, |x| x as u8 as i128);
        $check::<u16>($($arg,)* |x| x as u16, |x| x as u16 as i128);
        $check::<u32>($($arg,)* |x| x as u32, |x| x as u32 as i128);
        $check::<u64>($($arg,)* |x| x as u64, |x| x as u64 as i128);
        $check::<i8>($($arg,)* |x| x as i8, |x| x as i8 as i128);
        $check::<i16>($($arg,)* |x| x as i16, |x| x as i16 as i128);
        $check::<i32>($($arg,)* |x| x as i32, |x| x as i32 as i128);
        $check::<i64>($($arg,)* |x| x as i64, |x| x as i64 as i128);
    };
}

#[test]
fn unary_integers() {
    fn check<T: Element>(code: Unary, of: fn(i128) -> T, exact: fn(i128) -> i128) {
        let x: Vec<T> = INTEGERS.iter().map(|x| of(*x as i128)).collect();
        let whole = INTEGERS.iter().map(|x| exact(*x as i128));
        match code.result(T::DTYPE) {
            None => assert!(reference::unary_integer(code, 0).is_none(), "{code:?}"),
            Some(DType::Bool) => {
                for (x, got) in whole.zip(run_unary::<T, Bool>(code, &x)) {
                    assert_eq!(Some(got.get() as i128), reference::unary_integer(code, x), "{code:?}({x})");
                }
            }
            Some(_) => {
                for (x, got) in whole.zip(run_unary::<T, T>(code, &x)) {
                    let want = reference::unary_integer(code, x).expect("defined for integers");
                    assert_eq!(got, of(want), "{code:?}({x}) of {}", T::DTYPE);
                }
            }
        }
    }
    for code in Unary::ALL {
        each_integer!(check(code));
    }
}

#[test]
fn binary_floats() {
    fn check<T: Element>(code: Binary) {
        let values: Vec<T> = FLOATS.iter().map(|x| T::from_f64(*x)).collect();
        let (a, b) = pairs(&values);
        match code.result(T::DTYPE) {
            None => assert!(reference::binary(code, 1.0, 1.0).is_none(), "{code:?}"),
            Some(dtype) if dtype.is_complex() => assert_eq!(code, Binary::Complex),
            Some(DType::Bool) => {
                for ((a, b), got) in a.iter().zip(&b).zip(run_binary::<T, Bool>(code, &a, &b)) {
                    let want = reference::binary(code, a.to_f64(), b.to_f64());
                    assert_eq!(Some(got.get() as u8 as f64), want, "{code:?}({a:?}, {b:?})");
                }
            }
            Some(dtype) => {
                for ((a, b), got) in a.iter().zip(&b).zip(run_binary::<T, T>(code, &a, &b)) {
                    let want = reference::binary(code, a.to_f64(), b.to_f64()).expect("defined for floats");
                    // The plain formula fails where rounding the quotient decides; NumPy's cases have their own test.
                    let ratio = (a.to_f64() / b.to_f64()).abs();
                    let undecided = !(1e-3..1e3).contains(&ratio) || (ratio - ratio.round()).abs() < 1e-2;
                    if code == Binary::Mod && undecided {
                        continue;
                    }
                    let want = T::from_f64(want).to_f64();
                    assert!(
                        close(got.to_f64(), want, tolerance(dtype)),
                        "{code:?}({a:?}, {b:?}) = {got:?}, not {want:?}"
                    );
                }
            }
        }
    }
    for code in Binary::ALL {
        check::<f32>(code);
        check::<f64>(code);
        check::<f16>(code);
        check::<bf16>(code);
    }
}

#[test]
fn binary_integers() {
    fn check<T: Element>(code: Binary, of: fn(i128) -> T, exact: fn(i128) -> i128) {
        let (a, b) = pairs(&INTEGERS);
        let typed = |x: &[i64]| x.iter().map(|x| of(*x as i128)).collect::<Vec<T>>();
        let (x, y) = (typed(&a), typed(&b));
        let bits = 8 * size_of::<T>() as u32;
        let whole = a.iter().zip(&b).map(|(a, b)| (exact(*a as i128), exact(*b as i128)));
        match code.result(T::DTYPE) {
            None => assert!(reference::binary_integer(code, 1, 1, bits).is_none(), "{code:?}"),
            Some(DType::Bool) => {
                for ((a, b), got) in whole.zip(run_binary::<T, Bool>(code, &x, &y)) {
                    let want = reference::binary_integer(code, a, b, bits);
                    assert_eq!(Some(got.get() as i128), want, "{code:?}({a}, {b})");
                }
            }
            Some(_) => {
                for ((a, b), got) in whole.zip(run_binary::<T, T>(code, &x, &y)) {
                    let want = reference::binary_integer(code, a, b, bits).expect("defined for integers");
                    assert_eq!(got, of(want), "{code:?}({a}, {b}) of {}", T::DTYPE);
                }
            }
        }
    }
    for code in Binary::ALL {
        each_integer!(check(code));
    }
}

/// Any nonzero byte is true, and results are exactly 0 or 1.
#[test]
fn booleans() {
    let (a, b) = pairs(&[0u8, 1, 2, 255]);
    let typed = |x: &[u8]| x.iter().map(|x| Bool(*x)).collect::<Vec<Bool>>();
    let (x, y) = (typed(&a), typed(&b));
    for code in Binary::ALL {
        let truth: Option<fn(bool, bool) -> bool> = match code {
            Binary::Add | Binary::Maximum | Binary::LogicalOr | Binary::BitwiseOr => Some(|a, b| a | b),
            Binary::Mul | Binary::Minimum | Binary::LogicalAnd | Binary::BitwiseAnd => Some(|a, b| a & b),
            Binary::LogicalXor | Binary::BitwiseXor | Binary::Ne => Some(|a, b| a ^ b),
            Binary::Eq => Some(|a, b| a == b),
            Binary::Lt => Some(|a, b| !a & b),
            Binary::Le => Some(|a, b| !a | b),
            Binary::Gt => Some(|a, b| a && !b),
            Binary::Ge => Some(|a, b| a || !b),
            _ => None,
        };
        assert_eq!(code.result(DType::Bool), truth.map(|_| DType::Bool), "{code:?}");
        let Some(truth) = truth else { continue };
        for ((a, b), got) in a.iter().zip(&b).zip(run_binary::<Bool, Bool>(code, &x, &y)) {
            assert_eq!(got.0, truth(*a != 0, *b != 0) as u8, "{code:?}({a}, {b})");
        }
    }
    for code in Unary::ALL {
        let Some(_) = code.result(DType::Bool) else { continue };
        for (x, got) in x.iter().zip(run_unary::<Bool, Bool>(code, &x)) {
            let want = match code {
                Unary::LogicalNot | Unary::BitwiseNot => !x.get(),
                other => other == Unary::IsFinite,
            };
            assert_eq!(got.0, want as u8, "{code:?}({x:?})");
        }
    }
}

/// Values that TensorFlow gives for `floormod`: those of `NumPy`, but for the signs of zeros.
#[test]
fn floored_remainders_of_floats() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let cases = [
        // a, b, a % b
        (7.0, 2.0, 1.0),
        (-7.0, 2.0, 1.0),
        (7.0, -2.0, -1.0),
        (-7.0, -2.0, -1.0),
        (6.0, 3.0, 0.0),
        (-6.0, 3.0, -0.0),
        (6.0, -3.0, 0.0),
        (0.0, 3.0, 0.0),
        (-0.0, 3.0, -0.0),
        (0.0, -3.0, 0.0),
        (1.0, 0.0, nan),
        (-1.0, 0.0, nan),
        (1.0, -0.0, nan),
        (0.0, 0.0, nan),
        (1.0, inf, 1.0),
        (-1.0, inf, inf),
        (1.0, -inf, -inf),
        (-1.0, -inf, -1.0),
        (inf, 2.0, nan),
        (inf, inf, nan),
        (nan, 1.0, nan),
        (1.0, nan, nan),
        (1.0, 0.1, 0.09999999999999995),
        (0.5, 1.0, 0.5),
    ];
    let (a, b): (Vec<f64>, Vec<f64>) = cases.iter().map(|case| (case.0, case.1)).unzip();
    let same = |x: f64, y: f64| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
    let rests = run_binary::<f64, f64>(Binary::Mod, &a, &b);
    for (case, rest) in cases.iter().zip(rests) {
        assert!(same(rest, case.2), "{} % {} = {rest}", case.0, case.1);
    }
}

#[test]
fn parameters_and_signed_zeros() {
    let x = [-2.0f32, -0.0, 3.0];
    assert_eq!(run_unary::<f32, f32>(Unary::LeakyRelu(0.25), &x), [-0.5, 0.0, 3.0]);
    assert_eq!(run_unary::<f32, f32>(Unary::Elu(2.0), &[-1e9, 3.0]), [-2.0, 3.0]);
    let zeros = run_unary::<f32, f32>(Unary::Relu, &x);
    assert_eq!(zeros[1].to_bits(), 0);
    assert_eq!(run_unary::<f32, f32>(Unary::Neg, &[0.0])[0].to_bits(), 1 << 31);
    assert_eq!(
        run_unary::<f64, f64>(Unary::Round, &[0.5, 1.5, 2.5, -0.5, -1.5]),
        [0.0, 2.0, 2.0, -0.0, -2.0]
    );
}

/// A huge argument takes the branching path for its whole tile; the others must not notice.
#[test]
fn huge_angles() {
    let x: Vec<f32> = (0..100).map(|i| if i == 50 { 1e30 } else { i as f32 }).collect();
    for (code, f) in
        [(Unary::Sin, f64::sin as fn(f64) -> f64), (Unary::Cos, f64::cos), (Unary::Tan, f64::tan)]
    {
        let got = run_unary::<f32, f32>(code, &x);
        for (x, got) in x.iter().zip(&got) {
            assert!(close(*got as f64, f(*x as f64), 3e-7), "{code:?}({x}) = {got}");
        }
        let without = run_unary::<f32, f32>(code, &x[..50]);
        assert_eq!(without, got[..50]);
    }
}

/// The instruction set must not change a bit. (Other tests may run meanwhile: that is the point.)
#[test]
fn levels_agree() {
    let floats: Vec<f64> = (0..1024).map(|i| (i as f64 - 512.0) * 0.0371).chain(FLOATS).collect();
    let singles: Vec<f32> = floats.iter().map(|x| *x as f32).collect();
    let halves: Vec<f16> = floats.iter().map(|x| f16::from_f64(*x)).collect();
    let integers: Vec<i32> =
        (0..700).map(|i: i32| i.wrapping_mul(0x9e37_79b9u32 as i32) >> (i % 31)).collect();
    // The sign and payload of a NaN carry no meaning.
    let bits =
        |x: Vec<f64>| x.into_iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect::<Vec<_>>();
    let bits32 =
        |x: Vec<f32>| x.into_iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect::<Vec<_>>();
    let bits16 =
        |x: Vec<f16>| x.into_iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect::<Vec<_>>();
    let compute = |level| {
        restrict(level);
        let mut results = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for code in Unary::ALL.into_iter().filter(|code| code.result(DType::F32) == Some(DType::F32)) {
            results.0.push(bits(run_unary(code, &floats)));
            results.1.push(bits32(run_unary(code, &singles)));
            results.2.push(bits16(run_unary(code, &halves)));
        }
        for code in Binary::ALL {
            let reversed = |x: &[f64]| x.iter().rev().copied().collect::<Vec<f64>>();
            if code.result(DType::F32) == Some(DType::F32) {
                results.0.push(bits(run_binary(code, &floats, &reversed(&floats))));
                let other: Vec<f32> = singles.iter().rev().copied().collect();
                results.1.push(bits32(run_binary(code, &singles, &other)));
            }
            if code.result(DType::I32) == Some(DType::I32) {
                let other: Vec<i32> = integers.iter().rev().copied().collect();
                results.3.push(run_binary::<i32, i32>(code, &integers, &other));
            }
        }
        restrict(Level::Avx512);
        results
    };
    let baseline = compute(Level::Baseline);
    for level in [Level::Avx2, Level::Avx512] {
        let other = compute(level);
        let agree =
            |what: &str, same: Vec<bool>| assert!(same.iter().all(|x| *x), "{what} at {level:?}: {same:?}");
        agree("f64", baseline.0.iter().zip(&other.0).map(|(a, b)| a == b).collect());
        agree("f32", baseline.1.iter().zip(&other.1).map(|(a, b)| a == b).collect());
        agree("f16", baseline.2.iter().zip(&other.2).map(|(a, b)| a == b).collect());
        agree("i32", baseline.3.iter().zip(&other.3).map(|(a, b)| a == b).collect());
    }
}

#[test]
fn selections() {
    fn in_place<T: Element>() {
        let mut out: Vec<T> = [1.0, 2.0, 3.0].map(T::from_f64).to_vec();
        let other: Vec<T> = [4.0, 5.0, 6.0].map(T::from_f64).to_vec();
        let condition = [Bool::TRUE, Bool::FALSE, Bool::TRUE];
        let view = |dtype, x| Arg::View(View::new(dtype, x, 0, &[3], &[1]));
        let target = ViewMut::new(T::DTYPE, cast_slice_mut(&mut out), &[3]);
        select(view(DType::Bool, bytes(&condition)), Arg::InPlace(0), view(T::DTYPE, bytes(&other)), target);
        assert_eq!(out, [1.0, 5.0, 3.0].map(T::from_f64));
    }
    let shape = [3, 40];
    let condition: Vec<Bool> = (0..120).map(|i| Bool((i % 3) as u8)).collect();
    let (a, b): (Vec<i16>, Vec<i16>) = (0..120).map(|i| (i, -i)).unzip();
    let mut out = vec![0i16; 120];
    let condition_view = View::new(DType::Bool, bytes(&condition), 0, &shape, &[40, 1]);
    // The first transposed, the second one row for all.
    let a_view = View::new(DType::I16, bytes(&a), 0, &shape, &[1, 3]);
    let b_view = View::new(DType::I16, bytes(&b), 7, &shape, &[0, 1]);
    let target = ViewMut::new(DType::I16, cast_slice_mut(&mut out), &shape);
    select(Arg::View(condition_view), Arg::View(a_view), Arg::View(b_view), target);
    for r in 0..3 {
        for c in 0..40 {
            let want = if (r * 40 + c) % 3 != 0 { r + 3 * c } else { -(7 + c) };
            assert_eq!(out[(r * 40 + c) as usize], want, "at {r}, {c}");
        }
    }
    // In place, for every element size.
    in_place::<u8>();
    in_place::<bf16>();
    in_place::<f32>();
    in_place::<i64>();
}

#[test]
fn clipping() {
    fn check<T: Element>(x: &[f64], low: f64, high: f64, want: &[f64]) {
        let typed = |x: &[f64]| x.iter().map(|x| T::from_f64(*x)).collect::<Vec<T>>();
        let (x, low, high, want) = (typed(x), typed(&[low]), typed(&[high]), typed(want));
        let shape = [x.len()];
        let view = |x, stride| View::new(T::DTYPE, x, 0, &shape, stride);
        let mut out = x.clone();
        let target = ViewMut::new(T::DTYPE, cast_slice_mut(&mut out), &shape);
        clip(Arg::View(view(bytes(&x), &[1])), view(bytes(&low), &[0]), view(bytes(&high), &[0]), target);
        assert!(
            out.iter().zip(&want).all(|(x, y)| close(x.to_f64(), y.to_f64(), 0.0)),
            "{out:?}, not {want:?}"
        );
        let target = ViewMut::new(T::DTYPE, cast_slice_mut(&mut out), &shape);
        clip(Arg::InPlace(0), view(bytes(&low), &[0]), view(bytes(&high), &[0]), target);
        assert!(
            out.iter().zip(&want).all(|(x, y)| close(x.to_f64(), y.to_f64(), 0.0)),
            "clipping is idempotent"
        );
    }
    let nan = f64::NAN;
    check::<f32>(&[-5.0, 0.5, 9.0, nan, f64::INFINITY], -1.0, 2.0, &[-1.0, 0.5, 2.0, nan, 2.0]);
    check::<f64>(&[-5.0, 0.5, 9.0], nan, 2.0, &[nan, nan, nan]);
    check::<f16>(&[-5.0, 0.5, 9.0], -1.0, 2.0, &[-1.0, 0.5, 2.0]);
    // Bounds the wrong way round: the upper one wins.
    check::<i32>(&[-5.0, 0.0, 9.0], 5.0, 2.0, &[2.0, 2.0, 2.0]);
    check::<u8>(&[0.0, 7.0, 255.0], 3.0, 200.0, &[3.0, 7.0, 200.0]);
    let many: Vec<f64> = (0..1000).map(f64::from).collect();
    let want: Vec<f64> = many.iter().map(|x| x.clamp(100.0, 900.0)).collect();
    check::<f64>(&many, 100.0, 900.0, &want);
}

#[test]
fn casts() {
    fn check<T: Element, U: Element>() {
        let floats =
            FLOATS.iter().copied().chain([300.0, -300.0, 1e10, -1e10, 1e300, 65520.0, 1.0 + 2f64.powi(-9)]);
        let integers = INTEGERS.iter().map(|x| *x as f64);
        let x: Vec<T> = floats.chain(integers).map(|x| T::from_f64(x)).collect();
        let mut out = vec![U::from_f64(0.0); x.len()];
        let shape = [x.len()];
        let view = View::new(T::DTYPE, bytes(&x), 0, &shape, &[1]);
        cast(view, ViewMut::new(U::DTYPE, cast_slice_mut(&mut out), &shape));
        for (x, got) in x.iter().zip(&out) {
            let want: U = reference::cast(*x);
            let same = got.to_f64().to_bits() == want.to_f64().to_bits()
                || (got.to_f64().is_nan() && want.to_f64().is_nan());
            assert!(same, "{x:?} as {} = {got:?}, not {want:?}", U::DTYPE);
        }
    }
    fn to_all<T: Element>() {
        for to in DType::REAL {
            crate::dispatch!(to, U in all => check::<T, U>());
        }
    }
    for from in DType::REAL {
        crate::dispatch!(from, T in all => to_all::<T>());
    }
}

/// Rounded once, not to `f32` first: 1 + 2^-11 + 2^-40 is above the tie that `f32` makes of it.
#[test]
fn halves_are_rounded_once() {
    let x = [1.0 + 2f64.powi(-11) + 2f64.powi(-40)];
    let mut out = [f16::ZERO];
    let view = View::new(DType::F64, bytes(&x), 0, &[1], &[1]);
    cast(view, ViewMut::new(DType::F16, cast_slice_mut(&mut out), &[1]));
    assert_eq!(out[0].to_f64(), 1.0 + 2f64.powi(-10));
}

#[test]
fn views_of_every_kind() {
    // 40 x 33 transposed, reversed and broadcast, with a result of another size.
    let x: Vec<f64> = (0..40 * 33).map(f64::from).collect();
    let y = [500.0f64];
    let shape = [33, 40];
    let mut out = vec![Bool::FALSE; 33 * 40];
    let a = View::new(DType::F64, bytes(&x), 39 * 33, &shape, &[1, -33]);
    let b = View::new(DType::F64, bytes(&y), 0, &shape, &[0, 0]);
    binary(
        Binary::Gt,
        Arg::View(a),
        Arg::View(b),
        ViewMut::new(DType::Bool, cast_slice_mut(&mut out), &shape),
    );
    for r in 0..33 {
        for c in 0..40 {
            assert_eq!(out[r * 40 + c].get(), (39 - c) * 33 + r > 500, "at {r}, {c}");
        }
    }
    // In place, beyond the parallel threshold, half precision.
    let mut values: Vec<f16> = (0..40_000).map(|i| f16::from_f32((i % 100) as f32)).collect();
    let target = ViewMut::new(DType::F16, cast_slice_mut(&mut values), &[40_000]);
    unary(Unary::Square, Arg::InPlace(0), target);
    assert!(
        values.iter().enumerate().all(|(i, x)| x.to_f32() == ((i % 100) * (i % 100)) as f32 || i % 100 > 45)
    );
    // 0-d and empty.
    let mut one = [0f32];
    let view = View::new(DType::F32, bytes(&[2.0f32]), 0, &[], &[]);
    binary(
        Binary::Pow,
        Arg::View(view),
        Arg::View(view),
        ViewMut::new(DType::F32, cast_slice_mut(&mut one), &[]),
    );
    assert_eq!(one, [4.0]);
    let empty = View::new(DType::F32, &[], 0, &[0, 5], &[5, 1]);
    unary(Unary::Exp, Arg::View(empty), ViewMut::new(DType::F32, &mut [], &[0, 5]));
}

#[test]
#[should_panic(expected = "the output's type")]
fn results_must_have_the_right_type() {
    run_binary::<f32, f32>(Binary::Eq, &[1.0], &[1.0]);
}
