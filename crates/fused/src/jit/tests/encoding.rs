//! Bytes against what a system's assembler writes.

use crate::jit::encode::{self as x86, Assembler, Operand, Width};

fn bytes_of(width: Width, write: impl FnOnce(&mut Assembler)) -> Vec<u8> {
    let mut code = Assembler::new(width);
    write(&mut code);
    code.bytes().to_vec()
}

fn bytes(write: impl FnOnce(&mut Assembler)) -> Vec<u8> {
    bytes_of(Width::Avx2, write)
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
fn vector_instructions_of_512_bits() {
    use Operand::{At, Register};
    let at = |base, scale, displacement| Operand::Indexed { base, index: x86::RSI, scale, displacement };
    let cases: [(x86::Op, u8, u8, Operand, Option<u8>, &[u8]); 13] = [
        // vaddps zmm0, zmm1, zmm2
        (x86::ADD, 0, 1, Register(2), None, &[0x62, 0xf1, 0x74, 0x48, 0x58, 0xc2]),
        // vaddpd zmm24, zmm9, [r13 + rsi*8 + 64]
        (
            x86::ADD.double(),
            24,
            9,
            at(x86::R13, 3, 64),
            None,
            &[0x62, 0x41, 0xb5, 0x48, 0x58, 0x44, 0xf5, 0x01],
        ),
        // vaddps zmm8, zmm9, [rdx + 68]
        (
            x86::ADD,
            8,
            9,
            At(x86::RDX, 68),
            None,
            &[0x62, 0x71, 0x34, 0x48, 0x58, 0x82, 0x44, 0x00, 0x00, 0x00],
        ),
        // vfmadd231pd zmm3, zmm28, [rdx + 4096]
        (
            x86::MUL_ADD.w().fused(2),
            3,
            28,
            At(x86::RDX, 4096),
            None,
            &[0x62, 0xf2, 0x9d, 0x40, 0xb8, 0x5a, 0x40],
        ),
        // vpslld zmm25, zmm10, 23
        (x86::SHIFT_LEFT_32, 6, 25, Register(10), Some(23), &[0x62, 0xd1, 0x35, 0x40, 0x72, 0xf2, 0x17]),
        // vpsrlq zmm9, zmm30, 52
        (x86::SHIFT_RIGHT_64, 2, 9, Register(30), Some(52), &[0x62, 0x91, 0xb5, 0x48, 0x73, 0xd6, 0x34]),
        // vmovups [r12 + rsi*4], zmm22
        (x86::STORE, 22, 0, at(x86::R12, 2, 0), None, &[0x62, 0xc1, 0x7c, 0x48, 0x11, 0x34, 0xb4]),
        // vmovntps [rcx + rsi*4 - 64], zmm14
        (x86::STREAM, 14, 0, at(x86::RCX, 2, -64), None, &[0x62, 0x71, 0x7c, 0x48, 0x2b, 0x74, 0xb1, 0xff]),
        // vcvtdq2ps zmm5, zmm21
        (x86::I32_TO_F32, 5, 0, Register(21), None, &[0x62, 0xb1, 0x7c, 0x48, 0x5b, 0xed]),
        // vrndscalepd zmm5, zmm6, 9
        (x86::ROUND_DOUBLE, 5, 0, Register(6), Some(9), &[0x62, 0xf3, 0xfd, 0x48, 0x09, 0xee, 0x09]),
        // vcmpltps k1, zmm18, [rsp + 192]; vpmovm2d zmm17, k1
        (
            x86::COMPARE,
            17,
            18,
            At(x86::RSP, 192),
            Some(1),
            &[0x62, 0xf1, 0x6c, 0x40, 0xc2, 0x4c, 0x24, 0x03, 0x01, 0x62, 0xe2, 0x7e, 0x48, 0x38, 0xc9],
        ),
        // vcmplepd k1, zmm2, zmm3; vpmovm2q zmm9, k1
        (
            x86::COMPARE.double(),
            9,
            2,
            Register(3),
            Some(2),
            &[0x62, 0xf1, 0xed, 0x48, 0xc2, 0xcb, 0x02, 0x62, 0x72, 0xfe, 0x48, 0x38, 0xc9],
        ),
        // vandps zmm1, zmm2, zmm3
        (x86::AND, 1, 2, Register(3), None, &[0x62, 0xf1, 0x6c, 0x48, 0x54, 0xcb]),
    ];
    let bytes = |write: &dyn Fn(&mut Assembler)| bytes_of(Width::Avx512, write);
    for (op, reg, vvvv, operand, number, want) in cases {
        assert_eq!(bytes(&|code| code.vector(op, reg, vvvv, operand, number)), want, "{op:?}");
    }
    // vpmovd2m k1, zmm31; vblendmps zmm1{k1}, zmm2, [rsp + 64]
    let blend = [0x62, 0x92, 0x7e, 0x48, 0x39, 0xcf, 0x62, 0xf2, 0x6d, 0x49, 0x65, 0x4c, 0x24, 0x01];
    assert_eq!(bytes(&|code| code.blend(x86::BLEND, 1, 2, At(x86::RSP, 64), 31)), blend);
    assert_eq!(bytes(&|code| code.align_to_vector(x86::RSP)), [0x48, 0x83, 0xe4, 0xc0]);
}

#[test]
fn general_instructions() {
    assert_eq!(bytes(|code| code.push(x86::R12)), [0x41, 0x54]);
    assert_eq!(bytes(|code| code.pop(x86::RBX)), [0x40, 0x5b]);
    assert_eq!(bytes(|code| code.load(x86::R9, x86::RDI, 16)), [0x4c, 0x8b, 0x4f, 0x10]);
    assert_eq!(bytes(|code| code.copy(x86::RBP, x86::RSP)), [0x48, 0x8b, 0xec]);
    assert_eq!(bytes(|code| code.align_to_vector(x86::RSP)), [0x48, 0x83, 0xe4, 0xe0]);
    assert_eq!(bytes(|code| code.add(x86::RSI, 8)), [0x48, 0x81, 0xc6, 8, 0, 0, 0]);
}
