//! The expected texts come from NumPy 2.4: `str(array)`, and `array2string` with Debug's prefix and separator.

use crate::ops::shape::{slice, transpose};
use crate::{Index, Result, Shape, Tensor, bf16, f16, s, trace};
use taut_memory::testing::ledger_check;

/// Multiples of `step` from zero.
fn range(len: usize, shape: impl Into<Shape>, step: f64) -> Result<Tensor> {
    Tensor::from_vec((0..len).map(|i| i as f64 * step).collect(), shape)
}

#[test]
fn display_is_numpys_str() {
    let _ledger = ledger_check();
    let cases = [
        (Tensor::new(0.1f32), "0.1"),
        (Tensor::new(1e16), "1e+16"),
        (Tensor::new(123456789.0), "123456789.0"),
        (Tensor::new(1e6f32), "1e+06"),
        (Tensor::new(-0.0), "-0.0"),
        (Tensor::new(f64::NAN), "nan"),
        (Tensor::new(true), "True"),
        (Tensor::new(i64::MIN), "-9223372036854775808"),
        (Tensor::from_vec(Vec::<f32>::new(), [3, 0]), "[]"),
        (Tensor::new([1.0f32, 2.0, 3.0]), "[1. 2. 3.]"),
        (Tensor::new([-128i8, 0, 127]), "[-128    0  127]"),
        (Tensor::new([0, u64::MAX]), "[                   0 18446744073709551615]"),
        (Tensor::new([[1i16, -200], [30, 4]]), concat!("[[   1 -200]\n", " [  30    4]]")),
        (Tensor::new([[true, false], [false, false]]), concat!("[[ True False]\n", " [False False]]")),
        (Tensor::new([true, true]), "[ True  True]"),
        (Tensor::new([0.1, 0.25, -3.0]), "[ 0.1   0.25 -3.  ]"),
        (Tensor::new([0.3f32, 0.12345678]), "[0.3        0.12345678]"),
        (Tensor::new([1.0 / 3.0, 2.0 / 3.0]), "[0.33333333 0.66666667]"),
        (Tensor::new([1e-5, 1.0]), "[1.e-05 1.e+00]"),
        (Tensor::new([1.0, 1001.0]), "[1.000e+00 1.001e+03]"),
        (Tensor::new([1e8, 1.5e8]), "[1.0e+08 1.5e+08]"),
        (Tensor::new([1e6f32, 5e5]), "[1.e+06 5.e+05]"),
        (Tensor::new([1e-300, 1e300]), "[1.e-300 1.e+300]"),
        (Tensor::new([f32::NAN, -1.5, f32::INFINITY]), "[ nan -1.5  inf]"),
        (Tensor::new([f64::NEG_INFINITY, f64::NAN]), "[-inf  nan]"),
        (Tensor::new([1e-10, f64::NEG_INFINITY, f64::NAN]), "[1.e-10   -inf    nan]"),
        (Tensor::new([0.1, 1.0 / 3.0, 65504.0].map(f16::from_f64)), "[9.998e-02 3.333e-01 6.550e+04]"),
        (Tensor::new([0.1, 0.5, -2.0].map(f16::from_f64)), "[ 0.1  0.5 -2. ]"),
        (
            Tensor::new([[[1, 2], [3, 4]], [[5, 6], [7, 80]]]),
            concat!("[[[ 1  2]\n", "  [ 3  4]]\n", "\n", " [[ 5  6]\n", "  [ 7 80]]]"),
        ),
        (
            range(30, [30], 0.5),
            concat!(
                "[ 0.   0.5  1.   1.5  2.   2.5  3.   3.5  4.   4.5  5.   5.5  6.   6.5\n",
                "  7.   7.5  8.   8.5  9.   9.5 10.  10.5 11.  11.5 12.  12.5 13.  13.5\n",
                " 14.  14.5]"
            ),
        ),
        (range(1001, [1001], 1.0), "[   0.    1.    2. ...  998.  999. 1000.]"),
        (
            range(1200, [40, 30], 1.0),
            concat!(
                "[[0.000e+00 1.000e+00 2.000e+00 ... 2.700e+01 2.800e+01 2.900e+01]\n",
                " [3.000e+01 3.100e+01 3.200e+01 ... 5.700e+01 5.800e+01 5.900e+01]\n",
                " [6.000e+01 6.100e+01 6.200e+01 ... 8.700e+01 8.800e+01 8.900e+01]\n",
                " ...\n",
                " [1.110e+03 1.111e+03 1.112e+03 ... 1.137e+03 1.138e+03 1.139e+03]\n",
                " [1.140e+03 1.141e+03 1.142e+03 ... 1.167e+03 1.168e+03 1.169e+03]\n",
                " [1.170e+03 1.171e+03 1.172e+03 ... 1.197e+03 1.198e+03 1.199e+03]]"
            ),
        ),
        (
            range(2000, [2, 1000], 0.125),
            concat!(
                "[[0.00000e+00 1.25000e-01 2.50000e-01 ... 1.24625e+02 1.24750e+02\n",
                "  1.24875e+02]\n",
                " [1.25000e+02 1.25125e+02 1.25250e+02 ... 2.49625e+02 2.49750e+02\n",
                "  2.49875e+02]]"
            ),
        ),
        (
            Tensor::from_vec((0..1200).collect(), [2, 2, 300]),
            concat!(
                "[[[   0    1    2 ...  297  298  299]\n",
                "  [ 300  301  302 ...  597  598  599]]\n",
                "\n",
                " [[ 600  601  602 ...  897  898  899]\n",
                "  [ 900  901  902 ... 1197 1198 1199]]]"
            ),
        ),
    ];
    for (tensor, want) in cases {
        let tensor = tensor.unwrap();
        assert_eq!(tensor.to_string(), want, "{}", tensor.spec());
    }
}

#[test]
fn strides_do_not_show() {
    let _ledger = ledger_check();
    let turned = transpose(range(12, [3, 4], 1.0).unwrap(), None).unwrap();
    let reversed = slice(&turned, &s![Index::from(..).by(-1)]).unwrap();
    assert_eq!(reversed.to_string(), "[[ 3.  7. 11.]\n [ 2.  6. 10.]\n [ 1.  5.  9.]\n [ 0.  4.  8.]]");
    let column = slice(&turned, &s![.., 1]).unwrap();
    assert_eq!(column.to_string(), "[4. 5. 6. 7.]");
}

#[test]
fn bfloat16_shows_the_digits_it_has() {
    let _ledger = ledger_check();
    let tensor = Tensor::new([0.1, 0.2, -3.0].map(bf16::from_f64)).unwrap();
    assert_eq!(tensor.to_string(), "[ 0.1  0.2 -3. ]");
    // The nearest neighbours of 1 are 1 + 2^-7 and 1 - 2^-8; three digits tell them apart.
    let tensor = Tensor::new([0x3f81, 0x3f80, 0x3f7f].map(bf16::from_bits)).unwrap();
    assert_eq!(tensor.to_string(), "[1.01  1.    0.996]");
}

#[test]
fn precision_limits_the_fraction() {
    let _ledger = ledger_check();
    assert_eq!(format!("{:.2}", Tensor::new([1.0 / 3.0, 2.5]).unwrap()), "[0.33 2.5 ]");
    assert_eq!(format!("{:.2}", Tensor::new([1e-7 / 3.0, 1.0]).unwrap()), "[3.33e-08 1.00e+00]");
    assert_eq!(format!("{:.2}", Tensor::new(1.0 / 3.0).unwrap()), "0.33");
    assert_eq!(format!("{:.0}", Tensor::new([1.5, 2.5]).unwrap()), "[2. 2.]");
}

#[test]
fn debug_adds_type_and_shape() {
    let _ledger = ledger_check();
    let text = |tensor: Result<Tensor>| format!("{:?}", tensor.unwrap());
    assert_eq!(text(Tensor::new(1.5f32)), "Tensor(float32[], 1.5)");
    assert_eq!(text(Tensor::from_vec(Vec::<u8>::new(), [0, 3])), "Tensor(uint8[0, 3], [])");
    assert_eq!(
        text(Tensor::new([[1, -2], [3, 4]])),
        "Tensor(int32[2, 2],\n       [[ 1, -2],\n        [ 3,  4]])"
    );
    let lines = "Tensor(float64[24],\n       \
                 [ 0. ,  0.5,  1. ,  1.5,  2. ,  2.5,  3. ,  3.5,  4. ,  4.5,  5. ,\n         \
                 5.5,  6. ,  6.5,  7. ,  7.5,  8. ,  8.5,  9. ,  9.5, 10. , 10.5,\n        \
                 11. , 11.5])";
    assert_eq!(text(range(24, [24], 0.5)), lines);
}

#[test]
fn a_traced_tensor_has_no_elements() {
    let _ledger = ledger_check();
    let x = Tensor::new([1.0f32, 2.0]).unwrap();
    let mut seen = Vec::new();
    trace(&[x.spec().clone()], |inputs| {
        seen = vec![inputs[0].to_string(), format!("{:?}", inputs[0])];
        Ok(inputs.to_vec())
    })
    .unwrap();
    assert_eq!(seen, ["Tensor(float32[2] traced)"; 2]);
}
