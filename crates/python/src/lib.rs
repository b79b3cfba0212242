//! Taut from Python: the extension module behind `import taut`.
//!
//! Hot paths and access to the engine are here; TensorFlow's names and conventions are Python, in `python/taut`.
#![allow(unsafe_code)]

mod array;
mod binary;
mod budget;
mod call;
mod callback;
mod checkpoint;
mod containers;
mod control;
mod convert;
mod data;
mod dispatch;
mod distribute;
mod dlpack;
mod dtype;
mod error;
mod frontier;
mod function;
mod index;
mod io;
mod line;
mod mapped;
mod memory;
mod nest;
mod numpy;
mod op;
mod optimizer;
mod placement;
mod plan;
mod profile;
mod random;
mod recording;
mod string_ops;
mod strings;
mod tape;
mod thread_bound;
mod thread_state;
mod variable;
mod window;

use pyo3::prelude::*;
use taut::memory::ReserveAllocator;

/// Handles and lists are made by Rust's collections: a system that refuses memory becomes a `MemoryError` of the next tensor.
#[global_allocator]
static GLOBAL: ReserveAllocator = ReserveAllocator;

/// The engine, as an extension module.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::array::{Array, Tensor, as_tensor, own_tensor, tensor_beside};
    #[pymodule_export]
    use super::budget::Budget;
    #[pymodule_export]
    use super::callback::host_callback;
    #[pymodule_export]
    use super::checkpoint::{list_checkpoint, save_checkpoint, write_text};
    #[pymodule_export]
    use super::control::{
        cond, custom_gradient, map_fn, recompute, scan, switch_case, vectorized_map, while_loop,
    };
    #[pymodule_export]
    use super::data::{Dataset, DatasetIterator, close_iterators, digits};
    #[pymodule_export]
    use super::distribute::{Group, rank_plan};
    #[pymodule_export]
    use super::dlpack::from_dlpack;
    #[pymodule_export]
    use super::dtype::{DType, dtype_named};
    #[pymodule_export]
    use super::frontier::Frontier;
    #[pymodule_export]
    use super::function::{
        Function, InitScope, bind_variables_by_identity, body_depth, is_tracing, num_traced_calls,
        placeholder, trace_for_writes, trace_only,
    };
    #[pymodule_export]
    use super::io::{
        RecordWriter, ResampleTaps, csv_rows, decode_csv, decode_gif, decode_image, encode_jpeg, encode_png,
        file_strings, image_format, parse_examples, parse_sequence_examples, parse_tensor, read_file,
        resample, serialize_tensor,
    };
    #[pymodule_export]
    use super::line::{calling_line, pass_over, set_replayed_line};
    #[pymodule_export]
    use super::memory::{
        allocations, allocator, current_limit, disable_check_numerics, enable_check_numerics, idle_bytes,
        live_bytes, peak_bytes, record, report, reset_peak, set_allocator, set_limit, set_threads, threads,
        trim,
    };
    #[pymodule_export]
    use super::op::{Op, op_names};
    #[pymodule_export]
    use super::optimizer::Optimizer;
    #[pymodule_export]
    use super::plan::Plan;
    #[pymodule_export]
    use super::profile::{Profiler, Timeline, mark};
    #[pymodule_export]
    use super::random::{forget_seed, next_key, next_key_of_seed, random_state, set_random_state, set_seed};
    #[pymodule_export]
    use super::recording::{is_recording_calls, recorded_call, set_recording};
    #[pymodule_export]
    use super::string_ops::{
        StringRegex, StringTable, string_bytes_split, string_compare, string_decode, string_encode,
        string_fingerprints, string_from_numbers, string_hash_buckets, string_join, string_join_rows,
        string_length, string_lower, string_murmur_buckets, string_ngrams, string_reshape, string_split,
        string_strip, string_substr, string_take, string_to_number, string_unicode_split, string_unique,
        string_upper, unicode_script,
    };
    #[pymodule_export]
    use super::strings::{
        StringTensor, file_of, string_bytes, string_from_parts, string_parts, string_tensor, string_values,
    };
    #[pymodule_export]
    use super::tape::{ForwardAccumulator, GradientTape, gradients};
    #[pymodule_export]
    use super::variable::{Variable, VariableHandle};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::ReserveAllocator::fill();
        super::call::install_hooks();
        super::placement::install();
        super::error::install_warnings();
        // Threads that call Python must end before the interpreter does.
        let close = module.getattr("close_iterators")?;
        module.py().import("atexit")?.call_method1("register", (close,)).map(drop)
    }
}
