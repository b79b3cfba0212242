"""Calls with ragged and sparse tensors whose results must equal TensorFlow's.

`python/tools/answers.py` runs them with TensorFlow and writes `ragged_answers.json`; the tests compare.
"""


def namespace(tf):
    """What the calls refer to."""
    return {
        "tf": tf,
        "ra": tf.ragged.constant([[3, 1, 4], [], [5, 9], [2]]),
        "rd": tf.ragged.constant([[[1.0, 2.0], [3.0]], [], [[4.0, 5.0, 6.0], [], [7.0]]]),
        "rf": tf.ragged.constant([[3.0, 1.0, 4.0], [], [5.0, 9.0], [2.0]]),
        "ri": tf.ragged.constant([[[1, 2], [3, 4]], [], [[5, 6]]], ragged_rank=1),
        "sp": tf.sparse.from_dense([[1.0, 0.0, -2.0], [0.0, 0.0, 0.0], [0.0, 4.0, 0.0]]),
    }


_CALLS = """
rd.merge_dims(-2, -1)
rd.merge_dims(0, 2)
ri.merge_dims(1, 2)
ri.merge_dims(-3, -1)
ri.merge_dims(0, 1)
ra.merge_dims(-2, -1)
rd.to_sparse()
ri.to_sparse()
ra.to_sparse()
list(rd.nested_value_rowids())
ra[tf.newaxis]
rd[:, tf.newaxis]
rd[..., :1]
rd[1:, ...]
ri[..., 0]
tf.RaggedTensor.from_tensor([[[1, 2], [3, 0]], [[0, 0], [7, 8]]], ragged_rank=2, padding=0)
tf.RaggedTensor.from_tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], lengths=([2, 1], [1, 2, 2]))
tf.abs(-rf)
-rf
abs(-ra)
tf.exp(rf)
tf.nn.relu(-rf)
tf.cast(ra, tf.float32)
tf.math.round(rf/2.)
tf.clip_by_value(ra, 2, 4)
tf.ones_like(ra)
tf.zeros_like(ra, dtype=tf.float64)
tf.identity(ra)
tf.math.is_nan(rf)
tf.add(ra, ra)
tf.add(ra, 1)
tf.add(1, ra)
tf.subtract(10, ra)
tf.multiply(ra, [[1],[2],[3],[4]])
tf.maximum(ra, 3)
tf.equal(ra, 4)
tf.less(3, ra)
tf.pow(ra, 2)
tf.math.squared_difference(rf, 1.)
tf.math.divide_no_nan(rf, 0.)
tf.math.logical_not(ra > 2)
tf.logical_and(ra > 1, ra < 5)
rd + 1
tf.add(rd, rd)
ri * tf.constant([10, 100])
tf.concat([ra, ra], 0)
tf.concat([ra, ra], 1)
tf.concat([ra, ra], axis=-1)
tf.concat([ra, [[0],[1],[2],[3]]], axis=1)
tf.concat([rd, rd], 0)
tf.concat([rd, rd], 1)
tf.concat([rd, rd], 2)
tf.concat([ri, ri], 2)
tf.stack([ra, ra])
tf.stack([ra, ra], axis=1)
tf.stack([ra, ra], axis=2)
tf.stack([ra])
tf.expand_dims(ra, 0)
tf.expand_dims(ra, 1)
tf.expand_dims(ra, 2)
tf.expand_dims(ra, -1)
tf.expand_dims(rd, 2)
tf.squeeze(tf.expand_dims(ra, 1), 1)
tf.squeeze(tf.expand_dims(ra, 0), [0])
tf.reverse(ra, [0])
tf.reverse(ra, [1])
tf.reverse(rd, [1, 2])
tf.tile(ra, [2, 1])
tf.tile(ra, [1, 2])
tf.tile(rd, [1, 2, 2])
tf.split(ra, 2)
tf.split(ra, [1, 3])
tf.gather(ra, [2, 0])
tf.gather(ra, 2)
tf.gather(ra, [[2, 0], [3, 3]])
tf.gather(tf.constant([10, 20, 30, 40]), tf.ragged.constant([[1, 2], [], [0]]))
tf.gather(ra, tf.ragged.constant([[1, 2], [], [0]]))
tf.gather(rd, [2, 0])
tf.gather(ra, tf.ragged.constant([[0], [], [1, 0], [0, 0]]), batch_dims=1)
tf.gather(tf.constant([[1, 2], [3, 4]]), tf.ragged.constant([[0], [1, 0]]), batch_dims=1)
tf.gather_nd(ra, [[0, 1], [2, 1]])
tf.gather_nd(ra, [[0], [2]])
tf.gather_nd(rd, [[2, 0], [0, 1]])
tf.gather_nd(rd, [[2, 0, 1], [0, 1, 0]])
tf.where(ra > 2)
tf.where(ra > 2, ra, -ra)
tf.where(ra > 2, ra, 0)
tf.where(rd > 2)
tf.ragged.boolean_mask(ra, [True, False, True, False])
tf.ragged.boolean_mask(rd, tf.ragged.constant([[True, False], [], [False, True, True]]))
tf.reduce_sum(ra)
tf.reduce_sum(ra, 0)
tf.reduce_sum(ra, 1)
tf.reduce_sum(ra, axis=-1)
tf.reduce_sum(ra, axis=1, keepdims=True)
tf.reduce_sum(ra, axis=0, keepdims=True)
tf.reduce_sum(ra, axis=[0, 1])
tf.reduce_sum(rd, 0)
tf.reduce_sum(rd, 1)
tf.reduce_sum(rd, 2)
tf.reduce_sum(rd, [1, 2])
tf.reduce_sum(rd, [0, 2])
tf.reduce_sum(ri, 1)
tf.reduce_sum(ri, 2)
tf.reduce_sum(ri, 0)
tf.reduce_prod(ra, 1)
tf.reduce_max(ra, 1)
tf.reduce_max(rf, 1)
tf.reduce_min(ra, 1)
tf.reduce_min(rf, 0)
tf.reduce_max(rd, 1)
tf.reduce_mean(rf, 1)
tf.reduce_mean(rf, 0)
tf.reduce_mean(rf)
tf.reduce_mean(rd, 1)
tf.reduce_mean(rd, [1, 2])
tf.reduce_mean(rd, 2, keepdims=True)
tf.reduce_mean(rf, 1, keepdims=True)
tf.math.reduce_variance(tf.ragged.constant([[3., 1., 4.], [5., 9.], [2.]]), 1)
tf.math.reduce_std(tf.ragged.constant([[3., 1., 4.], [5., 9.], [2.]]), 1)
tf.math.reduce_variance(tf.ragged.constant([[3., 1., 4.], [5., 9.], [2.]]))
tf.reduce_any(ra > 4, 1)
tf.reduce_all(ra > 0, 1)
tf.reduce_all(ra > 1)
tf.reduce_any(rd > 4, 2)
tf.nn.softmax(rf)
tf.nn.softmax(tf.ragged.constant([[3., 1.], [5.]]))
tf.one_hot(ra, 4)
tf.size(ra)
tf.rank(rd)
tf.add_n([ra, ra, ra])
tf.nn.embedding_lookup(tf.constant([[1., 2.], [3., 4.], [5., 6.]]), tf.ragged.constant([[0, 2], [], [1]]))
tf.is_tensor(ra)
str(tf.shape(ra))
tf.reshape(ra, [-1])
tf.zeros(tf.shape(ra))
tf.fill(tf.shape(ra), 'x')
tf.broadcast_to(3, tf.shape(ra))
tf.broadcast_to([[1],[2],[3],[4]], tf.shape(ra))
tf.RaggedTensor.from_sparse(tf.sparse.from_dense([[1, 2], [0, 0], [3, 0]]))
tf.function(lambda x: tf.concat([x, tf.reverse(x, [1])], 1))(ra)
tf.function(lambda x: (tf.reduce_max(x, -1), tf.reduce_min(x, -1)))(ra)
tf.function(lambda x: x + 1)(ra)
tf.function(lambda x: tf.reduce_sum(x * 2., 1))(rf)
tf.function(lambda x: x.to_tensor())(rf)
tf.ragged.map_flat_values(tf.add, ra, 1)
tf.sparse.reduce_sum(tf.abs(sp))
tf.abs(sp)
tf.cast(sp, tf.int32)
sp * 2.
tf.constant(2.) * sp
sp / 2.
sp * tf.constant([[4., 5., 6.]])
sp * tf.constant([4., 5., 6.])
tf.shape(sp)
tf.size(sp)
tf.rank(sp)
tf.negative(sp)
tf.function(lambda x: x * 2.)(sp)
list(tf.data.Dataset.from_tensor_slices(ra).batch(2))
list(tf.data.Dataset.from_tensor_slices(ra).batch(3).unbatch())
list(tf.data.Dataset.from_tensor_slices((ra, [1,2,3,4])).batch(3, drop_remainder=True))
list(tf.data.Dataset.from_tensor_slices(sp).batch(2))
list(tf.data.Dataset.from_tensor_slices(sp).batch(2).unbatch())
list(tf.data.Dataset.from_tensor_slices(sp).map(lambda x: x*2.))
list(tf.data.Dataset.from_tensor_slices(rd).batch(2))
list(tf.data.Dataset.from_tensor_slices(ra).map(lambda x: x + 1))
list(tf.data.Dataset.from_tensor_slices(ra).take(3).repeat(2).batch(4))
tf.sparse.from_dense([[1, 0]]).with_values([5]).values
str(tf.shape(rd))
tf.shape(ra)[0]
str(tf.shape(ri))
str(tf.shape(tf.expand_dims(ra, 1)))
str(tf.experimental.DynamicRaggedShape.from_lengths([4, (2, 1, 0, 8), 12]))
str(tf.experimental.DynamicRaggedShape.from_lengths([2, 3]))
str(tf.experimental.DynamicRaggedShape([tf.experimental.RowPartition.from_row_lengths([5, 3, 2])], [10, 8]))
tf.experimental.DynamicRaggedShape.from_tensor(ra).static_lengths()
tf.experimental.DynamicRaggedShape.from_tensor(ra).is_uniform(1)
tf.experimental.DynamicRaggedShape.from_tensor(ra).inner_shape
tf.experimental.DynamicRaggedShape.from_tensor(ra).rank
tf.experimental.RowPartition.from_row_lengths([5, 3, 2]).row_splits()
tf.experimental.RowPartition.from_row_splits([0, 2, 2]).row_lengths()
tf.experimental.RowPartition.from_value_rowids([0, 0, 2], nrows=4).row_starts()
tf.experimental.RowPartition.from_uniform_row_length(2, nvals=6).row_limits()
tf.experimental.RowPartition.from_row_lengths([2, 0, 1]).offsets_in_rows()
tf.experimental.RowPartition.from_row_lengths([2, 0, 1]).value_rowids()
tf.experimental.RowPartition.from_row_starts([0, 1], nvals=3).nrows()
tf.experimental.RowPartition.from_row_limits([1, 3]).nvals()
tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 0, -1).size()
"""
CASES = _CALLS.strip().splitlines()


def result(tf, text):
    """The result of a call; a ragged tensor with its shape, a sparse tensor as its parts."""
    return _with_shapes(tf, eval(text, namespace(tf)))


def _with_shapes(tf, value):
    if isinstance(value, list):
        return [_with_shapes(tf, part) for part in value]
    if isinstance(value, tf.SparseTensor):
        return [value.indices, value.values, value.dense_shape]
    return [value, str(value.shape)] if isinstance(value, tf.RaggedTensor) else value
