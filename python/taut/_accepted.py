"""Options of TensorFlow and Keras that are accepted and have no effect, each with the reason.

`name` is accepted everywhere: ops and tensors are identified by their source lines. Every other parameter takes effect,
is refused with an error if it has another value than its default, or has a row here. A test compares the rows with the
code.
"""

from __future__ import annotations

_SEQUENTIAL = "steps run one after the other; kernels use all threads"
_HOST_MEMORY = "values are in host memory; `grad_budget` bounds what a gradient saves"
_SHAPES_KNOWN = "shapes are always inferred and checked"
_STABLE = "sorts are always stable"
_SELF_ADJOINT = "the matrix is its own adjoint"
_SPARSE = "gradients of rows of a variable are sparse in any case"
_DENSE = "a performance hint: the product of dense matrices has the same value"
_ATOMIC = "assignments are always atomic"
_ORDER_KEPT = "the order of elements is always kept, which every setting allows"
_PARALLELISM = "a performance hint: the elements are the same"
_JACOBIAN = "a performance hint: the Jacobian has the same value"
_SORTED = "a serialized message always has its features in the order of their names"
_ROWS_CHECKED = "row splits are always checked"
_NO_SHARING = "a table belongs to its object"
_TABLES_SAVED = "a checkpoint stores every table that it is given, as TensorFlow's do in any case"
_FEATURES = "AutoGraph always converts every construct that it supports"

_CHECKED = "arguments are always checked"
_IMMUTABLE = "tensors are immutable: sharing their memory is not visible"
_EXACT_TOP_K = {
    "aggregate_to_topk": "the elements are those of the whole axis",
    "recall_target": "the elements are exact, which every target allows",
    "reduction_input_size_override": "for approximations, of which there are none",
}

#: By function, the parameters and the reasons.
ACCEPTED: dict[str, dict[str, str]] = {
    "taut._ops.candidates.all_candidate_sampler": {
        "num_true": "the number of true classes is that of their tensor",
        "seed": "nothing is drawn: all classes are returned",
        "unique": "every class is returned once",
    },
    "taut._ops.candidates.compute_accidental_hits": {"seed": "nothing is drawn: all hits are returned"},
    "taut._ops.checks.enable_check_numerics": {
        "path_length_limit": "errors name the caller's line in full",
        "stack_height_limit": "errors name the caller's line only",
    },
    "taut._ops.compat_v1.conv2d": {"use_cudnn_on_gpu": "there are no GPUs"},
    "taut._ops.compat_v1.embedding_lookup": {"validate_indices": "indices are always checked"},
    "taut._ops.decompositions.eigh_tridiagonal": {"tol": "eigenvalues have the full precision of their type"},
    "taut._ops.decompositions.lu_matrix_inverse": {"validate_args": _CHECKED},
    "taut._ops.decompositions.lu_reconstruct": {"validate_args": _CHECKED},
    "taut._ops.decompositions.lu_solve": {"validate_args": _CHECKED},
    "taut._ops.decompositions.tridiagonal_solve": {
        "partial_pivoting": "rows are always exchanged, which is exact for every setting"
    },
    "taut._ops.embedding_sparse.embedding_lookup_sparse": {
        "allow_fast_lookup": "a performance hint: the result is the same"
    },
    "taut._ops.embedding_sparse.safe_embedding_lookup_sparse": {
        "allow_fast_lookup": "a performance hint: the result is the same"
    },
    "taut._ops.indexing.gather": {"validate_indices": "indices are always checked"},
    "taut._ops.linalg.einsum": {"optimize": "the cheapest order of contractions is always used"},
    "taut._ops.linalg.lstsq": {"fast": "the solution is always computed by singular values"},
    "taut._ops.linalg.matmul": {
        "a_is_sparse": _DENSE,
        "b_is_sparse": _DENSE,
        "grad_a": "gradients are derived from the product itself",
        "grad_b": "gradients are derived from the product itself",
    },
    "taut._ops.linalg.matrix_rank": {"validate_args": "arguments are always checked"},
    "taut._ops.linalg.matvec": {"a_is_sparse": _DENSE, "b_is_sparse": _DENSE},
    "taut._ops.linalg.pinv": {"validate_args": "arguments are always checked"},
    "taut._ops.normalization.moments": {"shift": "the two-pass algorithm needs no shift"},
    "taut._ops.scopes.tuple": {"control_inputs": "ops with side effects keep their program order"},
    "taut._ops.sorting.approx_max_k": _EXACT_TOP_K,
    "taut._ops.sorting.approx_min_k": _EXACT_TOP_K,
    "taut._ops.sorting.approx_top_k": _EXACT_TOP_K,
    "taut._ops.sorting.argsort": {"stable": _STABLE},
    "taut._ops.suppression.non_max_suppression_padded": {
        "canonicalized_coordinates": "corners may come in any order",
        "sorted_input": "boxes may come in any order",
        "tile_size": "a performance hint: the result is the same",
    },
    "taut.array_api._searching.argsort": {"stable": _STABLE},
    "taut.array_api._searching.sort": {"stable": _STABLE},
    "taut.autograph.experimental.set_loop_options": {
        "parallel_iterations": _SEQUENTIAL,
        "shape_invariants": "shapes may change in every loop of a converted function",
        "swap_memory": _HOST_MEMORY,
    },
    "taut.autograph.to_graph": {"experimental_optional_features": _FEATURES},
    "taut.autograph.to_code": {"experimental_optional_features": _FEATURES},
    "taut.compat.v1._functions.assert_rank": {"summarize": "the message has the rank, not the elements"},
    "taut.compat.v1._functions.assert_rank_at_least": {"summarize": "the message has the rank, not the elements"},
    "taut.compat.v1._functions.assign": {"use_locking": _ATOMIC},
    "taut.compat.v1._functions.name_scope": {"values": "of graphs of TensorFlow 1"},
    "taut.compat.v1._functions.ones_like": {"optimize": _SHAPES_KNOWN},
    "taut.compat.v1._functions.zeros_like": {"optimize": _SHAPES_KNOWN},
    "taut.control.case": {"strict": "a list of one value stays a list in any case, as in TensorFlow 2"},
    "taut.control.foldl": {"parallel_iterations": _SEQUENTIAL, "swap_memory": _HOST_MEMORY},
    "taut.control.foldr": {"parallel_iterations": _SEQUENTIAL, "swap_memory": _HOST_MEMORY},
    "taut.control.map_fn": {"infer_shape": _SHAPES_KNOWN, "swap_memory": _HOST_MEMORY},
    "taut.control.scan": {
        "infer_shape": _SHAPES_KNOWN,
        "parallel_iterations": _SEQUENTIAL,
        "swap_memory": _HOST_MEMORY,
    },
    "taut.control.vectorized_map": {"warn": "there is no warning to silence"},
    "taut.control.while_loop": {"parallel_iterations": _SEQUENTIAL, "swap_memory": _HOST_MEMORY},
    "taut.critical_section.CriticalSection.execute": {
        "exclusive_resource_access": "a check of graphs; a function may use what other sections use"
    },
    "taut.data._dataset.Dataset.batch": {"deterministic": _ORDER_KEPT, "num_parallel_calls": _PARALLELISM},
    "taut.data._dataset.Dataset.interleave": {"deterministic": _ORDER_KEPT},
    "taut.data._dataset.Dataset.map": {"deterministic": _ORDER_KEPT, "use_unbounded_threadpool": _PARALLELISM},
    "taut.data._python_stages.PythonStages.load": {"compression": "the index of the folder says how it was written"},
    "taut.data._records.make_batched_features_dataset": {
        "reader_num_threads": _PARALLELISM,
        "sloppy_ordering": _ORDER_KEPT,
    },
    "taut.data._sources.make_csv_dataset": {"sloppy": _ORDER_KEPT},
    "taut.data.experimental.parse_example_dataset": {"deterministic": _ORDER_KEPT, "num_parallel_calls": _PARALLELISM},
    "taut.data.experimental.parallel_interleave": {
        "buffer_output_elements": _PARALLELISM,
        "prefetch_input_elements": _PARALLELISM,
        "sloppy": _ORDER_KEPT,
    },
    "taut.example_protos.BytesList.SerializeToString": {"deterministic": _SORTED},
    "taut.example_protos.Example.SerializeToString": {"deterministic": _SORTED},
    "taut.example_protos.Feature.SerializeToString": {"deterministic": _SORTED},
    "taut.example_protos.Feature.WhichOneof": {"oneof_group": "a feature has one group of lists"},
    "taut.example_protos.FeatureList.SerializeToString": {"deterministic": _SORTED},
    "taut.example_protos.FloatList.SerializeToString": {"deterministic": _SORTED},
    "taut.example_protos.Int64List.SerializeToString": {"deterministic": _SORTED},
    "taut.example_protos.SequenceExample.SerializeToString": {"deterministic": _SORTED},
    "taut.example_protos._Named.SerializeToString": {"deterministic": _SORTED},
    "taut.experimental.numpy._arrays.argsort": {"kind": _STABLE},
    "taut.experimental.numpy._arrays.array": {"copy": _IMMUTABLE},
    "taut.experimental.numpy._arrays.einsum": {"optimize": "the cheapest order of contractions is always used"},
    "taut.experimental.numpy._arrays.full_like": {"order": "tensors are in row-major order", "subok": _IMMUTABLE},
    "taut.experimental.numpy._arrays.meshgrid": {"copy": _IMMUTABLE},
    "taut.experimental.numpy._arrays.sort": {"kind": _STABLE},
    "taut.function.function": {
        "experimental_autograph_options": _FEATURES,
        "experimental_implements": "a name by which other compilers replace a function: none is used",
    },
    "taut.io._examples.parse_example": {"example_names": "errors name examples by their index"},
    "taut.io._examples.parse_sequence_example": {"example_names": "errors name examples by their index"},
    "taut.io._examples.parse_single_example": {"example_names": "errors name examples by their index"},
    "taut.io._examples.parse_single_sequence_example": {"example_name": "there is one example"},
    "taut.io._images.decode_jpeg": {"dct_method": "a hint, of which decoders choose the exact method"},
    "taut.io._images.encode_jpeg": {
        "density_unit": "of the size on paper, which decoders ignore",
        "x_density": "of the size on paper, which decoders ignore",
        "y_density": "of the size on paper, which decoders ignore",
    },
    "taut.keras.backend.ops.numpy.sorting.isin": {"assume_unique": "a performance hint: the result is the same"},
    "taut.keras.backend.ops.numpy.sorting.unique": {"sorted": "the result is always sorted, which False allows"},
    "taut.keras.backend.recurrent.rnn": {"input_length": "the size of the time axis is always known"},
    "taut.keras.backend.trainer.Trainer.compiled_loss": {"regularization_losses": "the loss has the losses of layers"},
    "taut.linear_operators.patterned.LinearOperatorHouseholder._matmul": {"adjoint": _SELF_ADJOINT},
    "taut.linear_operators.patterned.LinearOperatorHouseholder._solve": {"adjoint": _SELF_ADJOINT},
    "taut.linear_operators.structured.LinearOperatorDiag._matmul": {"adjoint": _SELF_ADJOINT},
    "taut.linear_operators.structured.LinearOperatorDiag._solve": {"adjoint": _SELF_ADJOINT},
    "taut.linear_operators.structured.LinearOperatorIdentity.__init__": {"assert_proper_shapes": _SHAPES_KNOWN},
    "taut.linear_operators.structured.LinearOperatorIdentity._matmul": {"adjoint": _SELF_ADJOINT},
    "taut.linear_operators.structured.LinearOperatorIdentity._solve": {"adjoint": _SELF_ADJOINT},
    "taut.linear_operators.structured.LinearOperatorScaledIdentity.__init__": {"assert_proper_shapes": _SHAPES_KNOWN},
    "taut.linear_operators.structured.LinearOperatorScaledIdentity._matmul": {"adjoint": _SELF_ADJOINT},
    "taut.linear_operators.structured.LinearOperatorScaledIdentity._solve": {"adjoint": _SELF_ADJOINT},
    "taut.linear_operators.structured.LinearOperatorZeros.__init__": {"assert_proper_shapes": _SHAPES_KNOWN},
    "taut.lookup.StaticHashTable.__init__": {"experimental_is_anonymous": _NO_SHARING},
    "taut.lookup.StaticVocabularyTable.__init__": {"experimental_is_anonymous": _NO_SHARING},
    "taut.mutable_tables.DenseHashTable.__init__": {
        "checkpoint": _TABLES_SAVED,
        "experimental_is_anonymous": _NO_SHARING,
    },
    "taut.mutable_tables.MutableHashTable.__init__": {
        "checkpoint": _TABLES_SAVED,
        "experimental_is_anonymous": _NO_SHARING,
    },
    "taut.open_variable.OpenVariable.assign": {"use_locking": _ATOMIC},
    "taut.open_variable.OpenVariable.assign_add": {"use_locking": _ATOMIC},
    "taut.open_variable.OpenVariable.assign_sub": {"use_locking": _ATOMIC},
    "taut.ragged_shape.DynamicRaggedShape.__init__": {
        "static_inner_shape": "the shape of the values is always known",
        "validate": _ROWS_CHECKED,
    },
    "taut.ragged_shape.RowPartition.from_row_lengths": {"validate": _ROWS_CHECKED},
    "taut.ragged_shape.RowPartition.from_row_limits": {"validate": _ROWS_CHECKED},
    "taut.ragged_shape.RowPartition.from_row_splits": {"validate": _ROWS_CHECKED},
    "taut.ragged_shape.RowPartition.from_row_starts": {"validate": _ROWS_CHECKED},
    "taut.ragged_shape.RowPartition.from_uniform_row_length": {"validate": _ROWS_CHECKED},
    "taut.ragged_shape.RowPartition.from_value_rowids": {"validate": _ROWS_CHECKED},
    "taut.ragged_tensor.RaggedTensor.__array__": {"copy": "an array of rows is always a copy"},
    "taut.ragged_tensor.RaggedTensor.from_nested_row_lengths": {"validate": _ROWS_CHECKED},
    "taut.ragged_tensor.RaggedTensor.from_nested_row_splits": {"validate": _ROWS_CHECKED},
    "taut.ragged_tensor.RaggedTensor.from_nested_value_rowids": {"validate": _ROWS_CHECKED},
    "taut.ragged_tensor.RaggedTensor.from_row_lengths": {"validate": _ROWS_CHECKED},
    "taut.ragged_tensor.RaggedTensor.from_row_limits": {"validate": _ROWS_CHECKED},
    "taut.ragged_tensor.RaggedTensor.from_row_splits": {"validate": _ROWS_CHECKED},
    "taut.ragged_tensor.RaggedTensor.from_row_starts": {"validate": _ROWS_CHECKED},
    "taut.ragged_tensor.RaggedTensor.from_uniform_row_length": {"validate": _ROWS_CHECKED},
    "taut.ragged_tensor.RaggedTensor.from_value_rowids": {"validate": _ROWS_CHECKED},
    "taut.sparse.segment_mean": {"sparse_gradient": _SPARSE},
    "taut.sparse.segment_sqrt_n": {"sparse_gradient": _SPARSE},
    "taut.sparse.segment_sum": {"sparse_gradient": _SPARSE},
    "taut.string_tensor._array": {"copy": "an array of strings is always a copy"},
    "taut.summary.create_file_writer": {
        "experimental_mesh": "there is one device",
        "experimental_trackable": "writers are not part of checkpoints",
    },
    "taut.summary.experimental.summary_scope": {"values": "of graphs of TensorFlow 1"},
    "taut.tape.GradientTape.batch_jacobian": {
        "experimental_use_pfor": _JACOBIAN,
        "parallel_iterations": _JACOBIAN,
    },
    "taut.tape.GradientTape.jacobian": {"experimental_use_pfor": _JACOBIAN, "parallel_iterations": _JACOBIAN},
    "taut.tape.gradients": {
        "aggregation_method": "gradients are accumulated in place as they are computed",
        "gate_gradients": "a gradient is complete before it is used",
    },
    "taut.tensor.get_static_value": {"partial": "a value is known entirely or not at all"},
    "taut.tensor_array.TensorArray.__init__": {
        "clear_after_read": "elements are freed when the array is",
        "colocate_with_first_write_call": "there is one device",
        "tensor_array_name": "arrays are identified by their source lines",
    },
    "taut.test.is_gpu_available": {
        "cuda_only": "there are no GPUs",
        "min_cuda_compute_capability": "there are no GPUs",
    },
    "taut.variable.Variable.__new__": {"validate_shape": "the shape of an initial value is always known"},
    "taut.variable.Variable.assign": {"use_locking": _ATOMIC},
    "taut.variable.Variable.assign_add": {"use_locking": _ATOMIC},
    "taut.variable.Variable.assign_sub": {"use_locking": _ATOMIC},
    "taut.variable.Variable.scatter_add": {"use_locking": _ATOMIC},
    "taut.variable.Variable.scatter_div": {"use_locking": _ATOMIC},
    "taut.variable.Variable.scatter_max": {"use_locking": _ATOMIC},
    "taut.variable.Variable.scatter_min": {"use_locking": _ATOMIC},
    "taut.variable.Variable.scatter_mul": {"use_locking": _ATOMIC},
    "taut.variable.Variable.scatter_sub": {"use_locking": _ATOMIC},
    "taut.variable.Variable.batch_scatter_update": {"use_locking": _ATOMIC},
    "taut.variable.Variable.scatter_update": {"use_locking": _ATOMIC},
}
