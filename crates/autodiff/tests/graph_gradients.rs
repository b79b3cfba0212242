//! Gradients inside traces and of graphs.

use taut_autodiff::{DenseGradient, gradient_graph, gradients};
use taut_core::ops::binary::mul;
use taut_core::ops::unary::relu;
use taut_core::{DType, Spec, trace};
use taut_memory::testing::ledger_check;
use taut_testing::{values, vector};

#[test]
fn gradients_inside_a_trace() {
    let _ledger = ledger_check();
    let specs = [Spec::new(DType::F64, [2]), Spec::new(DType::F64, [2])];
    let traced = trace(&specs, |inputs| {
        let y = relu(mul(&inputs[0], &inputs[0])?)?;
        let found = gradients([&y], inputs)?;
        assert!(found[1].is_none());
        Ok(vec![found.into_iter().next().unwrap().dense()?])
    })
    .unwrap();
    traced.graph.verify().unwrap();
    let x = vector(&[3.0, -4.0]);
    assert_eq!(values(&traced.graph.run(&[x.clone(), x.clone()]).unwrap()[0]), [6.0, -8.0]);
    let error = gradients([&x], [&x]).unwrap_err();
    assert!(error.to_string().contains("use a GradientTape"), "{error}");

    let forward = trace(&specs, |i| Ok(vec![mul(&i[0], &i[1])?])).unwrap().graph;
    let joint = gradient_graph(&forward, &[1]).unwrap();
    joint.verify().unwrap();
    let run = joint.run(&[vector(&[1.0, 2.0]), vector(&[5.0, 6.0])]).unwrap();
    assert_eq!((values(&run[0]), values(&run[1])), (vec![5.0, 12.0], vec![1.0, 2.0]));
    assert!(gradient_graph(&forward, &[2]).is_err());
}
