"""Operators whose matrices follow a pattern: reflections, permutations, and few or constant diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import cast_to
from .._native import Tensor, as_tensor
from .._ops.decompositions import tridiagonal_matmul
from .base import LinearOperator, broadcast_shapes, keep, transpose
from .structured import check_floats, check_matrix, check_vector


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
        self._kept = check_vector("LinearOperatorHouseholder", reflection_axis)
        check_floats("LinearOperatorHouseholder", self._kept.dtype)
        super().__init__(self._kept.dtype, None, True, True, False, True, name, {"reflection_axis": reflection_axis})

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
        return raw.full(self.dims[:-2], float(self.shape[-1] - 2), self.dtype)

    def _determinant(self) -> Tensor:
        return raw.full(self.dims[:-2], -1.0, self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return raw.full(self.dims[:-2], 0.0, self.dtype)

    def _eigvals(self) -> Tensor:
        ones = raw.full(self.dims[:-1], 1.0, self.dtype)
        first = raw.range(0, self.shape[-1], 1, dtypes.int64) < 1
        return raw.where(first, -ones, ones)

    def _cond(self) -> Tensor:
        return raw.full(self.dims[:-2], 1.0, self.dtype)

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
        self._kept = check_vector("LinearOperatorPermutation", perm)
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
        return raw.full(self.dims[:-2], 0.0, self.dtype)

    def _cond(self) -> Tensor:
        return raw.full(self.dims[:-2], 1.0, self.dtype)

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
        self._col, self._row = check_vector("LinearOperatorToeplitz", col), check_vector("LinearOperatorToeplitz", row)
        if self._col.shape[-1] != self._row.shape[-1]:
            raise ValueError(
                "LinearOperatorToeplitz: col and row must have one length, got "
                f"{self._col.shape[-1]} and {self._row.shape[-1]}"
            )
        super().__init__(
            check_floats("LinearOperatorToeplitz", self._row.dtype),
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
        return raw.broadcast_to(as_tensor(self._col)[..., :1], self.dims[:-1])


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
        self._kept: Any = (
            [keep(part) for part in diagonals] if diagonals_format == "sequence" else check_matrix("Tridiag", diagonals)
        )
        first: Any = self._kept[0] if diagonals_format == "sequence" else self._kept
        super().__init__(
            check_floats("LinearOperatorTridiag", first.dtype),
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
