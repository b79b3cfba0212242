"""The names of TensorFlow that this package does not have. The page `docs/src/missing.md` lists the same topics and names."""

from __future__ import annotations

import functools

# Topic, names without the leading `tf.`, and what to use instead.
TOPICS: tuple[tuple[str, str, str], ...] = (
    (
        "Ragged tensors",
        """ragged.cross ragged.cross_hashed ragged.row_splits_to_segment_ids ragged.segment_ids_to_row_splits
        ragged.stack_dynamic_partitions ragged_fill_empty_rows ragged_fill_empty_rows_grad""",
        "tf.ragged.map_flat_values applies any function to the values; to_tensor pads rows to one length",
    ),
    (
        "Sparse tensors",
        """SparseTensorSpec nn.embedding_lookup_sparse nn.safe_embedding_lookup_sparse sets sparse.bincount
        sparse.cross sparse.mask sparse.segment_mean sparse.segment_sqrt_n sparse.segment_sum""",
        "tf.sparse.to_dense makes a tensor; gradients of tf.gather and embeddings are tf.IndexedSlices",
    ),
    (
        "Strings",
        """edit_distance fingerprint feature_column strings.to_hash_bucket
        strings.unicode_script""",
        "tf.strings.to_hash_bucket_fast is TensorFlow's hash of strings; Keras's preprocessing layers replace feature columns",
    ),
    (
        "Audio files, and the logarithm of a matrix",
        "audio linalg.logm",
        "tf.signal makes spectrograms; tf.linalg.eig gives the logarithm of a matrix that is not defective",
    ),
    (
        "Quantised and opaque types",
        "qint8 qint16 qint32 quint8 quint16 quantization resource variant",
        "use tf.int8 and tf.uint8 with scales of your own",
    ),
    (
        "Several devices and processes",
        """tpu DeviceSpec CriticalSection
        config.experimental_connect_to_cluster config.experimental_connect_to_host distribute.CentralStorageStrategy
        distribute.DistributedIterator distribute.DistributedValues distribute.HierarchicalCopyAllReduce
        distribute.NcclAllReduce distribute.RunOptions distribute.Server distribute.StrategyExtended distribute.TPUStrategy
        distribute.cluster_resolver distribute.coordinator distribute.experimental.CentralStorageStrategy
        distribute.experimental.CollectiveHints distribute.experimental.ParameterServerStrategy
        distribute.experimental.PreemptionCheckpointHandler distribute.experimental.PreemptionWatcher
        distribute.experimental.TPUStrategy distribute.experimental.TerminationConfig distribute.experimental.coordinator
        distribute.experimental.partitioners distribute.experimental.rpc""",
        "a process has one device, the CPU; mpiexec starts several for tf.distribute.MultiWorkerMirroredStrategy",
    ),
    (
        "Models as files",
        "saved_model lite mlir xla graph_util Graph Operation import_graph_def load_library load_op_library raw_ops",
        "tf.train.Checkpoint and keras.Model.save store variables and models",
    ),
    (
        "Protocol buffers and records",
        """make_ndarray make_tensor_proto queue io.decode_json_example
        io.decode_proto io.deserialize_many_sparse io.encode_proto io.match_filenames_once io.serialize_many_sparse
        io.serialize_sparse io.write_graph""",
        "tf.io.parse_example parses examples, tf.io.serialize_tensor writes tensors",
    ),
    (
        "Encoded images",
        """image.adjust_jpeg_quality image.decode_jxl image.random_jpeg_quality image.stateless_random_jpeg_quality""",
        "tf.io.decode_jpeg of tf.io.encode_jpeg has the loss of a quality",
    ),
    (
        "Summaries",
        "summary.audio summary.trace_export summary.trace_off summary.trace_on",
        "tf.summary writes scalars, histograms, images, texts and graphs of plans; tf.profiler writes pages for the browser",
    ),
    (
        "Linear operators and decompositions",
        """linalg.LinearOperator linalg.LinearOperatorDiag linalg.LinearOperatorFullMatrix linalg.LinearOperatorIdentity
        linalg.LinearOperatorLowerTriangular""",
        "use dense matrices with tf.linalg.solve, cholesky, qr and svd",
    ),
    (
        "Special functions",
        "math.sobol_sample approx_top_k",
        "tf.math.special and tf.math have the others; tf.math.top_k is exact",
    ),
    (
        "Rare layers and samplers",
        """nn.ctc_beam_search_decoder nn.ctc_greedy_decoder nn.fractional_avg_pool nn.fractional_max_pool
        nn.fixed_unigram_candidate_sampler nn.learned_unigram_candidate_sampler nn.compute_accidental_hits
        image.generate_bounding_box_proposals image.sample_distorted_bounding_box
        image.stateless_sample_distorted_bounding_box""",
        "write them with the ops that exist",
    ),
    (
        "Names of the type system and of graphs",
        "types RegisterGradient no_gradient register_tensor_conversion_function sysconfig",
        "tf.custom_gradient and nested tapes replace graph gradients",
    ),
)


@functools.cache
def _by_name() -> dict[str, tuple[str, str]]:
    return {name: (topic, remedy) for topic, names, remedy in TOPICS for name in names.split()}


def explain(module: str, name: str) -> str:
    """The message for a name that a module of the package does not have."""
    text = f"module {module!r} has no attribute {name!r}"
    full = f"{module}.{name}".removeprefix("taut.")
    found = _by_name().get(full)
    if found is None:
        return text
    topic, remedy = found
    return (
        f"{text}: tf.{full} of TensorFlow is missing here ({topic.lower()})\n  help: {remedy}; see docs/src/missing.md"
    )
