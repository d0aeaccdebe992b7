"""The pool's side of a worker that may act by itself: what it is given, and what it passes on."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

from rl_tui.engine.sampling.collecting.counters import Counters
from rl_tui.engine.sampling.collecting.share import Share
from rl_tui.engine.sampling.collecting.shared_blocks import BlockHeader, BlockReader
from rl_tui.engine.sampling.failures import InstanceFailure
from rl_tui.engine.sampling.finished_episodes import Episodes
from rl_tui.engine.sampling.pools.wire import Kind, Record, SpecJson, spec_from_json
from rl_tui.engine.sampling.pools.worker_process import WorkerProcess
from rl_tui.engine.specs import BehaviorSpec, Json, PolicyRecipe, State, Trajectories


@dataclass(frozen=True, slots=True)
class BlockArrived:
    """A worker has completed a block of this behavior, which was copied."""

    worker: int
    behavior: str
    block: Trajectories = field(repr=False)


@dataclass(frozen=True, slots=True)
class EpisodesArrived:
    """Episodes of this behavior have ended; num_learned: actions of the worker by then."""

    worker: int
    behavior: str
    episodes: Episodes
    num_learned: int


@dataclass(frozen=True, slots=True)
class BehaviorMet:
    """A worker waits for the policy of a behavior that has appeared."""

    worker: int
    spec: BehaviorSpec


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """A worker waits, having its share. states: of the generators of its policies."""

    worker: int
    states: Mapping[str, State]


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A worker has failed, and what it had not passed on is lost. counters: what it had counted."""

    worker: int
    counters: Counters | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class WorkerRenewed:
    """A worker is there again, and its instances are to be reset: it needs policies and a share."""

    worker: int


News: TypeAlias = BlockArrived | EpisodesArrived | BehaviorMet | RoundEnded | WorkerLost | WorkerRenewed


@dataclass(frozen=True, slots=True)
class GivenPolicy:
    """What a worker needs to act for a behavior. number: of the behavior in the counters. weights: where they are."""

    behavior: str
    number: int
    policy: PolicyRecipe
    horizon: int
    cuts_at_update: bool
    weights: Json


@dataclass(frozen=True, slots=True)
class GivenOpponent:
    """By what a team of a behavior acts from now on. policy: None for the one that learns. number: see NumberedPolicy.
    weights: where they are."""

    behavior: str
    team: int
    policy: PolicyRecipe | None
    number: int
    weights: Json


class CollectingProcess(WorkerProcess):
    """A worker as any other, until `begin_collecting`."""

    program: ClassVar = "rl_tui.engine.sampling.collecting.worker_main"

    def __init__(self, *arguments: Any, **keywords: Any) -> None:  # Any: those of WorkerProcess
        super().__init__(*arguments, **keywords)
        self._news: list[News] = []
        self._has_acted = False
        self._counters: Counters | None = None
        self._blocks: BlockReader | None = None

    @property
    def counters(self) -> Counters | None:
        """What it has counted; None where it does not collect."""
        return self._counters

    def begin_collecting(self, num_instances: int, spare_rows: int, *, has_checksums: bool) -> None:
        """Have it act by itself, once it is given policies and a share. num_instances: of the pool."""
        offset = os.fstat(self._child.memory).st_size
        self._counters = Counters(self._child.memory, offset)
        self._blocks = BlockReader(self._child.memory)
        request: dict[str, Json] = {
            "counters": offset,
            "num_instances": num_instances,
            "spare_rows": spare_rows,
            "has_checksums": has_checksums,
        }
        self._unsent.append(Record(Kind.COLLECT, payload=request))

    def give_policy(self, given: GivenPolicy) -> None:
        """Let it know what acts for a behavior."""
        request: dict[str, Json] = {
            "behavior": given.behavior,
            "number": given.number,
            "policy": given.policy.to_json(),
            "horizon": given.horizon,
            "cuts_at_update": given.cuts_at_update,
            "weights": given.weights,
        }
        self._unsent.append(Record(Kind.POLICY, payload=request))
        self.flush()

    def give_opponent(self, given: GivenOpponent) -> None:
        """Let it know by what a team acts."""
        request: dict[str, Json] = {
            "behavior": given.behavior,
            "team": given.team,
            "policy": None if given.policy is None else given.policy.to_json(),
            "number": given.number,
            "weights": given.weights,
        }
        self._unsent.append(Record(Kind.OPPONENT, payload=request))
        self.flush()

    def go(self, shares: Mapping[str, Share]) -> None:
        """Have it collect its share."""
        self._unsent.append(Record(Kind.GO, payload={name: share.to_json() for name, share in shares.items()}))
        self.flush()

    def stop(self) -> None:
        """Have it end its round with what is complete."""
        self._unsent.append(Record(Kind.ENOUGH))
        self.flush()

    def pause(self, is_paused: bool) -> None:
        """Have it wait before its next step, or go on."""
        self._unsent.append(Record(Kind.PAUSE, value=int(is_paused)))
        self.flush()

    def pop_news(self) -> list[News]:
        """What it has passed on since the last call."""
        news, self._news = self._news, []
        return news

    def pop_has_acted(self) -> bool:
        """Whether its first actions have been carried out since the last call."""
        has_acted, self._has_acted = self._has_acted, False
        return has_acted

    def request_reset(self, instance: int, seed: int | None) -> None:
        """Have one instance reset."""
        if self._counters is None:
            super().request_reset(instance, seed)
            return
        self._unsent.append(Record(Kind.RESET, instance, -1 if seed is None else seed))
        self.flush()

    def seconds_left(self) -> float | None:
        """Until its call into an environment or a policy is overdue; None without one."""
        if self._counters is None or not self.is_ready:
            return super().seconds_left()
        call, _, since_ns = self._child.current_call()
        if self._awaits or call == "wait" or not since_ns:  # or it has been written in part
            return None
        return self._limit - (time.monotonic_ns() - since_ns) * 1e-9

    def end(self, deadline: float) -> None:
        """See WorkerProcess."""
        super().end(deadline)
        self._blocks = None

    def _may_reset(self, instance: int) -> bool:
        return self._counters is not None or super()._may_reset(instance)

    def _take(self, record: Record) -> None:
        payload = cast(dict[str, Any], record.payload)
        match record.kind:
            case Kind.ACTS:
                self._has_acted = True
            case Kind.BLOCK:
                self._news.append(self._copied(BlockHeader.from_json(record.payload)))
            case Kind.EPISODES:
                returns, lengths, ends = payload["returns"], payload["lengths"], payload["ends"]
                episodes = Episodes(np.array(returns), np.array(lengths, np.int64), np.array(ends, np.int64))
                self._news.append(EpisodesArrived(self.index, payload["behavior"], episodes, payload["num_learned"]))
            case Kind.MET:
                spec = spec_from_json(cast(SpecJson, payload["spec"]))
                for instance, num_agents in enumerate(payload["num_agents"]):
                    self.answers.specs[instance] = {**self.answers.specs[instance], spec.name: spec}
                    self.answers.num_agents[instance] = num_agents
                self._news.append(BehaviorMet(self.index, spec))
            case Kind.ROUND:
                states = {name: State({}, values) for name, values in payload.items()}
                self._news.append(RoundEnded(self.index, states))
            case _:
                super()._take(record)

    def _copied(self, header: BlockHeader) -> BlockArrived:
        """The block. Raises InstanceFailure for one that is not whole."""
        assert self._blocks is not None
        assert self._counters is not None
        try:
            block = self._blocks.read(header)
        except ValueError as error:
            message = f"{self._plan.source.env}, worker {self.index}: shared memory: {error}"
            raise InstanceFailure(message, None, self.index) from error
        self._counters.note_copied(header.sequence)
        return BlockArrived(self.index, header.behavior, block)
