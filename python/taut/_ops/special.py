"""Special functions. They are computed in float64 and rounded to the type of their argument."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor
from ..control import while_loop
from . import special_tables as tables

if TYPE_CHECKING:
    from .._typing import TensorLike


def _in_double(name: str, f: Callable, *args: Any) -> Tensor:
    """A function of tensors of one floating-point type, computed in float64 for tensors of a common shape."""
    known = next((arg.dtype for arg in args if hasattr(arg, "dtype")), None)
    tensors = [as_tensor(arg, known) if not hasattr(arg, "dtype") else as_tensor(arg) for arg in args]
    dtype = tensors[0].dtype
    for tensor in tensors:
        if not tensor.dtype.is_floating or tensor.dtype != dtype:
            refuse(
                name,
                f"expected tensors of one floating-point type, got {[one.dtype.name for one in tensors]}",
                TypeError,
            )
    wide = [cast_to(tensor, dtypes.float64) for tensor in tensors]
    if len(wide) > 1:
        shape = functools.reduce(lambda one, other: one + other, [raw.zeros_like(one) for one in wide])
        wide = [one + shape for one in wide]
    return cast_to(f(*wide), dtype)


def _unary(f: Callable) -> Callable:
    """Makes a public function of a function of one float64 tensor, with its derivative in `_SLOPES`. Computed from the
    series, the derivative would have fewer digits, and none at 0, at infinities and outside of the domain.
    """

    def with_slope(x: Tensor) -> Tensor:
        from ..custom_gradient import custom_gradient

        @custom_gradient
        def computed(x: Tensor) -> tuple[Tensor, Callable]:
            y = f(x)
            return y, lambda upstream: upstream * _SLOPES[f.__name__](x, y)

        return computed(x)

    @functools.wraps(f)
    def function(x: TensorLike, name: str | None = None) -> Tensor:
        return _in_double(f.__name__, with_slope, x)

    del function.__wrapped__
    return function


def _divided_at_zero(y: Tensor, x: Tensor) -> Tensor:
    """`y / x`, and 1/2 where both are 0: the slope there."""
    is_zero = raw.equal(x, 0.0)
    half = raw.full([], 0.5, x.dtype)
    return raw.where(is_zero, half, y / raw.where(is_zero, raw.full([], 1.0, x.dtype), x))


def _chebyshev(table: tables.Table, x: Tensor) -> Tensor:
    """The sum of a Chebyshev series at `x`, by Clenshaw's recurrence. Outside of its interval, the value at its end."""
    low, high, coefficients = table
    t = (raw.clip_by_value(x, low, high) - (low + high) / 2) * (2 / (high - low))
    later, last = raw.zeros_like(t), raw.zeros_like(t)
    for coefficient in reversed(coefficients[1:]):
        later, last = 2 * t * later - last + coefficient, later
    return t * later - last + coefficients[0]


def _piecewise(pieces: list[tuple[Tensor, Tensor]], otherwise: Tensor) -> Tensor:
    """The value of the first condition that holds."""
    for condition, value in reversed(pieces):
        otherwise = raw.where(condition, value, otherwise)
    return otherwise


def _inside(condition: Tensor, x: Tensor, safe: float) -> Tensor:
    """`x` where a condition holds, and a value elsewhere at which no gradient is infinite."""
    return raw.where(condition, x, raw.full([], safe, x.dtype))


@_unary
def bessel_i0e(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 0, times exp(-|x|)."""
    size = raw.abs(x)
    small = size <= 8.0
    near, far = _inside(small, size, 1.0), _inside(raw.logical_not(small), size, 10.0)
    return raw.where(small, _chebyshev(tables.I0_SMALL, near), _chebyshev(tables.I0_LARGE, 1 / far) / raw.sqrt(far))


@_unary
def bessel_i1e(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 1, times exp(-|x|)."""
    size = raw.abs(x)
    small = size <= 8.0
    far = _inside(raw.logical_not(small), size, 10.0)
    large = _chebyshev(tables.I1_LARGE, 1 / far) / raw.sqrt(far)
    near = raw.where(small, x, raw.full([], 1.0, x.dtype))
    return raw.where(small, near * _chebyshev(tables.I1_SMALL, raw.abs(near)), raw.sign(x) * large)


@_unary
def bessel_i0(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
    return raw.exp(raw.abs(x)) * bessel_i0e(x)


@_unary
def bessel_i1(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
    return raw.exp(raw.abs(x)) * bessel_i1e(x)


def _k(order: int, x: Tensor) -> Tensor:
    """The modified Bessel function of the second kind, times exp(x), for x > 0."""
    small = x <= 2.0
    near, far = _inside(small, x, 1.0), _inside(raw.logical_not(small), x, 3.0)
    if order == 0:
        value = _chebyshev(tables.K0_SMALL, near * near) - raw.log(near / 2) * bessel_i0(near)
    else:
        value = _chebyshev(tables.K1_SMALL, near * near) / near + raw.log(near / 2) * bessel_i1(near)
    table = tables.K0_LARGE if order == 0 else tables.K1_LARGE
    found = raw.where(small, value * raw.exp(near), _chebyshev(table, 1 / far) / raw.sqrt(far))
    return _positive(x, found, math.inf, math.inf)


def _positive(x: Tensor, value: Tensor, at_zero: float, below: float = math.nan) -> Tensor:
    """A function of positive numbers, with its values at 0 and below."""
    found = raw.where(raw.equal(x, 0.0), raw.full([], at_zero, x.dtype), value)
    found = raw.where(x < 0.0, raw.full([], below, x.dtype), found)
    return raw.where(raw.is_nan(x), x, found)


@_unary
def bessel_k0e(x: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 0, times exp(x)."""
    return _k(0, x)


@_unary
def bessel_k1e(x: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 1, times exp(x)."""
    return _k(1, x)


@_unary
def bessel_k0(x: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 0."""
    return _k(0, x) * raw.exp(-x)


@_unary
def bessel_k1(x: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 1."""
    return _k(1, x) * raw.exp(-x)


def _oscillating(order: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """The Bessel functions of the first and second kind for x >= 8, from amplitude and phase."""
    z = 64 / (x * x)
    p = _chebyshev(tables.P0_LARGE if order == 0 else tables.P1_LARGE, z)
    q = _chebyshev(tables.Q0_LARGE if order == 0 else tables.Q1_LARGE, z) / x
    phase, amplitude = x - (2 * order + 1) * math.pi / 4, raw.sqrt(2 / (math.pi * x))
    sine, cosine = raw.sin(phase), raw.cos(phase)
    return amplitude * (p * cosine - q * sine), amplitude * (p * sine + q * cosine)


@_unary
def bessel_j0(x: Tensor) -> Tensor:
    """The Bessel function of the first kind of order 0."""
    size = raw.abs(x)
    small = size < 8.0
    near, far = _inside(small, size, 1.0), _inside(raw.logical_not(small), size, 10.0)
    return raw.where(small, _chebyshev(tables.J0_SMALL, near * near), _oscillating(0, far)[0])


@_unary
def bessel_j1(x: Tensor) -> Tensor:
    """The Bessel function of the first kind of order 1."""
    size = raw.abs(x)
    small = size < 8.0
    near, far = _inside(small, x, 1.0), _inside(raw.logical_not(small), size, 10.0)
    return raw.where(small, near * _chebyshev(tables.J1_SMALL, near * near), raw.sign(x) * _oscillating(1, far)[0])


@_unary
def bessel_y0(x: Tensor) -> Tensor:
    """The Bessel function of the second kind of order 0."""
    small = x < 8.0
    near, far = _inside(raw.logical_and(small, x > 0.0), x, 1.0), _inside(raw.logical_not(small), x, 10.0)
    value = _chebyshev(tables.Y0_SMALL, near * near) + 2 / math.pi * raw.log(near) * bessel_j0(near)
    return _positive(x, raw.where(small, value, _oscillating(0, far)[1]), -math.inf, -math.inf)


@_unary
def bessel_y1(x: Tensor) -> Tensor:
    """The Bessel function of the second kind of order 1."""
    small = x < 8.0
    near, far = _inside(raw.logical_and(small, x > 0.0), x, 1.0), _inside(raw.logical_not(small), x, 10.0)
    value = near * _chebyshev(tables.Y1_SMALL, near * near)
    value = value + 2 / math.pi * (raw.log(near) * bessel_j1(near) - 1 / near)
    return _positive(x, raw.where(small, value, _oscillating(1, far)[1]), -math.inf, -math.inf)


@_unary
def dawsn(x: Tensor) -> Tensor:
    """Dawson's integral: exp(-x**2) times the integral of exp(t**2) from 0 to x."""
    small = raw.abs(x) <= 5.0
    near, far = _inside(small, x, 1.0), _inside(raw.logical_not(small), x, 6.0)
    inverse = 1 / (far * far)
    # The table begins at 25 / x**2 = 0.001; below, the asymptotic series is exact.
    series = 0.5 + inverse * (0.25 + inverse * (0.375 + inverse * 0.9375))
    large = raw.where(inverse < 4e-5, series, _chebyshev(tables.DAWSN_LARGE, 25 * inverse)) / far
    return raw.where(small, near * _chebyshev(tables.DAWSN_SMALL, near * near), large)


@_unary
def expint(x: Tensor) -> Tensor:
    """The exponential integral: the integral of exp(t) / t from -infinity to x, for x > 0."""
    near = raw.clip_by_value(_inside(x > 0.0, x, 1.0), 0.0, 6.0)
    small = near * _chebyshev(tables.EXPINT_6, near) + raw.log(near) + 0.5772156649015329
    far = raw.maximum(x, raw.full([], 6.0, x.dtype))
    scaled = _piecewise(
        [
            (x <= 12.0, _chebyshev(tables.EXPINT_12, far)),
            (x <= 24.0, _chebyshev(tables.EXPINT_24, far)),
        ],
        _chebyshev(tables.EXPINT_LARGE, 1 / far),
    )
    return _positive(x, raw.where(x <= 6.0, small, scaled * raw.exp(far) / far), -math.inf)


def _spence_slope(x: Tensor) -> Tensor:
    is_one = raw.equal(x, 1.0)
    inner = raw.where(is_one, raw.full([], 2.0, x.dtype), x)
    return raw.where(is_one, raw.full([], -1.0, x.dtype), raw.log(inner) / (1 - inner))


@_unary
def spence(x: Tensor) -> Tensor:
    """Spence's integral, the dilogarithm: the integral of log(t) / (1 - t) from 1 to x, for x >= 0."""
    one = raw.full([], 1.0, x.dtype)
    large, valid = x > 1.5, x > 0.0
    inner = raw.where(large, 1 / _inside(large, x, 2.0), _inside(valid, x, 1.0))
    low = inner < 0.5
    mirrored = raw.where(low, one - inner, inner)
    found = (mirrored - 1) * _chebyshev(tables.SPENCE, mirrored - 1)
    below = _inside(low, inner, 0.25)
    found = raw.where(low, math.pi**2 / 6 - raw.log(below) * raw.log(1 - below) - found, found)
    logarithm = raw.log(_inside(large, x, 2.0))
    found = raw.where(large, -0.5 * logarithm * logarithm - found, found)
    return _positive(x, found, math.pi**2 / 6)


def _fresnel(x: Tensor) -> tuple[Tensor, Tensor]:
    size = raw.abs(x)
    small = size <= 2.0
    near, far = _inside(small, size, 1.0), _inside(raw.logical_not(small), size, 3.0)
    z = near**4
    cosine, sine = near * _chebyshev(tables.FRESNEL_C, z), near**3 * _chebyshev(tables.FRESNEL_S, z)
    w = 16 / far**4
    f, g = _chebyshev(tables.FRESNEL_F, w) / far, _chebyshev(tables.FRESNEL_G, w) / far**3
    angle = math.pi / 2 * far * far
    large_cosine = 0.5 + f * raw.sin(angle) - g * raw.cos(angle)
    large_sine = 0.5 - f * raw.cos(angle) - g * raw.sin(angle)
    sign, at_infinity = raw.sign(x), raw.equal(size, math.inf)
    half = raw.full([], 0.5, x.dtype)
    large_cosine, large_sine = (raw.where(at_infinity, half, one) for one in (large_cosine, large_sine))
    return sign * raw.where(small, cosine, large_cosine), sign * raw.where(small, sine, large_sine)


@_unary
def fresnel_cos(x: Tensor) -> Tensor:
    """Fresnel's cosine integral: the integral of cos(pi t**2 / 2) from 0 to x."""
    return _fresnel(x)[0]


@_unary
def fresnel_sin(x: Tensor) -> Tensor:
    """Fresnel's sine integral: the integral of sin(pi t**2 / 2) from 0 to x."""
    return _fresnel(x)[1]


def _erfcinv(x: Tensor) -> Tensor:
    # Of the two halves, that below 1 has precision for small values.
    low = raw.minimum(x, 2 - x)
    valid = raw.logical_and(low > 0.0, x < 2.0)
    low = _inside(valid, low, 0.5)
    logarithm = raw.log(low)
    t = raw.sqrt(-2 * raw.log(low / 2))
    y = (t - (2.30753 + 0.27061 * t) / (1 + t * (0.99229 + 0.04481 * t))) / math.sqrt(2)
    for _ in range(4):
        # Newton's method for the logarithm of erfc, which is nearly a parabola.
        value = raw.erfc(y)
        y = y + (raw.log(value) - logarithm) * value * math.sqrt(math.pi) / 2 * raw.exp(y * y)
    y = raw.where(x > 1.0, -y, y)
    at_ends = raw.where(raw.equal(x, 0.0), raw.full([], math.inf, x.dtype), raw.full([], -math.inf, x.dtype))
    outside = raw.logical_not(raw.logical_and(x >= 0.0, x <= 2.0))
    return raw.where(outside, raw.full([], math.nan, x.dtype), raw.where(valid, y, at_ends))


@_unary
def erfcinv(x: Tensor) -> Tensor:
    """The inverse of the complementary error function, for x in [0, 2]."""
    return _erfcinv(x)


@_unary
def ndtri(x: Tensor) -> Tensor:
    """The quantile function of the standard normal distribution, for x in [0, 1]."""
    return -math.sqrt(2) * _erfcinv(2 * x)


#: The derivative of `y = f(x)`.
_SLOPES: dict[str, Callable] = {
    "bessel_i0e": lambda x, y: bessel_i1e(x) - raw.sign(x) * y,
    "bessel_i1e": lambda x, y: bessel_i0e(x) - raw.sign(x) * y - _divided_at_zero(y, x),
    "bessel_i0": lambda x, y: bessel_i1(x),
    "bessel_i1": lambda x, y: bessel_i0(x) - _divided_at_zero(y, x),
    "bessel_k0e": lambda x, y: y - bessel_k1e(x),
    "bessel_k1e": lambda x, y: y * (1 - 1 / x) - bessel_k0e(x),
    "bessel_k0": lambda x, y: -bessel_k1(x),
    "bessel_k1": lambda x, y: -bessel_k0(x) - y / x,
    "bessel_j0": lambda x, y: -bessel_j1(x),
    "bessel_j1": lambda x, y: bessel_j0(x) - _divided_at_zero(y, x),
    "bessel_y0": lambda x, y: -bessel_y1(x),
    "bessel_y1": lambda x, y: bessel_y0(x) - y / x,
    "dawsn": lambda x, y: 1 - 2 * x * y,
    "expint": lambda x, y: raw.exp(x) / x,
    "spence": lambda x, y: _spence_slope(x),
    "fresnel_cos": lambda x, y: raw.cos(math.pi / 2 * x * x),
    "fresnel_sin": lambda x, y: raw.sin(math.pi / 2 * x * x),
    "erfcinv": lambda x, y: -math.sqrt(math.pi) / 2 * raw.exp(y * y),
    "ndtri": lambda x, y: math.sqrt(2 * math.pi) * raw.exp(y * y / 2),
}

# The even Bernoulli numbers divided by (2k)!, for the Euler-Maclaurin formula.
_BERNOULLI = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)
_TERMS = 12


def _zeta(x: Tensor, q: Tensor) -> Tensor:
    """The Hurwitz zeta function for x > 1 and q > 0, by the Euler-Maclaurin formula; for integers x also for q < 0."""
    is_regular = raw.logical_or(q > 0.0, raw.logical_and(raw.equal(x, raw.floor(x)), raw.not_equal(q, raw.floor(q))))
    valid = raw.logical_and(raw.logical_and(x > 1.0, is_regular), q > -_MOST_STEPS)
    s, a = _inside(valid, x, 2.0), _inside(valid, q, 1.0)

    def is_left(a: Tensor, total: Tensor) -> Tensor:
        return raw.any(a < 0.0)

    def step(a: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        left = a < 0.0
        term = raw.pow(_inside(left, a, 1.0), -s)
        return raw.where(left, a + 1.0, a), total + raw.where(left, term, raw.zeros_like(term))

    a, total = while_loop(is_left, step, (a, raw.zeros_like(a + s)))
    for k in range(_TERMS):
        total = total + raw.pow(a + k, -s)
    end = a + _TERMS
    power = raw.pow(end, -s)
    total = total + power * end / (s - 1) + 0.5 * power
    factor = s * power / end
    for k, number in enumerate(_BERNOULLI):
        total = total + number * factor
        factor = factor * (s + (2 * k + 1)) * (s + (2 * k + 2)) / (end * end)
    pole = raw.logical_or(raw.equal(x, 1.0), raw.logical_and(raw.equal(q, raw.floor(q)), q <= 0.0))
    outside = raw.where(pole, raw.full([], math.inf, x.dtype), raw.full([], math.nan, x.dtype))
    return raw.where(valid, total, outside)


def zeta(x: TensorLike, q: TensorLike, name: str | None = None) -> Tensor:
    """The Hurwitz zeta function: the sum of (q + k)**-x for k = 0, 1, ..., for x > 1; q may be negative if x is an integer."""
    return _in_double("zeta", _zeta, x, q)


def polygamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The derivative of order `a` of the digamma function, for integers a >= 0. `a` has no gradient."""

    def one(a: Tensor, x: Tensor) -> Tensor:
        a = raw.stop_gradient(a)
        valid = raw.logical_and(raw.equal(a, raw.floor(a)), a >= 0.0)
        order = _inside(raw.logical_and(valid, a > 0.0), a, 1.0)
        sign = raw.where(raw.equal(raw.mod(order, 2.0), 0.0), raw.full([], -1.0, a.dtype), raw.full([], 1.0, a.dtype))
        found = sign * raw.exp(raw.lgamma(order + 1)) * _zeta(order + 1, x)
        found = raw.where(raw.equal(a, 0.0), raw.digamma(x), found)
        return raw.where(valid, found, raw.full([], math.nan, a.dtype))

    return _in_double("polygamma", one, a, x)


_MOST_STEPS = 2000


def _series(a: Tensor, x: Tensor) -> Tensor:
    """The sum of x**n / ((a + 1) ... (a + n)) for n = 0, 1, ..."""

    def unfinished(n: Tensor, term: Tensor, total: Tensor) -> Tensor:
        return raw.logical_and(n < _MOST_STEPS, raw.any(raw.abs(term) > raw.abs(total) * 1e-17))

    def step(n: Tensor, term: Tensor, total: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        term = term * x / (a + n + 1)
        return n + 1, term, total + term

    start = raw.ones_like(a + x)
    return while_loop(unfinished, step, (raw.full([], 0.0, x.dtype), start, start))[2]


def _fraction(numerator: Callable, denominator: Callable, start: Tensor) -> Tensor:
    """A continued fraction b0 + a1 / (b1 + a2 / (b2 + ...)), by Lentz's method; terms are functions of their number."""
    tiny = 1e-300

    def away(value: Tensor) -> Tensor:
        return raw.where(raw.abs(value) < tiny, raw.full([], tiny, value.dtype), value)

    def unfinished(n: Tensor, value: Tensor, c: Tensor, d: Tensor, change: Tensor) -> Tensor:
        return raw.logical_and(n < _MOST_STEPS, raw.any(raw.abs(change - 1) > 1e-16))

    def step(n: Tensor, value: Tensor, c: Tensor, d: Tensor, change: Tensor) -> tuple[Tensor, ...]:
        top, bottom = numerator(n), denominator(n)
        d = 1 / away(bottom + top * d)
        c = away(bottom + top / c)
        return n + 1, value * c * d, c, d, c * d

    first = away(start)
    state = (raw.full([], 1.0, start.dtype), first, first, raw.zeros_like(first), raw.zeros_like(first))
    return while_loop(unfinished, step, state)[1]


def _incomplete_gamma(a: Tensor, x: Tensor, upper: bool) -> Tensor:
    valid = raw.logical_and(a > 0.0, x > 0.0)
    below = raw.logical_and(valid, x <= a + 1)
    above = raw.logical_and(valid, x > a + 1)
    a1, x1 = _inside(below, a, 1.0), _inside(below, x, 1.0)
    a2, x2 = _inside(above, a, 1.0), _inside(above, x, 3.0)

    def weight(a: Tensor, x: Tensor) -> Tensor:
        return raw.exp(a * raw.log(x) - x - raw.lgamma(a))

    low = weight(a1, x1) * _series(a1, x1) / a1
    rest = _fraction(lambda n: n * (a2 - n), lambda n: x2 + (2 * n + 1) - a2, x2 + 1 - a2)
    high = weight(a2, x2) / rest
    found = raw.where(below, 1 - low, high) if upper else raw.where(below, low, 1 - high)
    at_zero = raw.logical_and(a > 0.0, raw.equal(x, 0.0))
    nan = raw.full([], math.nan, x.dtype)
    return raw.where(valid, found, raw.where(at_zero, _gamma_at_zero(_inside(at_zero, a, 2.0), x, upper), nan))


def _gamma_at_zero(a: Tensor, x: Tensor, upper: bool) -> Tensor:
    """The incomplete gamma function at x = 0, where its slope is infinite for a < 1, 1 for a = 1 and 0 for a > 1."""
    from ..custom_gradient import custom_gradient

    above = raw.where(a > 1.0, raw.full([], 0.0, x.dtype), raw.full([], 1.0, x.dtype))
    slope = raw.where(a < 1.0, raw.full([], math.inf, x.dtype), above)

    @custom_gradient
    def constant(x: Tensor) -> tuple[Tensor, Callable]:
        return raw.full_like(x, 1.0 if upper else 0.0), lambda upstream: upstream * (-slope if upper else slope)

    return constant(x)


def igamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The lower regularized incomplete gamma function, for a > 0 and x >= 0."""
    return _in_double("igamma", lambda a, x: _incomplete_gamma(a, x, False), a, x)


def igammac(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The upper regularized incomplete gamma function, for a > 0 and x >= 0."""
    return _in_double("igammac", lambda a, x: _incomplete_gamma(a, x, True), a, x)


def _betainc(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    valid = raw.logical_and(raw.logical_and(a > 0.0, b > 0.0), raw.logical_and(x > 0.0, x < 1.0))
    a1, b1, x1 = _inside(valid, a, 1.0), _inside(valid, b, 1.0), _inside(valid, x, 0.5)
    # The fraction converges fast below the mean; above it, the symmetric one does.
    swapped = x1 > (a1 + 1) / (a1 + b1 + 2)
    p, q, z = raw.where(swapped, b1, a1), raw.where(swapped, a1, b1), raw.where(swapped, 1 - x1, x1)

    def numerator(n: Tensor) -> Tensor:
        m = raw.floor(n / 2)
        even = m * (q - m) / ((p + 2 * m - 1) * (p + 2 * m))
        odd = -(p + m) * (p + q + m) / ((p + 2 * m) * (p + 2 * m + 1))
        return z * raw.where(raw.equal(raw.mod(n, 2.0), 0.0), even, odd)

    fraction = _fraction(numerator, lambda n: raw.ones_like(z), raw.ones_like(z))
    logarithm = p * raw.log(z) + q * raw.log1p(-z) + raw.lgamma(p + q) - raw.lgamma(p) - raw.lgamma(q)
    found = raw.exp(logarithm) / (p * fraction)
    found = raw.where(swapped, 1 - found, found)
    edges = raw.logical_and(raw.logical_and(a > 0.0, b > 0.0), raw.logical_or(raw.equal(x, 0.0), raw.equal(x, 1.0)))
    return raw.where(valid, found, raw.where(edges, x, raw.full([], math.nan, x.dtype)))


def betainc(a: TensorLike, b: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The regularized incomplete beta function, for a > 0, b > 0 and x in [0, 1]."""
    return _in_double("betainc", _betainc, a, b, x)


def nextafter(x1: TensorLike, x2: TensorLike, name: str | None = None) -> Tensor:
    """The next number of the type of `x1` in the direction of `x2`."""
    from ..array_api._elementwise import nextafter as next_number
    from ..custom_gradient import custom_gradient

    x1, x2 = as_tensor(x1), as_tensor(x2)
    shape = np.broadcast_shapes(tuple(x1.shape), tuple(x2.shape))

    @custom_gradient
    def found(x1: Tensor, x2: Tensor) -> Any:
        return next_number(x1, x2), lambda upstream: (upstream, raw.zeros_like(x2))

    return found(raw.broadcast_to(x1, shape), raw.broadcast_to(x2, shape))
