"""Operators that store less than a matrix, or a matrix of known form."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import as_ints, cast_to
from .._native import Tensor, as_tensor
from .._ops.decompositions import tridiagonal_matmul
from .base import LinearOperator, broadcast_shapes, keep, transpose


def _is_real(name: str, dtype: Any) -> Any:
    found = dtypes.as_dtype(dtype)
    if not found.is_floating:
        raise TypeError(f"{name}: expected floats, got {found.name}")
    return found


def _matrix(name: str, value: Any) -> Any:
    kept = keep(value)
    if len(kept.shape) < 2:
        raise ValueError(f"{name}: expected rank >= 2, got shape {tuple(kept.shape)}")
    _is_real(name, kept.dtype)
    return kept


def _vector(name: str, value: Any) -> Any:
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
        self._kept = _matrix("LinearOperatorFullMatrix", matrix)
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
        self._kept = _matrix("LinearOperatorLowerTriangular", tril)
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
        one = raw.eye(self.shape[-1], None, self.shape.as_list()[:-2], self.dtype)
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
        self._kept = _vector("LinearOperatorDiag", diag)
        _is_real("LinearOperatorDiag", self._kept.dtype)
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
        _is_real("LinearOperatorScaledIdentity", self._kept.dtype)
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
        return raw.broadcast_to(self._factor()[..., 0], self.shape.as_list()[:-1])

    def _trace(self) -> Tensor:
        return as_tensor(self._kept) * float(self._rows)

    def _determinant(self) -> Tensor:
        return as_tensor(self._kept) ** float(self._rows)

    def _log_abs_determinant(self) -> Tensor:
        return raw.log(raw.abs(self._kept)) * float(self._rows)

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _cond(self) -> Tensor:
        one = raw.full(self.batch_shape.as_list(), 1.0, self.dtype)
        return raw.where(raw.equal(self._kept, 0.0), raw.full([], np.nan, self.dtype), one)

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._rows, raw.sqrt(self._kept), is_non_singular=True)

    def _inverse(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(
            self._rows, 1.0 / as_tensor(self._kept), is_non_singular=True, is_positive_definite=self.is_positive_definite
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


class LinearOperatorHouseholder(LinearOperator):
    """The reflection `I - 2 v v^T / |v|^2`."""

    def __init__(
        self,
        reflection_axis: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        for hint, given, wrong in (
            ("is_non_singular", is_non_singular, False),
            ("is_self_adjoint", is_self_adjoint, False),
            ("is_positive_definite", is_positive_definite, True),
            ("is_square", is_square, False),
        ):
            if given is wrong:
                raise ValueError(f"LinearOperatorHouseholder: {hint} must not be {wrong}")
        self._kept = _vector("LinearOperatorHouseholder", reflection_axis)
        _is_real("LinearOperatorHouseholder", self._kept.dtype)
        super().__init__(
            self._kept.dtype, None, True, True, False, True, name, {"reflection_axis": reflection_axis}
        )

    @property
    def reflection_axis(self) -> Any:
        """The normal of the plane of reflection."""
        return self._kept

    def _matrix_shape(self) -> list[int]:
        return [*self._kept.shape, self._kept.shape[-1]]

    def _unit(self) -> Tensor:
        axis = as_tensor(self._kept)
        return axis * raw.rsqrt(raw.sum(raw.square(axis), -1, True))

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x, unit = transpose(x) if adjoint_arg else x, raw.expand_dims(self._unit(), -1)
        return x - 2.0 * unit * raw.matmul(unit, x, True)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, adjoint_arg=adjoint_arg)

    def _diag_part(self) -> Tensor:
        return 1.0 - 2.0 * raw.square(self._unit())

    def _trace(self) -> Tensor:
        return raw.full(self.batch_shape.as_list(), float(self.shape[-1] - 2), self.dtype)

    def _determinant(self) -> Tensor:
        return raw.full(self.batch_shape.as_list(), -1.0, self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return raw.full(self.batch_shape.as_list(), 0.0, self.dtype)

    def _eigvals(self) -> Tensor:
        ones = raw.full(self.shape.as_list()[:-1], 1.0, self.dtype)
        first = raw.range(0, self.shape[-1], 1, dtypes.int64) < 1
        return raw.where(first, -ones, ones)

    def _cond(self) -> Tensor:
        return raw.full(self.batch_shape.as_list(), 1.0, self.dtype)

    def _inverse(self) -> LinearOperator:
        return self


class LinearOperatorPermutation(LinearOperator):
    """A matrix that permutes rows: row i of the product is row `perm[i]` of the operand."""

    def __init__(
        self,
        perm: Any,
        dtype: Any = dtypes.float32,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorPermutation",
    ) -> None:
        if is_non_singular is False:
            raise ValueError("LinearOperatorPermutation: is_non_singular must not be False")
        if is_square is False:
            raise ValueError("LinearOperatorPermutation: is_square must not be False")
        self._kept = _vector("LinearOperatorPermutation", perm)
        if not self._kept.dtype.is_integer:
            raise TypeError(f"LinearOperatorPermutation: expected integers, got {self._kept.dtype.name}")
        super().__init__(
            dtype, None, True, is_self_adjoint, is_positive_definite, True, name, {"perm": perm, "dtype": dtype}
        )

    @property
    def perm(self) -> Any:
        """The permutation."""
        return self._kept

    def _matrix_shape(self) -> list[int]:
        return [*self._kept.shape, self._kept.shape[-1]]

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x, order = transpose(x) if adjoint_arg else x, cast_to(as_tensor(self._kept), dtypes.int64)
        order = raw.argsort(order) if adjoint else order
        batch = broadcast_shapes(order.shape[:-1], x.shape[:-2])
        rows = raw.broadcast_to(raw.expand_dims(order, -1), [*batch, *x.shape[-2:]])
        return raw.take_along_axis(raw.broadcast_to(x, [*batch, *x.shape[-2:]]), rows, len(batch))

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _to_dense(self) -> Tensor:
        return raw.one_hot(self._kept, self.shape[-1], 1.0, 0.0, -1, self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return raw.full(self.batch_shape.as_list(), 0.0, self.dtype)

    def _cond(self) -> Tensor:
        return raw.full(self.batch_shape.as_list(), 1.0, self.dtype)

    def _inverse(self) -> LinearOperator:
        return LinearOperatorPermutation(raw.argsort(self._kept), self.dtype)


class LinearOperatorToeplitz(LinearOperator):
    """A matrix with constant diagonals, given by its first column and row."""

    def __init__(
        self,
        col: Any,
        row: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:
        if is_square is False:
            raise ValueError("LinearOperatorToeplitz: is_square must not be False")
        self._col, self._row = _vector("LinearOperatorToeplitz", col), _vector("LinearOperatorToeplitz", row)
        if self._col.shape[-1] != self._row.shape[-1]:
            raise ValueError(
                "LinearOperatorToeplitz: col and row must have one length, got "
                f"{self._col.shape[-1]} and {self._row.shape[-1]}"
            )
        super().__init__(
            _is_real("LinearOperatorToeplitz", self._row.dtype),
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
            {"col": col, "row": row},
        )

    @property
    def col(self) -> Any:
        """The first column."""
        return self._col

    @property
    def row(self) -> Any:
        """The first row; its first element is not read."""
        return self._row

    def _matrix_shape(self) -> list[int]:
        size = self._col.shape[-1]
        return [*broadcast_shapes(self._col.shape[:-1], self._row.shape[:-1]), size, size]

    def _to_dense(self) -> Tensor:
        shape = self._matrix_shape()
        size, batch = shape[-1], shape[:-2]
        col, row = (raw.broadcast_to(as_tensor(one), [*batch, size]) for one in (self._col, self._row))
        # All diagonals, from the last row of the first column to the last column of the first row.
        diagonals = raw.concat([raw.reverse(col, [-1]), row[..., 1:]], -1)
        places = np.arange(size)
        return raw.gather(diagonals, as_tensor(places[None, :] - places[:, None] + size - 1), len(batch))

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return raw.matmul(self.to_dense(), x, adjoint, adjoint_arg)

    def _diag_part(self) -> Tensor:
        return raw.broadcast_to(as_tensor(self._col)[..., :1], self.shape.as_list()[:-1])


class LinearOperatorTridiag(LinearOperator):
    """A matrix with three diagonals, stored as `diagonals_format` says: a tensor "compact", a "sequence", or a "matrix"."""

    def __init__(
        self,
        diagonals: Any,
        diagonals_format: str = "compact",
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorTridiag",
    ) -> None:
        if diagonals_format not in ("compact", "matrix", "sequence"):
            raise ValueError(
                "LinearOperatorTridiag: diagonals_format must be one of 'compact', 'matrix', 'sequence', got "
                f"{diagonals_format!r}"
            )
        if is_square is False:
            raise ValueError("LinearOperatorTridiag: is_square must not be False")
        self._form = diagonals_format
        self._kept = (
            [keep(part) for part in diagonals] if diagonals_format == "sequence" else _matrix("Tridiag", diagonals)
        )
        first = self._kept[0] if diagonals_format == "sequence" else self._kept
        super().__init__(
            _is_real("LinearOperatorTridiag", first.dtype),
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
            {"diagonals": diagonals, "diagonals_format": diagonals_format},
        )

    @property
    def diagonals(self) -> Any:
        """The diagonals that it was made with."""
        return self._kept

    @property
    def diagonals_format(self) -> str:
        """How they are stored."""
        return self._form

    def _given(self) -> Any:
        return [as_tensor(part) for part in self._kept] if self._form == "sequence" else as_tensor(self._kept)

    def _matrix_shape(self) -> list[int]:
        if self._form == "sequence":
            batch = broadcast_shapes(*(part.shape[:-1] for part in self._kept))
            return [*batch, self._kept[1].shape[-1], self._kept[1].shape[-1]]
        shape = list(self._kept.shape)
        return [*shape[:-2], shape[-1], shape[-1]]

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        if adjoint:
            return raw.matmul(self.to_dense(), x, True, adjoint_arg)
        x = transpose(x) if adjoint_arg else x
        return tridiagonal_matmul(self._given(), x, self._form)
