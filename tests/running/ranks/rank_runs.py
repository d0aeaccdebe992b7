"""One run on several ranks: what each rank's part of it was, as its own events say."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from torch import distributed

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.learning.sync import Gloo, Sync
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.ranks.joining import role_of
from rl_tui.engine.running.ranks.leader import BEAT_SECONDS
from rl_tui.engine.running.ranks.link import Link
from rl_tui.engine.running.ranks.meeting import hello_of, listen, meet
from rl_tui.engine.running.ranks.messages import ControlWord, Failure
from rl_tui.engine.running.ranks.ranked_learning import RankedLearning
from rl_tui.engine.running.ranks.role import Role
from rl_tui.engine.running.ranks.shared_memory import SharedMemory
from rl_tui.engine.running.ranks.world import World, new_key
from rl_tui.engine.running.threads import Control
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    DELTAS,
    Attend,
    BehaviorRolledBack,
    EpisodesFinished,
    Event,
    HyperparameterChanged,
    LeagueReported,
    MetricsReported,
    RunStateChanged,
)
from rl_tui.engine.specs import State
from tests.deadline import DEADLINE_SECONDS
from tests.running.runs import LiveRun

E = Any
LEFT_OUT = (*(kind for kind in DELTAS if kind is not LeagueReported), EpisodesFinished)


class SharedClock:
    """Monotonic seconds, of which several processes can skip some together."""

    def __init__(self, file: Path) -> None:
        with file.open("ab") as opened:  # by all at once: the first one makes it, and none maps it empty
            opened.truncate(np.dtype(np.float64).itemsize)
        self._skipped = np.memmap(file, np.float64, "r+", shape=(1,))

    def __call__(self) -> float:
        return time.monotonic() + float(self._skipped[0])

    def skip(self, seconds: float) -> None:
        """So much later it is."""
        self._skipped[0] += seconds


@dataclass(frozen=True)
class Given:
    """Implements Ranks for a role that a test has made."""

    role: Role

    def begin(self, config: RunConfig) -> None:
        """See Ranks."""

    def join(self, config: RunConfig, bus: EventBus, is_stopped: Callable[[], bool]) -> Role:
        """See Ranks."""
        return self.role

    def close(self) -> None:
        """See Ranks."""


@dataclass(frozen=True)
class Script:
    """What the user does. run: of rank 0. skip: lets time pass on all ranks, which hear of each other meanwhile."""

    run: LiveRun
    skip: Callable[[float], None]


@dataclass(frozen=True)
class Part:
    """What one rank did. reason: of its last state. weights: digests of what its policies act with in the end.
    lessons: in the end, by parameter, from 0. replays: what its replay buffers then hold, where they are saved.
    num_collected: steps that its own agents made for each behavior."""

    exit_code: int
    reason: str
    events: Sequence[Event]
    weights: Mapping[str, str]
    lessons: Mapping[str, int]
    num_pauses: int
    replays: Mapping[str, State]
    num_collected: Mapping[str, int]

    def of(self, kind: type[E]) -> list[E]:
        """Its events of that class."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def changes(self) -> list[tuple[object, ...]]:
        """What was changed on it, and at which step."""
        found: list[tuple[object, ...]] = []
        for event in self.events:
            match event:
                case HyperparameterChanged():
                    found.append((event.behavior, event.step, event.name, event.new))
                case BehaviorRolledBack():
                    found.append((event.behavior, event.step))
        return found

    @property
    def updates(self) -> list[tuple[object, ...]]:
        """The losses of its summaries, which are those of all ranks, by behavior: threads of learners publish theirs in
        any order."""
        tags = ("Losses/Policy Loss", "Losses/Value Loss", "Policy/Learning Rate")
        summaries = [event for event in self.of(MetricsReported) if tags[0] in event.metrics]
        found = [(event.behavior, event.step, *map(event.metrics.get, tags)) for event in summaries]
        return sorted(found, key=lambda update: update[0])


def train(
    sync: Sync,
    configs: Sequence[RunConfig],
    script: Callable[[Script], None] | None,
    clock_file: Path,
    deadline: float,
    dropped: str,
    is_attended: bool,
    delays: float,
) -> Part:
    """A whole run. configs: of each rank. dropped: a field that no control word has. delays: seconds, the longest at
    every place where ranks meet."""
    clock = SharedClock(clock_file)
    role = join(sync, configs[0], deadline, clock)
    digests: dict[str, str] = {}
    replays: dict[str, State] = {}
    pauses: list[None] = []
    pause = Control.pause

    def counted(control: Control) -> None:
        pauses.append(None)
        pause(control)

    leave = RankedLearning.leave
    lessons: dict[str, int] = {}
    num_collected: dict[str, int] = {}

    def noted(ranked: RankedLearning, failure: Failure | None) -> None:
        for name, behavior in ranked.runner.behaviors.items():
            replay = behavior.learner.trainer.replay()
            if replay is not None:
                replays[name] = replay
            num_collected[name] = behavior.learner.steps_left._num_rows
            arrays = behavior.learner.trainer.weights().arrays
            digests[name] = hashlib.sha256(b"".join(arrays[key].tobytes() for key in sorted(arrays))).hexdigest()
        lessons.update(ranked._lessons._curricula.lessons)
        leave(ranked, failure)

    with ExitStack() as stack:
        stack.enter_context(patch.object(Control, "pause", counted))
        stack.enter_context(patch.object(RankedLearning, "leave", noted))
        if dropped:
            stack.enter_context(without(dropped))
        if delays:
            stack.enter_context(delayed(role.rank, delays))
        run = LiveRun(configs[role.rank], ranks=Given(role))
        run.launch.send(Attend(is_attended or role.rank > 0, "screen"))
        if script is not None and role.rank == 0:
            script(Script(run, lambda seconds: skip(clock, role, seconds)))
        exit_code = run.wait()
    events = [event for event in run.events if not isinstance(event, LEFT_OUT)]
    reason = run.of(RunStateChanged)[-1].reason
    return Part(exit_code, reason, events, digests, lessons, len(pauses), replays, num_collected)


def join(sync: Sync, config: RunConfig, deadline: float, clock: Callable[[], float]) -> Role:
    """The role of one of the processes that torch.distributed connects already."""
    world = World(sync.rank, sync.size, sync.rank, sync.size, "127.0.0.1", 0, "a test")
    server = listen(world.address, 0, world) if sync.rank == 0 else None
    known: list[Any] = [None if server is None else (server.getsockname()[1], new_key())]
    distributed.broadcast_object_list(known)
    world = replace(world, port=known[0][0], key=known[0][1])
    met = meet(world, hello_of(world, config), server, DEADLINE_SECONDS, lambda: None, lambda: False, print)
    return role_of(world, config, met, deadline, clock)


def skip(clock: SharedClock, role: Role, seconds: float) -> None:
    """Time passes in steps, in each of which rank 0 hears of every other."""
    until = clock() + seconds
    while clock() < until:
        clock.skip(BEAT_SECONDS + 0.1)
        now, deadline = clock(), time.monotonic() + DEADLINE_SECONDS
        while any(link.heard_at < now for link in role.links):
            assert time.monotonic() < deadline, "a rank was silent"
            time.sleep(0.01)


@contextmanager
def delayed(rank: int, longest: float) -> Iterator[None]:
    """Every message, exchange, block and update of this rank is late, by random times of its own."""
    random = np.random.default_rng(rank)
    places = [(Link, "send"), (Gloo, "gather"), (SharedMemory, "_meet"), (Behavior, "add"), (Behavior, "advance")]

    def late(call: Callable[..., Any]) -> Callable[..., Any]:
        def after_a_while(*arguments: Any, **named: Any) -> Any:
            if random.random() < 0.2:  # several threads draw: the order differs, and must not matter
                time.sleep(longest * random.random())
            return call(*arguments, **named)

        return after_a_while

    with ExitStack() as stack:
        for owner, name in places:
            stack.enter_context(patch.object(owner, name, late(getattr(owner, name))))
        yield


def without(field: str) -> Any:
    """Control words lack this field."""
    default = next(each.default for each in fields(ControlWord) if each.name == field)
    send = Link.send

    def lacking(link: Link, message: object) -> None:
        send(link, replace(message, **{field: default}) if isinstance(message, ControlWord) else message)

    return patch.object(Link, "send", lacking)
