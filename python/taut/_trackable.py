"""The variables and other states of objects by path, and values that wait for variables which are created later."""

from __future__ import annotations

import contextlib
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from . import _native
from ._common import refuse
from .errors import InvalidArgumentError
from .mutable_tables import MutableHashTable

#: Objects that save a state of their own have these methods: `_saved_state() -> tensor`, `_restore_state(tensor)`, and
#: `_check_state(path, tensor)` if some tensors cannot be restored.
_STATE = "_saved_state"


class Leaf:
    """A state that is saved under one name: a variable, or that of an object such as an iterator."""

    def __init__(self, thing: Any) -> None:
        self._state = thing if hasattr(thing, _STATE) else None
        self._variable = variable_of(thing) if self._state is None else None

    @property
    def exists(self) -> bool:
        """Whether there is a value."""
        return self._state is not None or self._variable is not None

    @property
    def is_table(self) -> bool:
        """Whether it is a lookup table."""
        return isinstance(self._state, MutableHashTable)

    @property
    def identity(self) -> int:
        """A number that no other state has."""
        return id(self._state) if self._variable is None else id(self._variable)

    def as_variable(self) -> _native.Variable:
        """The state as a variable."""
        if self._variable is not None:
            return self._variable
        return _native.Variable(self._state._saved_state(), False, None, None)  # type: ignore[union-attr]

    def check(self, path: str, value: _native.Tensor) -> None:
        """Raises an error if a value does not fit."""
        own = self._variable
        if hasattr(self._state, "_check_state"):
            self._state._check_state(path, value)  # type: ignore[union-attr]
        if own is not None and (own.dtype != value.dtype or tuple(own.shape) != tuple(value.shape)):
            want, got = f"{own.dtype.name}{list(own.shape)}", f"{value.dtype.name}{list(value.shape)}"
            text = f"{path} must have the type and shape of its variable, {want}, got {got}"
            refuse("Checkpoint.restore", text, InvalidArgumentError)

    def restore(self, value: _native.Tensor) -> None:
        """Takes a value."""
        with _native.InitScope():
            if self._variable is not None:
                self._variable._assign(value)
            else:
                self._state._restore_state(value)  # type: ignore[union-attr]


def variable_of(thing: Any) -> _native.Variable | None:
    """The variable behind an object; None if a variable of Keras is not initialized yet."""
    if isinstance(thing, _native.Variable):
        return thing
    return None if getattr(thing, "_value", thing) is None else thing.__taut_variable__()


def leaves(objects: dict[str, Any], aliases: dict[str, str] | None = None) -> dict[str, Leaf]:
    """All states of named objects, by path: `model/layers/0/kernel`. The parts of `root` have no prefix.

    The other paths of objects that have several are added to `aliases`, with the path under which the object was found.
    """
    found: dict[str, Leaf] = {}
    seen: dict[int, str] = {}
    # Lists that are made on the way stay alive, so that no two objects have the same id.
    visited: list[Any] = []

    def known(identity: int, path: str) -> bool:
        first = seen.get(identity)
        if first and path and first != path and aliases is not None:
            aliases[path] = first
        return first is not None

    def visit(thing: Any, path: str) -> None:
        if _is_leaf(thing):
            leaf = Leaf(thing)
            if leaf.exists and not known(leaf.identity, path):
                seen[leaf.identity] = path = _free(path, found)
                found[path] = leaf
        elif not known(id(thing), path):
            seen[id(thing)] = path
            visited.append(thing)
            for name, part in _parts(thing):
                visit(part, f"{path}/{name}" if path else name)

    for name, thing in objects.items():
        visit(thing, "" if name == "root" and not _is_leaf(thing) else name)
    return found


def _free(path: str, taken: dict[str, Leaf]) -> str:
    """The path, with a number if another state has it."""
    number = 1
    while path in taken and f"{path}_{number}" in taken:
        number += 1
    return f"{path}_{number}" if path in taken else path


def _is_leaf(thing: Any) -> bool:
    return not isinstance(thing, type) and (
        isinstance(thing, _native.Variable) or hasattr(thing, "__taut_variable__") or hasattr(thing, _STATE)
    )


def part_named(thing: Any, name: str, default: Any) -> Any:
    """The part of an object that has this name."""
    return default if thing is None or _is_leaf(thing) else dict(_parts(thing)).get(name, default)


def is_keras_variable(thing: Any) -> bool:
    """Whether it is a variable of Keras."""
    return hasattr(type(thing), "_taut_read")


def parts(thing: Any) -> list[tuple[str, Any]]:
    """The parts of an object that may hold states, with their names."""
    return list(_parts(thing))


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """The parts of an object that may hold states, with their names."""
    if isinstance(thing, _Watched) and thing.is_left_behind():
        text = "a list or dict was assigned to an attribute and changed later: the attribute does not have the change"
        refuse(
            "Checkpoint", f"{text}\n  help: change the attribute, such as checkpoint.variables.append(v)", ValueError
        )
    if isinstance(thing, dict):
        yield from ((str(key), part) for key, part in thing.items())
    elif isinstance(thing, (list, tuple)):
        yield from ((str(i), part) for i, part in enumerate(thing))
    elif _is_checkpoint(thing):
        yield from thing._objects().items()
    elif is_layer(thing):
        yield from _layer_parts(thing)
    elif _is_module(thing) or not _lists_variables(thing):
        yield from _attributes(thing, private=True)
    elif hasattr(thing, "apply_gradients") or not hasattr(thing, "add_variable"):
        # Those of an optimizer whose state is sharded are saved whole.
        yield "variables", list(thing._saved_variables() if hasattr(thing, "_saved_variables") else thing.variables)
    else:  # a metric of Keras
        yield from _named(thing.variables)


def _layer_parts(layer: Any) -> Iterator[tuple[str, Any]]:
    """The variables of a Keras layer by name, its parts by attribute, and its other layers by number."""
    yield from _named([*layer._trainable_variables, *layer._non_trainable_variables])
    attributes = [
        (name, part)
        for name, part in _attributes(layer, private=True)
        if name != "layers" and (name[:1] != "_" or _is_own_state(part))
    ]
    yield from attributes
    held = {id(leaf) for _, part in attributes for leaf in _flat(part)}
    inner = list(getattr(layer, "layers", layer._layers))
    rest = {str(i): one for i, one in enumerate(inner) if id(one) not in held}
    known = {id(one) for one in inner} | held
    rest.update((f"inner_{i}", one) for i, one in enumerate(layer._layers) if id(one) not in known)
    if rest:
        yield "layers", rest
    yield "seed_generators", [one for one in layer._seed_generators if id(one) not in held]


def _is_own_state(part: Any) -> bool:
    """Whether a private attribute of a layer is the user's: Keras's own ones hold variables, layers and metrics of Keras."""
    states = [leaf for leaf in _flat(part) if holds_states(leaf)]
    return bool(states) and all(
        isinstance(one, _native.Variable) or _is_module(one) or hasattr(one, _STATE) for one in states
    )


def _named(variables: list) -> Iterator[tuple[str, Any]]:
    """Variables by their own names, which are numbered if they are equal."""
    counts: dict[str, int] = {}
    for variable in variables:
        name = str(getattr(variable, "name", "variable")).split(":")[0].replace("/", "_")
        number = counts.get(name, 0)
        counts[name] = number + 1
        yield f"{name}_{number}" if number else name, variable


def _attributes(thing: Any, private: bool) -> list[tuple[str, Any]]:
    if isinstance(thing, _PLAIN) or callable(getattr(thing, "__array__", None)):
        return []
    every = getattr(thing, "__dict__", {}).items()
    return [(name, part) for name, part in every if (private or name[:1] != "_") and holds_states(part)]


def _flat(part: Any) -> list:
    if isinstance(part, dict):
        return [leaf for inner in part.values() for leaf in _flat(inner)]
    return [leaf for inner in part for leaf in _flat(inner)] if isinstance(part, (list, tuple)) else [part]


def is_layer(thing: Any) -> bool:
    """Whether it is a layer or a model of Keras."""
    return not isinstance(thing, type) and hasattr(thing, "_trainable_variables") and hasattr(thing, "_seed_generators")


def _is_module(thing: Any) -> bool:
    return isinstance(getattr(type(thing), "submodules", None), property)


def _lists_variables(thing: Any) -> bool:
    return not isinstance(thing, type) and isinstance(getattr(thing, "variables", None), (list, tuple))


def _is_checkpoint(thing: Any) -> bool:
    return isinstance(getattr(type(thing), "save_counter", None), property)


def holds_states(thing: Any, seen: set[int] | None = None) -> bool:
    """Whether an object has states to save, or may create some later."""
    if (
        _is_checkpoint(thing)
        or _is_leaf(thing)
        or is_layer(thing)
        or _lists_variables(thing)
        or hasattr(thing, "_taut_is_constant")
    ):
        return True
    seen = set() if seen is None else seen
    if id(thing) in seen or isinstance(thing, _PLAIN) or callable(getattr(thing, "__array__", None)):
        return False
    seen.add(id(thing))
    if isinstance(thing, dict):
        return any(holds_states(part, seen) for part in thing.values())
    if isinstance(thing, (list, tuple)):
        return any(holds_states(part, seen) for part in thing)
    return any(holds_states(part, seen) for part in getattr(thing, "__dict__", {}).values())


#: Objects whose attributes are not searched for states.
_PLAIN = (
    type,
    str,
    bytes,
    int,
    float,
    _native.Array,
    types.ModuleType,
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
)


def check_trackable(name: str, thing: Any) -> None:
    """Raises ValueError for an object that a checkpoint would leave out."""
    if isinstance(thing, dict):
        for key, part in thing.items():
            check_trackable(f"{name}/{key}", part)
    elif isinstance(thing, (list, tuple)):
        for i, part in enumerate(thing):
            check_trackable(f"{name}/{i}", part)
    elif not holds_states(thing):
        text = (
            f"{name} must be a variable, or an object that holds variables or another state, got {thing!r}\n"
            "  help: make it a tf.Variable to save it"
        )
        refuse("Checkpoint", text, ValueError)


class Restore:
    """Values of a file for an object. Those without a variable wait until it is created."""

    def __init__(
        self, roots: dict[str, Any], values: dict[str, _native.Tensor], aliases: dict[str, str] | None = None
    ) -> None:
        self._aliases = aliases or {}
        self._roots = {name: _weak(thing) for name, thing in roots.items()}
        self.values = values
        self.taken: set[str] = set()
        self.missing: list[str] = []

    def roots(self) -> dict[str, Any]:
        """The objects that still exist."""
        found = {name: held() for name, held in self._roots.items()}
        return {name: thing for name, thing in found.items() if thing is not None}

    def add(self, name: str, thing: Any) -> None:
        """Adds an object."""
        self._roots[name] = _weak(thing)

    def apply(self) -> None:
        """Restores the variables that exist and have not been restored."""
        own_aliases: dict[str, str] = {}
        own = leaves(self.roots(), own_aliases)
        found = [(path, self._stored(path, own_aliases), leaf) for path, leaf in own.items() if path not in self.taken]
        ready = [(path, stored, leaf) for path, stored, leaf in found if stored is not None]
        for path, stored, leaf in ready:
            leaf.check(path, self.values[stored])
        for path, stored, leaf in ready:
            leaf.restore(self.values[stored])
            self.taken.add(path)
        # The file may have several values for what is one object here: the others are not waited for.
        first_of = {first: other for other, first in own_aliases.items()}
        for path, stored, _ in ready:
            for name in (stored, *_other_paths(path, first_of)):
                self.values.pop(name, None)
        self.missing = [path for path in own if path not in self.taken]

    def _stored(self, path: str, own_aliases: dict[str, str]) -> str | None:
        """The name of the value in the file for the state of a path; None if there is none.

        An object can have several paths, here and in the object that was saved, and the file has the value under one.
        """
        paths = [path, *_other_paths(path, {first: other for other, first in own_aliases.items()})]
        candidates = paths + [other for one in paths for other in _other_paths(one, self._aliases)]
        return next((one for one in candidates if one in self.values), None)

    def has_matches(self) -> bool:
        """Whether a variable has a value of the file, or an object waits for variables."""
        names = {name for name, thing in self.roots().items() if not _is_leaf(thing)}
        return bool(self.taken) or any(path.split("/")[0] in names for path in self.values)

    def waits_for(self, path: str) -> bool:
        """Whether the variable of a path belongs to a layer or an optimizer that is not built yet."""
        roots = self.roots()
        return _is_unbuilt_on_path({name: thing for name, thing in roots.items() if name != "root"}, path) or (
            "root" in roots and _is_unbuilt_on_path(roots["root"], path)
        )


def _other_paths(path: str, replaced: dict[str, str]) -> list[str]:
    """The paths that result from replacing the path, or one of the objects on the way to it."""
    parts = path.split("/")
    heads = ["/".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return [replaced[head] + path[len(head) :] for head in heads if head in replaced]


def _is_unbuilt_on_path(thing: Any, path: str) -> bool:
    """Whether an object that is not built yet is on the way to a path inside of this object."""
    if _is_leaf(thing) or not path:
        return False
    if (is_layer(thing) or hasattr(thing, "apply_gradients")) and not getattr(thing, "built", True):
        return True
    rests = ((part, path.removeprefix(f"{name}/")) for name, part in _parts(thing))
    return any(rest != path and _is_unbuilt_on_path(part, rest) for part, rest in rests)


def _weak(thing: Any) -> Any:
    """A weak reference to an object; a strong one if it does not support weak references."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing


_waiting: list[Restore] = []

#: Called with whether values wait, when that changes.
_observers: list[Callable[[bool], None]] = []


def observe_waiting(observer: Callable[[bool], None]) -> None:
    """Calls a function when values begin to wait for their variables, and when none wait any longer."""
    _observers.append(observer)


def wait(restore: Restore) -> None:
    """Keeps values until their variables are created."""
    if restore.values:
        _waiting.append(restore)
        for observer in _observers:
            observer(True)


def cancel(restore: Restore) -> None:
    """Drops the values that still wait."""
    if restore in _waiting:
        _waiting.remove(restore)
        for observer in _observers:
            observer(bool(_waiting))


def variables_made(thing: Any) -> None:
    """Called with an object that may have created variables: they take the values that wait for them."""
    if not _waiting or not holds_states(thing):
        return
    for restore in list(_waiting):
        if restore.roots():
            try:
                restore.apply()
            except ValueError as error:
                # The other variables of the program must not fail for it, too.
                cancel(restore)
                refused.update(
                    (one, error) for root in restore.roots().values() for one in _flat(root) if is_layer(one)
                )
                if _collected.errors is None:
                    raise
                _collected.errors.append(error)
        if not restore.values or not restore.roots():
            cancel(restore)


#: Layers of Keras whose variables a value did not fit, with the error. Keras drops errors of the symbolic call that builds a
#: model, so it is raised again by the call itself.
refused: weakref.WeakKeyDictionary[Any, ValueError] = weakref.WeakKeyDictionary()


class _Collected(threading.local):
    errors: list[ValueError] | None = None


_collected = _Collected()


@contextlib.contextmanager
def errors_at_the_end() -> Iterator[None]:
    """Raises the first error of values that fit no variable when it is left: the other variables are created before."""
    before, errors = _collected.errors, []  # type: ignore[var-annotated]
    _collected.errors = errors
    try:
        yield
    finally:
        _collected.errors = before
    if errors:
        raise errors[0]


def raise_refused(layer: Any) -> None:
    """Raises the error of a layer whose variables a value did not fit, once."""
    if error := refused.pop(layer, None):
        raise error


def watched(value: Any) -> Any:
    """A list or dict as one that restores the variables it receives, while values wait for variables; else the value itself."""
    if not _waiting:
        return value
    if type(value) is list:
        return _WatchedList(value)
    return _WatchedDict(value) if type(value) is dict else value


def _watching(name: str) -> Any:
    """A method that changes a list or dict, after which new variables take the values that wait for them."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = getattr(super(type(self), self), name)(*args, **kwargs)
        variables_made(self)
        return made

    return method


class _Watched:
    """A copy of a list or dict, with the original: a change of that one is not seen here."""

    def __init__(self, given: Any) -> None:
        super().__init__(given)  # type: ignore[call-arg]
        self._given, self._at_first = given, type(given)(given)

    def is_left_behind(self) -> bool:
        """Whether the original was changed after it was assigned."""
        now, then = (list(one.items()) if isinstance(one, dict) else one for one in (self._given, self._at_first))
        return len(now) != len(then) or any(a is not b for a, b in zip(_flat(now), _flat(then)))


class _WatchedList(_Watched, list):
    """A list that restores the variables it receives."""

    append, extend, insert = _watching("append"), _watching("extend"), _watching("insert")
    __setitem__, __iadd__ = _watching("__setitem__"), _watching("__iadd__")


class _WatchedDict(_Watched, dict):
    """A dict that restores the variables it receives."""

    __setitem__, update, setdefault = _watching("__setitem__"), _watching("update"), _watching("setdefault")
