//! Machine code is made once per program: kernels that compute the same program share it while one of them lives.

use super::machine_code::MachineCode;
use crate::program::TileProgram;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use taut_kernels::simd::{Level, level};

/// The code of live kernels, by the fingerprints of their programs.
type LiveCode = HashMap<u64, Vec<(TileProgram, Weak<MachineCode>)>>;

static LIVE: LazyLock<Mutex<LiveCode>> = LazyLock::new(Mutex::default);

/// Machine code for a program, made now unless a kernel has it already; `None` if there is none.
pub(crate) fn machine_code(program: &TileProgram) -> Option<Arc<MachineCode>> {
    if level() == Level::Baseline {
        return None;
    }
    let key = program.fingerprint();
    let live = || LIVE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = live().get(&key).and_then(|same| same.iter().find(|(one, _)| one == program)?.1.upgrade());
    if found.is_some() {
        return found;
    }
    let code = Arc::new(MachineCode::new(program)?);
    let mut live = live();
    live.retain(|_, same| {
        same.retain(|(_, code)| code.strong_count() > 0);
        !same.is_empty()
    });
    live.entry(key).or_default().push((program.clone(), Arc::downgrade(&code)));
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{TileConstant, TileOperand, TileStep};
    use taut_kernels::DType;
    use taut_kernels::elementwise::{Binary, Code};

    /// `x code constant`.
    fn program(code: Binary, constant: f32) -> TileProgram {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&constant.to_ne_bytes());
        let constant = TileConstant { dtype: DType::F32, bytes };
        let operands = [TileOperand::Input(0), TileOperand::Constant(0)].into_iter().collect();
        let step = TileStep { code: Code::Binary(code), operands };
        TileProgram::new(vec![DType::F32], vec![constant], vec![step], vec![0]).unwrap()
    }

    #[test]
    fn equal_programs_share_code_while_it_lives() {
        let Some(first) = machine_code(&program(Binary::Add, 0.375)) else { return };
        let again = machine_code(&program(Binary::Add, 0.375)).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        // Programs with the same fingerprint are told apart.
        let other = machine_code(&program(Binary::Mul, 0.375)).unwrap();
        assert_eq!(program(Binary::Add, 0.375).fingerprint(), program(Binary::Mul, 0.375).fingerprint());
        assert!(!Arc::ptr_eq(&first, &other));
        assert!(!Arc::ptr_eq(&first, &machine_code(&program(Binary::Add, 0.625)).unwrap()));
        let dropped = Arc::downgrade(&first);
        drop((first, again));
        assert!(dropped.upgrade().is_none());
        let made = machine_code(&program(Binary::Add, 0.375)).unwrap();
        let (x, mut y) = ([1f32, 2.0, 3.0], [0f32; 3]);
        made.run(&[bytemuck::cast_slice(&x)], &mut [bytemuck::cast_slice_mut(&mut y)], &[None]);
        assert_eq!(y, [1.375, 2.375, 3.375]);
        let live = LIVE.lock().unwrap();
        let same = &live[&program(Binary::Add, 0.375).fingerprint()];
        assert_eq!(same.iter().filter(|(one, _)| *one == program(Binary::Add, 0.375)).count(), 1);
    }
}
