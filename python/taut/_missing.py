"""The names of TensorFlow that this package does not have. The page `docs/src/missing.md` lists the same topics and names."""

from __future__ import annotations

import functools

# Topic, names without the leading `tf.`, and what to use instead.
TOPICS: tuple[tuple[str, str, str], ...] = (
    (
        "Feature columns",
        "feature_column",
        "Keras's preprocessing layers replace feature columns",
    ),
    (
        "Quantised and opaque types",
        """qint8 qint16 qint32 quint8 quint16 dtypes.QUANTIZED_DTYPES dtypes.qint8 dtypes.qint16 dtypes.qint32 dtypes.quint8
        dtypes.quint16 quantization.dequantize quantization.quantize quantization.quantized_concat resource variant
        dtypes.resource dtypes.variant data.experimental.from_variant data.experimental.to_variant
        quantization.experimental""",
        "tf.quantization.fake_quant_with_min_max_vars simulates quantised values; tf.int8 and tf.uint8 store them",
    ),
    (
        "Types of 8 bits and fewer",
        """dtypes.experimental experimental.float4_e2m1fn experimental.float8_e4m3b11fnuz experimental.float8_e4m3fn
        experimental.float8_e4m3fnuz experimental.float8_e5m2 experimental.float8_e5m2fnuz experimental.int2 experimental.int4
        experimental.uint2 experimental.uint4""",
        "the smallest types are tf.float16, tf.bfloat16, tf.int8 and tf.uint8; arrays of the others are refused by name",
    ),
    (
        "Several devices and processes",
        """tpu train.ClusterDef train.ClusterSpec train.JobDef train.ServerDef test.create_local_cluster
        data.experimental.ServiceOptions data.experimental.distributed_save data.experimental.SHARD_HINT
        config.experimental_connect_to_cluster config.experimental_connect_to_host distribute.CentralStorageStrategy
        distribute.DistributedIterator distribute.DistributedValues distribute.HierarchicalCopyAllReduce
        distribute.NcclAllReduce distribute.RunOptions distribute.Server distribute.StrategyExtended distribute.TPUStrategy
        distribute.cluster_resolver distribute.coordinator distribute.experimental.CentralStorageStrategy
        distribute.experimental.CollectiveHints distribute.experimental.ParameterServerStrategy
        distribute.experimental.PreemptionCheckpointHandler distribute.experimental.PreemptionWatcher
        distribute.experimental.TPUStrategy distribute.experimental.TerminationConfig distribute.experimental.coordinator
        distribute.experimental.partitioners distribute.experimental.rpc distribute.InputOptions
        distribute.ParameterServerStrategy experimental.dtensor data.experimental.service types.experimental.distributed
        test.experimental""",
        "a process has one device, the CPU; mpiexec starts several for tf.distribute.MultiWorkerMirroredStrategy",
    ),
    (
        "Models as files",
        """lite mlir xla graph_util Graph Operation import_graph_def load_library load_op_library raw_ops conv
        conv2d_backprop_filter_v2 conv2d_backprop_input_v2 check_pinned nondifferentiable_batch_function train.CheckpointView
        train.TrackableView data.experimental.get_model_proto data.experimental.make_saveable_from_iterator
        experimental.register_filesystem_plugin test.assert_equal_graph_def experimental.tensorrt""",
        "tf.train.Checkpoint, keras.Model.save and tf.saved_model (keras.Model.export) store variables and models",
    ),
    (
        "Parts of TensorFlow's SavedModel",
        """saved_model.Asset saved_model.experimental saved_model.ASSETS_DIRECTORY saved_model.ASSETS_KEY
        saved_model.CLASSIFY_INPUTS saved_model.CLASSIFY_METHOD_NAME saved_model.CLASSIFY_OUTPUT_CLASSES
        saved_model.CLASSIFY_OUTPUT_SCORES saved_model.DEBUG_DIRECTORY saved_model.DEBUG_INFO_FILENAME_PB saved_model.GPU
        saved_model.PREDICT_INPUTS saved_model.PREDICT_METHOD_NAME saved_model.PREDICT_OUTPUTS saved_model.REGRESS_INPUTS
        saved_model.REGRESS_METHOD_NAME saved_model.REGRESS_OUTPUTS saved_model.SAVED_MODEL_FILENAME_PB
        saved_model.SAVED_MODEL_FILENAME_PBTXT saved_model.SAVED_MODEL_SCHEMA_VERSION saved_model.TPU
        saved_model.VARIABLES_DIRECTORY saved_model.VARIABLES_FILENAME""",
        "tf.saved_model.save and tf.saved_model.load have a format of their own",
    ),
    (
        "Protocol buffers and records",
        "io.decode_proto io.encode_proto io.write_graph",
        "tf.io.parse_example parses examples, tf.io.serialize_tensor writes tensors",
    ),
    (
        "Encoded images",
        "image.decode_jxl io.decode_jxl",
        "tf.io.decode_image reads BMP, GIF, JPEG, PNG and WebP",
    ),
    (
        "Rare layers and samplers",
        """image.generate_bounding_box_proposals nn.RNNCellDeviceWrapper nn.RNNCellDropoutWrapper nn.RNNCellResidualWrapper
        nn.with_space_to_batch experimental.StructuredTensor experimental.ExtensionTypeBatchEncoder""",
        "write them with the ops that exist",
    ),
    (
        "Trace types",
        "types.experimental.SupportsTracingProtocol types.experimental.TraceType",
        "tf.experimental.ExtensionType makes classes of tensors that share a trace; other objects are compared by identity",
    ),
    (
        "Names of graphs and of the build",
        """RegisterGradient no_gradient sysconfig.CXX11_ABI_FLAG sysconfig.CXX_VERSION sysconfig.MONOLITHIC_BUILD
        sysconfig.get_compile_flags sysconfig.get_include sysconfig.get_lib sysconfig.get_link_flags version.COMPILER_VERSION
        version.GRAPH_DEF_VERSION version.GRAPH_DEF_VERSION_MIN_CONSUMER version.GRAPH_DEF_VERSION_MIN_PRODUCER
        experimental.function_executor_type experimental.enable_strict_mode test.Benchmark test.benchmark_config
        test.with_eager_op_as_function debugging.experimental data.experimental.enable_debug_mode security
        types.experimental.AtomicFunction types.experimental.FunctionType""",
        "tf.custom_gradient and nested tapes replace graph gradients",
    ),
)


# Names of TensorFlow 1 that programs still use, and what to write instead; `~` stands for a space.
_FORMER = """
    AUTO_REUSE=tf.Variable ConfigProto=tf.config InteractiveSession=a~call~of~the~function Print=tf.print
    Session=a~call~of~the~function arg_max=tf.argmax arg_min=tf.argmin ceil=tf.math.ceil contrib=Keras~or~the~ops~of~tf.nn
    count_nonzero=tf.math.count_nonzero cross=tf.linalg.cross decode_csv=tf.io.decode_csv diag=tf.linalg.tensor_diag
    div=tf.divide erf=tf.math.erf FixedLenFeature=tf.io.FixedLenFeature gfile=tf.io.gfile get_variable=tf.Variable
    global_variables_initializer=nothing:~a~variable~has~its~value~at~once
    is_finite=tf.math.is_finite is_inf=tf.math.is_inf is_nan=tf.math.is_nan layers=tf.keras.layers
    lgamma=tf.math.lgamma log=tf.math.log log1p=tf.math.log1p log_sigmoid=tf.math.log_sigmoid
    matrix_band_part=tf.linalg.band_part matrix_inverse=tf.linalg.inv matrix_solve=tf.linalg.solve
    mod=tf.math.floormod mul=tf.multiply multinomial=tf.random.categorical neg=tf.negative parse_example=tf.io.parse_example
    parse_single_example=tf.io.parse_single_example placeholder=an~argument~of~tf.function read_file=tf.io.read_file
    random_normal=tf.random.normal random_shuffle=tf.random.shuffle random_uniform=tf.random.uniform
    reciprocal=tf.math.reciprocal reset_default_graph=nothing:~there~is~no~global~graph rint=tf.math.rint rsqrt=tf.math.rsqrt
    segment_sum=tf.math.segment_sum set_random_seed=tf.random.set_seed softmax=tf.nn.softmax
    squared_difference=tf.math.squared_difference string_join=tf.strings.join sub=tf.subtract svd=tf.linalg.svd
    to_float=tf.cast to_int32=tf.cast to_int64=tf.cast trace=tf.linalg.trace truncated_normal=tf.random.truncated_normal
    unsorted_segment_sum=tf.math.unsorted_segment_sum variable_scope=tf.Module VarLenFeature=tf.io.VarLenFeature
    write_file=tf.io.write_file xdivy=tf.math.xdivy zeta=tf.math.zeta
    """
FORMER = dict(pair.split("=", 1) for pair in _FORMER.split())


@functools.cache
def _by_name() -> dict[str, tuple[str, str]]:
    return {name: (topic, remedy) for topic, names, remedy in TOPICS for name in names.split()}


def explain(module: str, name: str) -> str:
    """The message for a name that a module of the package does not have."""
    text = f"module {module!r} has no attribute {name!r}"
    full = f"{module}.{name}".removeprefix("taut.")
    if full in FORMER:
        return f"{text}: it is a name of TensorFlow 1\n  help: use {FORMER[full].replace('~', ' ')}"
    found = _by_name().get(full)
    if found is None:
        return text
    topic, remedy = found
    return (
        f"{text}: tf.{full} of TensorFlow is missing here ({topic.lower()})\n  help: {remedy}; see docs/src/missing.md"
    )
