//! Random programs over random layouts, compared with their steps run one by one.

mod common;

use common::{Choices, Data, Random, random_program, random_shape, step_by_step};
use proptest::prelude::*;
use taut_fused::FusedKernel;
use taut_kernels::reduce::{Reduce, reduce, reduce_scratch};
use taut_kernels::{Arg, DType};

const REDUCTIONS: [Reduce; 10] = [
    Reduce::Sum,
    Reduce::Mean,
    Reduce::Max,
    Reduce::SumSquares,
    Reduce::Min,
    Reduce::Prod,
    Reduce::Any,
    Reduce::All,
    Reduce::CountNonzero,
    Reduce::LogSumExp,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_kernel_equals_its_steps_run_one_by_one(choices in prop::collection::vec(any::<u32>(), 160), seed: u64) {
        let (choices, random) = (&mut Choices::new(choices), &mut Random(seed));
        let program = random_program(choices, random, 4);
        let shape = random_shape(choices);
        let types: Vec<DType> = program.output_types().collect();
        let mut inputs: Vec<Data> =
            program.inputs().iter().map(|&dtype| Data::random(choices, random, dtype, &shape)).collect();

        // Some inputs are in place; two in the same output are the same input.
        let mut outputs: Vec<Data> = types.iter().map(|&dtype| Data::zeros(dtype, &shape)).collect();
        let mut occupied = vec![false; outputs.len()];
        let mut in_place = vec![None; inputs.len()];
        for (i, input) in inputs.iter_mut().enumerate() {
            let k = choices.below(outputs.len());
            if types[k] == input.dtype && choices.below(3) > 0 {
                if !occupied[k] {
                    outputs[k] = input.materialised();
                }
                *input = outputs[k].clone();
                (occupied[k], in_place[i]) = (true, Some(k));
            }
        }

        let plain: Vec<Data> = inputs.iter().map(Data::materialised).collect();
        let expected = step_by_step(&program, &plain, &shape);
        for kernel in [FusedKernel::new(program.clone()), FusedKernel::compiled(program)] {
            let args: Vec<Arg<'_>> = (inputs.iter().zip(&in_place))
                .map(|(input, at)| at.map_or_else(|| Arg::View(input.view()), Arg::InPlace))
                .collect();
            let mut outputs = outputs.clone();
            let mut views: Vec<_> = outputs.iter_mut().map(Data::out).collect();
            kernel.run(&args, &mut views);
            for (k, (expected, output)) in expected.iter().zip(&outputs).enumerate() {
                prop_assert!(expected.same(output), "output {k} of {kernel:?} on {shape:?}, {in_place:?}");
            }
        }
    }

    #[test]
    fn a_fused_reduction_equals_the_reduction_of_the_stored_output(choices in prop::collection::vec(any::<u32>(), 160), seed: u64) {
        let (choices, random) = (&mut Choices::new(choices), &mut Random(seed));
        let code = choices.pick(&REDUCTIONS);
        let shape = random_shape(choices);
        let axes: Vec<bool> = shape.iter().map(|_| choices.below(2) == 0).collect();
        let program = random_program(choices, random, 1);
        let inputs: Vec<Data> =
            program.inputs().iter().map(|&dtype| Data::random(choices, random, dtype, &shape)).collect();
        let dtype = program.output_types().next().unwrap();
        let needs_element = matches!(code, Reduce::Max | Reduce::Min) && shape.contains(&0);
        if FusedKernel::reduces(code, dtype) && !needs_element {
            let result = code.result(dtype).unwrap();
            let plain: Vec<Data> = inputs.iter().map(Data::materialised).collect();
            let whole = &step_by_step(&program, &plain, &shape)[0];
            let kept: Vec<usize> = shape.iter().zip(&axes).filter(|(_, reduced)| !**reduced).map(|(n, _)| *n).collect();
            let mut scratch = vec![0u64; reduce_scratch(&shape, &axes).div_ceil(8)];
            let scratch = bytemuck::cast_slice_mut(&mut scratch);
            let (mut expected, mut found) = (Data::zeros(result, &kept), Data::zeros(result, &kept));
            reduce(code, whole.view(), &axes, expected.out(), scratch);
            prop_assert_eq!(FusedKernel::reduce_scratch(&shape, &axes), scratch.len());
            let args: Vec<Arg<'_>> = inputs.iter().map(|input| Arg::View(input.view())).collect();
            for kernel in [FusedKernel::new(program.clone()), FusedKernel::compiled(program)] {
                kernel.reduce(&args, &shape, code, &axes, found.out(), scratch);
                prop_assert!(expected.same(&found), "{code:?} of {kernel:?} on {shape:?} over {axes:?}");
            }
        }
    }
}
