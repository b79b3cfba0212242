//! Every op of the table computes the same compiled as eagerly.

mod common;

use common::assert_agree;
use std::panic::{AssertUnwindSafe, catch_unwind};
use taut_compile::{CompileOptions, compile};
use taut_core::ops::binary::{add, mul};
use taut_core::ops::{ArgValue, table};
use taut_core::{ErrorKind, Result, Spec, Tensor, trace};

/// The results, and elementwise ops to fuse them with.
fn more(mut results: Vec<Tensor>) -> Result<Vec<Tensor>> {
    for result in results.clone().iter().filter(|result| result.dtype().is_float()) {
        results.push(mul(result, add(result, 0.5)?)?);
    }
    Ok(results)
}

/// With the op's tensors as inputs, and as constants, which the compiler folds.
fn check(entry: &taut_core::ops::OpEntry) {
    let _ledger = taut_memory::testing::ledger_check();
    for args in entry.samples.list() {
        let eager = more(entry.invoke(&args).unwrap()).unwrap();
        let mut inputs = Vec::new();
        ArgValue::with_tensors(&args, &mut |tensor| {
            inputs.push(tensor.clone());
            tensor.clone()
        });
        let specs: Vec<Spec> = inputs.iter().map(|tensor| tensor.spec().clone()).collect();
        let traced = trace(&specs, |symbols| {
            let mut symbols = symbols.iter();
            more(entry.invoke(&ArgValue::with_tensors(&args, &mut |_| symbols.next().unwrap().clone()))?)
        });
        let graph = match traced {
            Err(e) if entry.has_data_dependent_shape && e.kind() == ErrorKind::DynamicShape => continue,
            traced => traced.unwrap().graph,
        };
        for (fuse, native) in [(false, false), (true, false), (true, true)] {
            let compiled =
                compile(&graph, &CompileOptions { fuse, native, ..CompileOptions::default() }).unwrap();
            let got = compiled.run(&inputs).unwrap_or_else(|e| panic!("{args:?}: {e}\n{compiled}"));
            assert_agree(&format!("{args:?}\n{graph}{compiled}"), &got, &eager, false);
        }
        let Ok(constant) = trace(&[], |_| more(entry.invoke(&args)?)) else { continue };
        let compiled = compile(&constant.graph, &CompileOptions::default()).unwrap();
        let got = compiled.run(&[]).unwrap();
        assert_agree(&format!("{args:?} as constants\n{compiled}"), &got, &eager, false);
    }
}

#[test]
fn compiled_equals_eager() {
    let _ledger = taut_memory::testing::ledger_check();
    let failures: Vec<String> = table()
        .filter_map(|entry| {
            let panic = catch_unwind(AssertUnwindSafe(|| check(entry))).err()?;
            let reason = panic.downcast_ref::<String>().map_or("panicked", String::as_str);
            Some(format!("{}: {reason}", entry.name))
        })
        .collect();
    assert!(failures.is_empty(), "{} rows fail:\n{}", failures.len(), failures.join("\n"));
}
