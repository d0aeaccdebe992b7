"""A trainer, a policy or a reward signal of an installed package as others see it: its errors name the package."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray

from rl_tui.engine import registry
from rl_tui.engine.errors import PluginError
from rl_tui.engine.learning.acting.policy import ActorPolicy
from rl_tui.engine.learning.full_memory import needing_memory
from rl_tui.engine.learning.policy_copies import MakePolicy
from rl_tui.engine.learning.policy_module import PolicyModule
from rl_tui.engine.specs import Policy, State

T = TypeVar("T")
ABSENT = object()


def checked(kind: str, name: str, plugin: T, base: type, counts: Iterable[str]) -> T:
    """`plugin`, behind an InstalledPlugin where a package has installed `name`.

    base: whose methods it has where it defines none. counts: attributes that must be whole numbers. Raises PluginError
    for these, and for a state that cannot be saved, OutOfMemory.
    """
    if not registry.package_of(kind, name):
        return plugin
    wrapper = InstalledPlugin(kind, name, plugin, base)
    for attribute in counts:
        wrapper.require_count(attribute)
    wrapper.state()  # what cannot be saved is not trained
    return cast(T, wrapper)


class InstalledPlugin:
    """Has the attributes and methods of `plugin`. These raise PluginError or OutOfMemory, and what they return
    is checked. Owns the names, dtypes and shapes of the first state."""

    def __init__(self, kind: str, name: str, plugin: object, base: type):
        """kind and name: of the registry."""
        self._kind = kind
        self._name = name
        self._plugin = plugin
        self._base = base
        self._first_state: dict[str, str] | None = None

    def __getattr__(self, attribute: str) -> Any:  # whatever the plug-in has
        found = self._found(attribute)
        return partial(self._call, attribute, found) if callable(found) else found

    def __deepcopy__(self, memo: dict[int, Any]) -> InstalledPlugin:
        return InstalledPlugin(self._kind, self._name, copy.deepcopy(self._plugin, memo), self._base)

    def _found(self, attribute: str) -> object:
        with registry.blaming(self._kind, self._name, attribute):
            try:
                return getattr(self._plugin, attribute)
            except AttributeError:
                if inspect.getattr_static(self._plugin, attribute, ABSENT) is not ABSENT:
                    raise  # by its property
        if callable(default := getattr(self._base, attribute, None)):
            return partial(default, self._plugin)
        raise AttributeError(f"{type(self._plugin).__name__} has no attribute {attribute}")

    def _call(self, method: str, call: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        with registry.blaming(self._kind, self._name, method), needing_memory("training"):
            returned = call(*arguments, **keywords)
            match method:
                case "state" | "snapshot" if method == "state" or isinstance(returned, State):
                    return self._state(returned)
                case "update" | "loss":
                    return self._metrics(method, returned)
                case "evaluate" | "evaluate_transitions":
                    return self._rewards(method, returned, arguments[0].num_rows)
                case "make_policy":
                    return _checked_policy(self._kind, self._name, returned)
                case "policy_maker":
                    return partial(_make_checked, self._kind, self._name, returned)  # holds no trainer, as the other
                case "policy_module" if not isinstance(returned, PolicyModule):
                    raise self._wrong(f"{method} must return a PolicyModule, got {_described(returned)}")
        return returned

    def _state(self, found: object) -> State:
        """A State with the same arrays as the first one."""
        if not isinstance(found, State):
            raise self._wrong(f"state must return a State of numpy arrays, got {_described(found)}")
        tensors: Mapping[str, object] = found.tensors
        for name, array in tensors.items():
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
                raise self._wrong(
                    f"state must return a State of numpy arrays of numbers, got {name}: {_described(array)}"
                )
        try:
            json.dumps(found.values)
        except (TypeError, ValueError) as error:
            raise self._wrong(f"the values of its state must be plain JSON: {error}") from error
        arrays = {name: _described(array) for name, array in found.tensors.items()}
        first = self._first_state = arrays if self._first_state is None else self._first_state
        for name in {**first, **arrays}:
            was, now = first.get(name, "none"), arrays.get(name, "none")
            if was != now:
                text = f"state must always return the same arrays, or no run can be resumed: {name} was {was}, is {now}"
                raise self._wrong(text)
        return found

    def _rewards(self, method: str, found: object, num_rows: int) -> NDArray[np.floating]:
        """A number for each of so many steps."""
        is_array = isinstance(found, np.ndarray) and found.dtype.kind in "biuf"
        if not isinstance(found, np.ndarray) or not is_array or found.shape != (num_rows,):
            raise self._wrong(f"{method} must return a numpy array f32[{num_rows}], got {_described(found)}")
        return found

    def _metrics(self, method: str, found: object) -> dict[str, float | torch.Tensor]:
        """Numbers by tag; of a reward signal also tensors, without what they were computed from."""
        if not isinstance(found, Mapping):
            raise self._wrong(f"{method} must return a mapping from tags to numbers, got {_described(found)}")
        for tag, number in found.items():
            if not isinstance(tag, str):
                raise self._wrong(f"{method} must return a mapping from tags to numbers, got the tag {tag!r}")
            is_one = number.numel() == 1 if isinstance(number, torch.Tensor) else np.ndim(number) == 0
            if not is_one or not isinstance(number, int | float | np.number | np.ndarray | torch.Tensor):
                text = f"{method} must return numbers or tensors of one element, got {tag}: {_described(number)}"
                raise self._wrong(text)
        keeps_tensors = self._kind != "trainers"
        is_kept = {tag: keeps_tensors and isinstance(number, torch.Tensor) for tag, number in found.items()}
        return {tag: number.detach() if is_kept[tag] else float(number) for tag, number in found.items()}

    def require_count(self, attribute: str) -> None:
        """The attribute is a whole number that is not negative. Raises PluginError."""
        found = self._found(attribute)
        if not isinstance(found, int | np.integer) or isinstance(found, bool) or found < 0:
            must = f"{attribute} must be a whole number, or a property that is one"
            raise self._wrong(f"{must}, got {_described(found)}")

    def _wrong(self, text: str) -> PluginError:
        return registry.refused(self._kind, self._name, text)


def _make_checked(kind: str, name: str, make_policy: MakePolicy, is_greedy: bool) -> Policy:
    with registry.blaming(kind, name, "make_policy"):
        return _checked_policy(kind, name, make_policy(is_greedy))


def _checked_policy(kind: str, name: str, policy: Policy) -> Policy:
    """Its errors name the package, too; an ActorPolicy, which can also evaluate actions, stays what it is."""
    return policy if isinstance(policy, ActorPolicy) else cast(Policy, InstalledPlugin(kind, name, policy, base=object))


def _described(found: object) -> str:
    """In a few words, such as "None", "a method", "float32[3, 1]"."""
    if found is None:
        return "None"
    if isinstance(found, np.ndarray):
        return f"{found.dtype}{list(found.shape)}"
    if isinstance(found, torch.Tensor):
        return f"a Tensor of shape {list(found.shape)}"
    if isinstance(found, int | float | str):
        return repr(found)
    return "a method" if callable(found) else type(found).__name__
