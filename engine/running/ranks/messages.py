"""What ranks send each other apart from what is learned, which is in learning/sync.py.

Rank 0 has the user, the files and the clock. It sends control words, which every other rank carries out in their order:
whatever changes training so comes between the same two updates on all ranks. The others send reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from rl_tui.engine.session.messages import LogEmitted, RankStatus, SetHyperparameter, StopMode
from rl_tui.engine.specs import BehaviorSpec, Game, State

RANKS: Final = "ranks"  # the source of log lines about them


@dataclass(frozen=True, slots=True)
class Welcome:
    """What a run begins with. path: of its folder. step: the largest that a behavior resumes at. num_workers: as
    chosen."""

    seed: int
    num_workers: int
    path: str
    step: int
    lessons: State


@dataclass(frozen=True, slots=True)
class Found:
    """The behaviors that the environments of a rank have at the start; from rank 0 those of all ranks, in the order in
    which all make their trainers."""

    specs: Mapping[str, BehaviorSpec]


@dataclass(frozen=True, slots=True)
class Restored:
    """What a behavior starts from, as of that step."""

    step: int
    state: State


@dataclass(frozen=True, slots=True)
class ReplayRows:
    """Rows of a rank's replay buffer, in their order. state: None in the last message, which says that it is all."""

    behavior: str
    state: State | None
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a rank ends, and with which exit code."""

    reason: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class Block:
    """Experience that a rank has collected of a behavior.

    num_rows: that are learned from. num_sampled: with those that are not.
    first_version: of the weights since the last roll back: what was collected with older ones counts no more. returns,
    lengths, games: of the episodes that ended in it. is_ready: the trainer has this rank's part of an update.
    is_spent: this rank has collected its part of max_steps.
    """

    behavior: str
    num_rows: int
    num_sampled: int
    first_version: int
    returns: tuple[float, ...] = ()
    lengths: tuple[int, ...] = ()
    games: tuple[Game, ...] = ()
    is_ready: bool = False
    is_spent: bool = False

    @property
    def has_part(self) -> bool:
        """Whether this rank waits for the others."""
        return self.is_ready or self.is_spent


@dataclass(frozen=True, slots=True)
class Report:
    """Of another rank to rank 0. An empty one says that it is alive.

    met: a behavior that has appeared in its environments. status: of this rank, as of now. warnings: lines of its log,
    which rank 0 does not have. waits_after: so many turns, it has its part of a behavior, and waits. diverged: what
    number of its environments is not finite. failure: why it ends. is_stopped: a signal has asked it to end, and all
    do, once everything is saved. replay: what `ShareReplay` has asked for.
    """

    block: Block | None = None
    met: BehaviorSpec | None = None
    status: RankStatus | None = None
    warnings: tuple[LogEmitted, ...] = ()
    waits_after: int | None = None
    diverged: str = ""
    failure: Failure | None = None
    is_stopped: bool = False
    replay: ReplayRows | None = None


@dataclass(frozen=True, slots=True)
class Advance:
    """Count these rows of all ranks, and learn from them if `updates`.

    num_sampled: with those that are not learned from. step: of the behavior afterwards. has_all_parts: every rank has
    its part, and goes on. returns, lengths, games: of the episodes that ended on other ranks.
    """

    behavior: str
    num_rows: int
    num_sampled: int
    step: int
    updates: bool
    has_all_parts: bool
    returns: tuple[float, ...] = ()
    lengths: tuple[int, ...] = ()
    games: tuple[Game, ...] = ()


@dataclass(frozen=True, slots=True)
class Begin:
    """Make the trainer of a behavior that has appeared on some rank."""

    spec: BehaviorSpec


@dataclass(frozen=True, slots=True)
class GoOn:
    """Collect again: every rank waits, and no behavior has all parts."""


Turn: TypeAlias = Advance | Begin | GoOn


@dataclass(frozen=True, slots=True)
class RolledBack:
    """A behavior continues from a checkpoint of that step."""

    behavior: str
    step: int
    path: str
    state: State


@dataclass(frozen=True, slots=True)
class LeagueMove:
    """What rank 0 has decided for a behavior that plays itself.

    rotation: which team learns. snapshot: the step at which one of the newest policy is taken, None for none.
    opponents: who plays for each team from now on, as `League.play` has it; None where they stay. number: of the last
    one before these.
    """

    behavior: str
    rotation: State
    snapshot: int | None
    opponents: Mapping[int, int | None] | None
    number: int


@dataclass(frozen=True, slots=True)
class ShareReplay:
    """Rank 0 saves a behavior: the others send what their replay buffers hold. Nothing changes, but it must come
    between the same two updates."""

    behavior: str


Change: TypeAlias = SetHyperparameter | RolledBack | LeagueMove | ShareReplay


@dataclass(frozen=True, slots=True)
class ControlWord:
    """Of rank 0 to all others. One without anything new says that it is alive.

    lessons: where they have changed, and how many ended with a full reset.
    diverged: a number is not finite on some rank, and training ends on all, or is rolled back. lost: which rank is
    lost, and how, for which all end.
    """

    is_paused: bool = False
    stop: StopMode | None = None
    lessons: tuple[State, int] | None = None
    change: Change | None = None
    turn: Turn | None = None
    diverged: str = ""
    lost: Failure | None = None
