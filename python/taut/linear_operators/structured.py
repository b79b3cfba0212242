"""Operators that store less than a matrix, or a matrix of known form."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import as_ints
from .._native import Tensor, as_tensor
from .base import LinearOperator, broadcast_shapes, keep, transpose


def check_floats(name: str, dtype: Any) -> Any:
    """The type; raises TypeError unless it is one of floats."""
    found = dtypes.as_dtype(dtype)
    if not found.is_floating:
        raise TypeError(f"{name}: expected floats, got {found.name}")
    return found


def check_matrix(name: str, value: Any) -> Any:
    """A tensor or variable of floats with rank >= 2."""
    kept = keep(value)
    if len(kept.shape) < 2:
        raise ValueError(f"{name}: expected rank >= 2, got shape {tuple(kept.shape)}")
    check_floats(name, kept.dtype)
    return kept


def check_vector(name: str, value: Any) -> Any:
    """A tensor or variable with rank >= 1."""
    kept = keep(value)
    if not len(kept.shape):
        raise ValueError(f"{name}: expected rank >= 1, got a scalar")
    return kept


class LinearOperatorFullMatrix(LinearOperator):
    """A dense matrix."""

    def __init__(
        self,
        matrix: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        self._kept = check_matrix("LinearOperatorFullMatrix", matrix)
        super().__init__(
            self._kept.dtype,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
            {"matrix": matrix},
        )

    @property
    def matrix(self) -> Any:
        """The matrix."""
        return self._kept

    def _matrix_shape(self) -> list[int]:
        return list(self._kept.shape)

    def _to_dense(self) -> Tensor:
        return as_tensor(self._kept)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return raw.matmul(self._kept, x, adjoint, adjoint_arg)


class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangle of a matrix; what is above the diagonal counts as zero."""

    def __init__(
        self,
        tril: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        if is_square is False:
            raise ValueError("LinearOperatorLowerTriangular: is_square must not be False, it is always square")
        self._kept = check_matrix("LinearOperatorLowerTriangular", tril)
        super().__init__(
            self._kept.dtype,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
            {"tril": tril},
        )

    @property
    def tril(self) -> Any:
        """The matrix that it was made with."""
        return self._kept

    def _matrix_shape(self) -> list[int]:
        return list(self._kept.shape)

    def _to_dense(self) -> Tensor:
        return raw.tril(self._kept)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return raw.matmul(self.to_dense(), x, adjoint, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs, matrix = transpose(rhs) if adjoint_arg else rhs, as_tensor(self._kept)
        batch = broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
        matrix, rhs = (raw.broadcast_to(one, [*batch, *one.shape[-2:]]) for one in (matrix, rhs))
        return raw.triangular_solve(matrix, rhs, True, adjoint)

    def _diag_part(self) -> Tensor:
        return raw.diag_part(self._kept)

    def _determinant(self) -> Tensor:
        return raw.prod(self.diag_part(), -1)

    def _log_abs_determinant(self) -> Tensor:
        return raw.sum(raw.log(raw.abs(self.diag_part())), -1)

    def _eigvals(self) -> Tensor:
        return raw.sort(self.diag_part())

    def _inverse(self) -> LinearOperator:
        one = raw.eye(self.shape[-1], None, self.dims[:-2], self.dtype)
        return LinearOperatorLowerTriangular(self._solve(one), is_non_singular=True, is_square=True)


class LinearOperatorDiag(LinearOperator):
    """A diagonal matrix."""

    def __init__(
        self,
        diag: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        if is_self_adjoint is False:
            raise ValueError("LinearOperatorDiag: is_self_adjoint must not be False, a real diagonal matrix is")
        if is_square is False:
            raise ValueError("LinearOperatorDiag: is_square must not be False, it is always square")
        self._kept = check_vector("LinearOperatorDiag", diag)
        check_floats("LinearOperatorDiag", self._kept.dtype)
        super().__init__(
            self._kept.dtype, None, is_non_singular, True, is_positive_definite, True, name, {"diag": diag}
        )

    @property
    def diag(self) -> Any:
        """The diagonal."""
        return self._kept

    def _matrix_shape(self) -> list[int]:
        return [*self._kept.shape, self._kept.shape[-1]]

    def _to_dense(self) -> Tensor:
        return raw.diag(self._kept)

    def _column(self) -> Tensor:
        return raw.expand_dims(as_tensor(self._kept), -1)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._column() * (transpose(x) if adjoint_arg else x)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return (transpose(rhs) if adjoint_arg else rhs) / self._column()

    def _diag_part(self) -> Tensor:
        return as_tensor(self._kept)

    def _determinant(self) -> Tensor:
        return raw.prod(self._kept, -1)

    def _log_abs_determinant(self) -> Tensor:
        return raw.sum(raw.log(raw.abs(self._kept)), -1)

    def _eigvals(self) -> Tensor:
        return raw.sort(self._kept)

    def _cond(self) -> Tensor:
        size = raw.abs(self._kept)
        return raw.max(size, -1) / raw.min(size, -1)

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorDiag(raw.sqrt(self._kept), is_non_singular=True, is_positive_definite=True)

    def _inverse(self) -> LinearOperator:
        return LinearOperatorDiag(
            1.0 / as_tensor(self._kept), is_non_singular=True, is_positive_definite=self.is_positive_definite
        )


class LinearOperatorScaledIdentity(LinearOperator):
    """A multiple of the identity matrix."""

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        if is_square is False:
            raise ValueError("LinearOperatorScaledIdentity: is_square must not be False, it is always square")
        if is_self_adjoint is False:
            raise ValueError("LinearOperatorScaledIdentity: is_self_adjoint must not be False, a real multiple is")
        self._rows = _rows("LinearOperatorScaledIdentity", num_rows)
        self._kept = keep(multiplier)
        check_floats("LinearOperatorScaledIdentity", self._kept.dtype)
        super().__init__(
            self._kept.dtype,
            None,
            is_non_singular,
            True,
            is_positive_definite,
            True,
            name,
            {"num_rows": num_rows, "multiplier": multiplier},
        )

    @property
    def multiplier(self) -> Any:
        """The factor of the identity."""
        return self._kept

    def _matrix_shape(self) -> list[int]:
        return [*self._kept.shape, self._rows, self._rows]

    def _factor(self) -> Tensor:
        return raw.reshape(as_tensor(self._kept), [*self._kept.shape, 1, 1])

    def _to_dense(self) -> Tensor:
        return self._factor() * raw.eye(self._rows, None, [], self.dtype)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._factor() * (transpose(x) if adjoint_arg else x)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return (transpose(rhs) if adjoint_arg else rhs) / self._factor()

    def _diag_part(self) -> Tensor:
        return raw.broadcast_to(self._factor()[..., 0], self.dims[:-1])

    def _trace(self) -> Tensor:
        return as_tensor(self._kept) * float(self._rows)

    def _determinant(self) -> Tensor:
        return as_tensor(self._kept) ** float(self._rows)

    def _log_abs_determinant(self) -> Tensor:
        return raw.log(raw.abs(self._kept)) * float(self._rows)

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _cond(self) -> Tensor:
        one = raw.full(self.dims[:-2], 1.0, self.dtype)
        return raw.where(raw.equal(self._kept, 0.0), raw.full([], np.nan, self.dtype), one)

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._rows, raw.sqrt(self._kept), is_non_singular=True)

    def _inverse(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(
            self._rows,
            1.0 / as_tensor(self._kept),
            is_non_singular=True,
            is_positive_definite=self.is_positive_definite,
        )


def _rows(name: str, value: Any) -> int:
    found = as_ints(value)
    if len(found) != 1 or found[0] < 0:
        raise ValueError(f"{name}: num_rows must be one integer >= 0, got {value!r}")
    return found[0]


class LinearOperatorIdentity(LinearOperator):
    """The identity matrix, which stores nothing."""

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        for hint, given in (
            ("is_non_singular", is_non_singular),
            ("is_self_adjoint", is_self_adjoint),
            ("is_positive_definite", is_positive_definite),
            ("is_square", is_square),
        ):
            if given is False:
                raise ValueError(f"LinearOperatorIdentity: {hint} must not be False")
        self._rows = _rows("LinearOperatorIdentity", num_rows)
        self._batch = [] if batch_shape is None else as_ints(batch_shape)
        dtype = dtypes.float32 if dtype is None else dtype
        super().__init__(dtype, None, True, True, True, True, name, {"num_rows": num_rows, "batch_shape": batch_shape})

    def _matrix_shape(self) -> list[int]:
        return [*self._batch, self._rows, self._rows]

    def _to_dense(self) -> Tensor:
        return raw.eye(self._rows, None, self._batch, self.dtype)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = transpose(x) if adjoint_arg else x
        return raw.broadcast_to(x, [*broadcast_shapes(x.shape[:-2], self._batch), *x.shape[-2:]])

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, adjoint_arg=adjoint_arg)

    def _diag_part(self) -> Tensor:
        return raw.full([*self._batch, self._rows], 1.0, self.dtype)

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _determinant(self) -> Tensor:
        return raw.full(self._batch, 1.0, self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return raw.full(self._batch, 0.0, self.dtype)

    def _cond(self) -> Tensor:
        return self._determinant()

    def _cholesky(self) -> LinearOperator:
        return self

    def _inverse(self) -> LinearOperator:
        return self


class LinearOperatorZeros(LinearOperator):
    """A matrix of zeros, which stores nothing."""

    def __init__(
        self,
        num_rows: Any,
        num_columns: Any = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = False,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        if is_non_singular:
            raise ValueError("LinearOperatorZeros: is_non_singular must not be True, it is singular")
        if is_positive_definite:
            raise ValueError("LinearOperatorZeros: is_positive_definite must not be True, it is not")
        self._rows = _rows("LinearOperatorZeros", num_rows)
        self._columns = self._rows if num_columns is None else _rows("LinearOperatorZeros", num_columns)
        self._batch = [] if batch_shape is None else as_ints(batch_shape)
        dtype = dtypes.float32 if dtype is None else dtype
        super().__init__(dtype, None, False, is_self_adjoint, False, is_square, name, {"num_rows": num_rows})

    def _matrix_shape(self) -> list[int]:
        return [*self._batch, self._rows, self._columns]

    def _to_dense(self) -> Tensor:
        return raw.full(self._matrix_shape(), 0.0, self.dtype)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        columns = x.shape[-2] if adjoint_arg else x.shape[-1]
        rows = self._columns if adjoint else self._rows
        return raw.full([*broadcast_shapes(x.shape[:-2], self._batch), rows, columns], 0.0, self.dtype)

    def _diag_part(self) -> Tensor:
        return raw.full([*self._batch, min(self._rows, self._columns)], 0.0, self.dtype)

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _determinant(self) -> Tensor:
        return raw.full(self._batch, 0.0, self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return raw.full(self._batch, -np.inf, self.dtype)
