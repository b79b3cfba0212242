"""Optimizers with a fused in-place update: one pass over a variable, or over the rows that a sparse gradient names.

They take Keras's settings and give Keras's results, except for sparse gradients (`tf.IndexedSlices`), which update and
read only their rows. `tf.keras.optimizers` has Keras's own optimizers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import _namespace, _native
from ._trackable import variables_made
from .open_variable import held
from .recording import call_recorded
from .replay import unrecorded
from .tape import GradientTape


def _apply(optimizer: Optimizer, pairs: list) -> None:
    assert optimizer._native is not None
    optimizer._native.apply(pairs)


class Optimizer:
    """Base class: updates variables by their gradients. The state is created for the first variables it is given."""

    _settings: tuple[str, ...] = ()
    _default_rate = 0.001

    def __init__(
        self,
        learning_rate: Any = None,
        *,
        clipvalue: float | None = None,
        clipnorm: float | None = None,
        global_clipnorm: float | None = None,
        weight_decay: float | None = None,
        name: str | None = None,
        **settings: float | bool,
    ) -> None:
        unknown = set(settings) - set(self._settings)
        if unknown:
            raise TypeError(
                f"{type(self).__name__}() got an unexpected argument {sorted(unknown)[0]!r}; "
                f"its settings are {', '.join(self._settings)}"
            )
        clips = {"value": clipvalue, "norm": clipnorm, "global": global_clipnorm}
        given = [(kind, bound) for kind, bound in clips.items() if bound is not None]
        if len(given) > 1:
            raise ValueError(f"at most one of clipvalue, clipnorm and global_clipnorm may be given, got {len(given)}")
        self.name = name or type(self).__name__.lower()
        self._rate = self._default_rate if learning_rate is None else learning_rate
        self._clip = given[0] if given else None
        self._decay = weight_decay
        self._given = {name: float(value) for name, value in settings.items()}
        self._native: _native.Optimizer | None = None

    def build(self, var_list: Iterable) -> None:
        """Creates the state for these variables. The first `apply_gradients` does it otherwise."""
        if self._native is not None:
            raise ValueError(f"{self.name} is already built")
        # The state has the size of a variable with open dimensions at this moment, and is that of no other one.
        variables = [held(variable) for variable in var_list]
        settings = dict(self._given)
        decay = self._decay
        if "weight_decay" in self._settings and decay is not None:
            settings["weight_decay"], decay = decay, None
        with unrecorded(), _native.InitScope():
            self._native = _native.Optimizer(type(self).__name__, self._rate, variables, settings, self._clip, decay)
        variables_made(self)

    def apply_gradients(self, grads_and_vars: Iterable, name: str | None = None) -> None:
        """Updates each variable by its gradient; variables whose gradient is None are skipped."""
        pairs = [tuple(pair) for pair in grads_and_vars]
        if not pairs:
            raise ValueError("grads_and_vars must not be empty")
        if self._native is None:
            self.build([variable for _, variable in pairs])
        assert self._native is not None
        call_recorded(_apply, self, [(gradient, held(variable)) for gradient, variable in pairs])
        for gradient, variable in pairs:
            constraint = getattr(variable, "constraint", None)
            if gradient is not None and constraint is not None:
                variable.assign(constraint(variable))

    def minimize(self, loss: Any, var_list: Any, tape: Any = None) -> None:
        """Computes the gradients of a loss (a function, or a tensor with its tape) and applies them."""
        if callable(loss):
            with GradientTape() as tape:
                loss = loss()
        if tape is None:
            raise ValueError("tape must be given if the loss is a tensor")
        variables = list(var_list() if callable(var_list) else var_list)
        self.apply_gradients(zip(tape.gradient(loss, variables), variables))

    @property
    def built(self) -> bool:
        """Whether the state has been created."""
        return self._native is not None

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next update."""
        if self._native is None:
            return float(self._rate(0.0) if callable(self._rate) else self._rate)
        return self._native.rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        if self._native is None:
            self._rate = rate
        else:
            self._native.set_rate(float(rate))

    @property
    def iterations(self) -> Any:
        """The number of updates so far."""
        return 0 if self._native is None else self._native.iterations

    @property
    def variables(self) -> list:
        """The optimizer's variables: the number of updates, and the state of each variable."""
        return [] if self._native is None else [variable for _, variable in self._native.named()]

    def __repr__(self) -> str:
        return f"<tf.optimizers.{type(self).__name__} learning_rate={self.learning_rate}>"


class SGD(Optimizer):
    """Stochastic gradient descent, with optional momentum."""

    _settings = ("momentum", "nesterov")
    _default_rate = 0.01


class Adam(Optimizer):
    """Adam; lazy for sparse gradients."""

    _settings = ("beta_1", "beta_2", "epsilon", "amsgrad")


class AdamW(Optimizer):
    """Adam with decoupled weight decay."""

    _settings = ("weight_decay", "beta_1", "beta_2", "epsilon", "amsgrad")

    def __init__(self, learning_rate: Any = None, weight_decay: float = 0.004, **kwargs: Any) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, **kwargs)


class RMSprop(Optimizer):
    """RMSprop."""

    _settings = ("rho", "momentum", "epsilon", "centered")


class Adagrad(Optimizer):
    """Adagrad."""

    _settings = ("initial_accumulator_value", "epsilon")


class Adadelta(Optimizer):
    """Adadelta."""

    _settings = ("rho", "epsilon")


class Adamax(Optimizer):
    """Adamax."""

    _settings = ("beta_1", "beta_2", "epsilon")


class Nadam(Optimizer):
    """Adam with Nesterov momentum."""

    _settings = ("beta_1", "beta_2", "epsilon")


class Lion(Optimizer):
    """Lion."""

    _settings = ("beta_1", "beta_2")


class Adafactor(Optimizer):
    """Adafactor, whose state is a row and a column per matrix."""

    _settings = ("beta_2_decay", "epsilon_1", "epsilon_2", "clip_threshold")


class Ftrl(Optimizer):
    """FTRL."""

    _settings = (
        "learning_rate_power",
        "initial_accumulator_value",
        "l1_regularization_strength",
        "l2_regularization_strength",
        "l2_shrinkage_regularization_strength",
        "beta",
    )


__all__ = [
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Lion",
    "Nadam",
    "Optimizer",
    "RMSprop",
]
__getattr__, __dir__ = _namespace.plain(__name__)
