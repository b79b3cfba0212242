//! The collectives with 1 to 5 ranks: values to the last bit, gradients, memory.

mod common;

use common::on_ranks;
use half::{bf16, f16};
use taut_autodiff::{GradientTape, Variable};
use taut_core::ops::binary::mul;
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::cast;
use taut_core::{DType, Result, Spec, Tensor, trace};
use taut_distribute::{
    Group, ReduceOp, all_gather, all_reduce, broadcast, broadcast_variables, check_equal, gather_shards,
    own_shard, reduce_scatter, reduce_shard, replace_shards, tree_sum,
};
use taut_function::function;
use taut_plan::Program;

const SIZES: [usize; 7] = [0, 1, 3, 1000, 1025, 5000, 1_100_003];

/// Numbers of a rank whose sums depend on the order of the additions.
fn numbers(rank: usize, count: usize) -> Vec<f32> {
    let number = |i: usize| {
        let bits = (i as u32).wrapping_mul(2_654_435_761).wrapping_add(rank as u32 * 40_503) >> 8;
        (f64::from(bits) / 3e3 - 2000.0) as f32 * if i % 7 == rank { 1e-3 } else { 1.0 }
    };
    (0..count).map(number).collect()
}

fn tree<T: Copy>(ranks: usize, i: usize, values: &[Vec<T>], add: impl Fn(T, T) -> T) -> T {
    let column = (0..ranks).map(|rank| values[rank][i]).collect();
    tree_sum(column, |a, b| Ok::<_, ()>(add(a, b))).unwrap().unwrap()
}

fn to_bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn a_sum_has_the_bits_of_the_tree_on_every_rank() {
    let _alone = taut_testing::exclusive();
    let before = taut_memory::live_bytes();
    for ranks in 1..=5 {
        for count in SIZES.into_iter().filter(|count| *count < 1_000_000 || ranks == 3 || ranks == 4) {
            let given: Vec<Vec<f32>> = (0..ranks).map(|rank| numbers(rank, count)).collect();
            let expected: Vec<f32> = (0..count).map(|i| tree(ranks, i, &given, |a, b| a + b)).collect();
            let sums = on_ranks(ranks, |group| {
                let x = Tensor::from_slice(&given[group.rank()], [count]).unwrap();
                all_reduce(x, ReduceOp::Sum, group).unwrap().to_vec::<f32>().unwrap()
            });
            for (rank, got) in sums.iter().enumerate() {
                assert!(to_bits(got) == to_bits(&expected), "rank {rank} of {ranks}, {count} elements");
            }
        }
    }
    assert_eq!(taut_memory::live_bytes(), before);
}

#[test]
fn half_precision_is_summed_in_float32() {
    let _alone = taut_testing::exclusive();
    for ranks in 2..=5 {
        for count in [5, 3000] {
            let given: Vec<Vec<f32>> = (0..ranks)
                .map(|rank| numbers(rank, count).iter().map(|x| f16::from_f32(*x / 64.0).to_f32()).collect())
                .collect();
            let exact = |i: usize| tree(ranks, i, &given, |a, b| a + b);
            let expected: Vec<f32> = (0..count).map(|i| f16::from_f32(exact(i)).to_f32()).collect();
            let sums = on_ranks(ranks, |group| {
                let x = Tensor::from_slice(&given[group.rank()], [count]).unwrap();
                let x = cast(x, DType::F16).unwrap();
                let sum = all_reduce(x, ReduceOp::Sum, group).unwrap();
                cast(sum, DType::F32).unwrap().to_vec::<f32>().unwrap()
            });
            assert!(sums.iter().all(|got| to_bits(got) == to_bits(&expected)), "{ranks} ranks, {count}");
        }
    }
    // Ones that bfloat16 could not count beyond 256.
    let sums = on_ranks(4, |group| {
        let x =
            Tensor::from_slice(&[bf16::from_f32(1.0 + 255.0 * f32::from(group.rank() == 0)); 2000], [2000])
                .unwrap();
        all_reduce(x, ReduceOp::Sum, group).unwrap().to_vec::<bf16>().unwrap()
    });
    assert!(sums.iter().flatten().all(|sum| *sum == bf16::from_f32(259.0)));
}

#[test]
fn integers_and_other_reductions() {
    let _alone = taut_testing::exclusive();
    for ranks in 1..=5 {
        let got = on_ranks(ranks, |group| {
            let own = group.rank() as i64 - 1;
            let x = || Tensor::from_slice(&[own, 10 * own], [2]).unwrap();
            let y = Tensor::from_slice(&[group.rank() as f64], [1]).unwrap();
            let reduce = |how| all_reduce(x(), how, group).unwrap().to_vec::<i64>().unwrap();
            let mean = all_reduce(y, ReduceOp::Mean, group).unwrap().item::<f64>().unwrap();
            (reduce(ReduceOp::Sum), reduce(ReduceOp::Max), reduce(ReduceOp::Min), mean)
        });
        let n = ranks as i64;
        let sum = n * (n - 1) / 2 - n;
        for got in got {
            let mean = (0..ranks).sum::<usize>() as f64 * (1.0 / ranks as f64);
            assert_eq!(got, (vec![sum, 10 * sum], vec![n - 2, 10 * (n - 2)], vec![-1, -10], mean));
        }
    }
}

#[test]
fn a_rank_gets_its_part_of_the_sum() {
    let _alone = taut_testing::exclusive();
    for ranks in 1..=5 {
        for rows in [1, 2, 700] {
            let count = ranks * rows * 3;
            let given: Vec<Vec<f32>> = (0..ranks).map(|rank| numbers(rank, count)).collect();
            let parts = on_ranks(ranks, |group| {
                let x = Tensor::from_slice(&given[group.rank()], [ranks * rows, 3]).unwrap();
                let part = reduce_scatter(&x, ReduceOp::Sum, group).unwrap();
                assert_eq!(part.shape()[..], [rows, 3]);
                let again = all_gather(&part, group).unwrap();
                let all = all_reduce(x, ReduceOp::Sum, group).unwrap();
                assert_eq!(to_bits(&again.to_vec::<f32>().unwrap()), to_bits(&all.to_vec::<f32>().unwrap()));
                part.to_vec::<f32>().unwrap()
            });
            let expected: Vec<f32> = (0..count).map(|i| tree(ranks, i, &given, |a, b| a + b)).collect();
            assert_eq!(to_bits(&parts.concat()), to_bits(&expected), "{ranks} ranks, {rows} rows");
        }
    }
}

#[test]
fn shards_of_any_length_add_up_to_the_whole() {
    let _alone = taut_testing::exclusive();
    for ranks in 1..=5 {
        for count in [1, 2, 7, 1201] {
            let given: Vec<Vec<f32>> = (0..ranks).map(|rank| numbers(rank, count)).collect();
            let expected: Vec<f32> = (0..count).map(|i| tree(ranks, i, &given, |a, b| a + b)).collect();
            let whole = on_ranks(ranks, |group| {
                let x = Tensor::from_slice(&given[group.rank()], [count]).unwrap();
                let shard = reduce_shard(&x, ReduceOp::Sum, group).unwrap();
                assert_eq!(shard.len(), count.div_ceil(ranks));
                let gathered = gather_shards(&shard, [count], group).unwrap().to_vec::<f32>().unwrap();
                let replaced = replace_shards(x, shard, group).unwrap();
                assert_eq!(to_bits(&replaced.to_vec::<f32>().unwrap()), to_bits(&gathered));
                let own = own_shard(&replaced, group).unwrap();
                let again = gather_shards(own, [count], group).unwrap().to_vec::<f32>().unwrap();
                assert_eq!(to_bits(&again), to_bits(&gathered));
                gathered
            });
            assert!(whole.iter().all(|got| to_bits(got) == to_bits(&expected)), "{ranks} ranks, {count}");
        }
    }
}

#[test]
fn every_rank_can_be_the_root_of_a_broadcast() {
    let _alone = taut_testing::exclusive();
    for ranks in 1..=5 {
        for root in 0..ranks {
            let got = on_ranks(ranks, |group| {
                let x = Tensor::from_slice(&vec![group.rank() as u16; 3000], [3000]).unwrap();
                broadcast(x, root, group).unwrap().to_vec::<u16>().unwrap()
            });
            assert!(got.iter().flatten().all(|value| usize::from(*value) == root));
        }
    }
}

#[test]
fn gradients_are_summed_over_ranks() {
    let _alone = taut_testing::exclusive();
    // The loss of all ranks together is the sum over ranks of `weight * sum(f(x))`.
    let ranks = 3;
    let gradient = |f: &(dyn Fn(&Tensor, &Group) -> Result<Tensor> + Sync)| {
        on_ranks(ranks, |group| {
            let x = Variable::new(Tensor::from_slice(&[1.0f64, 2.0, 3.0], [3]).unwrap()).unwrap();
            let tape = GradientTape::new();
            let y = f(&x.read(), group).unwrap();
            let loss = mul(sum(y, None, false).unwrap(), (group.rank() + 1) as f64).unwrap();
            let gradient = tape.gradient(&loss, &x).unwrap().unwrap();
            gradient.dense().unwrap().to_vec::<f64>().unwrap()
        })
    };
    assert_eq!(gradient(&|x, group| all_reduce(x, ReduceOp::Sum, group)), [[6.0; 3]; 3]);
    assert_eq!(gradient(&|x, group| all_reduce(x, ReduceOp::Mean, group)), [[2.0; 3]; 3]);
    assert_eq!(gradient(&|x, group| all_gather(x, group)), [[6.0; 3]; 3]);
    // Row r of the sum belongs to rank r, whose weight is r + 1.
    assert_eq!(gradient(&|x, group| reduce_scatter(x, ReduceOp::Sum, group)), [[1.0, 2.0, 3.0]; 3]);
    assert_eq!(gradient(&|x, group| broadcast(x, 1, group)), [[0.0; 3], [6.0; 3], [0.0; 3]]);
}

#[test]
fn a_traced_function_runs_its_collectives_in_order() {
    let _alone = taut_testing::exclusive();
    let eager = on_ranks(4, |group| {
        let x = Tensor::from_slice(&numbers(group.rank(), 2000), [2000]).unwrap();
        step(&x, group).unwrap().to_vec::<f32>().unwrap()
    });
    let traced = on_ranks(4, |group| {
        let x = Tensor::from_slice(&numbers(group.rank(), 2000), [2000]).unwrap();
        let own = group.clone();
        let program = function(move |x: &Tensor| step(x, &own));
        let plan = program.plan(&x).unwrap();
        let names: Vec<_> = plan.collectives().iter().map(|(step, _)| step.name()).collect();
        assert_eq!(names, ["all_reduce", "reduce_scatter", "all_gather"]);
        group.check_same_plan(&plan).unwrap();
        program.call(&x).unwrap().to_vec::<f32>().unwrap()
    });
    assert_eq!(
        eager.iter().map(|x| to_bits(x)).collect::<Vec<_>>(),
        traced.iter().map(|x| to_bits(x)).collect::<Vec<_>>()
    );
}

fn step(x: &Tensor, group: &Group) -> Result<Tensor> {
    let total = all_reduce(x, ReduceOp::Sum, group)?;
    let part = reduce_scatter(mul(&total, x)?, ReduceOp::Mean, group)?;
    mul(all_gather(part, group)?, total)
}

#[test]
fn a_sum_works_in_the_memory_of_its_input() {
    let _alone = taut_testing::exclusive();
    let group = Group::paper(4).unwrap();
    let spec = Spec::new(DType::F32, [10_000]);
    let graph = trace(&[spec], |x| {
        let y = mul(&x[0], 2.0)?;
        Ok(vec![all_reduce(y, ReduceOp::Sum, &group)?])
    })
    .unwrap()
    .graph;
    let plan = Program::new(&graph).unwrap();
    // The output, and half of it for what another rank sends.
    assert_eq!(plan.peak_bytes(), 40_000 + 20_000);
    let (_, traffic) = plan.collectives()[0];
    assert_eq!((traffic.ranks, traffic.messages, traffic.bytes), (4, 4, 2 * 40_000 * 3 / 4));
}

#[test]
fn variables_are_compared_and_broadcast() {
    let _alone = taut_testing::exclusive();
    let messages = on_ranks(3, |group| {
        let value = if group.rank() == 2 { 1.5f32 } else { 1.0 };
        let equal = Variable::new(Tensor::from_slice(&[7.0f32], [1]).unwrap()).unwrap();
        let weight = Variable::new(Tensor::from_slice(&[2.0, value], [2]).unwrap()).unwrap();
        let named = [("bias".to_owned(), equal), ("weight".to_owned(), weight.clone())];
        let message = check_equal(&named, group).unwrap_err().message().to_owned();
        broadcast_variables(std::slice::from_ref(&weight), 2, group).unwrap();
        check_equal(&named, group).unwrap();
        assert_eq!(weight.read().to_vec::<f32>().unwrap(), [2.0, 1.5]);
        message
    });
    for message in messages {
        assert!(message.contains("different values of 'weight' float32[2] on ranks 0 and 2"), "{message}");
    }
}

#[test]
fn a_subgroup_sums_over_its_ranks() {
    let _alone = taut_testing::exclusive();
    let got = on_ranks(5, |group| {
        let x = Tensor::from_slice(&[group.rank() as i32], [1]).unwrap();
        let odd = group.subgroup(&[1, 3]).unwrap();
        assert_eq!(odd.is_some(), group.rank() % 2 == 1);
        odd.map(|odd| all_reduce(x, ReduceOp::Sum, &odd).unwrap().item::<i32>().unwrap())
    });
    assert_eq!(got, [None, Some(4), None, Some(4), None]);
    let bad = Group::paper(3).unwrap().subgroup(&[0, 3]).unwrap_err();
    assert!(bad.message().contains("ranks must be distinct and in [0, 3), got [0, 3]"), "{bad}");
}
