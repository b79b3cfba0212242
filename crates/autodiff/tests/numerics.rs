//! NaN and infinity are found where they are made.

use taut_autodiff::{GradientTape, disable_check_numerics, enable_check_numerics};
use taut_core::ops::binary::{div, mul};
use taut_core::ops::shape::broadcast_to;
use taut_core::ops::unary::check_numerics;
use taut_core::{ErrorKind, Tensor};
use taut_memory::testing::ledger_check;
use taut_testing::vector;

#[test]
fn checks_name_the_op_and_the_line_forward_and_backward() {
    let _ledger = ledger_check();
    let (x, zero) = (vector(&[1.0, 2.0]), vector(&[1.0, 0.0]));
    let broken = div(&x, &zero).unwrap(); // quiet without a check
    assert_eq!(check_numerics(&broken, "the ratio").unwrap_err().kind(), ErrorKind::Numeric);
    enable_check_numerics();
    let forward = div(&x, &zero).unwrap_err();
    // Forward all is finite; the gradient is not.
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = mul(&x, 1e200).unwrap();
    let line = line!() - 1;
    let seed = broadcast_to(Tensor::scalar(1e200f64).unwrap(), [2]).unwrap();
    let request =
        taut_autodiff::GradientRequest { output_gradients: Some(vec![Some(seed)]), ..Default::default() };
    let backward = tape.gradient_with(&y, &x, request).unwrap_err();
    disable_check_numerics();
    assert_eq!((forward.op(), forward.kind()), (Some("div"), ErrorKind::Numeric));
    assert!(forward.message().contains("1 infinite"), "{forward}");
    assert_eq!(forward.location().unwrap().file(), file!());
    assert_eq!(backward.gradient_of(), Some("mul"));
    assert_eq!(backward.location().unwrap().line(), line, "{backward}");
    div(&x, &zero).unwrap();
}
