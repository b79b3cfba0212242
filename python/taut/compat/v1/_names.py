"""Which names of `tf.compat.v1` are those of TensorFlow 2, and under which name."""

from __future__ import annotations

#: Names of TensorFlow 1 for functions that TensorFlow 2 has in a module: `name=path`.
_RENAMED = """
    FixedLenFeature=io.FixedLenFeature FixedLenSequenceFeature=io.FixedLenSequenceFeature OpError=errors.OpError
    SparseFeature=io.SparseFeature VarLenFeature=io.VarLenFeature accumulate_n=math.accumulate_n angle=math.angle
    assert_proper_iterable=debugging.assert_proper_iterable assert_same_float_dtype=debugging.assert_same_float_dtype
    batch_to_space_nd=batch_to_space betainc=math.betainc ceil=math.ceil check_numerics=debugging.check_numerics
    cholesky=linalg.cholesky cholesky_solve=linalg.cholesky_solve conj=math.conj cross=linalg.cross cumprod=math.cumprod
    decode_base64=io.decode_base64 decode_compressed=io.decode_compressed diag=linalg.tensor_diag
    diag_part=linalg.tensor_diag_part digamma=math.digamma div_no_nan=math.divide_no_nan encode_base64=io.encode_base64
    erf=math.erf erfc=math.erfc expm1=math.expm1
    fake_quant_with_min_max_args=quantization.fake_quant_with_min_max_args
    fake_quant_with_min_max_args_gradient=quantization.fake_quant_with_min_max_args_gradient
    fake_quant_with_min_max_vars=quantization.fake_quant_with_min_max_vars
    fake_quant_with_min_max_vars_gradient=quantization.fake_quant_with_min_max_vars_gradient
    fake_quant_with_min_max_vars_per_channel=quantization.fake_quant_with_min_max_vars_per_channel
    fake_quant_with_min_max_vars_per_channel_gradient=quantization.fake_quant_with_min_max_vars_per_channel_gradient
    fft=signal.fft fft2d=signal.fft2d fft3d=signal.fft3d floordiv=math.floordiv floor_div=math.floordiv
    floormod=math.floormod global_norm=linalg.global_norm ifft=signal.ifft ifft2d=signal.ifft2d ifft3d=signal.ifft3d
    igamma=math.igamma igammac=math.igammac imag=math.imag invert_permutation=math.invert_permutation
    is_finite=math.is_finite is_inf=math.is_inf is_nan=math.is_nan is_non_decreasing=math.is_non_decreasing
    is_numeric_tensor=debugging.is_numeric_tensor is_strictly_increasing=math.is_strictly_increasing lbeta=math.lbeta
    lgamma=math.lgamma lin_space=linspace log=math.log log1p=math.log1p log_sigmoid=math.log_sigmoid
    logical_xor=math.logical_xor matching_files=io.matching_files matrix_band_part=linalg.band_part
    matrix_determinant=linalg.det matrix_inverse=linalg.inv matrix_set_diag=linalg.set_diag matrix_solve=linalg.solve
    matrix_triangular_solve=linalg.triangular_solve mod=math.floormod newaxis=newaxis parse_tensor=io.parse_tensor
    polygamma=math.polygamma qr=linalg.qr random_crop=image.random_crop random_gamma=random.gamma random_normal=random.normal
    random_shuffle=random.shuffle random_uniform=random.uniform read_file=io.read_file real=math.real
    reciprocal=math.reciprocal regex_replace=strings.regex_replace reverse_v2=reverse rint=math.rint rsqrt=math.rsqrt
    segment_max=math.segment_max segment_mean=math.segment_mean segment_min=math.segment_min segment_prod=math.segment_prod
    segment_sum=math.segment_sum self_adjoint_eig=linalg.eigh self_adjoint_eigvals=linalg.eigvalsh
    serialize_tensor=io.serialize_tensor sparse_fill_empty_rows=sparse.fill_empty_rows sparse_mask=sparse.mask
    sparse_maximum=sparse.maximum sparse_minimum=sparse.minimum sparse_reorder=sparse.reorder
    sparse_reset_shape=sparse.reset_shape sparse_reshape=sparse.reshape sparse_retain=sparse.retain sparse_slice=sparse.slice
    sparse_softmax=sparse.softmax sparse_tensor_dense_matmul=sparse.sparse_dense_matmul sparse_tensor_to_dense=sparse.to_dense
    sparse_to_indicator=sparse.to_indicator sparse_transpose=sparse.transpose squared_difference=math.squared_difference
    string_join=strings.join string_strip=strings.strip string_to_hash_bucket_fast=strings.to_hash_bucket_fast
    string_to_hash_bucket_strong=strings.to_hash_bucket_strong svd=linalg.svd tensor_scatter_add=tensor_scatter_nd_add
    tensor_scatter_sub=tensor_scatter_nd_sub tensor_scatter_update=tensor_scatter_nd_update trace=linalg.trace
    truncated_normal=random.truncated_normal unsorted_segment_max=math.unsorted_segment_max
    unsorted_segment_mean=math.unsorted_segment_mean unsorted_segment_min=math.unsorted_segment_min
    unsorted_segment_prod=math.unsorted_segment_prod unsorted_segment_sqrt_n=math.unsorted_segment_sqrt_n
    unsorted_segment_sum=math.unsorted_segment_sum where_v2=where write_file=io.write_file zeta=math.zeta
    """
RENAMED: dict[str, str] = dict(pair.split("=") for pair in _RENAMED.split())

#: By module, names that mean something else in TensorFlow 1. Those that are not defined here are missing; the others of a
#: module are TensorFlow 2's.
DIFFERENT: dict[str, frozenset[str]] = {
    module: frozenset(names.split())
    for module, names in {
        "": """DeviceSpec Variable batch_to_space boolean_mask case constant_initializer gradients hessians
            ones_initializer random_normal_initializer random_uniform_initializer reverse_sequence space_to_batch tuple
            variable_creator_scope zeros_initializer data summary train test lookup losses metrics initializers optimizers
            queue distribute""",
        "debugging": """assert_all_finite assert_integer assert_near assert_rank_in assert_scalar assert_shapes assert_type""",
        "image": """crop_and_resize draw_bounding_boxes extract_glimpse extract_patches
            sample_distorted_bounding_box""",
        "io": "decode_csv decode_raw parse_example parse_single_example serialize_many_sparse serialize_sparse",
        "linalg": "diag diag_part matrix_transpose",
        "math": "reduce_euclidean_norm reduce_std reduce_variance",
        "random": "poisson",
        "sparse": "add concat reduce_max reduce_sum segment_mean segment_sqrt_n segment_sum split",
        "strings": "length reduce_join split substr to_hash_bucket to_number",
    }.items()
}
