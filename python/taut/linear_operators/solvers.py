"""Iterative solvers of linear operators: `tf.linalg.experimental`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _raw_ops as raw
from .._native import Tensor, as_tensor
from ..control import while_loop
from .base import LinearOperator

if TYPE_CHECKING:
    from .._typing import TensorLike


class ConjugateGradient(NamedTuple):
    """The state of the solver: steps, solution, residual, search direction, and the squared norm of the residual."""

    i: Tensor
    x: Tensor
    r: Tensor
    p: Tensor
    gamma: Tensor


def conjugate_gradient(
    operator: LinearOperator,
    rhs: TensorLike,
    preconditioner: LinearOperator | None = None,
    x: TensorLike | None = None,
    tol: float = 1e-5,
    max_iter: int = 20,
    name: str = "conjugate_gradient",
) -> ConjugateGradient:
    """Solves `operator @ x = rhs` for vectors by conjugate gradients: the operator is self-adjoint and positive definite.

    Ends after `max_iter` steps, or when every residual's norm is at most `tol` times that of its `rhs`.
    """
    if not (operator.is_self_adjoint and operator.is_positive_definite):
        raise ValueError(
            "conjugate_gradient: expected an operator with is_self_adjoint=True and is_positive_definite=True"
        )
    rhs = as_tensor(rhs)

    def inner(a: Tensor, b: Tensor) -> Tensor:
        return raw.sum(a * b, -1)

    def conditioned(residual: Tensor) -> Tensor:
        return residual if preconditioner is None else preconditioner.matvec(residual)

    limit = float(tol) * raw.sqrt(inner(rhs, rhs))
    start = raw.zeros_like(rhs) if x is None else as_tensor(x)
    residual = rhs if x is None else rhs - operator.matvec(start)
    direction = conditioned(residual)

    def unfinished(i: Tensor, _x: Tensor, r: Tensor, *_rest: Any) -> Tensor:
        return raw.logical_and(i < int(max_iter), raw.any(raw.sqrt(inner(r, r)) > limit))

    def step(i: Tensor, x: Tensor, r: Tensor, p: Tensor, gamma: Tensor) -> tuple:
        z = operator.matvec(p)
        length = raw.expand_dims(gamma / inner(p, z), -1)
        x, r = x + length * p, r - length * z
        q = conditioned(r)
        now = inner(r, q)
        return i + 1, x, r, q + raw.expand_dims(now / gamma, -1) * p, now

    states = (as_tensor(np.int32(0)), start, residual, direction, inner(residual, direction))
    return ConjugateGradient(*while_loop(unfinished, step, states))


class experimental:  # noqa: N801  The name of TensorFlow's module.
    """The namespace `tf.linalg.experimental`."""

    conjugate_gradient = staticmethod(conjugate_gradient)
