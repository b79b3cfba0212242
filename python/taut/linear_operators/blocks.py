"""Operators of blocks: block diagonal and triangular matrices, and Kronecker products."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .. import _raw_ops as raw
from .._native import Tensor
from .base import LinearOperator, all_of, broadcast_shapes, check_operators, size_of, transpose


def _hints(operators: Sequence[LinearOperator], *given: bool | None) -> list[bool | None]:
    """The hints that are given, and those that follow from the operators."""
    names = ("is_non_singular", "is_self_adjoint", "is_positive_definite")
    return [
        all_of(*(getattr(operator, name) for operator in operators)) if hint is None else hint
        for name, hint in zip(names, given)
    ]


class _Blocks(LinearOperator):
    """Operators of blocks: what diagonal and lower triangular block matrices share."""

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
        # The diagonal of the matrix goes through those of its blocks only if all blocks are square.
        if not all(block.is_square for block in self._diagonal_blocks()):
            return super()._diag_part()
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
        self._operators = check_operators("LinearOperatorBlockDiag", operators)
        given = _hints(self._operators, is_non_singular, is_self_adjoint, is_positive_definite)
        super().__init__(
            self._operators[0].dtype,
            None,
            given[0],
            given[1],
            given[2],
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
        batch = broadcast_shapes(*(operator.dims[:-2] for operator in self._operators))
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
        check_operators(name, [operator for row in self._rows for operator in row])
        for place, row in enumerate(self._rows):
            if len(row) != place + 1:
                raise ValueError(f"{name}: row {place} must have {place + 1} operators, got {len(row)}")
            if not row[-1].is_square:
                raise ValueError(f"{name}: the blocks of the diagonal must be square, got shape {row[-1].shape}")
            for column, operator in enumerate(row):
                wanted = (row[-1].shape[-2], self._rows[column][-1].shape[-1])
                if tuple(operator.dims[-2:]) != wanted:
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
        batch = broadcast_shapes(*(one.dims[:-2] for row in self._rows for one in row))
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
        self._operators = check_operators("LinearOperatorKronecker", operators)
        given = _hints(self._operators, is_non_singular, is_self_adjoint, is_positive_definite)
        super().__init__(
            self._operators[0].dtype,
            None,
            given[0],
            given[1],
            given[2],
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
        rows, columns = (size_of([operator.shape[axis] for operator in self._operators]) for axis in (-2, -1))
        return [*batch, rows, columns]

    def _each(self, x: Tensor, adjoint: bool, method: str) -> Tensor:
        """Applies each factor along its own axis."""
        sizes = [operator.shape[-2 if adjoint else -1] for operator in self._operators]
        columns = x.shape[-1]
        batch = broadcast_shapes(x.shape[:-2], self.dims[:-2])
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
