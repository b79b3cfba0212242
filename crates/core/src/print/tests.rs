use crate::Tensor;
#[test]
fn x() { assert_eq!(Tensor::new([1, 2]).unwrap().shape(), &[2]); println!("{}", Tensor::new([1, 2]).unwrap()); }
