"""What one rank of a run has: rank 0 everything, the others only training."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final, TypeVar

from rl_tui.engine.errors import RlTuiError, SyncError
from rl_tui.engine.learning.sync import ONE_RANK, ProcessGroup, Sync
from rl_tui.engine.running.ranks.link import Link
from rl_tui.engine.running.ranks.messages import Failure, Found
from rl_tui.engine.running.ranks.shared_memory import shared_memory
from rl_tui.engine.running.ranks.supported import part_of
from rl_tui.engine.specs import BehaviorSpec

M = TypeVar("M")


@dataclass(frozen=True)
class Role:
    """Given to a run at its start. links: of rank 0 to the others, in their order; of another rank to rank 0.

    deadline: in seconds of `clock`, after which a silent rank is lost; starting: the same while environments start.
    hosts: names of the machines of all ranks. local_rank, local_size: among the ranks of this machine. started_by: a
    program, for messages. has_own_gpus: each rank has a GPU that is no other's. parts: how much of the experience each
    rank collects, beside the others. syncs: of the behaviors that have been made.
    """

    rank: int = 0
    size: int = 1
    links: Sequence[Link] = field(default=(), repr=False)
    deadline: float = 0.0
    clock: Callable[[], float] = time.monotonic
    starting: float = 0.0
    hosts: Sequence[str] = ()
    local_rank: int = 0
    local_size: int = 1
    started_by: str = ""
    has_own_gpus: bool = False
    parts: Sequence[int] = (1,)
    syncs: list[ProcessGroup] = field(default_factory=list, repr=False)

    @property
    def leads(self) -> bool:
        """Whether it has the folder and its lock, logs, files, writers, health, commands: rank 0, or the only one."""
        return self.rank == 0

    @property
    def has_others(self) -> bool:
        """Whether there are several ranks."""
        return self.size > 1

    def make_sync(self) -> Sync:
        """What the trainer of one more behavior agrees on with others. Every rank makes them in the same order."""
        if not self.has_others:
            return ONE_RANK
        group = ProcessGroup(self.deadline, self.clock, over_nccl=self.has_own_gpus, parts=self.parts)
        if len(set(self.hosts)) == 1 and not self.has_own_gpus:
            group.transport = shared_memory(group, self.deadline, self._find_lost) or group.transport
        self.syncs.append(group)
        return group

    def _find_lost(self) -> str:
        """Why another rank is lost, as its connection says; "" where none is. Any thread."""
        for link in self.links:
            if link.is_closed:
                return f"{link.name} has ended"
        return ""

    def share(self, kind: type[M], make: Callable[[], M]) -> M:
        """What rank 0 makes, on every rank. Raises SyncError."""
        if not self.leads:
            return self.receive(kind)
        made = make()
        for link in self.links:
            link.send(made)
        return made

    def receive(self, kind: type[M]) -> M:
        """On another rank than 0: what that shares. Raises SyncError."""
        return self.links[0].wait_for(kind, max(self.starting, self.deadline))

    def share_specs(self, own: Mapping[str, BehaviorSpec]) -> Mapping[str, BehaviorSpec]:
        """The behaviors that any rank has found, those of rank 0 first. Raises SyncError."""
        if not self.has_others:
            return own
        if not self.leads:
            self.links[0].send(Found(own))
        return self.share(Found, lambda: Found(self._all_specs(own))).specs

    def _all_specs(self, own: Mapping[str, BehaviorSpec]) -> Mapping[str, BehaviorSpec]:
        specs = dict(own)
        for rank, link in enumerate(self.links, 1):
            for name, spec in link.wait_for(Found, max(self.starting, self.deadline)).specs.items():
                if specs.setdefault(name, spec) != spec:
                    raise SyncError(f"{name} has other observations or actions on {self.name_of(rank)} than on others")
        return specs

    def fail(self, error: RlTuiError) -> None:
        """This rank ends before training has begun, and others that wait for it learn why."""
        for link in self.links:
            with suppress(SyncError):
                link.send(Failure(str(error), error.exit_code))

    @property
    def own_share(self) -> Fraction:
        """Of the experience of all ranks: as much as this one collects."""
        return Fraction(self.parts[self.rank], sum(self.parts))

    def own_part(self, number: int) -> tuple[int, int]:
        """Of so many environments, the first that this rank has, and how many."""
        return part_of(number, self.rank, self.size)

    def name_of(self, rank: int) -> str:
        """A rank in words."""
        return f"rank {rank} of {self.size}" + (f" on {self.hosts[rank]}" if self.hosts else "")

    @property
    def all_in_words(self) -> str:
        """How many there are, and on which machines."""
        counts = Counter(self.hosts)
        where = ", ".join(f"{f'{count} ' if len(counts) > 1 else ''}on {host}" for host, count in counts.items())
        return f"{self.size} ranks, started by {self.started_by}: {where}"

    def where(self, run: Path) -> str:
        """Of another rank than 0: whom it trains for. run: the folder there."""
        return (
            f"{self.name_of(self.rank)} trains for rank 0 on {self.hosts[0]}, where `rl-tui attach {run}` shows the run"
        )

    def close(self) -> None:
        """Other ranks find that this one has left."""
        for link in self.links:
            link.close()


ALONE: Final = Role()
