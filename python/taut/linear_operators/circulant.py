"""Circulant operators: convolutions with periodic boundaries, which Fourier transforms make diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import cast_to
from .._native import Tensor, as_tensor
from .._ops import checks, fourier
from .base import LinearOperator, keep, size_of, transpose


class _Circulant(LinearOperator):
    """A block circulant matrix of some depth: `A x = IDFT[spectrum * DFT[x]]`, of vectors that are arrays of this depth.

    The eigenvalues are the elements of the spectrum. Its last axes are those of the transform, those before it a batch.
    """

    _accepts_complex = True
    _depth: int
    _transforms: tuple[Any, Any]

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        own = type(self).__name__
        self._kept = keep(spectrum)
        if not (self._kept.dtype.is_floating or self._kept.dtype.is_complex):
            raise TypeError(f"{own}: expected a spectrum of floats or complex numbers, got {self._kept.dtype.name}")
        if len(self._kept.shape) < self._depth:
            raise ValueError(f"{own}: spectrum must have rank >= {self._depth}, got shape {tuple(self._kept.shape)}")
        if not self._kept.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError(f"{own}: is_self_adjoint must not be False: a real spectrum makes it self-adjoint")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError(f"{own}: is_square must not be False")
        self._own_hints: dict[str, Any] = {
            "is_non_singular": is_non_singular,
            "is_self_adjoint": is_self_adjoint,
            "is_positive_definite": is_positive_definite,
        }
        given = {"spectrum": spectrum, "input_output_dtype": input_output_dtype, **self._own_hints}
        super().__init__(
            input_output_dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name or own, given
        )

    @property
    def spectrum(self) -> Any:
        """The eigenvalues."""
        return self._kept

    @property
    def block_depth(self) -> int:
        """The number of axes of the transform."""
        return self._depth

    @property
    def block_shape(self) -> Any:
        """The sizes of the axes of the transform."""
        return self._kept.shape[-self._depth :]

    def block_shape_tensor(self) -> Tensor:
        """The sizes of the axes of the transform, as a tensor."""
        return _native.own_tensor(np.array(tuple(self.block_shape), np.int32))

    def _matrix_shape(self) -> list[int]:
        size = size_of(self.block_shape)
        return [*self._kept.shape[: -self._depth], size, size]

    def _complex(self) -> Tensor:
        spectrum = as_tensor(self._kept)
        if spectrum.dtype.is_complex:
            return spectrum
        return raw.cast(spectrum, dtypes.complex128 if spectrum.dtype == dtypes.float64 else dtypes.complex64)

    def _out(self, x: Tensor) -> Tensor:
        """A result in the operator's type: that of real numbers drops imaginary parts."""
        if x.dtype.is_complex and not self.dtype.is_complex:
            x = raw.real(x)
        return cast_to(x, self.dtype)

    def _times(self, spectrum: Tensor, x: Tensor, adjoint_arg: bool) -> Tensor:
        if adjoint_arg:
            x = transpose(raw.conj(x) if x.dtype.is_complex else x)
        # The columns of a matrix become arrays of the transform's shape, along the last axes.
        columns = cast_to(transpose(x), spectrum.dtype)
        blocks = raw.reshape(columns, [*columns.shape[:-1], *self.block_shape])
        forward, backward = self._transforms
        batch = spectrum.shape[: -self._depth]
        spectrum = raw.reshape(spectrum, [*batch, 1, *self.block_shape])
        made = backward(spectrum * forward(blocks))
        flat = raw.reshape(made, [*made.shape[: -self._depth], self.dims[-1]])
        return self._out(transpose(flat))

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        spectrum = self._complex()
        return self._times(raw.conj(spectrum) if adjoint else spectrum, x, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        spectrum = self._complex()
        return self._times(1.0 / (raw.conj(spectrum) if adjoint else spectrum), rhs, adjoint_arg)

    def _flat(self) -> Tensor:
        spectrum = as_tensor(self._kept)
        return raw.reshape(spectrum, [*spectrum.shape[: -self._depth], self.dims[-1]])

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """The kernel of the convolution: the inverse transform of the spectrum, in the operator's type."""
        return self._out(self._transforms[1](self._complex()))

    def _trace(self) -> Tensor:
        return self._out(raw.sum(self._flat(), -1))

    def _diag_part(self) -> Tensor:
        mean = raw.expand_dims(raw.mean(self._flat(), -1), -1)
        return self._out(raw.broadcast_to(mean, self.dims[:-1]))

    def _determinant(self) -> Tensor:
        return self._out(raw.prod(self._flat(), -1))

    def _log_abs_determinant(self) -> Tensor:
        return self._out(raw.sum(raw.log(raw.abs(self._flat())), -1))

    def _eigvals(self) -> Tensor:
        return self._flat()

    def _cond(self) -> Tensor:
        sizes = raw.abs(self._flat())
        # A real number, also of a complex operator.
        return cast_to(raw.max(sizes, -1) / raw.min(sizes, -1), self.dtype.real_dtype)

    def _like(self, spectrum: Tensor) -> LinearOperator:
        return type(self)(spectrum, input_output_dtype=self.dtype, **self._own_hints)

    def _inverse(self) -> LinearOperator:
        return self._like(1.0 / as_tensor(self._kept))

    def _adjoint(self) -> LinearOperator:
        spectrum = as_tensor(self._kept)
        return self._like(raw.conj(spectrum) if spectrum.dtype.is_complex else spectrum)

    # Properties that the spectrum shows.

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> None:
        """Raises InvalidArgumentError unless the spectrum is Hermitian, so that the matrix is real."""
        kernel = self._transforms[1](self._complex())
        eps = float(np.finfo(np.float64 if kernel.dtype == dtypes.complex128 else np.float32).eps)
        limit = eps * self.dims[-1] * float(raw.max(raw.abs(self._flat())))
        checks.assert_less_equal(raw.abs(raw.imag(kernel)), limit, message="the spectrum must be Hermitian")

    def assert_non_singular(self, name: str | None = None) -> None:
        """Raises InvalidArgumentError if an eigenvalue is zero, up to rounding."""
        sizes = raw.abs(self._flat())
        eps = float(np.finfo(np.float64 if sizes.dtype == dtypes.float64 else np.float32).eps)
        limit = eps * self.dims[-1] * float(raw.max(sizes))
        checks.assert_greater(sizes, limit, message="Singular operator: an eigenvalue is zero, up to rounding")

    def assert_positive_definite(self, name: str | None = None) -> None:
        """Raises InvalidArgumentError unless the real parts of all eigenvalues are positive."""
        spectrum = self._flat()
        real = raw.real(spectrum) if spectrum.dtype.is_complex else spectrum
        checks.assert_positive(real, message="Not positive definite: an eigenvalue has a real part <= 0")

    def assert_self_adjoint(self, name: str | None = None) -> None:
        """Raises InvalidArgumentError unless all eigenvalues are real."""
        spectrum = self._flat()
        if spectrum.dtype.is_complex:
            text = "Not self-adjoint: the spectrum contains non-zero imaginary part"
            checks.assert_equal(raw.imag(spectrum), 0.0, message=text)


class LinearOperatorCirculant(_Circulant):
    """A circulant matrix: column `i` is the first column, rotated by `i`. The spectrum is the transform of the first column."""

    _depth = 1
    _transforms = (fourier.fft, fourier.ifft)


class LinearOperatorCirculant2D(_Circulant):
    """A block circulant matrix: a two-dimensional convolution with periodic boundaries."""

    _depth = 2
    _transforms = (fourier.fft2d, fourier.ifft2d)


class LinearOperatorCirculant3D(_Circulant):
    """A nested block circulant matrix: a three-dimensional convolution with periodic boundaries."""

    _depth = 3
    _transforms = (fourier.fft3d, fourier.ifft3d)
