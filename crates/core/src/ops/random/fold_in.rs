//! Derivation of keys: one per step of a loop, or per part of a model.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs};
use crate::ops::draw::{KEY, check_key, invalid_keys, key, read_key};
use crate::ops::sample::of;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Operand, Tensor, apply};
use taut_kernels::{Arg, ViewMut};

#[derive(Clone, Debug)]
struct FoldIn;

/// The SplitMix64 finalizer: a bijection that spreads nearby numbers.
fn splitmix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Op for FoldIn {
    fn name(&self) -> &'static str {
        "fold_in"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        check_key(inputs[0])?;
        if inputs[1].dtype != DType::I64 || inputs[1].shape.rank() != 0 {
            return Err(Error::value(format!("number must be a scalar int64, got {}", inputs[1])));
        }
        Ok(inputs[0].clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let key = read_key(inputs[0].view());
        let number = inputs[1].view();
        let number = number.data::<i64>()[number.offset()] as u64;
        let golden = 0x9e37_79b9_7f4a_7c15u64;
        let seed = splitmix(key.seed ^ splitmix(number.wrapping_add(golden)));
        let op = splitmix(key.op.wrapping_add(golden) ^ splitmix(number.wrapping_mul(golden) ^ key.seed));
        outputs[0].slice::<u64>().copy_from_slice(&[seed, op]);
        Ok(())
    }
}

/// Derives a new key from a key and a number: different numbers give independent keys.
///
/// ```
/// use taut_core::{Tensor, ops::random::fold_in};
/// let key = Tensor::from_slice(&[7u64, 0], [2])?;
/// let (first, second) = (fold_in(&key, 0i64)?.to_vec::<u64>()?, fold_in(&key, 1i64)?.to_vec::<u64>()?);
/// assert_ne!(first, second);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn fold_in(key: impl Into<Tensor>, number: impl Into<Operand>) -> Result<Tensor> {
    let number = match number.into() {
        Operand::Tensor(tensor) => tensor,
        Operand::Scalar(scalar) => Tensor::constant(scalar, DType::I64)?,
    };
    apply(&FoldIn, [key.into(), number])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "fold_in",
    &[KEY, Param::new("number", ParamKind::Operand)],
    |a| one(fold_in(a.tensor(0)?, a.operand(1)?)),
    Reference::Numpy(
        "(lambda m, g, s, c, n: np.array([m(s ^ m((n + g) % 2**64)), \
         m((c + g) % 2**64 ^ m(n * g % 2**64 ^ s))], np.uint64))(\
         lambda w: (lambda a: (lambda b: b ^ b >> 31)((a ^ a >> 27) * 0x94d049bb133111eb % 2**64))(\
         (w ^ w >> 30) * 0xbf58476d1ce4e5b9 % 2**64), \
         0x9e3779b97f4a7c15, int(key[0]), int(key[1]), int(number) % 2**64)",
    ),
    Samples::List(|| (-2..3).map(|n| vec![key(5.0), ArgValue::Int(n)]).collect()),
)
.refuses(|| {
    let mut list = invalid_keys(&[ArgValue::Int(0)]);
    let several = vec![key(1.0), of(DType::I64, &[2], &[1.0, 2.0])];
    list.push(InvalidArgs::new(several, ErrorKind::Value, "number must be a scalar int64, got int64[2]"));
    list
})];
