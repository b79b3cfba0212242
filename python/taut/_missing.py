"""The names of TensorFlow that this package does not have. The page `docs/src/missing.md` lists the same topics and names."""

from __future__ import annotations

import functools

# Topic, names without the leading `tf.`, and what to use instead.
TOPICS: tuple[tuple[str, str, str], ...] = (
    (
        "Ragged tensors",
        "RaggedTensor RaggedTensorSpec ragged ragged_fill_empty_rows ragged_fill_empty_rows_grad",
        "pad rows to one length, with tf.sequence_mask for the mask, or batch with Dataset.padded_batch",
    ),
    (
        "Sparse tensors",
        "SparseTensor SparseTensorSpec sparse nn.embedding_lookup_sparse nn.safe_embedding_lookup_sparse sets",
        "gradients of tf.gather and embeddings are tf.IndexedSlices; other tensors are dense",
    ),
    (
        "Strings",
        "string strings as_string edit_distance fingerprint lookup feature_column",
        "process text in Python, and pass integers",
    ),
    (
        "Complex numbers and Fourier transforms",
        """complex complex64 complex128 signal audio fftnd ifftnd rfftnd irfftnd eig eigvals linalg.eig linalg.eigvals
        linalg.sqrtm linalg.logm matrix_square_root""",
        "keep real and imaginary parts as two tensors; keras.ops.fft works on such pairs",
    ),
    (
        "Quantised and opaque types",
        "qint8 qint16 qint32 quint8 quint16 quantization resource variant",
        "use tf.int8 and tf.uint8 with scales of your own",
    ),
    (
        "Several devices and processes",
        """tpu DeviceSpec VariableAggregation VariableSynchronization CriticalSection
        config.experimental_connect_to_cluster config.experimental_connect_to_host distribute.CentralStorageStrategy
        distribute.CrossDeviceOps distribute.DistributedIterator distribute.DistributedValues
        distribute.HierarchicalCopyAllReduce distribute.InputReplicationMode distribute.NcclAllReduce
        distribute.ReductionToOneDevice distribute.RunOptions distribute.Server distribute.StrategyExtended
        distribute.TPUStrategy distribute.cluster_resolver distribute.coordinator distribute.experimental""",
        "a process has one device, the CPU; mpiexec starts several for tf.distribute.MultiWorkerMirroredStrategy",
    ),
    (
        "Models as files",
        "saved_model lite mlir xla graph_util Graph Operation import_graph_def load_library load_op_library raw_ops",
        "tf.train.Checkpoint and keras.Model.save store variables and models",
    ),
    (
        "Protocol buffers and records",
        """io make_ndarray make_tensor_proto queue train.Example train.Feature train.Features train.FeatureList
        train.FeatureLists train.SequenceExample train.BytesList train.FloatList train.Int64List data.TFRecordDataset
        data.FixedLengthRecordDataset data.TextLineDataset""",
        "read arrays, images, CSV, Arrow and Parquet files with tf.data, or Python objects with Dataset.from_generator",
    ),
    (
        "Encoded images",
        """image.adjust_jpeg_quality image.decode_and_crop_jpeg image.decode_bmp image.decode_gif image.decode_image
        image.decode_jpeg image.decode_jxl image.decode_png image.decode_webp image.encode_jpeg image.encode_png
        image.extract_jpeg_shape image.is_jpeg image.random_jpeg_quality image.stateless_random_jpeg_quality""",
        "decode with another library, and pass the array",
    ),
    (
        "Summaries",
        "summary",
        "tf.profiler writes pages for the browser; losses are in the history of Keras",
    ),
    (
        "Linear operators and decompositions",
        """linalg.LinearOperator linalg.LinearOperatorDiag linalg.LinearOperatorFullMatrix linalg.LinearOperatorIdentity
        linalg.LinearOperatorLowerTriangular linalg.banded_triangular_solve linalg.eigh_tridiagonal linalg.lu
        linalg.lu_matrix_inverse linalg.lu_reconstruct linalg.lu_solve linalg.tridiagonal_matmul
        linalg.tridiagonal_solve""",
        "use dense matrices with tf.linalg.solve, cholesky, qr and svd",
    ),
    (
        "Special functions",
        """math.bessel_i0 math.bessel_i0e math.bessel_i1 math.bessel_i1e math.betainc math.erfcinv math.igamma math.igammac
        math.ndtri math.nextafter math.polygamma math.sobol_sample math.special math.zeta approx_top_k math.approx_max_k
        math.approx_min_k nn.approx_max_k nn.approx_min_k""",
        "compute them in tf.numpy_function where no gradient is needed; tf.math.top_k is exact",
    ),
    (
        "Rare layers and samplers",
        """nn.ctc_beam_search_decoder nn.ctc_greedy_decoder nn.ctc_unique_labels nn.collapse_repeated nn.dilation2d
        nn.erosion2d nn.fractional_avg_pool nn.fractional_max_pool nn.isotonic_regression nn.max_pool_with_argmax
        nn.atrous_conv2d_transpose nn.all_candidate_sampler nn.fixed_unigram_candidate_sampler
        nn.learned_unigram_candidate_sampler nn.compute_accidental_hits extract_volume_patches
        image.combined_non_max_suppression image.draw_bounding_boxes image.extract_glimpse
        image.generate_bounding_box_proposals image.non_max_suppression_overlaps image.non_max_suppression_padded
        image.sample_distorted_bounding_box image.stateless_sample_distorted_bounding_box random.stateless_binomial
        random.stateless_parameterized_truncated_normal""",
        "write them with the ops that exist",
    ),
    (
        "Names of the type system and of graphs",
        """TypeSpec IndexedSlicesSpec NoneTensorSpec OptionalSpec TensorArraySpec types RegisterGradient no_gradient
        AggregationMethod hessians register_tensor_conversion_function variable_creator_scope experimental sysconfig
        get_logger get_current_name_scope timestamp tuple""",
        "tf.TensorSpec describes tensors; tf.custom_gradient and nested tapes replace graph gradients",
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
