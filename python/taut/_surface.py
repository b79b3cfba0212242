"""The public surface: the names of each namespace, and what stands behind them.

A name is an op of the op table, under that name or another one and with the parameter names of the library it comes
from (`ops`), or an object that a module defines (`objects`). Handles, re-exports and `__all__` are made of this table
by `_namespace.py`, type stubs by `python/tools/stubs.py`.
"""

from __future__ import annotations

from typing import NamedTuple


class OpName(NamedTuple):
    """An op of the op table under a public name, with these parameter names in place of its own, in order."""

    op: str
    params: tuple[str, ...] | None = None


class Object(NamedTuple):
    """An object that a module defines; the module itself for an empty name."""

    module: str
    name: str


class Wrapped(NamedTuple):
    """What a function of a module makes of a name and an op: `function(name, op)`."""

    module: str
    function: str
    op: str


Row = OpName | Object | Wrapped
Rows = dict[str, Row]


def _pairs(names: str) -> list[tuple[str, str]]:
    """`public` or `public=own`, separated by white space."""
    return [(public, own or public) for public, _, own in (word.partition("=") for word in names.split())]


def ops(names: str, params: str | None = None) -> Rows:
    """Ops of the table, as `public` or `public=op`; with parameter names if they differ from the table's."""
    words = None if params is None else tuple(params.split())
    return {public: OpName(own, words) for public, own in _pairs(names)}


def objects(module: str, names: str) -> Rows:
    """Objects of a module, as `public` or `public=own`."""
    return {public: Object(f"taut.{module}", own) for public, own in _pairs(names)}


def wrapped(function: str, names: str) -> Rows:
    """Ops behind `keras.ops`, as `public` or `public=op`, with one of Keras's rules of type promotion."""
    module = "taut.keras.backend.ops.numpy.elementwise"
    return {public: Wrapped(module, function, own) for public, own in _pairs(names)}


def modules(names: str) -> Rows:
    """Modules of the Keras backend."""
    return {name: Object(f"taut.keras.backend.{name}", "") for name in names.split()}


def same(rows: Rows, names: str) -> Rows:
    """Names that another namespace has, too."""
    return {public: rows[own] for public, own in _pairs(names)}


_MATH: Rows = {
    **ops(
        """abs acos acosh add asin asinh atan atan2 atanh ceil cos cosh cummax cummin digamma divide=div
        divide_no_nan=div_no_nan equal erf erfc erfinv exp expm1 floor floordiv=floor_div floormod=mod greater greater_equal
        is_finite is_inf is_nan less less_equal lgamma log log1p logaddexp logical_and logical_not logical_or logical_xor
        maximum minimum mod multiply=mul negative=neg not_equal pow reciprocal rint=round round rsqrt segment_max
        segment_mean segment_min segment_prod segment_sum sign sin sinh softplus sqrt square squared_difference
        subtract=sub tan tanh truediv=div"""
    ),
    **ops("reduce_all=all reduce_any=any reduce_logsumexp=logsumexp", "input_tensor axis keepdims"),
    **objects(
        "_ops.elementwise",
        """accumulate_n add_n angle conj imag log_sigmoid multiply_no_nan polyval real reciprocal_no_nan scalar_mul softsign
        xdivy xlog1py xlogy""",
    ),
    **objects(
        "_ops.reduction",
        """argmax argmin count_nonzero cumprod cumsum cumulative_logsumexp is_non_decreasing is_strictly_increasing
        l2_normalize lbeta log_softmax reduce_euclidean_norm reduce_max reduce_mean reduce_min reduce_prod reduce_std
        reduce_sum reduce_variance top_k zero_fraction""",
    ),
    **objects("_ops.probabilities", "sigmoid softmax"),
    **objects("_ops.histogram", "bincount confusion_matrix in_top_k"),
    **objects("_ops.indexing", "invert_permutation"),
    **objects(
        "_ops.special",
        """bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc erfcinv igamma igammac ndtri nextafter polygamma zeta""",
    ),
    **objects("_ops.quasi_random", "sobol_sample"),
    **objects("_ops.sorting", "approx_max_k approx_min_k"),
    "special": Object("taut.math_special", ""),
    **objects(
        "_ops.segment",
        """unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n
        unsorted_segment_sum""",
    ),
}

_LINALG: Rows = {
    **ops("det", "input"),
    **objects("_ops.creation", "eye"),
    **objects(
        "_ops.linalg",
        """adjoint cholesky cholesky_solve cross eig eigh eigvals eigvalsh einsum expm inv logdet logm lstsq matmul matrix_rank
        matrix_transpose matvec pinv qr slogdet solve svd tensordot trace triangular_solve""",
    ),
    **objects(
        "_ops.decompositions",
        """banded_triangular_solve eigh_tridiagonal lu lu_matrix_inverse lu_reconstruct lu_solve sqrtm tridiagonal_matmul
        tridiagonal_solve""",
    ),
    **objects("_ops.diagonal", "band_part diag diag_part set_diag tensor_diag tensor_diag_part"),
    **objects("_ops.norm", "global_norm norm normalize"),
    **objects(
        "linear_operators",
        """LinearOperator LinearOperatorAdjoint LinearOperatorBlockDiag LinearOperatorBlockLowerTriangular
        LinearOperatorCirculant LinearOperatorCirculant2D LinearOperatorCirculant3D LinearOperatorComposition
        LinearOperatorDiag LinearOperatorFullMatrix LinearOperatorHouseholder
        LinearOperatorIdentity LinearOperatorInversion LinearOperatorKronecker LinearOperatorLowRankUpdate
        LinearOperatorLowerTriangular LinearOperatorPermutation LinearOperatorScaledIdentity LinearOperatorToeplitz
        LinearOperatorTridiag LinearOperatorZeros""",
    ),
    **objects("linear_operators.solvers", "experimental"),
    **same(_MATH, "l2_normalize"),
}

_SIGNAL: Rows = {
    **objects(
        "_ops.fourier",
        """dct fft fft2d fft3d fftnd fftshift idct ifft ifft2d ifft3d ifftnd ifftshift irfft irfft2d irfft3d irfftnd rfft rfft2d
        rfft3d rfftnd""",
    ),
    **objects(
        "_ops.spectral",
        """frame hamming_window hann_window inverse_mdct inverse_stft inverse_stft_window_fn kaiser_bessel_derived_window
        kaiser_window linear_to_mel_weight_matrix mdct mfccs_from_log_mel_spectrograms overlap_and_add stft
        vorbis_window""",
    ),
}

_DEBUGGING: Rows = {
    **ops("check_numerics"),
    **objects(
        "_ops.checks",
        """Assert assert_all_finite assert_equal assert_greater assert_greater_equal assert_integer assert_less
        assert_less_equal assert_near assert_negative assert_non_negative assert_non_positive assert_none_equal
        assert_positive assert_proper_iterable assert_rank assert_rank_at_least assert_rank_in assert_same_float_dtype
        assert_scalar assert_shapes assert_type disable_check_numerics disable_traceback_filtering
        enable_check_numerics enable_traceback_filtering get_log_device_placement is_numeric_tensor
        is_traceback_filtering_enabled set_log_device_placement""",
    ),
}

_RANDOM: Rows = {
    **objects(
        "_ops.random",
        """categorical fold_in gamma normal poisson set_seed shuffle split stateless_bernoulli stateless_binomial
        stateless_categorical stateless_exponential stateless_gamma stateless_normal
        stateless_parameterized_truncated_normal stateless_permutation stateless_poisson stateless_shuffle
        stateless_truncated_normal stateless_uniform truncated_normal uniform""",
    ),
    **objects(
        "_ops.candidates",
        """all_candidate_sampler fixed_unigram_candidate_sampler learned_unigram_candidate_sampler
        log_uniform_candidate_sampler uniform_candidate_sampler""",
    ),
    **objects(
        "_ops.generator", "Algorithm Generator create_rng_state experimental get_global_generator set_global_generator"
    ),
}

_TOP: Rows = {
    **ops(
        """bitcast broadcast_to expand_dims identity ones_like realdiv=div reverse roll take_along_axis
        tile truncatemod=truncate_mod zeros_like"""
    ),
    **ops("reshape", "tensor shape"),
    **same(
        _MATH,
        """abs acos acosh add add_n argmax argmin asin asinh atan atan2 atanh cos cosh cumsum divide equal exp floor floordiv
        greater greater_equal less less_equal logical_and logical_not logical_or maximum minimum multiply negative not_equal
        pow reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum round scalar_mul
        sigmoid sign sin sinh sqrt square subtract tan tanh truediv""",
    ),
    **same(_LINALG, "einsum eye global_norm matmul norm tensordot"),
    **same(_DEBUGGING, "Assert assert_equal assert_greater assert_less assert_rank"),
    **objects("_ops.creation", "fill linspace meshgrid one_hot ones range sequence_mask zeros"),
    **objects("_ops.casting", "cast saturate_cast"),
    **objects("_ops.clipping", "clip_by_global_norm clip_by_norm clip_by_value"),
    **objects("_ops.elementwise", "truncatediv"),
    **objects("_ops.histogram", "histogram_fixed_width histogram_fixed_width_bins"),
    **objects(
        "_ops.indexing",
        """boolean_mask dynamic_partition dynamic_stitch gather gather_nd reverse_sequence scatter_nd slice strided_slice
        tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub tensor_scatter_nd_update
        unravel_index where""",
    ),
    **objects(
        "_ops.initializers",
        """constant_initializer ones_initializer random_normal_initializer random_uniform_initializer zeros_initializer""",
    ),
    **objects("_ops.printing", "print"),
    **objects("_ops.py_function", "numpy_function py_function"),
    **objects(
        "_ops.scopes",
        """AggregationMethod control_dependencies device get_current_name_scope get_logger group guarantee_const name_scope
        no_op timestamp tuple""",
    ),
    **objects("_ops.index_shuffle", "random_index_shuffle"),
    **objects("_ops.sliding_windows", "extract_volume_patches"),
    **objects("_ops.decompositions", "matrix_square_root=sqrtm"),
    **objects(
        "_ops.shaping",
        """batch_to_space broadcast_dynamic_shape broadcast_static_shape concat ensure_shape identity_n pad parallel_stack
        repeat required_space_to_batch_paddings shape_n space_to_batch space_to_batch_nd=space_to_batch split
        squeeze stack transpose unstack""",
    ),
    **objects("_ops.sorting", "approx_top_k argsort searchsorted sort unique unique_with_counts"),
    **objects("_native", "DType from_dlpack"),
    **objects("conversion", "register_tensor_conversion_function"),
    **objects("critical_section", "CriticalSection"),
    **objects("device_spec", "DeviceSpec"),
    **objects("tensor_proto", "make_ndarray make_tensor_proto"),
    **objects("control", "case cond foldl foldr map_fn scan switch_case vectorized_map while_loop"),
    **objects("custom_gradient", "custom_gradient grad_pass_through recompute_grad"),
    **objects(
        "dtypes",
        """as_dtype bfloat16 bool complex64 complex128 double float16 float32 float64 half int8 int16 int32 int64 string
        uint8 uint16 uint32 uint64""",
    ),
    **objects("ragged", "ragged_fill_empty_rows ragged_fill_empty_rows_grad"),
    **objects("ragged_tensor", "RaggedTensor RaggedTensorSpec"),
    **objects("sparse_tensor", "SparseTensor"),
    **objects("_ops.edit_distance", "edit_distance fingerprint"),
    **objects("strings", "as_string"),
    **objects("_ops.elementwise", "complex"),
    **objects("_ops.fourier", "fftnd ifftnd irfftnd rfftnd"),
    **objects("_ops.linalg", "eig eigvals"),
    **objects("function", "executing_eagerly function init_scope inside_function trace_specs"),
    **objects("module", "Module"),
    **objects("shape", "TensorShape"),
    **objects("indexed_slices", "IndexedSlices"),
    **objects("spec", "TensorSpec type_spec_from_value"),
    **objects("tape", "GradientTape UnconnectedGradients gradients hessians stop_gradient"),
    **objects("type_spec", "IndexedSlicesSpec NoneTensorSpec OptionalSpec SparseTensorSpec TensorArraySpec TypeSpec"),
    **objects(
        "tensor", "Tensor constant convert_to_tensor get_static_value is_symbolic_tensor is_tensor rank shape size"
    ),
    **objects("tensor_array", "TensorArray"),
    **objects("variable", "Variable VariableAggregation VariableSynchronization variable_creator_scope"),
}

_NN: Rows = {
    **ops("elu gelu leaky_relu relu relu6 selu sparse_softmax_cross_entropy_with_logits"),
    # Ops that TensorFlow has as layers only.
    **ops("attention attention_with_dropout group_norm layer_norm rms_norm"),
    **same(
        _MATH,
        """approx_max_k approx_min_k in_top_k l2_normalize log_softmax sigmoid softmax softplus softsign tanh
        top_k zero_fraction""",
    ),
    **same(_TOP, "batch_to_space space_to_batch"),
    **objects(
        "_ops.candidates",
        """all_candidate_sampler compute_accidental_hits fixed_unigram_candidate_sampler learned_unigram_candidate_sampler
        nce_loss sampled_softmax_loss""",
    ),
    **objects("_ops.labels", "collapse_repeated ctc_unique_labels isotonic_regression"),
    **objects("_ops.sliding_windows", "dilation2d erosion2d max_pool_with_argmax"),
    **objects(
        "_ops.conv",
        """atrous_conv2d atrous_conv2d_transpose conv1d conv1d_transpose conv2d conv2d_transpose conv3d
        conv3d_transpose conv_transpose convolution
        depthwise_conv2d depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input separable_conv2d""",
    ),
    **objects("_ops.embedding_sparse", "embedding_lookup_sparse safe_embedding_lookup_sparse"),
    **objects("_ops.ctc", "ctc_beam_search_decoder ctc_greedy_decoder ctc_loss"),
    **objects("_ops.fractional_pool", "fractional_avg_pool fractional_max_pool"),
    **objects(
        "_ops.losses",
        """compute_average_loss l2_loss log_poisson_loss scale_regularization_loss sigmoid_cross_entropy_with_logits
        softmax_cross_entropy_with_logits weighted_cross_entropy_with_logits""",
    ),
    **objects(
        "_ops.nn",
        "bias_add crelu depth_to_space dropout embedding_lookup experimental silu=swish space_to_depth swish",
    ),
    **objects(
        "_ops.normalization",
        """batch_norm_with_global_normalization batch_normalization local_response_normalization
        lrn=local_response_normalization moments normalize_moments
        sufficient_statistics weighted_moments""",
    ),
    **objects(
        "_ops.pool",
        "avg_pool avg_pool1d avg_pool2d avg_pool3d max_pool max_pool1d max_pool2d max_pool3d pool",
    ),
}

# Of `tf.compat.v1.nn`, what programs of TensorFlow 2 use.
_COMPAT_NN: Rows = {
    **same(
        _NN,
        """all_candidate_sampler approx_max_k approx_min_k atrous_conv2d atrous_conv2d_transpose avg_pool1d avg_pool3d
        batch_normalization bias_add collapse_repeated compute_accidental_hits compute_average_loss conv1d_transpose
        conv_transpose ctc_greedy_decoder ctc_unique_labels depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input elu
        fixed_unigram_candidate_sampler l2_loss l2_normalize leaky_relu learned_unigram_candidate_sampler
        local_response_normalization log_poisson_loss lrn max_pool1d max_pool2d max_pool3d normalize_moments relu relu6
        scale_regularization_loss selu sigmoid silu softplus softsign swish tanh top_k zero_fraction""",
    ),
    **objects(
        "_ops.compat_v1",
        """avg_pool avg_pool2d=avg_pool conv2d conv2d_transpose convolution crelu depth_to_space depthwise_conv2d dropout
        embedding_lookup fused_batch_norm in_top_k log_softmax max_pool moments relu_layer separable_conv2d
        sigmoid_cross_entropy_with_logits softmax softmax_cross_entropy_with_logits
        softmax_cross_entropy_with_logits_v2 space_to_depth
        sparse_softmax_cross_entropy_with_logits sufficient_statistics weighted_cross_entropy_with_logits weighted_moments
        xw_plus_b""",
    ),
    **objects("_ops.candidates", "log_uniform_candidate_sampler uniform_candidate_sampler"),
}

_IMAGE: Rows = {
    **objects(
        "_ops.boxes",
        """crop_and_resize draw_bounding_boxes extract_glimpse sample_distorted_bounding_box
        stateless_sample_distorted_bounding_box""",
    ),
    **objects(
        "_ops.color",
        """adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_jpeg_quality adjust_saturation
        convert_image_dtype grayscale_to_rgb hsv_to_rgb per_image_standardization random_brightness random_contrast
        random_hue random_jpeg_quality random_saturation rgb_to_grayscale rgb_to_hsv rgb_to_yiq rgb_to_yuv
        stateless_random_brightness stateless_random_contrast stateless_random_hue stateless_random_jpeg_quality
        stateless_random_saturation yiq_to_rgb yuv_to_rgb""",
    ),
    **objects(
        "_ops.image",
        """ResizeMethod central_crop crop_to_bounding_box flip_left_right flip_up_down pad_to_bounding_box random_crop
        random_flip_left_right random_flip_up_down resize resize_with_crop_or_pad resize_with_pad rot90 stateless_random_crop
        stateless_random_flip_left_right stateless_random_flip_up_down transpose""",
    ),
    **objects("_ops.image_quality", "image_gradients psnr sobel_edges ssim ssim_multiscale total_variation"),
    **objects(
        "_ops.suppression",
        """combined_non_max_suppression non_max_suppression non_max_suppression_overlaps non_max_suppression_padded
        non_max_suppression_with_scores""",
    ),
    **objects("_ops.patches", "extract_patches"),
    **objects(
        "io",
        """decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png decode_webp encode_jpeg encode_png
        extract_jpeg_shape is_jpeg""",
    ),
}

_ARRAY_LINALG: Rows = {
    **ops("det eigvalsh inv svdvals", "x"),
    **ops("matmul solve", "x1 x2"),
    **objects(
        "array_api._linalg",
        """cholesky cross diagonal eigh matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr slogdet svd
        tensordot trace vecdot vector_norm""",
    ),
}

_ARRAY_API: Rows = {
    **ops(
        """abs acos acosh asin asinh atan atanh bitwise_invert=bitwise_not ceil cos cosh exp expm1 floor isfinite=is_finite
        isinf=is_inf isnan=is_nan log log1p logical_not moveaxis negative=neg reciprocal sign sin sinh sqrt square tan
        tanh tril triu trunc"""
    ),
    **ops(
        """add atan2 bitwise_and bitwise_left_shift=left_shift bitwise_or bitwise_right_shift=right_shift bitwise_xor
        divide=div equal floor_divide=floor_div greater greater_equal less less_equal logaddexp logical_and logical_or
        logical_xor maximum minimum multiply=mul not_equal pow subtract=sub""",
        "x1 x2",
    ),
    **ops("broadcast_to", "x shape"),
    **ops("where", "condition x1 x2"),
    **same(_TOP, "bool complex64 complex128 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64"),
    **objects(
        "array_api._creation",
        "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like zeros zeros_like",
    ),
    **objects(
        "array_api._elementwise",
        "clip conj copysign hypot imag log10 log2 nextafter positive real remainder round signbit",
    ),
    **objects("array_api._info", "__array_namespace_info__"),
    **objects(
        "array_api._manipulation",
        "broadcast_arrays concat expand_dims flip permute_dims repeat reshape roll squeeze stack tile unstack",
    ),
    **objects(
        "array_api._reductions",
        "all any count_nonzero cumulative_prod cumulative_sum diff max mean min prod std sum var",
    ),
    **objects(
        "array_api._searching",
        """argmax argmin argsort nonzero searchsorted sort take take_along_axis unique_all unique_counts unique_inverse
        unique_values""",
    ),
    **objects("array_api._types", "astype can_cast finfo iinfo isdtype result_type"),
    **same(_ARRAY_LINALG, "matmul matrix_transpose tensordot vecdot"),
}

_KERAS_NUMPY: Rows = {
    **wrapped(
        "on_floats",
        """arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan=atan arctanh=atanh ceil cos cosh exp expm1
        fabs=abs log log1p sin sinh sqrt tan tanh""",
    ),
    **wrapped(
        "on_promoted",
        """maximum minimum subtract=sub equal not_equal greater greater_equal less less_equal""",
    ),
    **wrapped(
        "on_promoted_floats",
        """arctan2=atan2 true_divide=div""",
    ),
    **objects(
        "keras.backend.ops.numpy.bits",
        """bitwise_and bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor gcd lcm
        left_shift=bitwise_left_shift nextafter right_shift=bitwise_right_shift signbit""",
    ),
    **objects(
        "keras.backend.ops.numpy.create",
        """arange array bartlett blackman copy empty empty_like eye full full_like geomspace hamming hanning identity
        kaiser linspace logspace ones ones_like tri vander view zeros zeros_like""",
    ),
    **objects(
        "keras.backend.ops.numpy.elementwise",
        """abs absolute add angle cbrt clip conj conjugate deg2rad divide divide_no_nan exp2 floor floor_divide fmax
        fmin fmod heaviside hypot imag isclose isfinite isinf isnan isneginf isposinf isreal ldexp log10 log2
        logaddexp logaddexp2 logical_and logical_not logical_or logical_xor mod multiply nan_to_num negative power
        rad2deg real reciprocal round sign sinc square trunc where""",
    ),
    **objects("keras.backend.ops.numpy.indexing", "diff nonzero select take take_along_axis unravel_index vectorize"),
    **objects(
        "keras.backend.ops.numpy.products",
        """correlate cross dot einsum inner kron matmul outer tensordot trace vdot""",
    ),
    **objects(
        "keras.backend.ops.numpy.reduce",
        """all allclose amax amin any argmax argmin average count_nonzero cumprod cumsum max mean min nanargmax
        nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar prod ptp std sum trapezoid
        var""",
    ),
    **objects(
        "keras.backend.ops.numpy.shapes",
        """append array_split broadcast_to concatenate diag diagflat diagonal dsplit dstack expand_dims flip fliplr
        flipud hsplit hstack meshgrid moveaxis ndim pad ravel repeat reshape roll rot90 size split squeeze stack
        swapaxes tile transpose tril triu vsplit vstack""",
    ),
    **objects("keras.backend.ops.numpy.sorting", "argpartition argsort digitize isin searchsorted sort unique"),
    **objects(
        "keras.backend.ops.numpy.statistics",
        """bincount corrcoef histogram median nanmedian nanpercentile nanquantile percentile quantile""",
    ),
    **objects("keras.backend.ops.linalg", "slogdet"),
    **objects("keras.backend.ops.numpy.elementwise", "i0"),
}

_KERAS_NN: Rows = {
    **objects(
        "keras.backend.ops.nn.activations",
        """celu elu gelu glu hard_shrink hard_sigmoid hard_silu hard_tanh leaky_relu log_sigmoid log_softmax relu relu6
        selu sigmoid silu soft_shrink softmax softplus softsign sparse_plus sparse_sigmoid sparsemax squareplus tanh
        tanh_shrink threshold""",
    ),
    **objects("keras.backend.ops.nn.attention", "dot_product_attention"),
    **objects("keras.backend.ops.nn.conv", "conv conv_transpose depthwise_conv separable_conv"),
    **objects("keras.backend.ops.nn.ctc", "ctc_decode ctc_loss"),
    **objects(
        "keras.backend.ops.nn.losses",
        """binary_crossentropy categorical_crossentropy psnr sparse_categorical_crossentropy""",
    ),
    **objects("keras.backend.ops.nn.normalization", "batch_normalization moments multi_hot one_hot"),
    **objects("keras.backend.ops.nn.patches", "depth_to_space fold space_to_depth unfold"),
    **objects("keras.backend.ops.nn.pooling", "adaptive_average_pool adaptive_max_pool average_pool max_pool"),
}

_KERAS_MATH: Rows = {
    **objects("keras.backend.ops.fourier", "extract_sequences fft fft2 ifft2 irfft istft rfft stft"),
    **objects(
        "keras.backend.ops.math",
        """cdist erf erfc erfinv in_top_k logdet logsumexp rsqrt segment_max segment_min segment_prod segment_sum top_k""",
    ),
    **objects("keras.backend.ops.fourier", "_get_complex_tensor_from_tuple=complex_of"),
}

_KERAS_IMAGE: Rows = {
    **objects("keras.backend.ops.image", "hsv_to_rgb resize rgb_to_grayscale rgb_to_hsv"),
    **objects(
        "keras.backend.ops.warping",
        """affine_transform compute_homography_matrix elastic_transform gaussian_blur map_coordinates
        perspective_transform scale_and_translate sobel_edges""",
    ),
}

_KERAS_LINALG: Rows = {
    **objects(
        "keras.backend.ops.linalg",
        """cholesky cholesky_inverse det eig eigh inv jvp lstsq matrix_rank norm pinv qr slogdet solve solve_triangular svd""",
    ),
    **objects("keras.backend.ops.linalg", "lu_factor"),
}

_KERAS_CORE: Rows = {
    **objects(
        "keras.backend.ops.core",
        """IS_THREAD_SAFE SUPPORTS_COMPLEX_DTYPES SUPPORTS_RAGGED_TENSORS SUPPORTS_SPARSE_TENSORS associative_scan cond
        custom_gradient device_scope fori_loop is_tensor map random_seed_dtype remat scan scatter scatter_update
        shape slice slice_update stop_gradient switch unstack vectorized_map while_loop""",
    ),
    **objects("keras.backend.convert", "cast convert_to_numpy convert_to_tensor=own_tensor"),
    **objects("keras.backend.spec", "compute_output_spec"),
    **objects("keras.backend.variable", "Variable"),
}

_KERAS: Rows = {
    **same(
        _KERAS_CORE,
        """IS_THREAD_SAFE SUPPORTS_COMPLEX_DTYPES SUPPORTS_RAGGED_TENSORS SUPPORTS_SPARSE_TENSORS Variable cast
        compute_output_spec cond convert_to_numpy convert_to_tensor device_scope is_tensor random_seed_dtype scatter
        shape stop_gradient vectorized_map""",
    ),
    **objects("keras.backend.recurrent", "bidirectional_gru bidirectional_lstm cudnn_ok gru lstm rnn"),
    "name_scope": Object("keras.src.backend.common.name_scope", "name_scope"),
    **modules("core image linalg math nn numpy random"),
}

#: The results of ops that do not return exactly one tensor. A list of one is returned as a tensor.
RESULTS: dict[str, str] = {
    "clip_by_global_norm": "tuple[Tensor, ...]",
    "eig": "tuple[Tensor, Tensor]",
    "eigh": "tuple[Tensor, Tensor]",
    "lstsq": "tuple[Tensor, Tensor]",
    "meshgrid": "Tensor | tuple[Tensor, ...]",
    "moments": "tuple[Tensor, Tensor]",
    "qr": "tuple[Tensor, Tensor]",
    "slogdet": "tuple[Tensor, Tensor]",
    "split": "Tensor | tuple[Tensor, ...]",
    "svd": "tuple[Tensor, Tensor, Tensor]",
    "top_k": "tuple[Tensor, Tensor]",
    "unique": "tuple[Tensor, Tensor, Tensor]",
    "unstack": "Tensor | tuple[Tensor, ...]",
}

_ARRAY_FFT: Rows = {
    **objects(
        "array_api._fft",
        "fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn",
    ),
}

SURFACE: dict[str, Rows] = {
    "taut": _TOP,
    "taut.array_api": _ARRAY_API,
    "taut.array_api.fft": _ARRAY_FFT,
    "taut.array_api.linalg": _ARRAY_LINALG,
    "taut.bitwise": ops("bitwise_and bitwise_or bitwise_xor invert=bitwise_not left_shift right_shift"),
    "taut.compat.v1.nn": _COMPAT_NN,
    "taut.debugging": _DEBUGGING,
    "taut.image": _IMAGE,
    "taut.keras.backend": _KERAS,
    "taut.keras.backend.core": _KERAS_CORE,
    "taut.keras.backend.image": _KERAS_IMAGE,
    "taut.keras.backend.linalg": _KERAS_LINALG,
    "taut.keras.backend.math": _KERAS_MATH,
    "taut.keras.backend.nn": _KERAS_NN,
    "taut.keras.backend.numpy": _KERAS_NUMPY,
    "taut.linalg": _LINALG,
    "taut.math": _MATH,
    "taut.nn": _NN,
    "taut.random": _RANDOM,
    "taut.signal": _SIGNAL,
}
