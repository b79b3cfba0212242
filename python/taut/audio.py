"""Sound files: `tf.audio`. WAV files of 16-bit PCM samples."""

from __future__ import annotations

import collections
import struct
from typing import Any

import numpy as np

from . import _namespace, _native, dtypes
from .errors import InvalidArgumentError
from .io import _origins

__all__ = ["decode_wav", "encode_wav"]

DecodeWav = collections.namedtuple("DecodeWav", "audio sample_rate")

_PCM = 1


def decode_wav(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> DecodeWav:
    """The samples of a WAV file, float32 [samples, channels] in [-1, 1), and their number per second.

    With fewer channels than `desired_channels`, the first ones are repeated; samples are cut or padded with zeros to
    `desired_samples`.
    """
    try:
        samples, rate = _samples(_native.string_tensor(contents).item())
    except InvalidArgumentError as error:
        raise _origins.named(contents, error) from None
    if desired_channels != -1:
        if desired_channels < 1:
            raise InvalidArgumentError(f"desired_channels must be >= 1 or -1, got {desired_channels}")
        samples = samples[:, np.arange(desired_channels) % samples.shape[1]]
    if desired_samples != -1:
        if desired_samples < 0:
            raise InvalidArgumentError(f"desired_samples must be >= 0 or -1, got {desired_samples}")
        samples = samples[:desired_samples]
        samples = np.pad(samples, [(0, desired_samples - len(samples)), (0, 0)])
    scaled = samples.astype(np.float32) / np.float32(32768)
    return DecodeWav(_native.own_tensor(scaled), _native.own_tensor(rate, dtypes.int32))


def _samples(data: bytes) -> tuple[np.ndarray, int]:
    """The 16-bit samples of a file, `[samples, channels]`, and their number per second."""
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise InvalidArgumentError(f"contents must be a WAV file, which begins with RIFF and WAVE, got {data[:12]!r}")
    channels, rate, at = 0, 0, 12
    while at + 8 <= len(data):
        kind, size = data[at : at + 4], struct.unpack_from("<I", data, at + 4)[0]
        part = data[at + 8 : at + 8 + size]
        if kind == b"fmt ":
            if len(part) < 16:
                raise InvalidArgumentError(f"the format of a WAV file must have at least 16 bytes, got {len(part)}")
            code, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", part)
            if code != _PCM or bits != 16 or not channels:
                text = f"got format {code} of {bits} bits in {channels} channels: convert the file"
                raise InvalidArgumentError(f"expected samples of 16-bit PCM, {text}")
        elif kind == b"data":
            if not channels:
                raise InvalidArgumentError("the format of a WAV file must come before its data")
            if len(part) < size:
                raise InvalidArgumentError(f"the file ends early: {size} bytes of samples, got {len(part)}")
            frames = len(part) // (2 * channels)
            return np.frombuffer(part, "<i2", frames * channels).reshape(frames, channels), rate
        # Parts begin at even positions.
        at += 8 + size + size % 2
    raise InvalidArgumentError("the WAV file has no samples: its data part is missing")


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> _native.Tensor:
    """A WAV file of 16-bit PCM from samples `[samples, channels]`; they are clipped to [-1, 1)."""
    samples, rate = np.asarray(_native.as_tensor(audio, dtypes.float32)), int(sample_rate)
    if samples.ndim != 2 or not samples.shape[1]:
        raise InvalidArgumentError(f"audio must have shape [samples, channels], got {list(samples.shape)}")
    if not 0 < rate < 1 << 32:
        raise InvalidArgumentError(f"sample_rate must be in [1, 4294967295], got {rate}")
    scaled = samples * np.float32(32768)
    # Halves are rounded away from zero.
    rounded = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled)
    body = np.clip(np.nan_to_num(rounded), -32768, 32767).astype("<i2").tobytes()
    channels = samples.shape[1]
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, _PCM, channels, rate, 2 * channels * rate, 2 * channels, 16)
    head = struct.pack("<4sI4s", b"RIFF", 36 + len(body), b"WAVE")
    return _native.string_tensor(head + form + struct.pack("<4sI", b"data", len(body)) + body)


__getattr__, __dir__ = _namespace.plain(__name__)
