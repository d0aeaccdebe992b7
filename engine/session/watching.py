"""Watching a policy play, as a front end sees it. Scenes are no events and are not recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

SceneState: TypeAlias = Literal["starting", "playing", "paused", "failed"]
WatchCommand: TypeAlias = Literal[
    "pause",
    "resume",
    "step",  # one step, paused from then on
    "restart",  # begin an episode now; after a failure, in a new environment
    "renew",  # switch to the newest policy now instead of at the start of the next episode
    "greedy",  # the most likely actions
    "drawn",  # sampled as in training
]


@dataclass(frozen=True, slots=True)
class Pixels:
    """An image. rgb: three bytes for each pixel, row by row from the top."""

    width: int
    height: int
    rgb: bytes


@dataclass(frozen=True, slots=True)
class Seen:
    """One observation of the agent that is watched. values: the first ones, row by row; all where `is_whole`."""

    name: str
    shape: tuple[int, ...]
    values: tuple[float, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """What is played at one moment. at: monotonic seconds.

    reason: why it failed. pixels or text: the rendered environment; undrawn: why there is neither.
    episode: from 1. step: actions taken in it. total: its return so far. reward: of the newest action, which is
    `continuous` and `discrete`. returns: of the watched episodes that ended last, the newest last; lengths: theirs.
    policy_step: at which the policy was learned, None for one that only plays. is_greedy: its actions are the most
    likely ones. hz: steps per second.
    """

    behavior: str
    at: float
    state: SceneState = "starting"
    reason: str = ""
    pixels: Pixels | None = None
    text: str = ""
    undrawn: str = ""
    episode: int = 0
    step: int = 0
    total: float = 0.0
    reward: float = 0.0
    continuous: tuple[float, ...] = ()
    discrete: tuple[int, ...] = ()
    seen: tuple[Seen, ...] = ()
    returns: tuple[float, ...] = ()
    lengths: tuple[int, ...] = ()
    policy_step: int | None = None
    is_greedy: bool = True
    hz: float = 0.0


class Watching(Protocol):
    """Plays the newest policies of a run, one behavior at a time. Every call returns at once; one thread calls."""

    def why_not(self, behavior: str) -> str:
        """Why its policy cannot be watched now, "" when it can."""

    def begin(self, behavior: str, size: tuple[int, int]) -> str:
        """Play its policy; returns "" or why there is none to watch. What was watched before ends."""

    def end(self) -> None:
        """Stop watching. Harmless when called twice."""

    def pop_scene(self) -> Scene | None:
        """The newest scene, once. The next one is drawn after this call, so that a slow front end gets fewer."""

    def send(self, command: WatchCommand) -> None:
        """Change how it is played."""

    def resize(self, size: tuple[int, int]) -> None:
        """Draw at most that many pixels from now on: width and height."""


class Unwatchable:
    """A session that has no policies, for the reason given."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def why_not(self, behavior: str) -> str:
        """The same for every behavior."""
        return self._reason

    def begin(self, behavior: str, size: tuple[int, int]) -> str:
        """Why there is nothing to watch."""
        return self._reason

    def end(self) -> None:
        """Nothing was watched."""

    def pop_scene(self) -> Scene | None:
        """There is none."""
        return None

    def send(self, command: WatchCommand) -> None:
        """Nothing plays."""

    def resize(self, size: tuple[int, int]) -> None:
        """Nothing is drawn."""
