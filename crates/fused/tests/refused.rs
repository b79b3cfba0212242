//! An operating system that refuses executable memory: kernels are interpreted, and that is reported once.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(unsafe_code)]

use taut_fused::{FusedKernel, TileOperand, TileProgram, TileStep, check_support, compile, take_refusal};
use taut_kernels::elementwise::{Code, Unary};
use taut_kernels::{Arg, DType, View, ViewMut};

/// Refuses to make memory executable from now on, in this process. False if the kernel is too old.
fn refuse_executable_memory() -> bool {
    const PR_SET_MDWE: i32 = 65;
    const PR_MDWE_REFUSE_EXEC_GAIN: u64 = 1;
    // SAFETY: the call takes integers only.
    unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0u64, 0u64, 0u64) == 0 }
}

#[test]
fn kernels_are_interpreted_and_the_refusal_is_reported_once() {
    if check_support().is_err() || !refuse_executable_memory() {
        return;
    }
    assert!(!take_refusal());
    for _ in 0..2 {
        let operands = [TileOperand::Input(0)].into_iter().collect();
        let square = TileStep { code: Code::Unary(Unary::Square), operands };
        let program = TileProgram::new(vec![DType::F32], vec![], vec![square], vec![0]).unwrap();
        assert!(compile(&program).is_none());
        let (x, mut y) = ([1f32, 2.0, 3.0], [0f32; 3]);
        let x = View::new(DType::F32, bytemuck::cast_slice(&x), 0, &[3], &[1]);
        let out = ViewMut::new(DType::F32, bytemuck::cast_slice_mut(&mut y), &[3]);
        FusedKernel::compiled(program).run(&[Arg::View(x)], &mut [out]);
        assert_eq!(y, [1.0, 4.0, 9.0]);
    }
    assert!(take_refusal());
    assert!(!take_refusal());
    assert_eq!(check_support(), Err("the operating system refuses executable memory"));
    assert!(!take_refusal());
}
