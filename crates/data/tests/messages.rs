//! Protocol buffers: examples whose features have one key, and tensors of complex numbers.

use taut_core::{Complex, ErrorKind, Tensor};
use taut_data::{
    AnyTensor, ExampleBuilder, FeatureSpec, FeatureValues, ParsedFeature, parse_examples,
    parse_sequence_examples, parse_tensor, serialize_tensor,
};
use taut_memory::testing::ledger_check;
use taut_strings::StringTensor;

fn feature(key: &str, values: FeatureValues) -> FeatureSpec {
    FeatureSpec { key: key.to_owned(), values, shape: None, default: None }
}

fn numbers(tensor: &AnyTensor) -> &Tensor {
    let AnyTensor::Numbers(tensor) = tensor else { panic!("expected numbers") };
    tensor
}

/// The lengths of a feature, and its values.
fn floats(feature: &ParsedFeature) -> (Vec<i64>, Vec<f32>) {
    let ParsedFeature::Variable(values, lengths) = feature else { panic!("expected a variable length") };
    (lengths.to_vec().unwrap(), numbers(values).to_vec().unwrap())
}

#[test]
fn features_of_one_key_have_the_same_values() {
    let _ledger = ledger_check();
    let examples = [
        ExampleBuilder::new().floats("v", &[1.0, 2.0]).ints("i", &[3, 4]).serialize(),
        ExampleBuilder::new().ints("i", &[5]).serialize(),
        ExampleBuilder::new().ints("i", &[6]).floats("v", &[7.0]).serialize(),
    ];
    let serialized = StringTensor::from_values(&examples, [3]).unwrap();
    // In this order, the place that is tried first for "v" after "i" is the second of two.
    let specs = [
        feature("v", FeatureValues::Floats),
        feature("i", FeatureValues::Ints),
        feature("v", FeatureValues::Floats),
        FeatureSpec {
            shape: Some([1].into()),
            default: Some(AnyTensor::Numbers(Tensor::new([0i64]).unwrap())),
            ..feature("absent", FeatureValues::Ints)
        },
        feature("v", FeatureValues::Floats),
    ];
    let parsed = parse_examples(&serialized, &specs).unwrap();
    for place in [0, 2, 4] {
        assert_eq!(floats(&parsed[place]), (vec![2, 0, 1], vec![1.0, 2.0, 7.0]), "place {place}");
    }
    let ParsedFeature::Variable(ints, _) = &parsed[1] else { panic!("expected a variable length") };
    assert_eq!(numbers(ints).to_vec::<i64>().unwrap(), [3, 4, 5, 6]);
    let (context, _) = parse_sequence_examples(&serialized, &specs, &[]).unwrap();
    assert_eq!(floats(&context[2]), floats(&parsed[2]));
    // A key has one type.
    let specs = [feature("v", FeatureValues::Floats), feature("v", FeatureValues::Ints)];
    assert_eq!(parse_examples(&serialized, &specs).unwrap_err().kind(), ErrorKind::DType);
}

#[test]
fn complex_tensors_are_written_and_read() {
    let _ledger = ledger_check();
    let single: Vec<Complex<f32>> = (0..6u8).map(|i| Complex::new(f32::from(i), -0.5)).collect();
    let tensor = AnyTensor::Numbers(Tensor::from_vec(single.clone(), [2, 3]).unwrap());
    let bytes = serialize_tensor(&tensor).unwrap();
    assert_eq!(bytes[..2], [1 << 3, 8]);
    let again = parse_tensor(&bytes).unwrap();
    assert_eq!(numbers(&again).shape(), &[2, 3]);
    assert_eq!(numbers(&again).to_vec::<Complex<f32>>().unwrap(), single);

    let double = vec![Complex::new(0.1f64, 2.0), Complex::new(-3.0, 1e-300)];
    let tensor = AnyTensor::Numbers(Tensor::from_vec(double.clone(), [2]).unwrap());
    let bytes = serialize_tensor(&tensor).unwrap();
    assert_eq!(bytes[..2], [1 << 3, 18]);
    assert_eq!(numbers(&parse_tensor(&bytes).unwrap()).to_vec::<Complex<f64>>().unwrap(), double);
}

/// A message of a type and a vector's size, with a list of packed numbers.
fn listed(number: u8, size: u8, field: u8, packed: &[u8]) -> Vec<u8> {
    let mut message = vec![1 << 3, number, 2 << 3 | 2, 4, 2 << 3 | 2, 2, 1 << 3, size];
    message.extend([field << 3 | 2, u8::try_from(packed.len()).unwrap()]);
    message.extend_from_slice(packed);
    message
}

#[test]
fn lists_of_complex_numbers_have_two_parts_each() {
    let _ledger = ledger_check();
    let parts: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|part| part.to_le_bytes()).collect();
    // The last number is repeated.
    let found = parse_tensor(&listed(8, 3, 9, &parts)).unwrap();
    let (first, last) = (Complex::new(1.0f32, 2.0), Complex::new(3.0, 4.0));
    assert_eq!(numbers(&found).to_vec::<Complex<f32>>().unwrap(), [first, last, last]);
    let parts: Vec<u8> = [1.5f64, -2.5].iter().flat_map(|part| part.to_le_bytes()).collect();
    let found = parse_tensor(&listed(18, 1, 12, &parts)).unwrap();
    assert_eq!(numbers(&found).to_vec::<Complex<f64>>().unwrap(), [Complex::new(1.5, -2.5)]);
    let error = parse_tensor(&listed(18, 1, 12, &parts[..8])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format, "{error}");
}
