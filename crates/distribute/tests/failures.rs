//! Ranks that differ, do not come, or lose their connection: errors that name rank, line and reason, and no wrong values.

mod common;

use common::{on, on_ranks};
use std::time::Duration;
use taut_core::{ErrorKind, Tensor};
use taut_distribute::{Group, ReduceOp, Threads, all_gather, all_reduce, broadcast, reduce_scatter};

const SHORT: Duration = Duration::from_millis(400);

fn x(count: usize) -> Tensor {
    Tensor::from_slice(&vec![1.0f32; count], [count]).unwrap()
}

#[test]
fn different_collectives_are_an_error_that_names_both_lines() {
    let _alone = taut_testing::exclusive();
    let errors = on(Threads::of(2), SHORT, |group| {
        let line = line!() + 2;
        let outcome = match group.rank() {
            0 => all_reduce(x(3), ReduceOp::Sum, group),
            _ => all_gather(x(3), group),
        };
        (outcome.unwrap_err(), line)
    });
    for (error, line) in errors {
        let message = error.message();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let (first, second) = (format!("failures.rs:{line}"), format!("failures.rs:{}", line + 1));
        assert!(message.contains("all ranks must call the same collectives in the same order"), "{message}");
        assert!(message.contains("all_reduce sum of 3 x float32") && message.contains(&first), "{message}");
        assert!(message.contains("all_gather of 6 x float32") && message.contains(&second), "{message}");
    }
}

#[test]
fn different_shapes_and_types_are_an_error() {
    let _alone = taut_testing::exclusive();
    for other in [x(4), x(5000), Tensor::from_slice(&[1.0f64; 3], [3]).unwrap()] {
        let errors = on(Threads::of(2), SHORT, |group| {
            let own = if group.rank() == 0 { x(3) } else { other.clone() };
            all_reduce(own, ReduceOp::Sum, group).unwrap_err().message().to_owned()
        });
        assert!(errors.iter().all(|error| error.contains("must call the same collectives")), "{errors:?}");
    }
}

#[test]
fn a_rank_that_ends_early_is_an_error_for_both() {
    let _alone = taut_testing::exclusive();
    let errors = on(Threads::of(2), SHORT, |group| match group.rank() {
        0 => group.finish().unwrap_err().message().to_owned(),
        _ => all_reduce(x(3), ReduceOp::Sum, group).unwrap_err().message().to_owned(),
    });
    assert!(errors.iter().all(|error| error.contains("the end of the program at")), "{errors:?}");
}

#[test]
fn ranks_that_do_not_come_are_named() {
    let _alone = taut_testing::exclusive();
    let errors = on(Threads::of(4), SHORT, |group| match group.rank() {
        2 => None,
        _ => Some(all_reduce(x(3), ReduceOp::Sum, group).unwrap_err()),
    });
    for (rank, error) in errors.iter().enumerate().filter_map(|(rank, error)| Some((rank, error.as_ref()?))) {
        let message = error.message();
        let expected = format!("rank {rank}, all_reduce sum of 3 x float32 at ");
        assert!(message.starts_with(&expected), "{message}");
        assert!(message.contains("waited 0.4 s for rank 2, which did not come"), "{message}");
    }
}

#[test]
fn a_group_with_a_failed_collective_refuses_the_next() {
    let _alone = taut_testing::exclusive();
    on(Threads::of(2), SHORT, |group| {
        if group.rank() == 1 {
            return;
        }
        assert!(!group.has_failed());
        all_reduce(x(3), ReduceOp::Sum, group).unwrap_err();
        assert!(group.has_failed());
        let error = all_reduce(x(3), ReduceOp::Sum, group).unwrap_err();
        assert!(error.message().contains("collectives after a failed one are refused"), "{error}");
    });
}

#[test]
fn a_lost_connection_never_gives_a_wrong_value() {
    let _alone = taut_testing::exclusive();
    let before = taut_memory::live_bytes();
    let timeout = Duration::from_millis(150);
    let work = |group: &Group| {
        let sum = all_reduce(x(3000), ReduceOp::Sum, group)?;
        let part = reduce_scatter(&sum, ReduceOp::Sum, group)?;
        broadcast(all_gather(part, group)?, 1, group)?.to_vec::<f32>()
    };
    let (mut exchange, mut named) = (0, 0);
    loop {
        let outcomes = on(Threads::failing(3, exchange), timeout, work);
        let values = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok());
        assert!(values.flatten().all(|value| *value == 9.0), "exchange {exchange}");
        if outcomes.iter().all(Result::is_ok) {
            break;
        }
        // On a busy machine, a rank may have waited too long before the connection is lost: an error as well.
        named += u32::from(outcomes.iter().any(|outcome| {
            outcome.as_ref().is_err_and(|error| error.message().contains("the connection was lost"))
        }));
        exchange += 1;
    }
    assert!(exchange > 20, "{exchange}");
    assert!(named > 0, "no error says that the connection was lost");
    assert_eq!(taut_memory::live_bytes(), before);
}

#[test]
fn a_group_on_paper_plans_and_refuses_to_run() {
    let _alone = taut_testing::exclusive();
    let group = Group::paper(1000).unwrap();
    assert_eq!((group.rank(), group.size()), (0, 1000));
    let error = all_reduce(x(3), ReduceOp::Sum, &group).unwrap_err();
    assert!(error.message().contains("a group on paper plans for 1000 ranks and cannot run"), "{error}");
    assert!(Group::paper(0).unwrap_err().message().contains("ranks must be >= 1, got 0"));
}

#[test]
fn bad_arguments_are_refused_before_a_message_is_sent() {
    let _alone = taut_testing::exclusive();
    on_ranks(2, |group| {
        let error = reduce_scatter(x(3), ReduceOp::Sum, group).unwrap_err();
        assert!(
            error.message().contains("the first axis must be a multiple of the number of ranks, 2, got 3")
        );
        let error = reduce_scatter(Tensor::scalar(1.0f32).unwrap(), ReduceOp::Sum, group).unwrap_err();
        assert!(error.message().contains("expected rank >= 1, got a scalar"));
        let error = broadcast(x(3), 2, group).unwrap_err();
        assert!(error.message().contains("root must be in [0, 2), got 2"));
        let integers = Tensor::from_slice(&[1i32], [1]).unwrap();
        let error = all_reduce(integers, ReduceOp::Mean, group).unwrap_err();
        assert!(error.message().contains("a mean over ranks must be of floats, got int32"));
        let flags = taut_core::ops::binary::less(x(2), x(2)).unwrap();
        assert_eq!(all_reduce(flags, ReduceOp::Sum, group).unwrap_err().kind(), ErrorKind::DType);
        group.barrier().unwrap();
    });
}
