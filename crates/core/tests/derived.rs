//! Tests of every op, derived from the op table.

use std::cell::RefCell;
use std::collections::HashSet;
use taut_core::ops::{ArgValue, Args, OpEntry, ParamKind, table};
use taut_core::{DType, ErrorKind, Result, Spec, Tensor, trace};
use taut_memory::testing::{allocations_on_thread, fail_nth, ledger_check};
use taut_testing::{every_row, values};

fn call(entry: &OpEntry, args: &[ArgValue]) -> Result<Vec<Tensor>> {
    entry.invoke(args)
}

fn sample_results(entry: &OpEntry) -> impl Iterator<Item = (Vec<ArgValue>, Vec<Tensor>)> {
    entry.samples.list().into_iter().map(|args| {
        let results = call(entry, &args).unwrap_or_else(|e| panic!("{args:?} is refused: {e}"));
        (args, results)
    })
}

/// The bytes of the elements in row-major order.
fn bytes(tensor: &Tensor) -> Vec<u8> {
    let copy = tensor.copy().unwrap();
    let view = copy.view().unwrap();
    taut_kernels::dispatch!(copy.dtype(), T in every => {
        view.contiguous::<T>().unwrap().iter().flat_map(|e| element_bytes(e).to_vec()).collect()
    })
}

fn element_bytes<T: taut_core::Element>(element: &T) -> &[u8] {
    bytemuck::bytes_of(element)
}

fn assert_same(what: &str, args: &[ArgValue], got: &[Tensor], want: &[Tensor]) {
    assert_eq!(got.len(), want.len(), "{what} gives another number of results on {args:?}");
    for (got, want) in got.iter().zip(want) {
        assert_eq!(got.spec(), want.spec(), "{what} gives another type or shape on {args:?}");
        assert!(bytes(got) == bytes(want), "{what} gives other values on {args:?}: {got:?} for {want:?}");
    }
}

fn tensors(args: &[ArgValue]) -> Vec<Tensor> {
    let mut found = Vec::new();
    ArgValue::with_tensors(args, &mut |tensor| {
        found.push(tensor.clone());
        tensor.clone()
    });
    found
}

#[test]
fn names_are_unique_and_documented() {
    let mut seen = HashSet::new();
    every_row(|entry| {
        assert!(entry.doc().len() > 10, "no documentation above its function");
        assert!(!entry.group().is_empty());
        let mut names = HashSet::new();
        assert!(entry.params.iter().all(|p| names.insert(p.name)), "two parameters of one name");
    });
    for entry in table() {
        assert!(seen.insert(entry.name), "{} is in the table twice", entry.name);
    }
}

#[test]
fn samples_run_and_cover_the_edges() {
    every_row(|entry| {
        let results: Vec<_> = sample_results(entry).collect();
        assert!(results.len() >= 2, "fewer than two samples");
        let takes_tensors =
            entry.params.iter().any(|p| matches!(p.kind, ParamKind::Tensor | ParamKind::Operand));
        let is_random = entry.group() == "random";
        let empty = |args: &[ArgValue]| tensors(args).iter().any(Tensor::is_empty);
        let tried = results.iter().any(|(args, _)| empty(args))
            || (entry.invalid_args)().iter().any(|bad| empty(&bad.args));
        assert!(!takes_tensors || is_random || tried, "no sample without elements");
    });
}

/// Traced, a call has the specs that eager results have; the graph verifies, prints, and computes the same bits.
#[test]
fn traced_equals_eager() {
    every_row(|entry| {
        for (args, eager) in sample_results(entry) {
            let inputs = tensors(&args);
            let specs: Vec<Spec> = inputs.iter().map(|t| t.spec().clone()).collect();
            let traced = trace(&specs, |symbols| {
                let mut symbols = symbols.iter();
                let args = ArgValue::with_tensors(&args, &mut |_| symbols.next().unwrap().clone());
                call(entry, &args)
            });
            let traced = match traced {
                Err(e) if entry.has_data_dependent_shape && e.kind() == ErrorKind::DynamicShape => continue,
                other => other.unwrap_or_else(|e| panic!("cannot be traced on {args:?}: {e}")),
            };
            traced.graph.verify().unwrap();
            assert!(traced.graph.to_string().starts_with("graph("));
            let run = traced.graph.run(&inputs).unwrap_or_else(|e| panic!("traced, fails on {args:?}: {e}"));
            assert_same("traced", &args, &run, &eager);
        }
    });
}

/// As [`assert_same`], but floats may differ in their last bits: sums run in memory order, and round differently.
fn assert_close(what: &str, args: &[ArgValue], got: &[Tensor], want: &[Tensor]) {
    assert_eq!(got.len(), want.len(), "{what} gives another number of results on {args:?}");
    for (got, want) in got.iter().zip(want) {
        assert_eq!(got.spec(), want.spec(), "{what} gives another type or shape on {args:?}");
        let ulp = match got.dtype() {
            DType::F16 => 1e-3,
            DType::BF16 => 8e-3,
            DType::F32 | DType::C64 => 1.2e-7,
            DType::F64 | DType::C128 => 2.3e-16,
            _ => 0.0,
        };
        let (got, want) = (values(got), values(want));
        let largest = want.iter().filter(|v| v.is_finite()).fold(0.0f64, |most, v| most.max(v.abs()));
        for (g, w) in got.iter().zip(&want) {
            let same = g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= 16.0 * ulp * largest;
            assert!(same, "{what} gives other values on {args:?}: {got:?} for {want:?}");
        }
    }
}

/// The same elements under other strides give the same results.
#[test]
fn strides_do_not_matter() {
    let layouts: [(&str, fn(&Tensor) -> Tensor); 3] =
        [("transposed", transposed_copy), ("every other", spaced_copy), ("backwards", reversed_copy)];
    every_row(|entry| {
        for (args, want) in sample_results(entry) {
            for (name, change) in layouts {
                let changed = ArgValue::with_tensors(&args, &mut |t| change(t));
                let got =
                    call(entry, &changed).unwrap_or_else(|e| panic!("{name}: {args:?} is refused: {e}"));
                assert_close(name, &args, &got, &want);
            }
        }
    });
}

/// Inputs broadcast by a stride of zero give the same results as copies.
#[test]
fn broadcast_inputs_give_the_same_results() {
    every_row(|entry| {
        for args in entry.samples.list() {
            let repeated = ArgValue::with_tensors(&args, &mut first_row_repeated);
            let copied = ArgValue::with_tensors(&repeated, &mut |tensor| tensor.copy().unwrap());
            // A sorted or invertible input may lose that property; then both calls fail.
            match (call(entry, &repeated), call(entry, &copied)) {
                (Ok(got), Ok(want)) => assert_close("repeated", &copied, &got, &want),
                (Err(got), Err(want)) => assert_eq!(got.kind(), want.kind(), "on {copied:?}"),
                (got, want) => panic!("repeated: {got:?}, copied: {want:?}, on {copied:?}"),
            }
        }
    });
}

/// A tensor of the same shape whose rows are all the first one, stored once.
fn first_row_repeated(tensor: &Tensor) -> Tensor {
    use taut_core::ops::shape::{broadcast_to, slice};
    use taut_core::s;
    if tensor.rank() == 0 || tensor.is_empty() {
        return tensor.clone();
    }
    broadcast_to(slice(tensor, &s![0..1]).unwrap(), tensor.shape()).unwrap()
}

/// The tensor with its axes in reverse order in memory.
fn transposed_copy(tensor: &Tensor) -> Tensor {
    use taut_core::ops::shape::transpose;
    transpose(transpose(tensor, None).unwrap().copy().unwrap(), None).unwrap()
}

/// The tensor with a gap after every element of the last axis.
fn spaced_copy(tensor: &Tensor) -> Tensor {
    use taut_core::ops::shape::{reshape, slice};
    use taut_core::{Ellipsis, Index, s};
    let Some((&last, rest)) = tensor.shape().split_last() else { return tensor.clone() };
    let host = bytes(tensor);
    let size = tensor.dtype().size();
    let doubled: Vec<u8> = host.chunks(size).flat_map(|e| [e, &vec![0xA5; size]].concat()).collect();
    let mut shape: Vec<isize> = rest.iter().map(|&d| d as isize).collect();
    shape.push(2 * last as isize);
    let flat = from_bytes(tensor.dtype(), &doubled);
    slice(reshape(flat, &shape).unwrap(), &s![Ellipsis, Index::from(..).by(2)]).unwrap()
}

/// The tensor with its first axis backwards in memory.
fn reversed_copy(tensor: &Tensor) -> Tensor {
    use taut_core::ops::shape::slice;
    use taut_core::{Index, s};
    if tensor.rank() == 0 {
        return tensor.clone();
    }
    let reverse = |t: &Tensor| slice(t, &s![Index::from(..).by(-1)]).unwrap();
    reverse(&reverse(tensor).copy().unwrap())
}

fn from_bytes(dtype: DType, bytes: &[u8]) -> Tensor {
    let spec = Spec::new(dtype, [bytes.len() / dtype.size()]);
    let at = taut_memory::Location::caller();
    Tensor::build(spec, taut_memory::Category::Tensor, at, |out| out.bytes().copy_from_slice(bytes)).unwrap()
}

/// Inputs with another handle are not overwritten.
#[test]
fn shared_inputs_are_not_overwritten() {
    every_row(|entry| {
        for (args, want) in sample_results(entry) {
            let before: Vec<Vec<u8>> = tensors(&args).iter().map(bytes).collect();
            let held = args.clone();
            let got = call(entry, &args).unwrap();
            drop(args);
            let after: Vec<Vec<u8>> = tensors(&held).iter().map(bytes).collect();
            assert!(before == after, "overwrites an input that is held, on {held:?}");
            assert_same("a second call", &held, &got, &want);
        }
    });
}

/// Computing in the memory of a donated input gives the same results.
#[test]
fn donated_inputs_give_the_same_results() {
    every_row(|entry| {
        for (args, want) in sample_results(entry) {
            let give = |arg: &ArgValue| match arg {
                ArgValue::Tensor(tensor) => ArgValue::Donated(RefCell::new(Some(tensor.copy().unwrap()))),
                other => other.clone(),
            };
            let given: Vec<ArgValue> = args.iter().map(give).collect();
            let got = call(entry, &given).unwrap_or_else(|e| panic!("donated, {args:?} fails: {e}"));
            assert_same("donated", &args, &got, &want);
        }
    });
}

/// Invalid input fails with the kind and the message that the table declares, and names op and line.
#[test]
fn invalid_input_is_an_error() {
    every_row(|entry| {
        for bad in (entry.invalid_args)() {
            let _ledger = ledger_check();
            let args = format!("{:?}", bad.args);
            let outcome = call(entry, &bad.args);
            let error = outcome.err().unwrap_or_else(|| panic!("{args} is accepted"));
            assert_eq!(error.kind(), bad.kind, "on {args}: {error}");
            assert!(error.to_string().contains(bad.message), "on {args}, says:\n{error}");
            if !refused_by_types(entry, &bad.args) {
                // Directly from the function, before `invoke` adds the op and the line.
                let error = (entry.call)(&Args(&bad.args)).unwrap_err();
                let named = error.op().is_some() && error.location().is_some();
                assert!(named, "on {args}, names no op or line:\n{error}");
            }
        }
    });
}

/// Whether an argument may not have the type of the Rust parameter: a negative number, a string, a missing one, a tensor for
/// a list of tensors.
fn refused_by_types(entry: &OpEntry, args: &[ArgValue]) -> bool {
    let missing = |i: usize| entry.params.get(i).is_none_or(|param| param.default.is_none());
    args.iter().enumerate().any(|(i, arg)| match arg {
        ArgValue::Int(v) => *v < 0,
        ArgValue::Ints(v) => v.iter().any(|v| *v < 0),
        ArgValue::Str(_) => true,
        ArgValue::Tensor(_) => entry.params.get(i).is_some_and(|param| param.kind == ParamKind::Tensors),
        ArgValue::None => missing(i),
        _ => false,
    })
}

/// Whichever allocation fails, the call returns an error and frees everything.
#[test]
fn out_of_memory_at_any_allocation_is_an_error() {
    every_row(|entry| {
        let samples = entry.samples.list();
        // One sample per row is enough here: the largest.
        let size = |args: &Vec<ArgValue>| tensors(args).iter().map(Tensor::len).sum::<usize>();
        let Some(args) = samples.into_iter().max_by_key(size) else { return };
        let before = allocations_on_thread();
        drop(call(entry, &args).unwrap());
        for n in 0..allocations_on_thread() - before {
            let _ledger = ledger_check();
            let fault = fail_nth(n);
            let outcome = call(entry, &args);
            drop(fault);
            match outcome {
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::OutOfMemory, "allocation {n} fails on {args:?}: {e}");
                }
                Ok(_) => panic!("the failure of allocation {n} goes unnoticed on {args:?}"),
            }
        }
    });
}
