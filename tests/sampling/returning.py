"""Environments that return, or raise, something else than they should at their third step, or when they are reset."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import AECEnv, ParallelEnv

AT = 3  # the step that goes wrong


class Evil:
    """Raises whatever is asked of it."""

    def _refuse(self, *_: object) -> NoReturn:
        raise RuntimeError("evil")

    __bool__ = __len__ = __iter__ = __float__ = __int__ = __array__ = __str__ = __repr__ = __eq__ = _refuse  # type: ignore[assignment]
    __hash__ = object.__hash__


class Mute(Exception):
    """Cannot say what it is about."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Numbered(Exception):
    """Says what is no text."""

    __str__ = int  # type: ignore[assignment]


class Quitting(Exception):
    """Would end the program."""

    def __str__(self) -> str:
        raise SystemExit(0)


class Laden(Exception):
    """Has attributes that look like our own, and notes that are none."""

    detail = 5
    exit_code = "none"
    __notes__ = 5  # type: ignore[assignment]


class Bare(BaseException):
    """No Exception."""


VALUES: dict[str, Any] = {
    "None": None,
    "text": "no",
    "a text of a number": "1",
    "escapes": "\x1b[31mred\x07",
    "NaN": float("nan"),
    "infinity": float("inf"),
    "an enormous number": 10**400,
    "2": 2,
    "a complex number": 1j,
    "bytes": b"x",
    "a list": [1, 2],
    "a ragged list": [1, [2, 3]],
    "a mapping": {},
    "a set": {1, 2},
    "an object": object(),
    "a class": int,
    "a date": datetime.date(2000, 1, 1),
    "an empty array": np.empty(0, np.float32),
    "a large array": np.zeros((40, 40), np.float32),
    "an array of texts": np.array(["a", "b", "c"]),
    "an array of texts of numbers": np.array(["1", "2", "3"]),
    "an array of objects": np.array([None, {}, ()], object),
    "an array of complex numbers": np.array([1j, 2, 3]),
    "an array of dates": np.array(["2000-01-01"] * 3, "datetime64[D]"),
    "an array of NaN": np.full(3, np.nan),
    "an array of 1e300": np.full(3, 1e300),
    "a generator": (one for one in ()),
    "what raises": Evil(),
}
ERRORS: dict[str, Callable[[], BaseException]] = {
    "Mute": Mute,
    "Numbered": Numbered,
    "Quitting": Quitting,
    "Laden": lambda: Laden("laden"),
    "Bare": lambda: Bare("bare"),
    "GeneratorExit": GeneratorExit,
    "SystemExit": lambda: SystemExit(0),
    "SystemExit of nothing": SystemExit,
    "StopIteration": StopIteration,
    "a group": lambda: ExceptionGroup("some", [Mute(), ValueError("one")]),
    "a SyntaxError": lambda: SyntaxError("odd", ("file.py", None, None, None)),  # type: ignore[arg-type]
    "a SyntaxError of numbers": lambda: SyntaxError(1, (2, "3", 4, 5)),  # type: ignore[arg-type]
    "one of a class without a module": lambda: type("Stray", (Exception,), {"__module__": 5})("stray"),
    "a bare SyntaxError": SyntaxError,
    "a UnicodeDecodeError": lambda: UnicodeDecodeError("utf-8", b"x", 0, 1, "odd"),
    "a MemoryError": MemoryError,
    "a RecursionError": lambda: RecursionError("deep"),
    "escapes": lambda: ValueError("\x1b[31mred\x07"),
    "a long one": lambda: ValueError("x" * 100_000),
    "surrogates": lambda: ValueError("\ud800"),
    "not a text": lambda: ValueError({"a": 1}, None),
}


def raised(name: str) -> NoReturn:
    """Raise that error."""
    raise ERRORS[name]()


class Returning(gymnasium.Env[Any, Any]):
    """part: what is replaced by a value: an element of what `step` returns, all of it, or what `reset` returns.

    With the part "raises" it raises that error instead, with "resets" when it is reset for the second time.
    """

    observation_space = Box(-1, 1, (3,), np.float32)
    action_space = Discrete(2)
    parts = "observation", "reward", "terminated", "truncated", "info"

    def __init__(self, part: str, value: str) -> None:
        self._part, self._value = part, value
        self._count = 0

    def reset(self, **_: Any) -> Any:
        returned = np.zeros(3, np.float32), {}
        return VALUES[self._value] if self._part == "reset" else returned

    def step(self, action: Any) -> Any:
        self._count += 1
        returned: list[Any] = [np.zeros(3, np.float32), 0.0, False, False, {}]
        if self._count == AT:
            if self._part == "raises":
                raised(self._value)
            if self._part == "step":
                return VALUES[self._value]
            returned[self.parts.index(self._part)] = VALUES[self._value]
        return tuple(returned)


class Parallel(ParallelEnv[str, Any, Any]):
    """Two agents, of which the first gets the value; with a part in capitals the whole mapping is it."""

    metadata = {"name": "parallel"}
    possible_agents = ["a", "b"]
    parts = "observations", "rewards", "terminations", "truncations", "infos"

    def __init__(self, part: str, value: str) -> None:
        self._part, self._value = part, value
        self._count = 0
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> Box:
        return Returning.observation_space

    def action_space(self, agent: str) -> Discrete:
        return Returning.action_space

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents = ["a", "b"]
        if self._part == "reset":
            return VALUES[self._value]
        return {agent: np.zeros(3, np.float32) for agent in self.agents}, {agent: {} for agent in self.agents}

    def step(self, actions: Any) -> Any:
        self._count += 1
        usual = np.zeros(3, np.float32), 0.0, False, False, {}
        returned: list[Any] = [dict.fromkeys(self.agents, one) for one in usual]
        if self._count == AT:
            if self._part == "raises":
                raised(self._value)
            if self._part == "step":
                return VALUES[self._value]
            index = self.parts.index(self._part.lower())
            if self._part.isupper():
                returned[index] = VALUES[self._value]
            else:
                returned[index]["a"] = VALUES[self._value]
        return tuple(returned)


class InTurns(AECEnv[str, Any, Any]):
    """The same for agents that take turns."""

    metadata = {"name": "in_turns"}
    possible_agents = ["a", "b"]
    parts = Returning.parts

    def __init__(self, part: str, value: str) -> None:
        self._part, self._value = part, value
        self._count = 0

    def observation_space(self, agent: str) -> Box:
        return Returning.observation_space

    def action_space(self, agent: str) -> Discrete:
        return Returning.action_space

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents = ["a", "b"]
        self.agent_selection = "a"

    def step(self, action: Any) -> None:
        self._count += 1
        if self._count == AT and self._part == "raises":
            raised(self._value)
        self.agent_selection = self.agents[self._count % 2]

    def last(self, observe: bool = True) -> Any:
        returned: list[Any] = [np.zeros(3, np.float32), 0.0, False, False, {}]
        if self._count == AT:
            if self._part == "step":
                return VALUES[self._value]
            returned[self.parts.index(self._part)] = VALUES[self._value]
        return tuple(returned)


class Base:
    """A BaseEnv of two agents, one of which ends at that step."""

    parts = "obs", "reward", "agent_id", "group_id", "group_reward", "action_mask", "interrupted", "get_steps"

    def __init__(self, part: str, value: str) -> None:
        self._part, self._value = part, value
        self._count = 0
        sensor = SimpleNamespace(shape=(3,), dimension_property=(1,), observation_type=0, name="seen")
        actions = SimpleNamespace(continuous_size=0, discrete_branches=(2,))
        self.behavior_specs = {"B": SimpleNamespace(observation_specs=[sensor], action_spec=actions)}

    def reset(self) -> None:
        self._count = 0

    def step(self) -> None:
        self._count += 1
        if self._count == AT and self._part == "raises":
            raised(self._value)

    def set_actions(self, name: str, actions: Any) -> None:
        pass

    def get_steps(self, name: str) -> Any:
        is_time = self._count == AT
        waiting = self._agents([0, 1], action_mask=None)
        ended = self._agents([1] if is_time else [], interrupted=np.zeros(int(is_time), np.bool_))
        if is_time:
            if self._part == "get_steps":
                return VALUES[self._value]
            setattr(ended if self._part == "interrupted" else waiting, self._part, VALUES[self._value])
        return waiting, ended

    def close(self) -> None:
        pass

    def _agents(self, ids: list[int], **more: Any) -> SimpleNamespace:
        seen, reward = np.zeros((len(ids), 3), np.float32), np.zeros(len(ids), np.float32)
        return SimpleNamespace(obs=[seen], reward=reward, agent_id=np.array(ids), **more)


FORMS = {"Returning": Returning, "Parallel": Parallel, "InTurns": InTurns, "Base": Base}
