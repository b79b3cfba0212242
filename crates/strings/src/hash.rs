//! Hashes of strings whose values are part of file formats and models: FarmHash's `Fingerprint64`, SipHash-2-4 and
//! MurmurHash64A.

use crate::tensor::StringTensor;
use taut_core::{DType, Error, Result, Spec, Tensor, source_location};
use taut_memory::{Category, Location};

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

/// The bucket of each string in `[0, buckets)`, by FarmHash's fingerprint, as `int64`.
///
/// ```
/// use taut_strings::{StringTensor, hash_buckets};
/// let words = StringTensor::from_values(["Hello", "TensorFlow", "2.x"], [3])?;
/// assert_eq!(hash_buckets(&words, 3)?.to_vec::<i64>()?, [0, 2, 2]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn hash_buckets(x: &StringTensor, buckets: i64) -> Result<Tensor> {
    bucketed(x, buckets, fingerprint64)
}

/// The bucket of each string in `[0, buckets)`, by SipHash-2-4 with a key, as `int64`.
#[track_caller]
pub fn hash_bucket_strong(x: &StringTensor, buckets: i64, key: [u64; 2]) -> Result<Tensor> {
    bucketed(x, buckets, |value| siphash(value, key))
}

/// The bucket of each string in `[0, buckets)`, by MurmurHash64A with the seed that TensorFlow has, as `int64`.
#[track_caller]
pub fn hash_bucket_murmur(x: &StringTensor, buckets: i64) -> Result<Tensor> {
    bucketed(x, buckets, |value| murmur64(value, 0x00de_cafc_affe))
}

/// FarmHash's `Fingerprint64` of each string, as `uint64`.
#[track_caller]
pub fn fingerprints(x: &StringTensor) -> Result<Tensor> {
    let (values, at) = (x.values()?, source_location(Location::caller()));
    Tensor::build(Spec::new(DType::U64, x.shape().clone()), Category::Tensor, at, |out| {
        for (out, value) in out.slice::<u64>().iter_mut().zip(values.iter()) {
            *out = fingerprint64(value);
        }
    })
}

#[track_caller]
fn bucketed(x: &StringTensor, buckets: i64, hash: impl Fn(&[u8]) -> u64) -> Result<Tensor> {
    let (values, at) = (x.values()?, source_location(Location::caller()));
    if buckets < 1 {
        return Err(Error::value(format!("num_buckets must be >= 1, got {buckets}")).at(at));
    }
    Tensor::build(Spec::new(DType::I64, x.shape().clone()), Category::Tensor, at, |out| {
        for (out, value) in out.slice::<i64>().iter_mut().zip(values.iter()) {
            *out = (hash(value) % buckets as u64) as i64;
        }
    })
}

#[inline]
fn u64_at(s: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| s[at + i]))
}

#[inline]
fn u32_at(s: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes(std::array::from_fn(|i| s[at + i])))
}

#[inline]
fn shift_mix(value: u64) -> u64 {
    value ^ (value >> 47)
}

#[inline]
fn mix16(u: u64, v: u64, mul: u64) -> u64 {
    let a = shift_mix((u ^ v).wrapping_mul(mul));
    shift_mix((v ^ a).wrapping_mul(mul)).wrapping_mul(mul)
}

/// MurmurHash64A.
fn murmur64(s: &[u8], seed: u64) -> u64 {
    const MUL: u64 = 0xc6a4_a793_5bd1_e995;
    let (words, rest) = s.as_chunks::<8>();
    let mut hash = seed ^ (s.len() as u64).wrapping_mul(MUL);
    for word in words {
        let mixed = shift_mix(u64::from_le_bytes(*word).wrapping_mul(MUL)).wrapping_mul(MUL);
        hash = (hash ^ mixed).wrapping_mul(MUL);
    }
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0, |tail, &byte| tail << 8 | u64::from(byte));
        hash = (hash ^ tail).wrapping_mul(MUL);
    }
    shift_mix(shift_mix(hash).wrapping_mul(MUL))
}

/// FarmHash's `Fingerprint64`.
pub fn fingerprint64(s: &[u8]) -> u64 {
    match s.len() {
        0..=16 => short(s),
        17..=32 => medium(s),
        33..=64 => up_to_64(s),
        _ => long(s),
    }
}

fn short(s: &[u8]) -> u64 {
    let len = s.len();
    let mul = K2.wrapping_add(len as u64 * 2);
    if len >= 8 {
        let a = u64_at(s, 0).wrapping_add(K2);
        let b = u64_at(s, len - 8);
        let c = b.rotate_right(37).wrapping_mul(mul).wrapping_add(a);
        let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(mul);
        return mix16(c, d, mul);
    }
    if len >= 4 {
        return mix16((len as u64).wrapping_add(u32_at(s, 0) << 3), u32_at(s, len - 4), mul);
    }
    if len == 0 {
        return K2;
    }
    let (a, b, c) = (u64::from(s[0]), u64::from(s[len >> 1]), u64::from(s[len - 1]));
    let (y, z) = (a + (b << 8), len as u64 + (c << 2));
    shift_mix(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2)
}

fn medium(s: &[u8]) -> u64 {
    let len = s.len();
    let mul = K2.wrapping_add(len as u64 * 2);
    let a = u64_at(s, 0).wrapping_mul(K1);
    let b = u64_at(s, 8);
    let c = u64_at(s, len - 8).wrapping_mul(mul);
    let d = u64_at(s, len - 16).wrapping_mul(K2);
    let u = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    mix16(u, a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c), mul)
}

fn up_to_64(s: &[u8]) -> u64 {
    let len = s.len();
    let mul = K2.wrapping_add(len as u64 * 2);
    let a = u64_at(s, 0).wrapping_mul(K2);
    let b = u64_at(s, 8);
    let c = u64_at(s, len - 8).wrapping_mul(mul);
    let d = u64_at(s, len - 16).wrapping_mul(K2);
    let y = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let z = mix16(y, a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c), mul);
    let e = u64_at(s, 16).wrapping_mul(mul);
    let f = u64_at(s, 24);
    let g = y.wrapping_add(u64_at(s, len - 32)).wrapping_mul(mul);
    let h = z.wrapping_add(u64_at(s, len - 24)).wrapping_mul(mul);
    let u = e.wrapping_add(f).rotate_right(43).wrapping_add(g.rotate_right(30)).wrapping_add(h);
    mix16(u, e.wrapping_add(f.wrapping_add(a).rotate_right(18)).wrapping_add(g), mul)
}

/// The state of 32 bytes, mixed with two seeds.
#[inline]
fn weak(s: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let [w, x, y, z] = [0, 8, 16, 24].map(|offset| u64_at(s, at + offset));
    let a = a.wrapping_add(w);
    let b = b.wrapping_add(a).wrapping_add(z).rotate_right(21);
    let c = a;
    let a = a.wrapping_add(x).wrapping_add(y);
    let b = b.wrapping_add(a.rotate_right(44));
    (a.wrapping_add(z), b.wrapping_add(c))
}

fn long(s: &[u8]) -> u64 {
    const SEED: u64 = 81;
    let last = s.len() - 1;
    let mut y = SEED.wrapping_mul(K1).wrapping_add(113);
    let mut z = shift_mix(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2);
    let (mut v, mut w) = ((0u64, 0u64), (0u64, 0u64));
    let mut x = SEED.wrapping_mul(K2).wrapping_add(u64_at(s, 0));
    // One round over 64 bytes; the last one has another factor, and adds twice.
    let mut round = |at: usize, mul: u64, scale: u64, v: &mut (u64, u64), w: &mut (u64, u64)| {
        x = x.wrapping_add(y).wrapping_add(v.0).wrapping_add(u64_at(s, at + 8));
        x = x.rotate_right(37).wrapping_mul(mul);
        y = y.wrapping_add(v.1).wrapping_add(u64_at(s, at + 48)).rotate_right(42).wrapping_mul(mul);
        x ^= w.1.wrapping_mul(scale);
        y = y.wrapping_add(v.0.wrapping_mul(scale)).wrapping_add(u64_at(s, at + 40));
        z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(mul);
        *v = weak(s, at, v.1.wrapping_mul(mul), x.wrapping_add(w.0));
        *w = weak(s, at + 32, z.wrapping_add(w.1), y.wrapping_add(u64_at(s, at + 16)));
        std::mem::swap(&mut z, &mut x);
        (x, y, z)
    };
    let end = (last / 64) * 64;
    let mut state = (0, 0, 0);
    for at in (0..end).step_by(64) {
        state = round(at, K1, 1, &mut v, &mut w);
    }
    let mul = K1.wrapping_add((state.2 & 0xff) << 1);
    w.0 = w.0.wrapping_add((last & 63) as u64);
    v.0 = v.0.wrapping_add(w.0);
    w.0 = w.0.wrapping_add(v.0);
    let (x, y, z) = round(end + (last & 63) - 63, mul, 9, &mut v, &mut w);
    mix16(
        mix16(v.0, w.0, mul).wrapping_add(shift_mix(y).wrapping_mul(K0)).wrapping_add(z),
        mix16(v.1, w.1, mul).wrapping_add(x),
        mul,
    )
}

/// SipHash-2-4.
fn siphash(s: &[u8], key: [u64; 2]) -> u64 {
    fn rounds(v: &mut [u64; 4], count: usize) {
        for _ in 0..count {
            v[0] = v[0].wrapping_add(v[1]);
            v[1] = v[1].rotate_left(13) ^ v[0];
            v[0] = v[0].rotate_left(32);
            v[2] = v[2].wrapping_add(v[3]);
            v[3] = v[3].rotate_left(16) ^ v[2];
            v[0] = v[0].wrapping_add(v[3]);
            v[3] = v[3].rotate_left(21) ^ v[0];
            v[2] = v[2].wrapping_add(v[1]);
            v[1] = v[1].rotate_left(17) ^ v[2];
            v[2] = v[2].rotate_left(32);
        }
    }
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = s.as_chunks::<8>();
    let mut absorb = |word: u64| {
        v[3] ^= word;
        rounds(&mut v, 2);
        v[0] ^= word;
    };
    words.iter().for_each(|word| absorb(u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    absorb(u64::from_le_bytes(last) | (s.len() as u64) << 56);
    v[2] ^= 0xff;
    rounds(&mut v, 4);
    v[0] ^ v[1] ^ v[2] ^ v[3]
}
