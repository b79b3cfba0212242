//! Initial values are reproducible. In a separate process: other tests would draw from the same generator.

use taut_core::DType;
use taut_core::ops::random::set_seed;
use taut_memory::testing::ledger_check;
use taut_nn::initializers::Initializer;

#[test]
fn a_seed_makes_initial_values_reproducible() {
    let _ledger = ledger_check();
    let twice = [0, 1].map(|_| {
        set_seed(17);
        let draw = |initializer: Initializer, shape: &[usize]| {
            initializer.make(shape, DType::F64).unwrap().to_vec::<f64>().unwrap()
        };
        (draw(Initializer::HeNormal, &[4, 4]), draw(Initializer::Orthogonal { gain: 1.0 }, &[3, 3]))
    });
    assert_eq!(twice[0], twice[1]);
    assert_ne!(twice[0].0[0], twice[0].0[1]);
}
