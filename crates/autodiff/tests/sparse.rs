//! Sparse gradients.

use taut_autodiff::IndexedSlices;
use taut_core::{ErrorKind, Gradient, Result, Tensor};
use taut_memory::testing::ledger_check;
use taut_testing::{values, vector};

#[test]
fn sparse_gradients_add_scale_and_clip_like_dense_ones() {
    let _ledger = ledger_check();
    let rows = Tensor::from_slice(&[1.0f64, -2.0, 3.0, 4.0, 5.0, -6.0], [3, 2]).unwrap();
    let slices = IndexedSlices::new(rows, Tensor::from_slice(&[4, 1, 4], [3]).unwrap(), [1000, 2]).unwrap();
    let dense = slices.to_dense().unwrap();
    assert_eq!(slices.bytes(), 3 * 16 + 3 * 4);
    let once = slices.coalesce().unwrap();
    assert_eq!(once.indices.to_vec::<i32>().unwrap(), [1, 4]);
    let (sparse, dense) = (Gradient::from(slices), Gradient::from(dense));
    let changes: [fn(Gradient) -> Result<Gradient>; 4] = [
        |g| g.scale(0.5),
        |g| g.clip_by_value(-2.5, 3.5),
        |g| g.clip_by_norm(1.5),
        |g| Ok(Gradient::clip_by_global_norm(vec![Some(g), None], 2.0)?.0.swap_remove(0).unwrap()),
    ];
    for change in changes {
        let (a, b) = (change(sparse.clone()).unwrap(), change(dense.clone()).unwrap());
        assert!(matches!(a, Gradient::Sparse(_)) && a.bytes() < 100);
        assert_eq!(values(&a.dense().unwrap()), values(&b.dense().unwrap()));
    }
    let twice = sparse.clone().plus(sparse.clone()).unwrap();
    assert!(matches!(twice, Gradient::Sparse(_)));
    let mixed = sparse.clone().plus(dense.clone()).unwrap();
    assert_eq!(values(&twice.dense().unwrap()), values(&mixed.dense().unwrap()));
    assert!(
        sparse
            .clone()
            .clip_by_value(1.0, 2.0)
            .unwrap_err()
            .message()
            .contains("bounds of a sparse gradient must contain 0, got [1, 2]")
    );
    assert!(sparse.clip_by_norm(0.0).is_err());
    let wrong = IndexedSlices::new(vector(&[1.0]), Tensor::from_slice(&[0, 1], [2]).unwrap(), [4]);
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Shape);
}
