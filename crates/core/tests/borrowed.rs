//! Tensors over borrowed memory.

use std::sync::Arc;
use taut_core::ops::binary::add;
use taut_core::ops::unary::exp;
use taut_core::{DType, ErrorKind, Layout, Shape, Strides, Tensor};
use taut_memory::testing::ledger_check;

/// Bytes that begin at a multiple of eight, with a count of their owners.
#[derive(Clone)]
struct Owner {
    words: Arc<Vec<u64>>,
    skip: usize,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[self.skip..]
    }
}

fn owner(values: &[f32]) -> Owner {
    let words: Vec<u64> = values
        .chunks_exact(2)
        .map(|pair| u64::from(pair[0].to_bits()) | u64::from(pair[1].to_bits()) << 32)
        .collect();
    Owner { words: Arc::new(words), skip: 0 }
}

fn layout(shape: impl Into<Shape>, strides: &[isize], offset: usize) -> Layout {
    Layout { shape: shape.into(), strides: Strides::from_slice(strides), offset }
}

#[test]
#[cfg(target_endian = "little")]
fn borrowed_memory_is_read_without_a_copy_and_never_written() {
    let _ledger = ledger_check();
    let owner = owner(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let before = taut_memory::live_bytes();
    let x = Tensor::borrowed(DType::F32, layout([2, 3], &[3, 1], 0), owner.clone()).unwrap();
    assert_eq!(taut_memory::live_bytes(), before, "the ledger does not count borrowed memory");
    assert_eq!(x.memory().unwrap().0, owner.words.as_ptr().addr());
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);

    // Transposed, and every second element.
    let turned = Tensor::borrowed(DType::F32, layout([3, 2], &[1, 3], 0), owner.clone()).unwrap();
    assert_eq!(turned.to_vec::<f32>().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let second = Tensor::borrowed(DType::F32, layout([3], &[2], 1), owner.clone()).unwrap();
    assert_eq!(second.to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0]);

    // Not overwritten, even as a donated input.
    assert!(!x.is_uniquely_owned());
    let y = exp(add(x, 1.0).unwrap()).unwrap();
    assert_eq!(y.shape(), &[2, 3]);
    assert_eq!(f32::from_bits(owner.words[0] as u32), 1.0);

    drop((turned, second));
    assert_eq!(Arc::strong_count(&owner.words), 1, "the last tensor over it is dropped");
}

#[test]
fn the_owner_lives_as_long_as_a_view() {
    let _ledger = ledger_check();
    let owner = owner(&[1.0, 2.0, 3.0, 4.0]);
    let x = Tensor::borrowed(DType::F32, layout([2, 2], &[2, 1], 0), owner.clone()).unwrap();
    let row = taut_core::ops::shape::slice(&x, &taut_core::s![1]).unwrap();
    drop(x);
    assert_eq!(Arc::strong_count(&owner.words), 2);
    assert_eq!(row.to_vec::<f32>().unwrap(), [3.0, 4.0]);
    drop(row);
    assert_eq!(Arc::strong_count(&owner.words), 1);
}

#[test]
fn invalid_layouts_and_alignments_are_errors() {
    let _ledger = ledger_check();
    let owner = owner(&[1.0, 2.0, 3.0, 4.0]);
    let refused = |layout: Layout| Tensor::borrowed(DType::F32, layout, owner.clone()).unwrap_err();
    assert_eq!(refused(layout([5], &[1], 0)).kind(), ErrorKind::Shape);
    assert_eq!(refused(layout([2], &[1], 3)).kind(), ErrorKind::Shape);
    assert_eq!(refused(layout([2], &[-1], 0)).kind(), ErrorKind::Shape);
    assert_eq!(refused(layout([2, 2], &[1], 0)).kind(), ErrorKind::Shape);
    assert_eq!(refused(layout([usize::MAX, 2], &[1, 1], 0)).kind(), ErrorKind::Shape);
    let shifted = Owner { skip: 4, ..owner.clone() };
    let error = Tensor::borrowed(DType::F32, layout([1], &[1], 0), shifted).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert!(error.location().unwrap().file().ends_with(file!()));
    assert!(Tensor::borrowed(DType::F32, layout([0], &[1], 0), owner).unwrap().is_empty());
}
