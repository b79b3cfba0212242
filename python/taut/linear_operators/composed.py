"""Operators made of other operators."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .. import _raw_ops as raw
from .._native import Tensor, as_tensor
from .base import LinearOperator, all_of, broadcast_shapes, keep, size_of, transpose
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
    hints = {
        "is_non_singular": all_of(left.is_non_singular, right.is_non_singular),
        "is_square": True if left.is_square and right.is_square else None,
    }
    if isinstance(left, LinearOperatorZeros) or isinstance(right, LinearOperatorZeros):
        batch = broadcast_shapes(left.batch_shape.as_list(), right.batch_shape.as_list())
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


def _check_operators(name: str, operators: Sequence[LinearOperator]) -> list[LinearOperator]:
    operators = list(operators)
    if not operators:
        raise ValueError(f"{name}: expected at least one operator, got none")
    found = {operator.dtype for operator in operators}
    if len(found) > 1:
        names = ", ".join(sorted(dtype.name for dtype in found))
        raise TypeError(f"{name}: operators must have one element type, got {names}")
    return operators


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
        self._operators = _check_operators("LinearOperatorComposition", operators)
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
        batch = broadcast_shapes(*(operator.batch_shape.as_list() for operator in self._operators))
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
        self._operator = operator
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
        *batch, rows, columns = self._operator.shape.as_list()
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
        if is_non_singular is False or operator.is_non_singular is False:
            raise ValueError("LinearOperatorInversion: is_non_singular must not be False, a singular matrix has no inverse")
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
        return self._operator.shape.as_list()

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


class _Blocks(LinearOperator):
    """Operators of square blocks: what diagonal and lower triangular block matrices share."""

    def _diagonal_blocks(self) -> list[LinearOperator]:
        raise NotImplementedError

    def _split(self, x: Tensor, sizes: list[int]) -> list[Tensor]:
        bounds = [0, *itertools.accumulate(sizes)]
        return [x[..., low:high, :] for low, high in itertools.pairwise(bounds)]

    @staticmethod
    def _join(parts: list[Tensor], axis: int = -2) -> Tensor:
        """Concatenates parts, after their batch axes are broadcast to one shape."""
        batch = broadcast_shapes(*(part.shape[:axis] for part in parts))
        return raw.concat([raw.broadcast_to(part, [*batch, *part.shape[axis:]]) for part in parts], axis)

    def _diag_part(self) -> Tensor:
        return self._join([block.diag_part() for block in self._diagonal_blocks()], -1)

    def _determinant(self) -> Tensor:
        made: Any = 1.0
        for block in self._diagonal_blocks():
            made = block.determinant() * made
        return made

    def _log_abs_determinant(self) -> Tensor:
        made: Any = 0.0
        for block in self._diagonal_blocks():
            made = block.log_abs_determinant() + made
        return made


class LinearOperatorBlockDiag(_Blocks):
    """A matrix with operators on its diagonal."""

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        self._operators = _check_operators("LinearOperatorBlockDiag", operators)
        given = [is_non_singular, is_self_adjoint, is_positive_definite]
        for place, hint in enumerate(("is_non_singular", "is_self_adjoint", "is_positive_definite")):
            if given[place] is None:
                given[place] = all_of(*(getattr(operator, hint) for operator in self._operators))
        super().__init__(
            self._operators[0].dtype,
            None,
            *given,
            is_square if is_square is not True or all(one.is_square for one in self._operators) else None,
            name,
            {"operators": operators},
        )

    @property
    def operators(self) -> list[LinearOperator]:
        """The blocks."""
        return self._operators

    def _diagonal_blocks(self) -> list[LinearOperator]:
        return self._operators

    def _matrix_shape(self) -> list[int]:
        batch = broadcast_shapes(*(operator.batch_shape.as_list() for operator in self._operators))
        rows, columns = (sum(operator.shape[axis] for operator in self._operators) for axis in (-2, -1))
        return [*batch, rows, columns]

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = transpose(x) if adjoint_arg else x
        parts = self._split(x, [operator.shape[-2 if adjoint else -1] for operator in self._operators])
        return self._join([one.matmul(part, adjoint=adjoint) for one, part in zip(self._operators, parts)])

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = transpose(rhs) if adjoint_arg else rhs
        parts = self._split(rhs, [operator.shape[-1] for operator in self._operators])
        return self._join([one.solve(part, adjoint=adjoint) for one, part in zip(self._operators, parts)])

    def _inverse(self) -> LinearOperator:
        return LinearOperatorBlockDiag([operator.inverse() for operator in self._operators], is_non_singular=True)

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorBlockDiag([operator.adjoint() for operator in self._operators], is_square=None)

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorBlockDiag([operator.cholesky() for operator in self._operators], is_non_singular=True)

    def _eigvals(self) -> Tensor:
        return raw.sort(self._join([operator.eigvals() for operator in self._operators], -1))


class LinearOperatorBlockLowerTriangular(_Blocks):
    """A lower triangular matrix of blocks: row i has i + 1 operators."""

    def __init__(
        self,
        operators: Sequence[Sequence[LinearOperator]],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorBlockLowerTriangular",
    ) -> None:
        self._rows = [list(row) for row in operators]
        _check_operators(name, [operator for row in self._rows for operator in row])
        for place, row in enumerate(self._rows):
            if len(row) != place + 1:
                raise ValueError(f"{name}: row {place} must have {place + 1} operators, got {len(row)}")
            if not row[-1].is_square:
                raise ValueError(f"{name}: the blocks of the diagonal must be square, got shape {row[-1].shape}")
            for column, operator in enumerate(row):
                wanted = (row[-1].shape[-2], self._rows[column][-1].shape[-1])
                if tuple(operator.shape.as_list()[-2:]) != wanted:
                    raise ValueError(
                        f"{name}: block ({place}, {column}) must have shape {wanted}, got {operator.shape}"
                    )
        if is_non_singular is None:
            is_non_singular = all_of(*(row[-1].is_non_singular for row in self._rows))
        super().__init__(
            self._rows[0][0].dtype,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
            {"operators": operators},
        )

    @property
    def operators(self) -> list[list[LinearOperator]]:
        """The rows of blocks."""
        return self._rows

    def _diagonal_blocks(self) -> list[LinearOperator]:
        return [row[-1] for row in self._rows]

    def _sizes(self) -> list[int]:
        return [block.shape[-1] for block in self._diagonal_blocks()]

    def _matrix_shape(self) -> list[int]:
        batch = broadcast_shapes(*(one.batch_shape.as_list() for row in self._rows for one in row))
        return [*batch, sum(self._sizes()), sum(self._sizes())]

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        parts = self._split(transpose(x) if adjoint_arg else x, self._sizes())
        made: list[Any] = [0.0] * len(parts)
        for place, row in enumerate(self._rows):
            for column, operator in enumerate(row):
                if adjoint:
                    made[column] = operator.matmul(parts[place], adjoint=True) + made[column]
                else:
                    made[place] = operator.matmul(parts[column]) + made[place]
        return self._join(made)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        left = self._split(transpose(rhs) if adjoint_arg else rhs, self._sizes())
        count = len(left)
        found: list[Any] = [None] * count
        for place in reversed(range(count)) if adjoint else range(count):
            found[place] = self._rows[place][place].solve(left[place], adjoint=adjoint)
            # What is known by now moves to the other side.
            if adjoint:
                for column in range(place):
                    left[column] = left[column] - self._rows[place][column].matmul(found[place], adjoint=True)
            else:
                for below in range(place + 1, count):
                    left[below] = left[below] - self._rows[below][place].matmul(found[place])
        return self._join(found)


class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product of operators."""

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        self._operators = _check_operators("LinearOperatorKronecker", operators)
        given = [is_non_singular, is_self_adjoint, is_positive_definite]
        for place, hint in enumerate(("is_non_singular", "is_self_adjoint", "is_positive_definite")):
            if given[place] is None:
                given[place] = all_of(*(getattr(operator, hint) for operator in self._operators))
        super().__init__(self._operators[0].dtype, None, *given, is_square, name, {"operators": operators})

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors."""
        return self._operators

    def _matrix_shape(self) -> list[int]:
        batch = broadcast_shapes(*(operator.batch_shape.as_list() for operator in self._operators))
        rows, columns = (size_of([operator.shape[axis] for operator in self._operators]) for axis in (-2, -1))
        return [*batch, rows, columns]

    def _each(self, x: Tensor, adjoint: bool, method: str) -> Tensor:
        """Applies each factor along its own axis."""
        sizes = [operator.shape[-2 if adjoint else -1] for operator in self._operators]
        columns = x.shape[-1]
        batch = broadcast_shapes(x.shape[:-2], self.batch_shape.as_list())
        x = raw.broadcast_to(x, [*batch, *x.shape[-2:]])
        for place, operator in enumerate(self._operators):
            before, after = size_of(sizes[:place]), size_of(sizes[place + 1 :]) * columns
            # The factor's axis becomes the rows of a matrix, all others its columns.
            rows = raw.reshape(x, [*batch, before, sizes[place], after])
            rows = raw.reshape(raw.swapaxes(rows, -3, -2), [*batch, sizes[place], before * after])
            made = getattr(operator, method)(rows, adjoint=adjoint)
            sizes[place] = made.shape[-2]
            made = raw.swapaxes(raw.reshape(made, [*batch, sizes[place], before, after]), -3, -2)
            x = raw.reshape(made, [*batch, size_of(sizes), columns])
        return x

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._each(transpose(x) if adjoint_arg else x, adjoint, "matmul")

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        if not all(operator.is_square for operator in self._operators):
            return super()._solve(rhs, adjoint, adjoint_arg)
        return self._each(transpose(rhs) if adjoint_arg else rhs, adjoint, "solve")

    def _diag_part(self) -> Tensor:
        if not all(operator.is_square for operator in self._operators):
            return super()._diag_part()
        made = self._operators[0].diag_part()
        for operator in self._operators[1:]:
            pairs = raw.expand_dims(made, -1) * raw.expand_dims(operator.diag_part(), -2)
            made = raw.reshape(pairs, [*pairs.shape[:-2], pairs.shape[-2] * pairs.shape[-1]])
        return made

    def _determinant(self) -> Tensor:
        if not all(operator.is_square for operator in self._operators):
            return super()._determinant()
        made: Any = 1.0
        for operator in self._operators:
            made = operator.determinant() ** float(self.shape[-1] // operator.shape[-1]) * made
        return made

    def _log_abs_determinant(self) -> Tensor:
        if not all(operator.is_square for operator in self._operators):
            return super()._log_abs_determinant()
        made: Any = 0.0
        for operator in self._operators:
            made = operator.log_abs_determinant() * float(self.shape[-1] // operator.shape[-1]) + made
        return made

    def _inverse(self) -> LinearOperator:
        if not all(operator.is_square for operator in self._operators):
            return super()._inverse()
        return LinearOperatorKronecker([operator.inverse() for operator in self._operators], is_non_singular=True)

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorKronecker([operator.cholesky() for operator in self._operators], is_non_singular=True)


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
        self._base, self._u = base_operator, keep(u)
        self._v = self._u if v is None else keep(v)
        self._update = None if diag_update is None else keep(diag_update)
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError(f"{name}: is_diag_update_positive must not be False without diag_update, which is ones")
            is_diag_update_positive = True
        self._is_update_positive = is_diag_update_positive
        rows, columns = base_operator.shape.as_list()[-2:]
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
        batch = broadcast_shapes(self._base.batch_shape.as_list(), self._u.shape[:-2], self._v.shape[:-2], update)
        return [*batch, *self._base.shape.as_list()[-2:]]

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
