"""Calls whose results must equal TensorFlow's: strings, ragged tensors, records, tables.

`python/tools/answers.py` runs them with TensorFlow and writes `string_answers.json`; the tests compare.
"""

import numpy as np

WORDS = ["to be", "or not", "", " white  space\t", "naïve café", "a,b,,c", "x" * 40, "y" * 70, "z" * 200]
NUMBERS = [0.0, -1.5, 3.14159265, 1e-7, 123456789.0, float("inf")]


def example(tf, **features):
    """A serialized example."""
    made = {}
    for key, value in features.items():
        if isinstance(value[0], bytes):
            made[key] = tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
        elif isinstance(value[0], float):
            made[key] = tf.train.Feature(float_list=tf.train.FloatList(value=value))
        else:
            made[key] = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def sparse(tensor):
    return [tensor.indices, tensor.values, tensor.dense_shape]


MATRIX = [["a", "bc"], ["def", ""], ["g", "h"]]


def grid(tf):
    """A sparse matrix of three elements."""
    return tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [2.0, 3.0, 4.0], [2, 3])


def sequence(tf, steps):
    """A serialized sequence example: a number, and a list of integers per step."""
    features = [tf.train.Feature(int64_list=tf.train.Int64List(value=step)) for step in steps]
    return tf.train.SequenceExample(
        context=tf.train.Features(feature={"n": tf.train.Feature(int64_list=tf.train.Int64List(value=[len(steps)]))}),
        feature_lists=tf.train.FeatureLists(feature_list={"steps": tf.train.FeatureList(feature=features)}),
    ).SerializeToString()


def ids(tf):
    """Ids of embeddings: two in row 0, none in row 1, one in row 2, of which one is negative."""
    return tf.SparseTensor([[0, 0], [0, 1], [2, 0], [2, 3]], tf.constant([1, 3, 0, -1], tf.int64), [4, 5])


def weights(tf):
    return tf.SparseTensor([[0, 0], [0, 1], [2, 0], [2, 3]], [2.0, 0.5, -1.0, 3.0], [4, 5])


def table(tf):
    return tf.reshape(tf.range(10.0), [5, 2]) + 0.5


def rounded(tf, values):
    """To 1e-4: quotients may be rounded differently."""
    return tf.round(values * 1e4)


def words(tf):
    return tf.ragged.constant([["a"], ["b", "c"], []])


CASES = {
    # Tensors of strings.
    "constant": lambda tf: tf.constant(MATRIX),
    "constant_bytes": lambda tf: tf.constant(np.array([[b"a", b"bc"]])),
    "constant_empty": lambda tf: tf.constant([], tf.string),
    "constant_fills_a_shape": lambda tf: tf.constant("a", shape=[2, 2]),
    "equal": lambda tf: tf.constant(MATRIX) == [["a"], ["def"], ["h"]],
    "not_equal": lambda tf: tf.constant(MATRIX) != "a",
    "add": lambda tf: tf.constant(MATRIX) + tf.constant(["1", "2"]),
    "index_row": lambda tf: tf.constant(MATRIX)[1],
    "index_slice": lambda tf: tf.constant(MATRIX)[::-1, 1:],
    "index_new_axis": lambda tf: tf.constant(MATRIX)[..., None],
    "concat": lambda tf: tf.concat([MATRIX, tf.constant([["x"], ["y"], ["z"]])], 1),
    "stack": lambda tf: tf.stack([tf.constant("a"), tf.constant("b")]),
    "stack_last": lambda tf: tf.stack([tf.constant(["a", "b"]), tf.constant(["c", "d"])], -1),
    "unstack": lambda tf: tf.unstack(tf.constant(MATRIX), axis=1),
    "split_tensor": lambda tf: tf.split(tf.constant(MATRIX), 3),
    "reshape": lambda tf: tf.reshape(tf.constant(MATRIX), [2, -1]),
    "transpose": lambda tf: tf.transpose(tf.constant(MATRIX)),
    "gather": lambda tf: tf.gather(tf.constant(MATRIX), [[0, 2], [1, 1]]),
    "gather_axis": lambda tf: tf.gather(tf.constant(MATRIX), [1], axis=1),
    "gather_nd": lambda tf: tf.gather_nd(tf.constant(MATRIX), [[0, 1], [2, 0]]),
    "where": lambda tf: tf.where([[True], [False], [True]], tf.constant(MATRIX), "-"),
    "boolean_mask": lambda tf: tf.boolean_mask(tf.constant(MATRIX), [True, False, True]),
    "unique": lambda tf: list(tf.unique(tf.constant(["b", "a", "b", "c", "a"]))),
    "unique_with_counts": lambda tf: list(tf.unique_with_counts(tf.constant(["b", "a", "b"]))),
    "tile": lambda tf: tf.tile(tf.constant(["a", "b"]), [3]),
    "pad": lambda tf: tf.pad(tf.constant(["a", "b"]), [[1, 2]], constant_values="-"),
    "fill": lambda tf: tf.fill([2, 3], "z"),
    "expand_squeeze": lambda tf: tf.squeeze(tf.expand_dims(tf.constant(MATRIX), 1)),
    "reverse": lambda tf: tf.reverse(tf.constant(MATRIX), [0]),
    "repeat": lambda tf: tf.repeat(tf.constant(["a", "b"]), [2, 3]),
    "broadcast_to": lambda tf: tf.broadcast_to(tf.constant(["a", "b"]), [2, 2]),
    "size_rank_shape": lambda tf: [tf.size(MATRIX), tf.rank(MATRIX), tf.shape(MATRIX)],
    "tensor_scatter_nd_update": lambda tf: tf.tensor_scatter_nd_update(tf.constant(["a", "b", "c"]), [[1]], ["X"]),
    # tf.strings.
    "lower": lambda tf: tf.strings.lower(["AbC", "ÄÖ"]),
    "lower_utf8": lambda tf: tf.strings.lower(["AbC", "ÄÖ"], encoding="utf-8"),
    "upper": lambda tf: tf.strings.upper(["AbC", "äö"]),
    "upper_utf8": lambda tf: tf.strings.upper(["AbC", "äö"], encoding="utf-8"),
    "strip": lambda tf: tf.strings.strip(["  a b ", "\t\n\x0bx\r", "", "   "]),
    "length": lambda tf: tf.strings.length(WORDS),
    "length_utf8": lambda tf: tf.strings.length(WORDS, unit="UTF8_CHAR"),
    "substr": lambda tf: tf.strings.substr(["hello", "world"], 1, 3),
    "substr_negative": lambda tf: tf.strings.substr(["hello", "world"], [-3, 0], [2, 100]),
    "substr_utf8": lambda tf: tf.strings.substr("naïve café", -4, 3, unit="UTF8_CHAR"),
    "join": lambda tf: tf.strings.join([["a", "b"], "-", ["c", "d"]], separator="|"),
    "join_one": lambda tf: tf.strings.join(["abc", "def"]),
    "reduce_join": lambda tf: tf.strings.reduce_join(MATRIX),
    "reduce_join_rows": lambda tf: tf.strings.reduce_join(MATRIX, axis=1, separator=" "),
    "reduce_join_columns": lambda tf: tf.strings.reduce_join(MATRIX, axis=0, keepdims=True, separator="+"),
    "reduce_join_both": lambda tf: tf.strings.reduce_join(MATRIX, axis=[0, 1], separator="+"),
    "reduce_join_swapped": lambda tf: tf.strings.reduce_join(MATRIX, axis=[1, 0], separator="+"),
    "split_scalar": lambda tf: tf.strings.split(" a  b c "),
    "split": lambda tf: tf.strings.split(WORDS),
    "split_comma": lambda tf: tf.strings.split(WORDS, sep=","),
    "split_limit": lambda tf: tf.strings.split(["a b  c d ", "e"], maxsplit=2),
    "split_limit_comma": lambda tf: tf.strings.split(["a,b,c,d", "e"], sep=",", maxsplit=2),
    "split_long_separator": lambda tf: tf.strings.split(["1<>2<><>3", "<>"], sep="<>"),
    "split_matrix": lambda tf: tf.strings.split([["a b", "c"], ["", "d e f"]]),
    "split_ragged": lambda tf: tf.strings.split(tf.ragged.constant([["a b"], [], ["c", "d e"]])),
    "bytes_split": lambda tf: tf.strings.bytes_split(["hi", "é"]),
    "regex_replace": lambda tf: tf.strings.regex_replace(WORDS, r"[^a-z ]", ""),
    "regex_replace_groups": lambda tf: tf.strings.regex_replace(["john smith", "x"], r"(\w+) (\w+)", r"\2, \1 [\0]"),
    "regex_replace_first": lambda tf: tf.strings.regex_replace("aaa", "a", "b", replace_global=False),
    "regex_replace_classes": lambda tf: tf.strings.regex_replace("a1_b2 é[x]", r"[\d_\[\]]", "#"),
    "regex_replace_punctuation": lambda tf: tf.strings.regex_replace(
        "Hi! <br /> It's (really) ok... 100%", r'[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']', ""
    ),
    "regex_replace_words": lambda tf: tf.strings.regex_replace("the cat é scat", r"\bcat\b|é\B", "dog"),
    "regex_replace_posix": lambda tf: tf.strings.regex_replace("ab12 CD", r"[[:alpha:]]+", "<>"),
    "regex_replace_dollar": lambda tf: tf.strings.regex_replace("a$1b", r"\$", r"$1\\"),
    "regex_replace_empty_match": lambda tf: tf.strings.regex_replace("abc", "x*", "-"),
    "regex_replace_split_camel": lambda tf: tf.strings.regex_replace("fooBarBaz", "([A-Z])", r" \1"),
    "regex_full_match": lambda tf: tf.strings.regex_full_match(["abc", "abcd", "", "ABC"], "[a-c]+"),
    "regex_full_match_alternatives": lambda tf: tf.strings.regex_full_match(["a", "ab", "b"], "a|ab|b"),
    "regex_full_match_any": lambda tf: tf.strings.regex_full_match(["a\nb", "ab"], "a.*b"),
    "regex_full_match_case": lambda tf: tf.strings.regex_full_match(["ABC", "abd"], "(?i)abc"),
    "to_number": lambda tf: tf.strings.to_number(["1.5", " -2 ", "1e3", "inf", "-0", ".5", "7."]),
    "to_number_double": lambda tf: tf.strings.to_number(["0.1", "1e300"], tf.float64),
    "to_number_int": lambda tf: tf.strings.to_number(["1", "-2", " 3"], tf.int32),
    "to_number_int64": lambda tf: tf.strings.to_number([str(2**40)], tf.int64),
    "as_string_ints": lambda tf: tf.strings.as_string([1, -20, 300]),
    "as_string_floats": lambda tf: tf.strings.as_string(NUMBERS),
    "as_string_doubles": lambda tf: tf.strings.as_string(tf.constant(NUMBERS, tf.float64)),
    "as_string_precision": lambda tf: tf.strings.as_string(NUMBERS, precision=2),
    "as_string_scientific": lambda tf: tf.strings.as_string(NUMBERS, scientific=True),
    "as_string_shortest": lambda tf: tf.strings.as_string(NUMBERS, shortest=True),
    "as_string_shortest_precision": lambda tf: tf.strings.as_string(NUMBERS, shortest=True, precision=3),
    "as_string_width": lambda tf: tf.strings.as_string([1, -20], width=5, fill="0"),
    "as_string_left": lambda tf: tf.strings.as_string([1, -20], width=5, fill="-"),
    "as_string_space": lambda tf: tf.strings.as_string([1.5], width=12),
    "as_string_bool": lambda tf: tf.strings.as_string([True, False]),
    "as_string_uint8": lambda tf: tf.strings.as_string(tf.constant([200], tf.uint8)),
    "hash_fast": lambda tf: tf.strings.to_hash_bucket_fast(WORDS + [c * n for n in range(1, 140) for c in "aé"], 2**62),
    "hash_strong": lambda tf: tf.strings.to_hash_bucket_strong(WORDS, 1000003, [1, 2]),
    "hash_strong_negative": lambda tf: tf.strings.to_hash_bucket_strong(WORDS, 97, [123456789, 2**62]),
    "unicode_decode": lambda tf: tf.strings.unicode_decode(["héllo", "", "😊a"], "UTF-8"),
    "unicode_decode_scalar": lambda tf: tf.strings.unicode_decode("héllo", "UTF-8"),
    "unicode_decode_invalid": lambda tf: tf.strings.unicode_decode([b"a\xffb", b"\xc3", b"\xe2\x82"], "UTF-8"),
    "unicode_decode_ignore": lambda tf: tf.strings.unicode_decode([b"a\xffb", b"\xc3(x"], "UTF-8", errors="ignore"),
    "unicode_decode_control": lambda tf: tf.strings.unicode_decode(
        "a\x01b\x7f\t\n", "UTF-8", replace_control_characters=True
    ),
    "unicode_decode_utf16": lambda tf: tf.strings.unicode_decode(["hé😊".encode("utf-16-be")], "UTF-16-BE"),
    "unicode_decode_utf32": lambda tf: tf.strings.unicode_decode(["hé😊".encode("utf-32-be")], "UTF-32-BE"),
    "unicode_decode_offsets": lambda tf: list(tf.strings.unicode_decode_with_offsets(["héllo", "😊a"], "UTF-8")),
    "unicode_encode": lambda tf: tf.strings.unicode_encode([[104, 233], [128522, 97]], "UTF-8"),
    "unicode_encode_ragged": lambda tf: tf.strings.unicode_encode(tf.ragged.constant([[104], [], [233, 97]]), "UTF-8"),
    "unicode_encode_utf16": lambda tf: tf.strings.unicode_encode([104, 128522], "UTF-16-BE"),
    "unicode_encode_invalid": lambda tf: tf.strings.unicode_encode([0xD800, 97], "UTF-8"),
    "unicode_split": lambda tf: tf.strings.unicode_split(["héllo", "😊a"], "UTF-8"),
    "unicode_split_offsets": lambda tf: list(tf.strings.unicode_split_with_offsets(["é😊a"], "UTF-8")),
    "unicode_transcode": lambda tf: tf.strings.unicode_transcode(["hé😊"], "UTF-8", "UTF-16-BE"),
    "unicode_transcode_invalid": lambda tf: tf.strings.unicode_transcode([b"a\xff\xfeb"], "UTF-8", "UTF-8"),
    "ngrams": lambda tf: tf.strings.ngrams(["a", "b", "c", "d"], 2),
    "ngrams_widths": lambda tf: tf.strings.ngrams(["a", "b", "c"], [1, 3], separator="+"),
    "ngrams_ragged": lambda tf: tf.strings.ngrams(tf.ragged.constant([["a", "b", "c"], [], ["d"]]), 2),
    "ngrams_padded": lambda tf: tf.strings.ngrams(tf.ragged.constant([["a", "b"], ["c"]]), 3, pad_values=("L", "R")),
    "ngrams_padding_width": lambda tf: tf.strings.ngrams(["a", "b"], 4, pad_values="P", padding_width=1),
    "ngrams_short": lambda tf: tf.strings.ngrams(
        tf.ragged.constant([["a"], ["b", "c", "d"]]), 3, preserve_short_sequences=True
    ),
    "format": lambda tf: tf.strings.format("v: {}", tf.range(10)),
    "format_two": lambda tf: tf.strings.format("{} and {}", (tf.constant(1.5), tf.constant([1, 2]))),
    "format_string": lambda tf: tf.strings.format("{}", tf.constant("abc")),
    "format_strings": lambda tf: tf.strings.format("{}", tf.constant(["abc", "d"])),
    "format_cube": lambda tf: tf.strings.format("{}", tf.reshape(tf.range(8), [2, 2, 2])),
    "format_floats": lambda tf: tf.strings.format("{}", tf.constant([[1.0, 0.1], [1e-7, 12345678.0]])),
    "format_all": lambda tf: tf.strings.format("{}", tf.range(10), summarize=-1),
    "format_matrix": lambda tf: tf.strings.format("m {}", tf.reshape(tf.range(4), [2, 2])),
    "unsorted_segment_join": lambda tf: tf.strings.unsorted_segment_join(["a", "b", "c", "d"], [1, 0, 1, 2], 4, "-"),
    "cast_from_string_split": lambda tf: tf.strings.to_number(tf.strings.split(["1 2", "3"])),
    "join_ragged": lambda tf: tf.strings.join([tf.strings.split(["a b", "c"]), "!"]),
    "length_ragged": lambda tf: tf.strings.length(tf.strings.split(["aa b", "ccc"])),
    "regex_ragged": lambda tf: tf.strings.regex_replace(tf.strings.split(["aa b", "ca"]), "a", "x"),
    "compare_ragged": lambda tf: tf.strings.split(["aa b", "b"]) == "b",
    # Ragged tensors.
    "ragged": lambda tf: tf.ragged.constant([[1, 2], [], [3, 4, 5]]),
    "ragged_splits": lambda tf: tf.ragged.constant([[1, 2], [], [3]]).row_splits,
    "ragged_nested": lambda tf: tf.ragged.constant([[["a"], []], [], [["b", "c"]]]),
    "ragged_row_lengths": lambda tf: tf.ragged.constant([[1, 2], [], [3]]).row_lengths(),
    "ragged_to_tensor": lambda tf: tf.ragged.constant([[1, 2], [], [3]]).to_tensor(),
    "ragged_to_tensor_default": lambda tf: tf.ragged.constant([["a", "b"], [], ["c"]]).to_tensor("?", shape=[None, 3]),
    "ragged_to_tensor_cut": lambda tf: tf.ragged.constant([[1, 2, 3], [4]]).to_tensor(shape=[4, 2]),
    "ragged_to_tensor_nested": lambda tf: tf.ragged.constant([[[1], [2, 3]], [], [[4]]]).to_tensor(-1),
    "ragged_row": lambda tf: tf.ragged.constant([[1, 2], [], [3]])[0],
    "ragged_rows": lambda tf: tf.ragged.constant([[1, 2], [], [3]])[::2],
    "ragged_columns": lambda tf: tf.ragged.constant([[1, 2], [], [3, 4, 5]])[:, :2],
    "ragged_last_column": lambda tf: tf.ragged.constant([[1, 2], [], [3, 4, 5]])[:, -1:],
    "ragged_item": lambda tf: tf.ragged.constant([[1, 2], [], [3]])[0, 1],
    "ragged_add": lambda tf: tf.ragged.constant([[1, 2], [3]]) + 10,
    "ragged_multiply": lambda tf: tf.ragged.constant([[1, 2], [3]]) * tf.ragged.constant([[2, 3], [4]]),
    "ragged_equal": lambda tf: tf.ragged.constant([[1, 2], [3]]) == 2,
    "ragged_map_flat_values": lambda tf: tf.ragged.map_flat_values(tf.square, tf.ragged.constant([[1.0, 2.0], [3.0]])),
    "ragged_from_row_lengths": lambda tf: tf.RaggedTensor.from_row_lengths(["a", "b", "c"], [1, 0, 2]),
    "ragged_from_value_rowids": lambda tf: tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2], nrows=4),
    "ragged_from_row_starts": lambda tf: tf.RaggedTensor.from_row_starts([1, 2, 3], [0, 1, 1]),
    "ragged_from_tensor_padding": lambda tf: tf.RaggedTensor.from_tensor([[1, 0, 0], [2, 3, 0], [0, 0, 0]], padding=0),
    "ragged_from_tensor_lengths": lambda tf: tf.RaggedTensor.from_tensor([[1, 0], [2, 3]], lengths=[1, 2]),
    "ragged_value_rowids": lambda tf: tf.ragged.constant([[1, 2], [], [3]]).value_rowids(),
    "ragged_bounding_shape": lambda tf: tf.ragged.constant([[1, 2], [], [3]]).bounding_shape(),
    "ragged_merge_dims": lambda tf: tf.ragged.constant([[[1], [2, 3]], [], [[4]]]).merge_dims(1, 2),
    "ragged_merge_outer": lambda tf: tf.ragged.constant([[[1], [2, 3]], [], [[4]]]).merge_dims(0, 1),
    "ragged_range": lambda tf: tf.ragged.range([3, 0, 2]),
    "ragged_stack": lambda tf: tf.ragged.stack([[1, 2], [3]]),
    "ragged_lower": lambda tf: tf.strings.lower(tf.ragged.constant([["A"], ["B", "C"]])),
    "ragged_reduce_join": lambda tf: tf.strings.reduce_join(
        tf.ragged.constant([["a", "b"], [], ["c"]]), axis=-1, separator=" "
    ),
    # Rare arguments.
    "substr_negative_length": lambda tf: [tf.strings.substr("né!", 0, -1, unit=unit) for unit in ("BYTE", "UTF8_CHAR")],
    "split_no_times": lambda tf: tf.strings.split([" a  b ", "", " "], maxsplit=0),
    "regex_replace_nothing": lambda tf: [
        tf.strings.regex_replace(["naïve", "日本", b"\xc3a\xaf", "😀"], pattern, rewrite)
        for pattern, rewrite in (("", "-"), ("a*", "x"), ("(a)*", r"[\1]"))
    ],
    "unsorted_segment_join_columns": lambda tf: tf.strings.unsorted_segment_join(
        [["a", "b"], ["c", "d"], ["e", "f"]], [2, 0, 2], 3, separator="+"
    ),
    "unsorted_segment_join_ids": lambda tf: tf.strings.unsorted_segment_join(
        [["a", "b"], ["c", "d"]], [[1, 0], [1, 1]], 3
    ),
    "reduce_join_ragged_all": lambda tf: tf.strings.reduce_join(tf.ragged.constant([["a", "b"], [], ["c"]])),
    "as_string_flags": lambda tf: [
        tf.strings.as_string(tf.constant(values, dtype), width=width, fill=fill)
        for values, dtype in (
            ([0, -5, 70000], tf.int32),
            ([7], tf.uint8),
            ([1.5, -2.0, np.nan, -np.inf], tf.float32),
            ([True], tf.bool),
            (["é"], tf.string),
            ([1.5 - 2j], tf.complex64),
        )
        for fill in (" ", "+", "0", "-", "")
        for width in (-1, 9)
    ],
    "as_string_complex": lambda tf: [
        tf.strings.as_string(tf.constant([0.1 + 1e10j], tf.complex128), **options)
        for options in ({"precision": 2}, {"scientific": True}, {"shortest": True})
    ],
    "latin_1": lambda tf: [
        tf.strings.unicode_transcode([b"na\xefve", b"", b"\xff\x00"], "ISO-8859-1", "UTF-8"),
        *tf.strings.unicode_decode_with_offsets([b"na\xefve", b"\xe9t\xe9"], "ISO-8859-1"),
        tf.strings.unicode_decode(b"\xe9", "latin-1"),
    ],
    "ascii": lambda tf: [
        tf.strings.unicode_decode([b"na\xefve", b"", b"\xc3\xa9"], "US-ASCII", errors=errors, replacement_char=63)
        for errors in ("replace", "ignore")
    ],
    "dynamic_stitch": lambda tf: tf.dynamic_stitch([[0, 2], [1]], [["a", "c"], ["b"]]),
    "dataset_unbatch_ragged": lambda tf: list(tf.data.Dataset.from_tensors(tf.ragged.constant([["a"], []])).unbatch()),
    "decode_image_types": lambda tf: [
        tf.io.decode_image(tf.io.encode_png(tf.constant([[[3, 65535, 300]]], tf.uint16)), dtype=dtype)
        for dtype in (tf.uint8, tf.uint16, tf.int32)
    ],
    # tf.io.
    "decode_raw": lambda tf: tf.io.decode_raw([b"\x01\x02\x03\x04"], tf.uint16),
    "decode_raw_big": lambda tf: tf.io.decode_raw(b"\x01\x02\x03\x04", tf.int16, little_endian=False),
    "decode_raw_fixed": lambda tf: tf.io.decode_raw([b"\x01\x02\x03", b"\x04"], tf.uint8, fixed_length=2),
    "unicode_script": lambda tf: tf.strings.unicode_script(
        [65, 0x42F, 0x3042, 0x4E00, 0x37, 0x301, 0x1F389, 0xD800, -1, 1 << 21]
    ),
    "unicode_script_rows": lambda tf: tf.strings.unicode_script(
        tf.strings.unicode_decode(["naïve Ω", "", "日本ご"], "UTF-8")
    ),
    "ragged_fill_empty_rows": lambda tf: list(
        tf.ragged_fill_empty_rows(
            tf.constant([0, 0, 2, 5], tf.int64), [1.0, 2.0, 3.0, 4.0], tf.constant(7, tf.int64), 9.0
        )
    ),
    "ragged_fill_empty_rows_unsorted": lambda tf: list(
        tf.ragged_fill_empty_rows(
            tf.constant([2, 0, 2], tf.int64), tf.constant(["a", "b", "c"]), tf.constant(4, tf.int64), "-"
        )
    ),
    "ragged_fill_empty_rows_grad": lambda tf: list(
        tf.ragged_fill_empty_rows_grad(tf.constant([0, 1, 3, 6], tf.int64), tf.range(7.0))
    ),
    "decode_csv": lambda tf: tf.io.decode_csv(["1,2.5,a", '3,,"b,""c"""'], [[0], [1.5], ["x"]]),
    "decode_csv_scalar": lambda tf: tf.io.decode_csv("7;z", [tf.constant([], tf.int64), ""], field_delim=";"),
    "decode_csv_select": lambda tf: tf.io.decode_csv(["1,NA,3"], [[0], [-1]], na_value="NA", select_cols=[0, 1]),
    "serialize_floats": lambda tf: tf.io.serialize_tensor(tf.constant([[1.5, -2.0]])),
    "serialize_strings": lambda tf: tf.io.serialize_tensor(tf.constant(["a", "", "bcd"])),
    "serialize_bool": lambda tf: tf.io.serialize_tensor(tf.constant(True)),
    "serialize_empty": lambda tf: tf.io.serialize_tensor(tf.zeros([2, 0], tf.int64)),
    "parse_tensor": lambda tf: tf.io.parse_tensor(tf.io.serialize_tensor(tf.constant(MATRIX)), tf.string),
    "base64": lambda tf: tf.io.encode_base64([b"\xff\xfe?", b"", b"abcd"]),
    "base64_pad": lambda tf: tf.io.encode_base64([b"a"], pad=True),
    "base64_decode": lambda tf: tf.io.decode_base64(["__4_", "", "YWJjZA"]),
    "parse_single_example": lambda tf: tf.io.parse_single_example(
        example(tf, a=[1, -2], b=[0.5], c=[b"x", b"yz"]),
        {
            "a": tf.io.FixedLenFeature([2], tf.int64),
            "b": tf.io.FixedLenFeature([], tf.float32),
            "c": tf.io.FixedLenFeature([2, 1], tf.string),
            "d": tf.io.FixedLenFeature([], tf.int64, default_value=7),
        },
    ),
    "parse_example": lambda tf: tf.io.parse_example(
        [example(tf, a=[1]), example(tf, b=[b"q"]), example(tf, a=[3])],
        {
            "a": tf.io.FixedLenFeature([], tf.int64, default_value=-1),
            "b": tf.io.FixedLenFeature([1], tf.string, default_value=["none"]),
        },
    ),
    "parse_example_variable": lambda tf: sparse(
        tf.io.parse_example(
            [example(tf, a=[1, 2]), example(tf, b=[1]), example(tf, a=[3])], {"a": tf.io.VarLenFeature(tf.int64)}
        )["a"]
    ),
    "parse_example_ragged": lambda tf: tf.io.parse_example(
        [example(tf, a=[b"x", b"y"]), example(tf, b=[1])], {"a": tf.io.RaggedFeature(tf.string)}
    )["a"],
    "parse_single_variable": lambda tf: sparse(
        tf.io.parse_single_example(example(tf, a=[1.5, 2.5]), {"a": tf.io.VarLenFeature(tf.float32)})["a"]
    ),
    "parse_example_padded": lambda tf: tf.io.parse_example(
        [example(tf, a=[1, 2, 3, 4]), example(tf, b=[1]), example(tf, a=[5, 6])],
        {"a": tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True, default_value=-1)},
    ),
    "parse_single_padded": lambda tf: tf.io.parse_single_example(
        example(tf, a=[b"x", b"y"]), {"a": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True)}
    ),
    "parse_example_sparse": lambda tf: sparse(
        tf.io.parse_example(
            [example(tf, i=[3, 0], v=[1.5, 2.5]), example(tf, i=[1], v=[3.5])],
            {"a": tf.io.SparseFeature("i", "v", tf.float32, 5)},
        )["a"]
    ),
    "parse_single_sparse": lambda tf: sparse(
        tf.io.parse_single_example(
            example(tf, i=[3, 0], v=[1.5, 2.5]), {"a": tf.io.SparseFeature("i", "v", tf.float32, 5)}
        )["a"]
    ),
    "parse_sequence_padded": lambda tf: tf.io.parse_sequence_example(
        [sequence(tf, [[1, 2], [3, 4]]), sequence(tf, [[5, 6]]), sequence(tf, [])],
        {"n": tf.io.FixedLenFeature([], tf.int64)},
        {"steps": tf.io.FixedLenSequenceFeature([2], tf.int64)},
    ),
    "parse_sequence_ragged": lambda tf: tf.io.parse_sequence_example(
        [sequence(tf, [[1, 2], [], [3]]), sequence(tf, [[4]])],
        sequence_features={"steps": tf.io.RaggedFeature(tf.int64)},
    )[1],
    "parse_sequence_variable": lambda tf: sparse(
        tf.io.parse_sequence_example(
            [sequence(tf, [[1, 2], [], [3]]), sequence(tf, [[4]])],
            sequence_features={"steps": tf.io.VarLenFeature(tf.int64)},
        )[1]["steps"]
    ),
    "parse_single_sequence": lambda tf: tf.io.parse_single_sequence_example(
        sequence(tf, [[1], [3]]),
        {"n": tf.io.FixedLenFeature([], tf.int64), "text": tf.io.FixedLenFeature([], tf.string, "none")},
        {"steps": tf.io.FixedLenSequenceFeature([], tf.int64)},
    ),
    "sparse_add": lambda tf: sparse(tf.sparse.add(grid(tf), tf.sparse.transpose(tf.sparse.reshape(grid(tf), [3, 2])))),
    "sparse_add_threshold": lambda tf: sparse(
        tf.sparse.add(grid(tf), tf.SparseTensor([[0, 1], [1, 0]], [-2.0, 0.5], [2, 3]), 0.1)
    ),
    "sparse_add_dense": lambda tf: tf.sparse.add(grid(tf), tf.ones([2, 3])),
    "sparse_concat": lambda tf: sparse(tf.sparse.concat(1, [grid(tf), grid(tf)])),
    "sparse_concat_expanded": lambda tf: sparse(
        tf.sparse.concat(0, [grid(tf), tf.SparseTensor([[0, 4]], [9.0], [1, 5])], expand_nonconcat_dims=True)
    ),
    "sparse_fill": lambda tf: [
        sparse(part) if hasattr(part, "indices") else part
        for part in tf.sparse.fill_empty_rows(tf.SparseTensor([[1, 2]], [5.0], [3, 4]), -1.0)
    ],
    "sparse_maximum": lambda tf: sparse(
        tf.sparse.maximum(grid(tf), tf.SparseTensor([[0, 0], [1, 2]], [-1.0, 9.0], [2, 3]))
    ),
    "sparse_minimum": lambda tf: sparse(
        tf.sparse.minimum(grid(tf), tf.SparseTensor([[0, 0], [1, 2]], [-1.0, 9.0], [2, 3]))
    ),
    "sparse_reduce_sum": lambda tf: [
        tf.sparse.reduce_sum(grid(tf)),
        tf.sparse.reduce_sum(grid(tf), 0),
        tf.sparse.reduce_sum(grid(tf), -1, keepdims=True),
    ],
    "sparse_reduce_max": lambda tf: [tf.sparse.reduce_max(grid(tf), 1), tf.sparse.reduce_max(grid(tf), 0)],
    "sparse_reorder": lambda tf: sparse(
        tf.sparse.reorder(tf.SparseTensor([[1, 0], [0, 2], [0, 1]], [1, 2, 3], [2, 3]))
    ),
    "sparse_reset_shape": lambda tf: [
        sparse(tf.sparse.reset_shape(grid(tf), [4, 5])),
        sparse(tf.sparse.reset_shape(tf.SparseTensor([[0, 1]], [1.0], [7, 8]))),
    ],
    "sparse_reshape": lambda tf: sparse(tf.sparse.reshape(grid(tf), [3, -1])),
    "sparse_retain": lambda tf: sparse(tf.sparse.retain(grid(tf), [True, False, True])),
    "sparse_slice": lambda tf: sparse(tf.sparse.slice(grid(tf), [0, 1], [2, 9])),
    "sparse_softmax": lambda tf: sparse(
        tf.sparse.softmax(tf.SparseTensor([[0, 0], [0, 2], [1, 1]], [1.0, 1.0, 5.0], [2, 3]))
    ),
    "sparse_matmul": lambda tf: [
        tf.sparse.sparse_dense_matmul(grid(tf), tf.reshape(tf.range(6.0), [3, 2])),
        tf.sparse.sparse_dense_matmul(grid(tf), tf.reshape(tf.range(4.0), [2, 2]), adjoint_a=True),
        tf.sparse.sparse_dense_matmul(grid(tf), tf.reshape(tf.range(6.0), [2, 3]), adjoint_b=True),
        tf.sparse.sparse_dense_matmul(tf.reshape(tf.range(4.0), [2, 2]), grid(tf)),
    ],
    "sparse_split": lambda tf: [sparse(part) for part in tf.sparse.split(grid(tf), 2, 1)],
    "sparse_indicator": lambda tf: tf.sparse.to_indicator(
        tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [2, 0, 3], [2, 2]), 5
    ),
    "sparse_transpose": lambda tf: sparse(tf.sparse.transpose(grid(tf))),
    "sparse_to_dense": lambda tf: tf.sparse.to_dense(tf.SparseTensor([[0, 1], [1, 0]], ["a", "b"], [2, 3]), "-"),
    "example_text": lambda tf: str(tf.train.Example.FromString(example(tf, s=[b"a\x01\"'\n"]))),
    # Crosses, sets, embeddings, distances, sounds.
    "sparse_cross": lambda tf: [
        sparse(tf.sparse.cross([tf.constant([["a"], ["b"]]), tf.constant([[1, 2], [3, 4]], tf.int64)])),
        sparse(tf.sparse.cross([tf.constant([["d"], ["e"]]), tf.sparse.from_dense([["a", ""], ["b", "c"]])])),
        sparse(
            tf.sparse.cross([tf.sparse.from_dense([["a", ""], ["b", "c"]]), tf.constant([["d"], ["e"]])], separator="-")
        ),
    ],
    "sparse_cross_hashed": lambda tf: sparse(
        tf.sparse.cross_hashed(
            [tf.constant([["a"], ["b"]]), tf.sparse.from_dense([["x", ""], ["y", "z"]])], num_buckets=97
        )
    ),
    "ragged_cross": lambda tf: [
        tf.ragged.cross([words(tf), tf.ragged.constant([[1, 2], [3], [4]])]),
        tf.ragged.cross([words(tf), tf.constant([["p"], ["q"], ["r"]])]),
    ],
    "ragged_cross_hashed": lambda tf: [
        tf.ragged.cross_hashed([words(tf), tf.ragged.constant([["d"], ["e"], ["f"]])], num_buckets=100),
        tf.ragged.cross_hashed([words(tf), tf.ragged.constant([["d"], ["e"], ["f"]])], num_buckets=100, hash_key=7),
        tf.ragged.cross_hashed([words(tf), tf.ragged.constant([[1], [2], [3]])]),
        sparse(tf.sparse.cross_hashed([tf.constant([["a"], ["b"]]), tf.constant([["c"], ["d"]])])),
    ],
    "ragged_segments": lambda tf: [
        tf.ragged.row_splits_to_segment_ids([0, 2, 2, 5]),
        tf.ragged.row_splits_to_segment_ids(tf.constant([0, 1, 3]), out_type=tf.int64),
        tf.ragged.row_splits_to_segment_ids(tf.constant([0, 1, 3])),
        tf.ragged.segment_ids_to_row_splits([0, 0, 2, 2]),
        tf.ragged.segment_ids_to_row_splits(tf.constant([0, 0, 2]), num_segments=5),
        tf.ragged.segment_ids_to_row_splits(tf.constant([], tf.int64)),
    ],
    "ragged_stack_partitions": lambda tf: [
        tf.ragged.stack_dynamic_partitions(["a", "b", "c", "d", "e"], [3, 0, 2, 2, 3], 5),
        tf.ragged.stack_dynamic_partitions(tf.reshape(tf.range(6), [3, 2]), [1, 0, 1], 2),
        tf.ragged.stack_dynamic_partitions(words(tf), [1, 0, 1], 3),
    ],
    "sparse_bincount": lambda tf: [
        sparse(tf.sparse.bincount([[1, 2, 2], [5, 1, 1]], axis=-1)),
        sparse(tf.sparse.bincount([1, 2, 2, 7])),
        sparse(tf.sparse.bincount([1, 2, 2, 7], minlength=10, maxlength=5)),
        sparse(tf.sparse.bincount([1, 2, 2, 7], minlength=10)),
        sparse(tf.sparse.bincount([1, 2, 2], weights=[0.5, 1.0, 2.0])),
        sparse(tf.sparse.bincount([1, 2, 2], binary_output=True)),
        sparse(tf.sparse.bincount(tf.sparse.from_dense([[1, 2, 2], [0, 1, 1]]), axis=-1)),
        sparse(tf.sparse.bincount(tf.ragged.constant([[1, 2], [], [3, 3, 3]]), axis=-1)),
    ],
    "sparse_mask": lambda tf: [
        getattr(tf.sparse.mask(tf.IndexedSlices(table(tf), tf.constant([5, 1, 7, 3, 9])), [1, 9]), name)
        for name in ("values", "indices")
    ],
    "sparse_segments": lambda tf: [
        rounded(tf, reduce(table(tf), [0, 4, 1, 2], [0, 0, 2, 2], num_segments=size))
        for reduce in (tf.sparse.segment_sum, tf.sparse.segment_mean, tf.sparse.segment_sqrt_n)
        for size in (None, 4)
    ],
    "sets": lambda tf: [
        sparse(tf.sets.union(tf.constant([[1, 2, 2], [3, 1, 1]]), tf.constant([[2, 5], [9, 9]]))),
        sparse(tf.sets.intersection(tf.constant([["a", "b"], ["c", "d"]]), tf.constant([["b", "x"], ["y", "z"]]))),
        sparse(tf.sets.difference(tf.constant([[1, 2], [3, 4]]), tf.sparse.from_dense([[2, 0], [3, 7]]))),
        sparse(
            tf.sets.difference(tf.constant([[1, 2], [3, 4]]), tf.sparse.from_dense([[2, 0], [3, 7]]), aminusb=False)
        ),
        tf.sets.size(tf.sparse.from_dense([[1, 2, 2], [3, 0, 3]])),
    ],
    "embedding_lookup_sparse": lambda tf: [
        rounded(tf, tf.nn.embedding_lookup_sparse(table(tf), tf.sparse.slice(ids(tf), [0, 0], [4, 2]), given, combiner))
        for combiner in ("sum", "mean", "sqrtn")
        for given in (None, tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [2.0, 0.5, 4.0], [4, 5]))
    ],
    "embedding_lookup_sparse_norm": lambda tf: rounded(
        tf,
        tf.nn.embedding_lookup_sparse(table(tf), tf.sparse.slice(ids(tf), [0, 0], [4, 2]), None, "sum", max_norm=2.0),
    ),
    "safe_embedding_lookup_sparse": lambda tf: [
        rounded(tf, tf.nn.safe_embedding_lookup_sparse(table(tf), ids(tf), given, combiner, default_id=default))
        for combiner in ("sum", "mean", "sqrtn")
        for given in (None, weights(tf))
        for default in (None, 2)
    ],
    "edit_distance": lambda tf: [
        tf.edit_distance(
            tf.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0]], ["a", "b", "c", "x"], [3, 2]),
            tf.SparseTensor([[0, 0], [0, 1], [0, 2], [1, 0]], ["b", "a", "b", "c"], [3, 3]),
            normalize=normalize,
        )
        for normalize in (True, False)
    ],
    "fingerprint": lambda tf: [
        tf.fingerprint([[1, 2], [3, 4]]),
        tf.fingerprint(["a", "b" * 50]),
        tf.fingerprint([["a", "b"], ["c", "d"]]),
        tf.fingerprint([1.5, 2.5]),
    ],
    "to_hash_bucket": lambda tf: tf.strings.to_hash_bucket(WORDS, 1000000007),
    "serialize_sparse": lambda tf: [
        tf.io.serialize_sparse(grid(tf)),
        tf.io.serialize_many_sparse(grid(tf)),
        sparse(tf.io.deserialize_many_sparse(tf.io.serialize_many_sparse(grid(tf)), tf.float32, rank=2)),
        sparse(
            tf.io.deserialize_many_sparse(
                tf.stack([tf.io.serialize_sparse(tf.sparse.from_dense(row)) for row in (["a", ""], ["", "b", "c"])]),
                tf.string,
            )
        ),
    ],
    "decode_json_example": lambda tf: tf.io.parse_example(
        tf.io.decode_json_example(
            [
                '{"features": {"feature": {"i": {"int64List": {"value": ["1", 2]}}, "s": {"bytesList": {"value": ["YWI="]}}}}}',
                '{"features": {"feature": {"i": {"int64_list": {"value": [3, 4]}}, "f": {"floatList": {"value": [1.5]}}}}}',
            ]
        ),
        {
            "i": tf.io.FixedLenFeature([2], tf.int64),
            "s": tf.io.FixedLenFeature([], tf.string, "none"),
            "f": tf.io.FixedLenFeature([], tf.float32, 0.0),
        },
    ),
    "encode_wav": lambda tf: tf.audio.encode_wav(
        [[0.5, -0.5], [1.0, -1.0], [2.0, 0.1], [0.5 / 32768, -0.5 / 32768], [1.5 / 32768, 0.3]], 8000
    ),
    "decode_wav": lambda tf: [
        list(tf.audio.decode_wav(tf.audio.encode_wav([[0.5, -0.25], [0.125, 1.0], [0.3, 0.2]], 16000), **options))
        for options in (
            {},
            {"desired_samples": 2},
            {"desired_channels": 1},
            {"desired_channels": 2, "desired_samples": 5},
        )
    ],
    # Datasets.
    "dataset_batch": lambda tf: list(tf.data.Dataset.from_tensor_slices((["a", "bb", "c"], [1, 2, 3])).batch(2)),
    "dataset_padded": lambda tf: list(
        tf.data.Dataset.from_tensor_slices(["a b c", "", "d"]).map(tf.strings.split).padded_batch(2, padding_values="-")
    ),
    "dataset_dict": lambda tf: list(tf.data.Dataset.from_tensor_slices({"x": ["a", "b"], "y": [1.0, 2.0]}).batch(2)),
    "dataset_zip_repeat": lambda tf: list(
        tf.data.Dataset.zip(tf.data.Dataset.from_tensor_slices(["a", "b"]), tf.data.Dataset.range(5)).repeat(2)
    ),
    "dataset_filter": lambda tf: list(
        tf.data.Dataset.from_tensor_slices(["a", "bb", "ccc"]).filter(lambda s: tf.strings.length(s) > 1)
    ),
    "dataset_window": lambda tf: [
        list(window) for window in tf.data.Dataset.from_tensor_slices(["a", "b", "c"]).window(2)
    ],
    "dataset_unbatch": lambda tf: list(tf.data.Dataset.from_tensors(tf.constant(MATRIX)).unbatch()),
    "dataset_generator": lambda tf: list(
        tf.data.Dataset.from_generator(lambda: iter(["a", "bc"]), output_signature=tf.TensorSpec([], tf.string))
    ),
}
