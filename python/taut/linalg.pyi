"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

class QR:
    def __getattr__(self, name: str) -> Any: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SignAndLogarithm:
    def __getattr__(self, name: str) -> Any: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def abs(x: TensorLike, *, name: str | None = ...) -> Any:
    """The magnitude of each element; the smallest signed integer has none in its type and stays as it is."""

def adjoint(matrix: Any, name: str | None = ...) -> Tensor:
    """The matrices with rows and columns exchanged: real ones have no other adjoint."""

def band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = ...) -> Tensor:
    """The matrices with zeros outside a band around the diagonal; a negative number keeps a triangle."""

def ceil(x: TensorLike, *, name: str | None = ...) -> Any:
    """The smallest whole number that is not below each element."""

def cholesky(input: TensorLike, *, name: str | None = ...) -> Any:
    """The lower triangular `L` with `a = L @ transpose(L)` of every symmetric positive definite matrix; one that is not is an error."""

def cholesky_solve(chol: Any, rhs: Any, name: str | None = ...) -> Tensor:
    """The `x` with `a @ x = rhs`, given the Cholesky factors of `a`."""

def cross(a: Any, b: Any, name: str | None = ...) -> Tensor:
    """The vectors that stand on pairs of vectors of three elements, along the last axis."""

def det(input: TensorLike, *, name: str | None = ...) -> Any:
    """The determinant of every matrix."""

def diag(diagonal: Any, name: str = ..., k: Any = ..., num_rows: Any = ..., num_cols: Any = ..., padding_value: Any = ..., align: str = ...) -> Tensor:
    """Matrices with the last axis of `diagonal` on diagonal `k`, and `padding_value` elsewhere."""

def diag_part(input: Any, name: str = ..., k: Any = ..., padding_value: Any = ..., align: str = ...) -> Tensor:
    """Diagonal `k` of each matrix; with a pair `k`, a band, in which shorter diagonals are filled up."""

def eigh(tensor: Any, name: str | None = ...) -> tuple[Tensor, Tensor]:
    """Eigenvalues of symmetric matrices, smallest first, and eigenvectors as columns."""

def eigvalsh(tensor: TensorLike, *, name: str | None = ...) -> Any:
    """Eigenvalues of every symmetric matrix, smallest first. Only the lower triangle is read."""

def einsum(equation: str, *inputs: Any, optimize: str | None = ..., name: str | None = ...) -> Tensor:
    """Sums of products by the names of axes: "ij,jk->ik" is a matrix product. The cheapest come first."""

def expm(input: Any, name: str | None = ...) -> Tensor:
    """The exponential of square matrices: Padé's approximation of what is halved until it is small."""

def eye(num_rows: Any, num_columns: Any = ..., batch_shape: Any = ..., dtype: Any = ..., name: str | None = ...) -> Tensor:
    """Matrices with ones on the diagonal and zeros elsewhere."""

def global_norm(t_list: Any, name: str | None = ...) -> Tensor:
    """The Euclidean norm of several tensors, or rows of tables, as one vector. None counts for nothing."""

def inv(input: Any, adjoint: bool = ..., name: str | None = ...) -> Tensor:
    """The inverse of each matrix, or of its transpose."""

from .math import l2_normalize as l2_normalize
def log(x: TensorLike, *, name: str | None = ...) -> Any:
    """The natural logarithm of each element; NaN below zero."""

def logdet(matrix: Any, name: str | None = ...) -> Tensor:
    """The logarithm of the determinant of positive definite matrices."""

def lstsq(matrix: Any, rhs: Any, l2_regularizer: float = ..., fast: bool = ..., name: str | None = ...) -> Tensor:
    """The `x` that makes `|matrix @ x - rhs|^2 + l2_regularizer * |x|^2` smallest."""

def matmul(a: Any, b: Any, transpose_a: bool = ..., transpose_b: bool = ..., adjoint_a: bool = ..., adjoint_b: bool = ..., a_is_sparse: bool = ..., b_is_sparse: bool = ..., output_type: Any = ..., grad_a: bool = ..., grad_b: bool = ..., name: str | None = ...) -> Tensor:
    """The product of matrices; axes before the last two are those of a batch."""

def matrix_rank(a: Any, tol: Any = ..., validate_args: bool = ..., name: str | None = ...) -> Tensor:
    """How many singular values of each matrix are above `tol`."""

def matrix_transpose(a: Any, name: str = ..., conjugate: bool = ...) -> Tensor:
    """The matrices with rows and columns exchanged."""

def matvec(a: Any, b: Any, transpose_a: bool = ..., adjoint_a: bool = ..., a_is_sparse: bool = ..., b_is_sparse: bool = ..., name: str | None = ...) -> Tensor:
    """The product of matrices and vectors."""

def maximum(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The larger of x and y; NaN if either is."""

def norm(tensor: Any, ord: Any = ..., axis: Any = ..., keepdims: bool | None = ..., name: str | None = ...) -> Tensor:
    """The norm of vectors along an axis, of matrices in two axes, or of the whole tensor as one vector."""

def normalize(tensor: Any, ord: Any = ..., axis: Any = ..., name: str | None = ...) -> tuple[Tensor, Tensor]:
    """The tensor divided by its norm, and that norm."""

def pinv(a: Any, rcond: Any = ..., validate_args: bool = ..., name: str | None = ...) -> Tensor:
    """The Moore-Penrose inverse. Singular values up to `rcond` times the largest count as zero."""

def qr(input: Any, full_matrices: bool = ..., name: str | None = ...) -> QR:
    """Orthonormal columns `q` and an upper triangular `r`, whose product is each matrix."""

from .math import reduce_sum as reduce_sum
def set_diag(input: Any, diagonal: Any, name: str = ..., k: Any = ..., align: str = ...) -> Tensor:
    """The matrices with diagonal `k` replaced, or with a pair `k`, a band of them."""

def slogdet(input: Any, name: str | None = ...) -> SignAndLogarithm:
    """The sign of each determinant, and the logarithm of its absolute value."""

def solve(matrix: Any, rhs: Any, adjoint: bool = ..., name: str | None = ...) -> Tensor:
    """The `x` with `matrix @ x = rhs`, or with the transpose of the matrix."""

def svd(tensor: Any, full_matrices: bool = ..., compute_uv: bool = ..., name: str | None = ...) -> Any:
    """Singular values, largest first, and the vectors `u` and `v` with `a = u @ diag(s) @ transpose(v)`."""

def tensor_diag(diagonal: Any, name: str | None = ...) -> Tensor:
    """A tensor of twice the rank, zero but where both halves of its indices are equal."""

def tensor_diag_part(input: Any, name: str | None = ...) -> Tensor:
    """The elements where both halves of a tensor's indices are equal."""

def tensordot(a: Any, b: Any, axes: Any, name: str | None = ...) -> Tensor:
    """Sums of products over pairs of axes: the last of `a` and the first of `b`, or two lists of them."""

def trace(x: Any, name: str | None = ...) -> Tensor:
    """The sum of each matrix's diagonal."""

def triangular_solve(matrix: Any, rhs: Any, lower: bool = ..., adjoint: bool = ..., name: str | None = ...) -> Tensor:
    """The `x` with `matrix @ x = rhs` for triangular matrices, of which one triangle is read."""
