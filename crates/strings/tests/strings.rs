//! String tensors: values, memory, bad input.

use taut_core::{DType, Result, Tensor};
use taut_strings::*;

fn strings(values: &[&str]) -> StringTensor {
    StringTensor::from_values(values, [values.len()]).unwrap()
}

fn texts(x: &StringTensor) -> Vec<String> {
    x.to_vec().unwrap().into_iter().map(|value| String::from_utf8(value).unwrap()).collect()
}

#[test]
fn rows_share_memory_and_every_byte_is_counted() -> Result<()> {
    let before = taut_memory::live_bytes();
    let x = StringTensor::from_values(["a", "bcd", "", "efghi"], [2, 2])?;
    let held = taut_memory::live_bytes() - before;
    assert_eq!(x.byte_len(), 4 * 8 + 9);
    assert!((x.byte_len()..=2 * x.byte_len()).contains(&held), "{held}");
    let row = x.row(1)?;
    assert_eq!(texts(&row), ["", "efghi"]);
    assert_eq!(row.byte_len(), 2 * 8 + 5);
    assert_eq!(row.row(1)?.item()?, b"efghi");
    assert_eq!(taut_memory::live_bytes() - before, held);
    assert!(x.row(2).is_err() && row.row(0)?.row(0).is_err());
    drop((x, row));
    assert_eq!(taut_memory::live_bytes(), before);
    Ok(())
}

#[test]
fn parts_are_arrows_layout_and_are_checked() -> Result<()> {
    let ends = |values: &[i64]| Tensor::from_slice(values, [values.len()]).unwrap();
    let bytes = Tensor::from_slice(b"abcdef", [6])?;
    let whole = StringTensor::from_parts(ends(&[1, 1, 6]), bytes.clone())?;
    assert_eq!(texts(&whole), ["a", "", "bcdef"]);
    // The end of a longer buffer: the first string starts where the one before it ends.
    let rest = StringTensor::from_parts(ends(&[12, 16]), bytes.clone())?;
    assert_eq!(texts(&rest), ["ab", "cdef"]);
    for bad in [&[3, 2, 6][..], &[-1, 6], &[2]] {
        assert!(StringTensor::from_parts(ends(bad), bytes.clone()).is_err(), "{bad:?}");
    }
    assert!(StringTensor::from_parts(bytes.clone(), bytes).is_err());
    Ok(())
}

#[test]
fn selections_stacks_and_comparisons() -> Result<()> {
    let (a, b) = (strings(&["x", "yy"]), strings(&["z"]));
    let picked = take(&[&a, &b], &Tensor::from_slice(&[2i64, 0, -1, 1], [2, 2])?)?;
    assert_eq!(texts(&picked), ["z", "x", "", "yy"]);
    assert!(take(&[&a], &Tensor::from_slice(&[2i64], [1])?).is_err());
    assert_eq!(texts(&concat(&[&a, &b])?), ["x", "yy", "z"]);
    assert!(stack(&[&a, &b]).is_err());
    let padded = pad_stack(&[&a, &b], &[3].into(), b"-")?;
    assert_eq!(texts(&padded), ["x", "yy", "-", "z", "-", "-"]);
    let column = a.reshape([2, 1])?;
    let equal = compare(&column, &strings(&["x", "q", "yy"]), Comparison::Equal)?;
    assert_eq!(equal.to_vec::<bool>()?, [true, false, false, false, false, true]);
    assert!(compare(&a, &strings(&["1", "2", "3"]), Comparison::Less).is_err());
    Ok(())
}

#[test]
fn fingerprints_of_every_length_class() {
    // TensorFlow's `tf.fingerprint`.
    let cases = [
        (String::new(), 0x9ae1_6a3b_2f90_404f_u64),
        ("a".into(), 0xb345_4265_b6df_75e3),
        ("abcd".into(), 0x1a55_02de_4a1f_8101),
        ("x".repeat(10), 0x3e6f_a255_fa8f_893b),
        ("x".repeat(20), 0x7241_ce1f_8ef7_4dc4),
        ("x".repeat(50), 0x3ff2_e52e_f910_c925),
        ("x".repeat(64), 0x5ffb_3c75_4f69_13b8),
        ("x".repeat(65), 0x447c_b9fd_96f2_5f39),
        ("x".repeat(200), 0xc171_3bf9_d998_a3bf),
    ];
    for (text, wanted) in cases {
        assert_eq!(fingerprint64(text.as_bytes()), wanted, "{} bytes", text.len());
    }
    // Lengths around the limits of the classes give distinct values, and none panics.
    let mut all: Vec<u64> = (0..300).map(|len| fingerprint64(&vec![b'x'; len])).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 300);
}

#[test]
fn tables_find_every_key() -> Result<()> {
    let keys: Vec<String> = (0..1000).map(|i| format!("key{i}")).collect();
    let table = StringTable::new(StringTensor::from_values(&keys, [1000])?)?;
    let found = table.positions(&StringTensor::from_values(&keys, [1000])?)?;
    assert!(found.to_vec::<i64>()?.into_iter().eq(0..1000));
    assert_eq!(table.positions(&strings(&["", "key1000"]))?.to_vec::<i64>()?, [-1, -1]);
    let error = StringTable::new(strings(&["a", "b", "a"])).err().unwrap().to_string();
    assert!(error.contains("distinct") && error.contains("0 and 2"), "{error}");
    Ok(())
}

#[cfg(feature = "regex")]
#[test]
fn expressions_have_re2s_meaning() -> Result<()> {
    let replaced = |pattern: &str, text: &str, rewrite: &str| -> Result<String> {
        let x = StringTensor::scalar(text)?;
        Ok(texts(&regex_replace(&x, &Regex::new(pattern)?, rewrite.as_bytes(), true)?).remove(0))
    };
    assert_eq!(replaced(r"\d", "1٣", "#")?, "#٣"); // ASCII digits only
    assert_eq!(replaced(r"[[a]", "[a]b", "")?, "]b");
    assert_eq!(replaced(r"[a&&b]", "a&b", "")?, "");
    assert_eq!(replaced(r"(\w)(\w)", "abcd", r"\2\1")?, "badc");
    assert_eq!(replaced(r"\Qa.b\E", "a.b axb", "!")?, "! axb");
    assert!(replaced("(", "x", "").is_err());
    assert!(replaced("a", "a", r"\1").is_err());
    assert!(Regex::new(&"(a{1000}){1000}".repeat(3)).is_err());
    Ok(())
}

#[test]
fn numbers_are_parsed_in_full() -> Result<()> {
    let parse = |text: &str, dtype| to_number(&StringTensor::scalar(text).unwrap(), dtype);
    assert_eq!(parse(" 0x10 ", DType::F32)?.item::<f32>()?, 16.0);
    assert_eq!(parse("-9223372036854775808", DType::I64)?.item::<i64>()?, i64::MIN);
    for bad in ["", "1.5x", "2147483648", "1 2"] {
        assert!(parse(bad, DType::I32).is_err(), "{bad}");
    }
    Ok(())
}
