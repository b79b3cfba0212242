"""Functions of strings: `tf.strings`.

Strings are bytes. Functions run op by op: a `tf.function` that is called with strings is not compiled, and values that are
computed from strings inside of one are constants of its trace.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _namespace, _native, _raw_ops as raw, dtypes
from ._common import as_ints, refuse
from ._ops.printing import summary
from .errors import DynamicShapeError, InvalidArgumentError
from .ragged_tensor import RaggedTensor, map_flat_values
from .string_tensor import known

__all__ = [
    "as_string",
    "bytes_split",
    "format",
    "join",
    "length",
    "lower",
    "ngrams",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_decode",
    "unicode_decode_with_offsets",
    "unicode_encode",
    "unicode_script",
    "unicode_split",
    "unicode_split_with_offsets",
    "unicode_transcode",
    "unsorted_segment_join",
    "upper",
]


def _on_values(function: Callable, input: Any) -> Any:
    """Applies a function of a string tensor to a tensor, or to the values of a ragged one."""
    if isinstance(input, RaggedTensor):
        return map_flat_values(function, input)
    return function(_native.string_tensor(input))


def _bytes(value: Any) -> bytes:
    """A scalar string as bytes."""
    return _native.string_tensor(value).item()


def _text(value: Any, name: str) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"{name} must be valid UTF-8, got {_bytes(value)!r}") from None


def lower(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Converts letters to lower case: those of ASCII, or all of UTF-8 text with `encoding="utf-8"`."""
    return _on_values(lambda x: _native.string_lower(x, _is_utf8(encoding)), input)


def upper(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Converts letters to upper case: those of ASCII, or all of UTF-8 text with `encoding="utf-8"`."""
    return _on_values(lambda x: _native.string_upper(x, _is_utf8(encoding)), input)


def _is_utf8(encoding: str) -> bool:
    if encoding not in ("", "utf-8"):
        raise ValueError(f"encoding must be '' or 'utf-8', got {encoding!r}")
    return encoding == "utf-8"


def strip(input: Any, name: str | None = None) -> Any:
    """Removes white space at both ends."""
    return _on_values(_native.string_strip, input)


def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """The length of each string, in bytes or in characters of UTF-8 text (`unit="UTF8_CHAR"`)."""
    return _on_values(lambda x: _native.string_length(x, unit), input)


def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """The part of each string that begins at `pos` (from the end, if it is negative) and has at most `len` units. If `len`
    is negative, all bytes that follow, or no character.
    """
    parts = [np.asarray(value) for value in (pos, len)]
    for name, part in zip(("pos", "len"), parts):
        if part.dtype.kind not in "iu" and part.size:
            raise TypeError(f"substr: {name} must be integers, got {part.dtype.name}")
    if parts[0].shape != parts[1].shape:
        shapes = f"{parts[0].shape} and {parts[1].shape}"
        raise InvalidArgumentError(f"substr: pos and len must have one shape, got {shapes}")
    pos, size = (part.astype(np.int64) for part in parts)
    if unit == "BYTE":
        size = np.where(size < 0, 1 << 40, size)
    return _on_values(lambda x: _native.string_substr(x, pos, size, unit), input)


def join(inputs: Any, separator: Any = "", name: str | None = None) -> Any:
    """Joins the strings of several tensors elementwise. Scalars are joined to each element."""
    inputs = list(inputs)
    if any(isinstance(value, RaggedTensor) for value in inputs):
        return map_flat_values(lambda *parts: _native.string_join(list(parts), _bytes(separator)), *inputs)
    return _native.string_join([_native.string_tensor(value) for value in inputs], _bytes(separator))


def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: Any = "", name: str | None = None
) -> Any:
    """Joins the strings along axes: all of them by default."""
    if isinstance(inputs, RaggedTensor):
        if axis is None and not keepdims:
            return reduce_join(inputs.flat_values, None, keepdims, separator)
        if axis not in (-1, inputs.ragged_rank) or keepdims or inputs.flat_values.ndim > 1:
            message = "axis of a ragged tensor must be None or that of its innermost rows, and keepdims False"
            raise ValueError(f"reduce_join: {message}, got {axis} and {keepdims}")

        def joined(rows: RaggedTensor) -> Any:
            if isinstance(rows.values, RaggedTensor):
                return rows.with_values(joined(rows.values))
            return _native.string_join_rows(rows.values, rows.row_splits, _bytes(separator))

        return joined(inputs)
    x = _native.string_tensor(inputs)
    # Of several axes, the strings along the first one come first.
    axes = list(range(x.ndim)) if axis is None else [one + x.ndim if one < 0 else one for one in as_ints(axis)][::-1]
    if any(not 0 <= one < x.ndim for one in axes):
        refuse("reduce_join", f"axis must be in [{-x.ndim}, {x.ndim}), got {axis}")
    outer = [one for one in range(x.ndim) if one not in axes]
    moved = raw.transpose(x, [*outer, *axes]) if axes != list(range(x.ndim - len(axes), x.ndim)) else x
    shape = [x.shape[one] for one in outer]
    width = int(np.prod([x.shape[one] for one in axes], dtype=np.int64))
    rows = int(np.prod(shape, dtype=np.int64))
    splits = np.arange(rows + 1, dtype=np.int64) * width
    made = _native.string_join_rows(raw.reshape(moved, [-1]) if x.ndim else x, splits, _bytes(separator))
    if keepdims:
        shape = [1 if one in axes else x.shape[one] for one in range(x.ndim)]
    return _native.string_reshape(made, shape)


def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: Any = "", name: str | None = None
) -> Any:
    """Joins the strings of each segment, in order."""
    x, ids, count = _native.string_tensor(inputs), np.asarray(segment_ids), int(num_segments)
    if tuple(ids.shape) != tuple(x.shape[: ids.ndim]):
        refuse("unsorted_segment_join", f"inputs must have the ids' shape first, {ids.shape}, got {x.shape}")
    if ((ids < 0) | (ids >= count)).any():
        refuse("unsorted_segment_join", f"segment_ids must be in [0, {count}), got {ids.tolist()}")
    shape = [count, *x.shape[ids.ndim :]]
    # Every column of what follows the ids has segments of its own.
    width = int(np.prod(shape[1:], dtype=np.int64))
    places = (ids.reshape(-1, 1) * width + np.arange(width)).reshape(-1)
    order = np.argsort(places, kind="stable")
    counts = np.bincount(places, minlength=count * width)
    splits = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = raw.gather(raw.reshape(x, [-1]), order)
    return _native.string_reshape(_native.string_join_rows(rows, splits, _bytes(separator)), shape)


def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """Splits strings at a separator, or at runs of white space. The parts of a scalar are a tensor, others are ragged."""
    separator = b"" if sep is None else _bytes(sep)
    limit = None if maxsplit < 0 else int(maxsplit)
    return _ragged(lambda x: _native.string_split(x, separator, limit), input)


def bytes_split(input: Any, name: str | None = None) -> Any:
    """Splits strings into their bytes."""
    return _ragged(_native.string_bytes_split, input)


def _ragged(function: Callable, input: Any) -> Any:
    """Applies a function that returns values and row splits first; the result has one more, ragged dimension."""
    if isinstance(input, RaggedTensor):
        inner = _ragged(function, input.values)
        return input.with_values(inner)
    x = _native.string_tensor(input)
    values, splits = function(x)[:2]
    if not x.ndim:
        return values
    return _nested(RaggedTensor.from_row_splits(values, splits), x.shape)


def _nested(rows: RaggedTensor, shape: Any) -> RaggedTensor:
    """Rows of a vector as rows of a tensor of this shape."""
    made = rows
    for axis in reversed(range(1, len(shape))):
        count = int(np.prod(shape[:axis], dtype=np.int64))
        made = RaggedTensor.from_row_lengths(made, [shape[axis]] * count)
    return made


def ngrams(
    data: Any,
    ngram_width: Any,
    separator: Any = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """The n-grams of the innermost dimension: `ngram_width` consecutive strings, joined; for each of several widths."""
    widths = [int(ngram_width)] if isinstance(ngram_width, (int, np.integer)) else [int(width) for width in ngram_width]
    pads = None
    if pad_values is not None:
        pads = (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) else tuple(pad_values)
        pads = tuple(_bytes(pad) for pad in pads)
    elif padding_width is not None:
        raise ValueError("pad_values must be given if padding_width is")
    if padding_width is not None and padding_width < 1:
        raise ValueError(f"padding_width must be >= 1, got {padding_width}")

    def grams(values: Any, splits: Any) -> Any:
        return _native.string_ngrams(
            values, splits, widths, list(_bytes(separator)), _lists(pads), padding_width, preserve_short_sequences
        )

    if isinstance(data, RaggedTensor):
        if isinstance(data.values, RaggedTensor):
            return data.with_values(
                ngrams(data.values, widths, separator, pad_values, padding_width, preserve_short_sequences)
            )
        values, splits = grams(data.values, raw.cast(data.row_splits, dtypes.int64))
        return RaggedTensor.from_row_splits(values, splits)
    x = _native.string_tensor(data)
    if not x.ndim:
        raise ValueError("data must have rank >= 1, got a scalar")
    width = x.shape[-1]
    rows = x.size // width if width else int(np.prod(x.shape[:-1], dtype=np.int64))
    values, splits = grams(raw.reshape(x, [-1]), np.arange(rows + 1, dtype=np.int64) * width)
    if x.ndim == 1:
        return values
    made = _nested(RaggedTensor.from_row_splits(values, splits), x.shape[:-1])
    return made.to_tensor()


def _lists(pads: Any) -> Any:
    return None if pads is None else tuple(list(pad) for pad in pads)


@functools.lru_cache(maxsize=256)
def _regex(pattern: str, whole: bool) -> Any:
    return _native.StringRegex(pattern, whole)


def regex_replace(input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None) -> Any:
    r"""Replaces the matches of a regular expression (RE2's syntax); `\1` in `rewrite` is the first group."""
    regex, text = _regex(_text(pattern, "pattern"), False), _bytes(rewrite)
    return _on_values(lambda x: regex.replace(x, text, replace_global), input)


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Any:
    """Whether each string matches a regular expression (RE2's syntax) as a whole."""
    regex = _regex(_text(pattern, "pattern"), True)
    return _on_values(regex.full_match, input)


def to_number(input: Any, out_type: Any = dtypes.float32, name: str | None = None) -> Any:
    """Converts strings to numbers."""
    dtype = dtypes.as_dtype(out_type)
    return _on_values(lambda x: _native.string_to_number(x, dtype), input)


#: The most characters that a number is filled to, and the most digits that it is written with.
_MOST_DIGITS = 65535


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Any:
    """Converts numbers to strings, as C's `printf` does: `%f`, or `%e` (scientific) or `%g` (shortest)."""
    if scientific and shortest:
        raise InvalidArgumentError("scientific and shortest must not both be True")
    if len(fill) > 1 or fill not in ("", " ", "0", "-", "+"):
        raise InvalidArgumentError(f"fill must be '', ' ', '0', '-' or '+', got {fill!r}")
    for what, number in (("precision", precision), ("width", width)):
        if number > _MOST_DIGITS:
            refuse("as_string", f"{what} must be <= {_MOST_DIGITS}, got {number}")

    def write(x: Any) -> Any:
        x = _native.as_tensor(x)
        has_fraction = x.dtype.is_floating or x.dtype.is_complex
        if not has_fraction and x.dtype != dtypes.string:
            if precision > -1:
                raise InvalidArgumentError(f"precision must be -1 for {x.dtype.name}, got {precision}")
            if scientific or shortest:
                raise InvalidArgumentError(f"scientific and shortest must be False for {x.dtype.name}")
        if x.is_symbolic:
            # A function that calls it runs op by op.
            refuse("as_string", "the lengths of strings depend on the values of a traced tensor", DynamicShapeError)
        digits = None if precision < 0 else precision
        if x.dtype == dtypes.string and width < 1:
            return x
        if x.dtype.is_complex or x.dtype == dtypes.string or fill in (" ", "+") or (fill == "0" and has_fraction):
            form = "e" if scientific else "g" if shortest else "f"
            return _printf(x, digits, form, max(width, 0), fill)
        least = 0 if x.dtype == dtypes.bool else max(width, 0)
        return _native.string_from_numbers(x, digits, scientific, shortest, least, ord(fill or " "))

    return map_flat_values(write, input) if isinstance(input, RaggedTensor) else write(input)


def _printf(x: Any, digits: int | None, form: str, width: int, fill: str) -> Any:
    """Elements as C's `printf` writes them, with flags that the engine's own function does not have."""
    least = str(width or "")
    if x.dtype.is_integer:
        # The flag for a sign has no meaning for types without one.
        pattern = f"%{'' if fill in ' +' and x.dtype.is_unsigned else fill}{least}d"
    else:
        pattern = f"%{fill}{least}{'' if digits is None else f'.{digits}'}{form}"

    def write(value: Any) -> Any:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, bytes):
            return value.ljust(width) if fill == "-" else value.rjust(width)
        if isinstance(value, complex):
            return f"({write(value.real)},{write(value.imag)})"
        # Zeros fill numbers, not their names.
        return (pattern if math.isfinite(value) else pattern.replace("%0", "%")) % value

    values = x.numpy().reshape(-1).tolist() if x.ndim else [x.numpy().item() if x.dtype != dtypes.string else x.numpy()]
    return _native.string_reshape(_native.string_tensor([write(value) for value in values]), list(x.shape))


def to_hash_bucket(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """The bucket of each string in [0, num_buckets), by the hash of TensorFlow's first version, MurmurHash64A."""
    return _on_values(lambda x: _native.string_murmur_buckets(x, int(num_buckets)), input)


def to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """The bucket of each string in [0, num_buckets), by FarmHash's 64-bit fingerprint: the same as TensorFlow's."""
    return _on_values(lambda x: _native.string_hash_buckets(x, int(num_buckets)), input)


def to_hash_bucket_strong(input: Any, num_buckets: int, key: Any, name: str | None = None) -> Any:
    """The bucket of each string in [0, num_buckets), by SipHash with a key of two integers."""
    key = [int(part) % (1 << 64) for part in key]
    if len(key) != 2:
        raise ValueError(f"key must have 2 integers, got {len(key)}")
    return _on_values(lambda x: _native.string_hash_buckets(x, int(num_buckets), key), input)


def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The code points of each string: a tensor for a scalar, else a ragged tensor."""
    return _ragged(_decoder(input_encoding, errors, replacement_char, replace_control_characters), input)


def unicode_script(input: Any, name: str | None = None) -> Any:
    """The script of each code point (int32), as a number of ICU's `UScriptCode`: 25 is Latin, 8 Cyrillic; -1 if it is not
    a code point. Unassigned ones are 103; the tables are newer than TensorFlow's.
    """
    if isinstance(input, RaggedTensor):
        return map_flat_values(unicode_script, input)
    return _native.unicode_script(known(_native.as_tensor(input)))


def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple:
    """The code points of each string, and the byte at which each character starts."""
    return _with_offsets(_decoder(input_encoding, errors, replacement_char, replace_control_characters), input)


def _with_offsets(found: Callable, input: Any) -> tuple:
    """The parts of each string, and the offset of each part."""
    return _ragged(found, input), _ragged(lambda x: found(x)[2:0:-1], input)


def _decoder(encoding: str, errors: str, replacement: int, control: bool) -> Callable:
    if not isinstance(encoding, str):
        raise TypeError(f"the encoding must be a string, got {encoding!r}")
    if not 0 <= replacement <= 0x10FFFF:
        raise InvalidArgumentError(f"replacement_char must be a code point in [0, 0x10FFFF], got {replacement}")
    has_bytes = encoding.upper().replace("_", "-") in _ENCODINGS_OF_BYTES
    is_ascii = has_bytes and "ASCII" in encoding.upper()

    def decode(x: Any) -> tuple:
        text = _bytes_as_utf8(x, is_ascii) if has_bytes else x
        name = "UTF-8" if has_bytes else encoding
        drops = control and errors == "ignore"
        points, splits, offsets = _native.string_decode(
            text, name, errors, replacement, replacement if control and not drops else None
        )
        if drops:
            # Control characters are ignored like invalid ones.
            codes = np.asarray(points)
            kept = codes >= 0x20
            ends = np.concatenate([[0], np.cumsum(kept)])[np.asarray(splits)]
            points, offsets = (_native.as_tensor(np.asarray(part)[kept]) for part in (points, offsets))
            splits = _native.as_tensor(ends.astype(np.int64))
        if has_bytes and not is_ascii:
            # A character is a byte.
            starts = splits.numpy()
            offsets = np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))
        return points, splits, offsets

    return decode


#: Names of the encodings whose characters are bytes.
_ENCODINGS_OF_BYTES = ("ASCII", "US-ASCII", "ISO-8859-1", "ISO8859-1", "LATIN-1", "LATIN1", "L1")


def _bytes_as_utf8(x: Any, is_ascii: bool) -> Any:
    """Strings of ISO-8859-1 as UTF-8; of ASCII with a byte that is no UTF-8 for each that is no ASCII."""
    values = [x.numpy()] if not x.ndim else x.numpy().reshape(-1).tolist()
    if is_ascii:
        made = [bytes(byte if byte < 128 else 0xFF for byte in value) for value in values]
    else:
        made = [value.decode("latin-1").encode() for value in values]
    return _native.string_reshape(_native.string_tensor(made), list(x.shape)) if made else x


def unicode_split(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Any:
    """Splits strings into their characters."""
    return _ragged(lambda x: _native.string_unicode_split(x, input_encoding, errors, replacement_char), input)


def unicode_split_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> tuple:
    """The characters of each string, and the byte at which each starts."""
    return _with_offsets(lambda x: _native.string_unicode_split(x, input_encoding, errors, replacement_char), input)


def unicode_encode(
    input: Any,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """Encodes the code points of the innermost dimension as strings."""
    if isinstance(input, RaggedTensor):
        if isinstance(input.values, RaggedTensor):
            return input.with_values(unicode_encode(input.values, output_encoding, errors, replacement_char))
        splits = raw.cast(input.row_splits, dtypes.int64)
        return _native.string_encode(known(input.values), splits, output_encoding, errors, replacement_char)
    x = _native.as_tensor(input)
    if not x.ndim:
        raise ValueError("input must have rank >= 1, got a scalar")
    width, shape = x.shape[-1], list(x.shape[:-1])
    rows = int(np.prod(shape, dtype=np.int64))
    splits = np.arange(rows + 1, dtype=np.int64) * width
    points = _native.own_tensor(np.asarray(known(x)).reshape(-1))
    made = _native.string_encode(points, splits, output_encoding, errors, replacement_char)
    return _native.string_reshape(made, shape)


def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """Converts strings from one encoding to another."""
    decode = _decoder(input_encoding, errors, replacement_char, replace_control_characters)

    def transcode(x: Any) -> Any:
        points, splits, _ = decode(x)
        made = _native.string_encode(points, splits, output_encoding, "replace", replacement_char)
        return _native.string_reshape(made, list(x.shape))

    return _on_values(transcode, input)


def format(
    template: str, inputs: Any = (), placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Any:
    """Formats tensors into a template. Of each dimension, the first and last `summarize` elements are written."""
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if not isinstance(template, str) or not isinstance(placeholder, str) or not placeholder:
        raise TypeError(f"template and placeholder must be strings, got {template!r} and {placeholder!r}")
    if template.count(placeholder) != len(inputs):
        raise ValueError(f"{len(inputs)} placeholder(s) are needed in the template, got {template.count(placeholder)}")
    parts = template.split(placeholder)
    texts = [summary(value, summarize) for value in inputs]
    return _native.string_tensor(parts[0] + "".join(text + part for text, part in zip(texts, parts[1:])))


__getattr__, __dir__ = _namespace.plain(__name__)
