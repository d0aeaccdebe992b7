"""The interface of environments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.config.environments import EnvironmentSettings
from rl_tui.engine.sampling.parameters import Parameters
from rl_tui.engine.specs import Actions, BehaviorSpec, Steps

S = TypeVar("S", bound=EnvironmentSettings)
NoteLevel: TypeAlias = Literal["debug", "info", "warning", "error"]


class Environment(Protocol):
    """One instance, with any number of behaviors and agents. Used by one thread, or by a worker process.

    A behavior named `name?team=N` is team N, a whole number from 0, of behavior `name`, whose settings, learner and
    policy all teams share; its teams have the same observations and actions. Ids of agents and groups are not negative
    and are unique within one behavior of one instance, over all of its teams. An agent's episode should end with a
    terminal step: the unfinished steps of one that is silent for 1,000 steps are dropped when a newcomer needs its
    slot, and after 10,000 steps in any case. Methods may raise anything: the pool turns it into an EnvironmentFailure
    that names the instance.
    """

    @property
    def specs(self) -> Mapping[str, BehaviorSpec]:
        """Every behavior by name. It may grow at any reset or step, no later than when its first steps are returned;
        what it has of a behavior does not change. A behavior may appear in instances at different steps."""

    @property
    def num_agents(self) -> Mapping[str, int]:
        """How many agents of each behavior, or team, usually act at once."""

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Start a new episode of every agent; the first decisions of every behavior that has agents."""

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Act for the agents of the last decisions, in their order, and return what followed."""

    def close(self) -> None:
        """Free everything. Called once; nothing is called after it."""


class EnvironmentKind(ABC, Generic[S]):
    """What implements a kind of environments: makes those that `kind:name` names. Created without arguments.

    S: the class of its settings, which `env_kwargs` are read as.
    """

    @abstractmethod
    def make(self, name: str, behavior: str, copies: range, settings: S) -> Sequence[Environment]:
        """Instances that together hold these copies, in the training process or in a worker process.

        copies: their numbers; each copy of a run has one of its own. behavior: the first name under `behaviors` in the
        file. Raises ConfigError where settings do not fit.
        """

    def require(self, name: str) -> None:
        """There is an environment of that name, as far as is known without making it. Raises ConfigError."""

    def to_draw(self, name: str, settings: S, *, may_be_text: bool) -> S:
        """The settings with which instances return frames, or text where they may, without opening a window."""
        return settings


@runtime_checkable
class Rendered(Protocol):
    """An environment that can be watched."""

    def render(self) -> NDArray[np.uint8] | str | None:
        """The first agent's surroundings as u8[H, W, 3], which the caller may keep, or as text; None for neither.

        Environments made by `EnvironmentSource.showing_frames` return frames if they can, those made by `watched`
        either; see `EnvironmentKind.to_draw`.
        """


@runtime_checkable
class Paced(Protocol):
    """An environment that says how fast it should be watched."""

    @property
    def render_hz(self) -> float | None:
        """Steps per second; None if it does not say."""


@runtime_checkable
class ShowsEnds(Protocol):
    """An environment that can still draw how an episode ended when the next one has begun."""

    def show_ends(self) -> None:
        """From now on, once an episode of the first agent has ended, `render` draws its end until the next step or
        reset. Called before the first reset."""


@runtime_checkable
class Parameterized(Protocol):
    """An environment that takes environment parameters. Without this method, a file that has any is refused."""

    def set_parameters(self, parameters: Parameters) -> None:
        """From each agent's next episode on, these hold: draw them when it begins.

        Called once the environment is made, before its specs are asked for, and whenever a lesson changes.
        `parameters.draw(name)` is one number, `parameters.draw_all()` all by name. Raises ConfigError for a parameter
        that the environment does not have.
        """


@runtime_checkable
class Reporting(Protocol):
    """An environment that has something to say to the user. In a worker process, another thread calls both, also while
    a method of the environment has not returned."""

    @property
    def awaits(self) -> str:
        """What the user has to do before the current call can return, which has no time limit until then; "" for
        nothing."""

    def pop_notes(self) -> list[tuple[NoteLevel, str]]:
        """Lines for the user since the last call, in order."""
