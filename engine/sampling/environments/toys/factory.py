"""The environments that "toy:NAME" names, and the arguments of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from rl_tui.engine.config.diagnostics import describe, one_of, suggest
from rl_tui.engine.config.environments import OpenArguments
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.base import Environment, EnvironmentKind
from rl_tui.engine.sampling.environments.toys.catch import Catch
from rl_tui.engine.sampling.environments.toys.cues import Cue, Entities, Goals, Pixels, Side
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.environments.toys.memory import Memory
from rl_tui.engine.sampling.environments.toys.moves import ActionKind
from rl_tui.engine.sampling.environments.toys.one_step import OneStep
from rl_tui.engine.sampling.environments.toys.pong import Pong
from rl_tui.engine.sampling.environments.toys.rescue import CELLS, Rescue
from rl_tui.engine.sampling.environments.toys.rooms import Rooms

Make: TypeAlias = Callable[..., Environment]  # behavior, num_agents and the task's own arguments


@dataclass(frozen=True, slots=True)
class Argument:
    """The values that an argument may have: whole numbers of a range, or some others."""

    allowed: range | tuple[object, ...]

    def has(self, value: object) -> bool:
        """Whether the value is allowed; true and false are not numbers."""
        if isinstance(self.allowed, range):
            return isinstance(value, int) and not isinstance(value, bool) and value in self.allowed
        return any(value == allowed and type(value) is type(allowed) for allowed in self.allowed)

    @property
    def words(self) -> str:
        """The allowed values, as they follow "must be"."""
        if isinstance(self.allowed, range):
            return f"a whole number from {self.allowed[0]} to {self.allowed[-1]}"
        return one_of(a if isinstance(a, str) else describe(a) for a in self.allowed)


@dataclass(frozen=True, slots=True)
class Task:
    """How a task is made, and its arguments."""

    make: Make
    arguments: Mapping[str, Argument]


_ACTIONS = Argument(get_args(ActionKind))
_MASKED = Argument((False, True))
_RENDER_MODE = Argument(("rgb_array",))


def _one_step(cue: Callable[..., Cue], **arguments: Argument) -> Task:
    """The task of one step with this cue, which is made with these arguments."""

    def make(behavior: str, num_agents: int, **given: Any) -> Environment:
        of_cue = {name: given.pop(name) for name in arguments if name in given}
        return OneStep(behavior, num_agents, cue(**of_cue), **given)

    return Task(make, {"actions": _ACTIONS, "masked": _MASKED, **arguments})


def _make_cart_pole(behavior: str, num_copies: int, **given: Any) -> Environment:
    from rl_tui.engine.sampling.environments.toys.cart_pole import make_cart_pole_positions

    return make_cart_pole_positions(behavior, num_copies, **given)


def _make_frames(behavior: str, num_copies: int, **given: Any) -> Environment:
    from rl_tui.engine.sampling.environments.gymnasium_loop import GymnasiumLoop
    from rl_tui.engine.sampling.environments.toys.frames import Frames

    return GymnasiumLoop(behavior, [Frames(**given) for _ in range(num_copies)])


TASKS: Mapping[str, Task] = {
    "one-step": _one_step(Side),
    "line": Task(Line, {"actions": _ACTIONS, "masked": _MASKED}),
    "entities": _one_step(Entities, num_entities=Argument(range(1, 257))),
    "goal": _one_step(Goals, num_targets=Argument(range(2, 65))),
    "pixels": _one_step(Pixels, size=Argument(range(8, 257))),
    "memory": Task(Memory, {"actions": _ACTIONS, "delay": Argument(range(1, 1001))}),
    "catch": Task(Catch, {"actions": _ACTIONS, "cell_pixels": Argument(range(1, 22))}),
    "rooms": Task(Rooms, {"rooms": Argument(range(2, 33))}),
    "pong": Task(
        Pong,
        {
            "observations": Argument(("vector", "image")),
            "size": Argument(range(20, 129)),
            "players": Argument(range(1, 3)),
            "points": Argument(range(1, 22)),
            "max_episode_steps": Argument(range(1, 100_001)),
            "opponent": Argument((None, "tracking", "random")),
        },
    ),
    "rescue": Task(Rescue, {"agents": Argument(range(2, CELLS - 1))}),
    "cart-pole-positions": Task(_make_cart_pole, {"render_mode": _RENDER_MODE}),
    "frames": Task(_make_frames, {"size": Argument(range(1, 257)), "render_mode": _RENDER_MODE}),
}


def find_task(name: str) -> Task:
    """The task of that name. Raises ConfigError when there is none."""
    if name not in TASKS:
        near = suggest(f"toy:{name}", (f"toy:{task}" for task in TASKS))
        raise ConfigError(f"toy:{name}: unknown task.{near} Known: {', '.join(TASKS)}")
    return TASKS[name]


class ToyEnvironment(EnvironmentKind[OpenArguments]):
    """The environments that "toy:NAME" names."""

    def make(self, name: str, behavior: str, copies: range, settings: OpenArguments) -> list[Environment]:
        """One environment with an agent for each copy. name: one of TASKS.

        Those with images need no `render_mode` to be watched and ignore one. Raises ConfigError for an unknown task or
        key, or a value that is not allowed.
        """
        task, kwargs = find_task(name), settings.arguments
        known = {"render_mode": _RENDER_MODE, **task.arguments}
        for key, value in kwargs.items():
            if key not in known:
                among = one_of(task.arguments) if task.arguments else "none"
                raise ConfigError(f"toy:{name}: env_kwargs.{key}: unknown key.{suggest(key, known)} Known: {among}")
            if not known[key].has(value):
                raise ConfigError(f"toy:{name}: env_kwargs.{key}: must be {known[key].words}, got {describe(value)}")
        given = {key: value for key, value in kwargs.items() if key in task.arguments}
        return [task.make(behavior, len(copies), **given)]

    def require(self, name: str) -> None:
        """There is a task of that name. Raises ConfigError."""
        find_task(name)

    def to_draw(self, name: str, settings: OpenArguments, *, may_be_text: bool) -> OpenArguments:
        """Frames, of those that are Gymnasium's; the others need no argument for it."""
        return OpenArguments(**{**settings.arguments, "render_mode": "rgb_array"})
