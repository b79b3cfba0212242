//! Bytes against what a system's assembler writes.

use crate::jit::encode::{self as x86, Assembler, Operand};

fn bytes(write: impl FnOnce(&mut Assembler)) -> Vec<u8> {
    let mut code = Assembler::default();
    write(&mut code);
    code.bytes().to_vec()
}

#[test]
fn vector_instructions() {
    let at = |base, scale, displacement| Operand::Indexed { base, index: x86::RSI, scale, displacement };
    let cases: [(x86::Op, u8, u8, Operand, Option<u8>, &[u8]); 10] = [
        // vaddps ymm0, ymm1, ymm2
        (x86::ADD, 0, 1, Operand::Register(2), None, &[0xc5, 0xf4, 0x58, 0xc2]),
        // vaddpd ymm8, ymm9, [r13 + rsi*8 + 64]
        (x86::ADD.double(), 8, 9, at(x86::R13, 3, 64), None, &[0xc4, 0x41, 0x35, 0x58, 0x44, 0xf5, 0x40]),
        // vfmadd231pd ymm3, ymm12, [rdx + 4096]
        (
            x86::MUL_ADD.w().fused(2),
            3,
            12,
            Operand::At(x86::RDX, 4096),
            None,
            &[0xc4, 0xe2, 0x9d, 0xb8, 0x9a, 0x00, 0x10, 0x00, 0x00],
        ),
        // vblendvps ymm1, ymm2, [rsp + 32], ymm15
        (
            x86::BLEND,
            1,
            2,
            Operand::At(x86::RSP, 32),
            Some(15 << 4),
            &[0xc4, 0xe3, 0x6d, 0x4a, 0x4c, 0x24, 0x20, 0xf0],
        ),
        // vpslld ymm9, ymm10, 23
        (x86::SHIFT_LEFT_32, 6, 9, Operand::Register(10), Some(23), &[0xc4, 0xc1, 0x35, 0x72, 0xf2, 0x17]),
        // vextracti128 xmm4, ymm11, 1
        (x86::HIGH_HALF, 11, 0, Operand::Register(4), Some(1), &[0xc4, 0x63, 0x7d, 0x39, 0xdc, 0x01]),
        // vmovups [r12 + rsi*4], ymm6
        (x86::STORE, 6, 0, at(x86::R12, 2, 0), None, &[0xc4, 0xc1, 0x7c, 0x11, 0x34, 0xb4]),
        // vmovntps [rcx + rsi*4 - 32], ymm14
        (x86::STREAM, 14, 0, at(x86::RCX, 2, -32), None, &[0xc5, 0x7c, 0x2b, 0x74, 0xb1, 0xe0]),
        // vpmovzxbd ymm5, [r11 + rsi]
        (x86::U8_TO_32, 5, 0, at(x86::R11, 0, 0), None, &[0xc4, 0xc2, 0x7d, 0x31, 0x2c, 0x33]),
        // vcmpltps ymm1, ymm2, ymm3
        (x86::COMPARE, 1, 2, Operand::Register(3), Some(1), &[0xc5, 0xec, 0xc2, 0xcb, 0x01]),
    ];
    for (op, reg, vvvv, operand, number, want) in cases {
        assert_eq!(bytes(|code| code.vector(op, reg, vvvv, operand, number)), want, "{op:?}");
    }
}

#[test]
fn general_instructions() {
    assert_eq!(bytes(|code| code.push(x86::R12)), [0x41, 0x54]);
    assert_eq!(bytes(|code| code.pop(x86::RBX)), [0x40, 0x5b]);
    assert_eq!(bytes(|code| code.load(x86::R9, x86::RDI, 16)), [0x4c, 0x8b, 0x4f, 0x10]);
    assert_eq!(bytes(|code| code.copy(x86::RBP, x86::RSP)), [0x48, 0x8b, 0xec]);
    assert_eq!(bytes(|code| code.align_32(x86::RSP)), [0x48, 0x83, 0xe4, 0xe0]);
    assert_eq!(bytes(|code| code.add(x86::RSI, 8)), [0x48, 0x81, 0xc6, 8, 0, 0, 0]);
}
