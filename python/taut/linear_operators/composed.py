"""Operators made of other operators."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .. import _raw_ops as raw
from .._native import Tensor, as_tensor
from .base import LinearOperator, all_of, broadcast_shapes, check_operators, keep, transpose
from .structured import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorLowerTriangular,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
)

_DIAGONAL = (LinearOperatorDiag, LinearOperatorScaledIdentity)


def product(left: LinearOperator, right: LinearOperator) -> LinearOperator:
    """The product of two operators, in the simplest form."""
    if isinstance(left, LinearOperatorIdentity) and not left.batch_shape.rank:
        return right
    if isinstance(right, LinearOperatorIdentity) and not right.batch_shape.rank:
        return left
    hints: dict[str, Any] = {
        "is_non_singular": all_of(left.is_non_singular, right.is_non_singular),
        "is_square": True if left.is_square and right.is_square else None,
    }
    if isinstance(left, LinearOperatorZeros) or isinstance(right, LinearOperatorZeros):
        batch = broadcast_shapes(left.dims[:-2], right.dims[:-2])
        square = left.shape[-2] == right.shape[-1]
        return LinearOperatorZeros(
            left.shape[-2], right.shape[-1], batch, left.dtype, is_self_adjoint=square, is_square=square
        )
    if isinstance(left, _DIAGONAL) and isinstance(right, _DIAGONAL):
        return LinearOperatorDiag(left.diag_part() * right.diag_part(), **hints)
    triangular = (*_DIAGONAL, LinearOperatorLowerTriangular)
    if isinstance(left, triangular) and isinstance(right, triangular):
        return LinearOperatorLowerTriangular(left.matmul(right.to_dense()), **hints)
    return LinearOperatorComposition([left, right], **hints)


class LinearOperatorComposition(LinearOperator):
    """The product of operators; the last is applied first."""

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        self._operators = check_operators("LinearOperatorComposition", operators)
        for one, other in itertools.pairwise(self._operators):
            if one.domain_dimension != other.range_dimension:
                raise ValueError(
                    f"LinearOperatorComposition: inner dimensions must be equal, got shapes {one.shape} and {other.shape}"
                )
        if is_non_singular is None:
            is_non_singular = all_of(*(operator.is_non_singular for operator in self._operators))
        super().__init__(
            self._operators[0].dtype,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
            {"operators": operators},
        )

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors."""
        return self._operators

    def _matrix_shape(self) -> list[int]:
        batch = broadcast_shapes(*(operator.dims[:-2] for operator in self._operators))
        return [*batch, self._operators[0].shape[-2], self._operators[-1].shape[-1]]

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        for operator in self._operators if adjoint else reversed(self._operators):
            x, adjoint_arg = operator.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg), False
        return x

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        for operator in reversed(self._operators) if adjoint else self._operators:
            rhs, adjoint_arg = operator.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg), False
        return rhs

    def _all_square(self) -> bool:
        return all(operator.is_square for operator in self._operators)

    def _determinant(self) -> Tensor:
        if not self._all_square():
            return super()._determinant()
        made: Any = 1.0
        for operator in self._operators:
            made = operator.determinant() * made
        return made

    def _log_abs_determinant(self) -> Tensor:
        if not self._all_square():
            return super()._log_abs_determinant()
        made: Any = 0.0
        for operator in self._operators:
            made = operator.log_abs_determinant() + made
        return made


class LinearOperatorAdjoint(LinearOperator):
    """The adjoint of an operator."""

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        (self._operator,) = check_operators("LinearOperatorAdjoint", [operator])
        super().__init__(
            operator.dtype,
            None,
            operator.is_non_singular if is_non_singular is None else is_non_singular,
            operator.is_self_adjoint if is_self_adjoint is None else is_self_adjoint,
            operator.is_positive_definite if is_positive_definite is None else is_positive_definite,
            is_square,
            name,
            {"operator": operator},
        )

    @property
    def operator(self) -> LinearOperator:
        """The operator before it is adjoined."""
        return self._operator

    def _matrix_shape(self) -> list[int]:
        *batch, rows, columns = self._operator.dims
        return [*batch, columns, rows]

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator.matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator.solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _to_dense(self) -> Tensor:
        return transpose(self._operator.to_dense())

    def _diag_part(self) -> Tensor:
        return self._operator.diag_part()

    def _determinant(self) -> Tensor:
        return self._operator.determinant()

    def _log_abs_determinant(self) -> Tensor:
        return self._operator.log_abs_determinant()

    def _cond(self) -> Tensor:
        return self._operator.cond()

    def _adjoint(self) -> LinearOperator:
        return self._operator


class LinearOperatorInversion(LinearOperator):
    """The inverse of an operator: its products are the operator's solutions."""

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        check_operators("LinearOperatorInversion", [operator])
        if is_non_singular is False or operator.is_non_singular is False:
            raise ValueError(
                "LinearOperatorInversion: is_non_singular must not be False, a singular matrix has no inverse"
            )
        self._operator = operator
        super().__init__(
            operator.dtype,
            None,
            True,
            operator.is_self_adjoint if is_self_adjoint is None else is_self_adjoint,
            operator.is_positive_definite if is_positive_definite is None else is_positive_definite,
            is_square,
            name,
            {"operator": operator},
        )

    @property
    def operator(self) -> LinearOperator:
        """The operator before it is inverted."""
        return self._operator

    def _matrix_shape(self) -> list[int]:
        return self._operator.dims

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator.solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator.matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Tensor:
        return 1.0 / self._operator.determinant()

    def _log_abs_determinant(self) -> Tensor:
        return -self._operator.log_abs_determinant()

    def _cond(self) -> Tensor:
        return self._operator.cond()

    def _inverse(self) -> LinearOperator:
        return self._operator


class LinearOperatorLowRankUpdate(LinearOperator):
    """`L + U D V^T`, with a diagonal `D` (ones by default) and `V = U` by default; it is solved by the Woodbury formula."""

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: bool | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        check_operators(name, [base_operator])
        self._base, self._u = base_operator, keep(u)
        self._v = self._u if v is None else keep(v)
        self._update = None if diag_update is None else keep(diag_update)
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError(
                    f"{name}: is_diag_update_positive must not be False without diag_update, which is ones"
                )
            is_diag_update_positive = True
        self._is_update_positive = is_diag_update_positive
        rows, columns = base_operator.dims[-2:]
        if self._u.shape[-2] != rows or self._v.shape[-2] != columns or self._u.shape[-1] != self._v.shape[-1]:
            raise ValueError(
                f"{name}: expected u [..., {rows}, rank] and v [..., {columns}, rank], got {tuple(self._u.shape)} and "
                f"{tuple(self._v.shape)}"
            )
        if v is None and base_operator.is_self_adjoint:
            is_self_adjoint = True if is_self_adjoint is None else is_self_adjoint
            if base_operator.is_positive_definite and is_diag_update_positive:
                is_positive_definite = True if is_positive_definite is None else is_positive_definite
        super().__init__(
            base_operator.dtype,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
            {"base_operator": base_operator, "u": u, "diag_update": diag_update, "v": v},
        )

    @property
    def base_operator(self) -> LinearOperator:
        """The operator that is updated."""
        return self._base

    @property
    def u(self) -> Any:
        """The left factor of the update."""
        return self._u

    @property
    def v(self) -> Any:
        """The right factor of the update."""
        return self._v

    @property
    def diag_update(self) -> Any:
        """The diagonal of the update; None for ones."""
        return self._update

    @property
    def is_diag_update_positive(self) -> bool | None:
        """Whether the diagonal of the update is positive, if that is known."""
        return self._is_update_positive

    @property
    def diag_operator(self) -> LinearOperator:
        """The diagonal of the update as an operator."""
        if self._update is None:
            return LinearOperatorIdentity(self._u.shape[-1], dtype=self.dtype)
        return LinearOperatorDiag(self._update, is_positive_definite=self._is_update_positive)

    def _matrix_shape(self) -> list[int]:
        update = [] if self._update is None else self._update.shape[:-1]
        batch = broadcast_shapes(self._base.dims[:-2], self._u.shape[:-2], self._v.shape[:-2], update)
        return [*batch, *self._base.dims[-2:]]

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = transpose(x) if adjoint_arg else x
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        update = self.diag_operator.matmul(raw.matmul(right, x, True))
        return self._base.matmul(x, adjoint=adjoint) + raw.matmul(left, update)

    def _capacitance(self, left: Any, right: Any, adjoint: bool) -> tuple[Tensor, Tensor]:
        """`D^-1 + V^T L^-1 U` and `L^-1 U`."""
        solved = self._base.solve(as_tensor(left), adjoint=adjoint)
        inverse = self.diag_operator.inverse().to_dense()
        return inverse + raw.matmul(right, solved, True), solved

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = transpose(rhs) if adjoint_arg else rhs
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        inner, solved = self._capacitance(left, right, adjoint)
        plain = self._base.solve(rhs, adjoint=adjoint)
        seen = raw.matmul(right, plain, True)
        batch = broadcast_shapes(inner.shape[:-2], seen.shape[:-2])
        inner, seen = (raw.broadcast_to(one, [*batch, *one.shape[-2:]]) for one in (inner, seen))
        return plain - raw.matmul(solved, raw.solve(inner, seen))

    def _determinant(self) -> Tensor:
        inner, _ = self._capacitance(self._u, self._v, False)
        return raw.det(inner) * self.diag_operator.determinant() * self._base.determinant()

    def _log_abs_determinant(self) -> Tensor:
        inner, _ = self._capacitance(self._u, self._v, False)
        made = raw.slogdet(inner)[1] + self.diag_operator.log_abs_determinant()
        return made + self._base.log_abs_determinant()

    def _diag_part(self) -> Tensor:
        update: Any = 1.0 if self._update is None else raw.expand_dims(as_tensor(self._update), -2)
        return raw.sum(as_tensor(self._u) * update * as_tensor(self._v), -1) + self._base.diag_part()
