"""The interface of linear operators, and what follows from products alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor
from .._ops import linalg as _linalg
from ..module import Module
from ..shape import TensorShape
from ..variable import Variable

if TYPE_CHECKING:
    from .._typing import TensorLike


def keep(value: Any, dtype: Any = None) -> Any:
    """What an operator stores of an argument: a variable itself, so that later values and gradients are seen, or a tensor."""
    if isinstance(value, Variable):
        return value
    tensor = as_tensor(value)
    return tensor if dtype is None else cast_to(tensor, dtypes.as_dtype(dtype))


def transpose(x: Tensor) -> Tensor:
    """Transposes the last two axes: the adjoint of a real matrix."""
    return raw.swapaxes(x, -1, -2)


def broadcast_shapes(*shapes: Sequence[int]) -> list[int]:
    """The shape to which batch shapes broadcast."""
    return list(np.broadcast_shapes(*(tuple(shape) for shape in shapes)))


def all_of(*hints: bool | None) -> bool | None:
    """True if all hints are, None if one is not known."""
    return True if all(hints) else None


class LinearOperator(Module):
    """A matrix, or a batch of matrices, of which products, solutions and determinants can be computed.

    A subclass defines `_matrix_shape` and `_matmul`; the other methods have a default that uses the dense matrix, which a
    subclass with structure replaces. The hints `is_non_singular`, `is_self_adjoint`, `is_positive_definite` and `is_square` are
    promises of the caller: they choose algorithms and are not checked.
    """

    #: Whether the element type may be complex. The defaults are those of real matrices.
    _accepts_complex = False

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(name if name is None or name.isidentifier() else name.replace("/", "_"))
        if graph_parents is not None:
            raise ValueError(f"{type(self).__name__}: graph_parents must be None, got {graph_parents!r}")
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("A positive definite matrix is always non-singular: is_non_singular must not be False")
            is_non_singular = True
        for hint, given in (("non-singular", is_non_singular), ("self-adjoint", is_self_adjoint)):
            if given:
                if is_square is False:
                    raise ValueError(f"A {hint} matrix is always square: is_square must not be False")
                is_square = True
        self._dtype = dtypes.as_dtype(dtype)
        if self._dtype.is_complex and not self._accepts_complex:
            raise TypeError(f"{type(self).__name__}: expected a type of real numbers, got {self._dtype.name}")
        self._hints = (is_non_singular, is_self_adjoint, is_positive_definite)
        self._is_square = is_square
        self._parameters = dict(parameters or {})
        if is_square and self.shape[-1] != self.shape[-2]:
            raise ValueError(f"{type(self).__name__}: is_square must not be True for shape {self.shape}")
        if is_square is False and self.shape[-1] == self.shape[-2]:
            raise ValueError(f"{type(self).__name__}: is_square must not be False for shape {self.shape}")

    # What a subclass defines.

    def _matrix_shape(self) -> list[int]:
        """The shape, batch axes first."""
        raise NotImplementedError(f"{type(self).__name__} must define _matrix_shape")

    def _shape(self) -> TensorShape:
        """The shape, as subclasses written for TensorFlow define it."""
        return TensorShape(self._matrix_shape())

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        """The product with a matrix."""
        raise NotImplementedError(f"{type(self).__name__} must define _matmul")

    def _to_dense(self) -> Tensor:
        return self._matmul(raw.eye(self.shape[-1], None, self.dims[:-2], self.dtype))

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = transpose(rhs) if adjoint_arg else rhs
        dense = self.to_dense()
        batch = broadcast_shapes(dense.shape[:-2], rhs.shape[:-2])
        dense, rhs = (raw.broadcast_to(one, [*batch, *one.shape[-2:]]) for one in (dense, rhs))
        if self._can_use_cholesky():
            factor = _linalg.cholesky(dense)
            return raw.triangular_solve(factor, raw.triangular_solve(factor, rhs), True, True)
        return raw.solve(transpose(dense) if adjoint else dense, rhs)

    def _diag_part(self) -> Tensor:
        return raw.diag_part(self.to_dense())

    def _trace(self) -> Tensor:
        return raw.sum(self.diag_part(), -1)

    def _determinant(self) -> Tensor:
        return raw.det(self.to_dense())

    def _log_abs_determinant(self) -> Tensor:
        if self._can_use_cholesky():
            return 2.0 * raw.sum(raw.log(raw.diag_part(_linalg.cholesky(self.to_dense()))), -1)
        return raw.slogdet(self.to_dense())[1]

    def _eigvals(self) -> Tensor:
        return raw.eigvalsh(self.to_dense())

    def _cond(self) -> Tensor:
        values = raw.abs(self.eigvals()) if self.is_self_adjoint else raw.svdvals(self.to_dense())
        return raw.max(values, -1) / raw.min(values, -1)

    def _cholesky(self) -> LinearOperator:
        from .structured import LinearOperatorLowerTriangular

        return LinearOperatorLowerTriangular(
            _linalg.cholesky(self.to_dense()), is_non_singular=True, is_self_adjoint=False, is_square=True
        )

    def _inverse(self) -> LinearOperator:
        from .composed import LinearOperatorInversion

        return LinearOperatorInversion(self)

    def _adjoint(self) -> LinearOperator:
        from .composed import LinearOperatorAdjoint

        return LinearOperatorAdjoint(self)

    # Properties.

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self._dtype

    @property
    def dims(self) -> list[int]:
        """The shape as integers: all sizes are known."""
        return cast("list[int]", self._shape().as_list())

    @property
    def shape(self) -> TensorShape:
        """The shape of the batch of matrices."""
        return self._shape()

    @property
    def batch_shape(self) -> TensorShape:
        """The shape without the axes of the matrices."""
        return TensorShape(self.dims[:-2])

    @property
    def tensor_rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def domain_dimension(self) -> int:
        """The number of columns."""
        return self.shape[-1]

    @property
    def range_dimension(self) -> int:
        """The number of rows."""
        return self.shape[-2]

    @property
    def is_non_singular(self) -> bool | None:
        """Whether it can be inverted, if that is known."""
        return self._hints[0]

    @property
    def is_self_adjoint(self) -> bool | None:
        """Whether it equals its adjoint, if that is known."""
        return self._hints[1]

    @property
    def is_positive_definite(self) -> bool | None:
        """Whether `x @ A @ x > 0` for all x but 0, if that is known."""
        return self._hints[2]

    @property
    def is_square(self) -> bool:
        """Whether there are as many rows as columns."""
        return self.shape[-1] == self.shape[-2]

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments it was made with."""
        return dict(self._parameters)

    @property
    def graph_parents(self) -> list:
        """An empty list: there are no graphs to which an operator belongs."""
        return []

    @property
    def H(self) -> LinearOperator:  # noqa: N802  TensorFlow's name.
        """The adjoint."""
        return self.adjoint()

    def _can_use_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    # Shapes as tensors.

    def shape_tensor(self, name: str | None = None) -> Tensor:
        """The shape as a tensor."""
        return _ints(self.dims)

    def batch_shape_tensor(self, name: str | None = None) -> Tensor:
        """The batch shape as a tensor."""
        return _ints(self.dims[:-2])

    def tensor_rank_tensor(self, name: str | None = None) -> Tensor:
        """The number of axes as a tensor."""
        return _native.own_tensor(np.int32(self.tensor_rank))

    def domain_dimension_tensor(self, name: str | None = None) -> Tensor:
        """The number of columns as a tensor."""
        return _native.own_tensor(np.int32(self.domain_dimension))

    def range_dimension_tensor(self, name: str | None = None) -> Tensor:
        """The number of rows as a tensor."""
        return _native.own_tensor(np.int32(self.range_dimension))

    # What users call.

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str | None = None) -> Any:
        """The product with matrices, or with another operator, of which the result is an operator."""
        if isinstance(x, LinearOperator):
            from .composed import product

            left = self.adjoint() if adjoint else self
            right = x.adjoint() if adjoint_arg else x
            if left.domain_dimension != right.range_dimension:
                raise ValueError(
                    f"{type(self).__name__}.matmul: inner dimensions must be equal, got shapes {left.shape} and "
                    f"{right.shape}"
                )
            return product(left, right)
        x = self._operand("matmul", x, adjoint, adjoint_arg)
        return self._matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def matvec(self, x: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
        """The product with vectors."""
        return raw.squeeze(self.matmul(raw.expand_dims(as_tensor(x), -1), adjoint=adjoint), -1)

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str | None = None) -> Any:
        """Solves `A @ x = rhs` for matrices `rhs`, or for another operator, of which the result is an operator."""
        self._check_invertible("solve")
        if isinstance(rhs, LinearOperator):
            left = self.adjoint() if adjoint else self
            return left.inverse().matmul(rhs.adjoint() if adjoint_arg else rhs)
        rhs = self._operand("solve", rhs, adjoint, adjoint_arg)
        return self._solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def solvevec(self, rhs: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
        """Solves `A @ x = rhs` for vectors."""
        return raw.squeeze(self.solve(raw.expand_dims(as_tensor(rhs), -1), adjoint=adjoint), -1)

    def to_dense(self, name: str | None = None) -> Tensor:
        """The matrices."""
        return self._to_dense()

    def diag_part(self, name: str | None = None) -> Tensor:
        """The diagonals."""
        return self._diag_part()

    def trace(self, name: str | None = None) -> Tensor:
        """The traces."""
        return self._trace()

    def determinant(self, name: str | None = None) -> Tensor:
        """The determinants."""
        self._check_square("determinant")
        return self._determinant()

    def log_abs_determinant(self, name: str | None = None) -> Tensor:
        """The logarithms of the absolute values of the determinants."""
        self._check_square("log_abs_determinant")
        return self._log_abs_determinant()

    def add_to_tensor(self, x: TensorLike, name: str | None = None) -> Tensor:
        """The sum with dense matrices."""
        return self.to_dense() + cast_to(as_tensor(x), self.dtype)

    def adjoint(self, name: str | None = None) -> LinearOperator:
        """The adjoint: the operator itself if it is known to be self-adjoint."""
        return self if self.is_self_adjoint else self._adjoint()

    def inverse(self, name: str | None = None) -> LinearOperator:
        """The inverse."""
        if not self.is_square:
            raise ValueError(f"{type(self).__name__}.inverse: expected a square operator, got shape {self.shape}")
        if self.is_non_singular is False:
            raise ValueError(f"{type(self).__name__}.inverse: the operator is singular (is_non_singular=False)")
        return self._inverse()

    def cholesky(self, name: str | None = None) -> LinearOperator:
        """The Cholesky factor, of an operator that is known to be self-adjoint and positive definite."""
        if not self._can_use_cholesky():
            raise ValueError(
                f"{type(self).__name__}.cholesky: expected an operator with is_self_adjoint=True and "
                "is_positive_definite=True"
            )
        return self._cholesky()

    def eigvals(self, name: str | None = None) -> Tensor:
        """The eigenvalues in ascending order, of an operator that is known to be self-adjoint."""
        if not self.is_self_adjoint:
            raise NotImplementedError(f"{type(self).__name__}.eigvals: expected an operator with is_self_adjoint=True")
        return self._eigvals()

    def cond(self, name: str | None = None) -> Tensor:
        """The condition numbers: the largest singular value divided by the smallest."""
        self._check_square("cond")
        return self._cond()

    def assert_non_singular(self, name: str | None = None) -> None:
        """Raises InvalidArgumentError if an operator is singular up to rounding."""
        if np.any(self.cond().numpy() > 1 / float(dtypes.info(self.dtype).eps)):
            refuse("assert_non_singular", "Singular matrix up to precision epsilon.")

    def assert_positive_definite(self, name: str | None = None) -> None:
        """Raises InvalidArgumentError if an operator is not positive definite."""
        dense = self.to_dense()
        symmetric = 0.5 * (dense + transpose(dense))
        if np.any(raw.eigvalsh(symmetric).numpy() <= 0):
            refuse("assert_positive_definite", "Operator was not positive definite.")

    def assert_self_adjoint(self, name: str | None = None) -> None:
        """Raises InvalidArgumentError if an operator differs from its adjoint."""
        dense = self.to_dense().numpy()
        if not np.array_equal(dense, np.swapaxes(dense, -1, -2)):
            refuse("assert_self_adjoint", "Matrix was not equal to its adjoint.")

    def __getitem__(self, key: Any) -> LinearOperator:
        """A part of the batch, as a dense operator."""
        from .structured import LinearOperatorFullMatrix

        made = self.to_dense()[key]
        if made.shape[-2:] != tuple(self.dims[-2:]):
            raise ValueError(f"{type(self).__name__}: an index selects batches, not rows or columns, got {key!r}")
        hints: dict[str, Any] = dict(zip(("is_non_singular", "is_self_adjoint", "is_positive_definite"), self._hints))
        return LinearOperatorFullMatrix(made, **hints)

    # Checks.

    def _check_square(self, name: str) -> None:
        if not self.is_square:
            raise NotImplementedError(
                f"{type(self).__name__}.{name}: expected a square operator, got shape {self.shape}"
            )

    def _check_invertible(self, name: str) -> None:
        self._check_square(name)
        if self.is_non_singular is False:
            raise NotImplementedError(f"{type(self).__name__}.{name}: the operator is singular (is_non_singular=False)")

    def _operand(self, name: str, x: TensorLike, adjoint: bool, adjoint_arg: bool) -> Tensor:
        """An operand as a tensor of the operator's type, with the right number of rows."""
        tensor: Tensor = _native.tensor_beside(x, self.dtype)
        if tensor.dtype != self.dtype:
            raise TypeError(f"{type(self).__name__}.{name}: expected {self.dtype.name}, got {tensor.dtype.name}")
        # A system `A @ x = rhs` of a square operator has as many rows as the operator.
        own = self.shape[-2] if adjoint else self.shape[-1]
        if tensor.ndim < 2 or tensor.shape[-1 if adjoint_arg else -2] != own:
            raise ValueError(
                f"{type(self).__name__}.{name}: expected an operand with {own} rows, got shape {tuple(tensor.shape)} "
                f"for an operator of shape {self.shape}"
            )
        return tensor

    def __repr__(self) -> str:
        return f"<{type(self).__name__} shape={tuple(self.dims)} dtype={self.dtype.name}>"


def _ints(values: Sequence[int]) -> Tensor:
    return _native.own_tensor(np.asarray(values, np.int32))


def size_of(shape: Sequence[int]) -> int:
    """The number of elements of a shape."""
    return math.prod(shape)


def check_operators(name: str, operators: Sequence[LinearOperator]) -> list[LinearOperator]:
    """The operators as a list; raises an error unless there is one, and all have one element type."""
    operators = list(operators)
    if not operators:
        raise ValueError(f"{name}: expected at least one operator, got none")
    for operator in operators:
        if not isinstance(operator, LinearOperator):
            raise TypeError(f"{name}: expected a tf.linalg.LinearOperator, got {operator!r}")
    found = {operator.dtype for operator in operators}
    if len(found) > 1:
        names = ", ".join(sorted(dtype.name for dtype in found))
        raise TypeError(f"{name}: operators must have one element type, got {names}")
    return operators
