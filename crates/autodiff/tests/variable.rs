//! Variables: updates in place, sharing between threads, locking.

use taut_autodiff::{DenseGradient, GradientTape, Variable};
use taut_core::ops::binary::mul;
use taut_core::ops::creation::{ones, zeros};
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::broadcast_to;
use taut_core::{DType, ErrorKind, Location, Tensor};
use taut_memory::testing::ledger_check;

#[test]
fn variables_are_updated_in_place() {
    let _ledger = ledger_check();
    let v = Variable::builder().name("v").build(zeros([3, 2], DType::F32).unwrap()).unwrap();
    let address = v.address();
    v.assign(ones([3, 2], DType::F32).unwrap()).unwrap();
    v.assign_add(2.0).unwrap();
    v.assign_sub(ones([3, 2], DType::F32).unwrap()).unwrap();
    let rows = Tensor::from_slice(&[2, 0, 2], [3, 1]).unwrap();
    v.scatter_add(&rows, ones([3, 2], DType::F32).unwrap()).unwrap();
    assert_eq!(v.read().to_vec::<f32>().unwrap(), [3.0, 3.0, 2.0, 2.0, 4.0, 4.0]);
    v.scatter_mul(
        Tensor::from_slice(&[1], [1]).unwrap(),
        broadcast_to(Tensor::scalar(5.0f32).unwrap(), [2]).unwrap(),
    )
    .unwrap();
    assert_eq!(v.address(), address);

    // A training step: the tape has dropped its values before the update.
    let tape = GradientTape::new();
    let loss = sum(mul(&v, &v).unwrap(), None, false).unwrap();
    let gradient = tape.gradient(&loss, &v).unwrap().dense().unwrap();
    v.assign_sub(mul(gradient, 0.5).unwrap()).unwrap();
    assert_eq!(v.address(), address);
    assert_eq!(v.read().to_vec::<f32>().unwrap(), [0.0; 6]);

    // A tensor that was read before does not change.
    let held = v.read();
    v.assign_add(1.0).unwrap();
    assert_eq!(held.to_vec::<f32>().unwrap(), [0.0; 6]);
    assert_eq!(v.read().to_vec::<f32>().unwrap(), [1.0; 6]);

    // Invalid assignments fail and change nothing.
    let address = v.address();
    let shape = v.assign(ones([2, 3], DType::F32).unwrap()).unwrap_err();
    assert_eq!(shape.kind(), ErrorKind::Shape);
    assert!(
        shape.to_string().contains(
            "the variable `v` float32[3, 2] must be assigned values of its spec, got float32[2, 3]"
        ),
        "{shape}"
    );
    assert_eq!(v.assign_add(ones([3, 2], DType::F64).unwrap()).unwrap_err().kind(), ErrorKind::DType);
    let outside = Tensor::from_slice(&[0, 7], [2, 1]).unwrap();
    assert_eq!(
        v.scatter_add(&outside, ones([2, 2], DType::F32).unwrap()).unwrap_err().kind(),
        ErrorKind::Index
    );
    assert_eq!(v.address(), address);
    assert_eq!(v.read().to_vec::<f32>().unwrap(), [1.0; 6]);
}

#[test]
fn variables_are_shared_between_threads() {
    let _ledger = ledger_check();
    let v = Variable::new(zeros([1000], DType::I64).unwrap()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    v.assign_add(1i64).unwrap();
                    let seen = v.value().to_vec::<i64>().unwrap();
                    assert!(seen.iter().all(|&s| s == seen[0]), "part of an update is visible");
                }
            });
        }
    });
    assert_eq!(v.value().to_vec::<i64>().unwrap(), [400; 1000]);
}

#[test]
fn a_thread_does_not_deadlock_on_its_own_update() {
    let _ledger = ledger_check();
    let variable = Variable::new(Tensor::scalar(1.0f32).unwrap()).unwrap();
    variable.check_unlocked().unwrap();
    let locked = variable.lock(Location::caller()).unwrap();
    for error in
        [variable.check_unlocked(), variable.lock(Location::caller()).map(drop), variable.assign(2.0)]
    {
        let error = error.unwrap_err();
        assert!(error.message().contains("must not be used during its own update"), "{error}");
    }
    // Another thread waits for the lock.
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            variable.check_unlocked().unwrap();
            variable.read().item::<f32>().unwrap()
        });
        std::thread::sleep(std::time::Duration::from_millis(5));
        drop(locked);
        assert_eq!(reader.join().unwrap(), 1.0);
    });
    variable.check_unlocked().unwrap();
}
