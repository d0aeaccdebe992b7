"""How fast a rank is, how long it waits for others, and what has gone wrong there."""

from __future__ import annotations

from pathlib import Path

from rl_tui.engine.running.machine.devices import DeviceSampler
from rl_tui.engine.running.ranks.messages import RANKS, Report
from rl_tui.engine.running.ranks.role import Role
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import EnvironmentRestarting, LogEmitted, RankStatus, WorkerFailed

WARNINGS_KEPT = 200  # between two reports


class RankMeter:
    """Used by the thread of the environment.

    waited: seconds in which this rank had its part, and others did not.
    """

    def __init__(self, role: Role, bus: EventBus, folder: Path) -> None:
        """folder: on the disk that is measured, on another machine than rank 0's."""
        self.waited = 0.0
        self._role = role
        self._num_steps = 0
        self._before = role.clock(), 0, 0.0
        self._mail = None if role.leads else bus.subscribe(WARNINGS_KEPT)
        is_first_there = role.hosts and role.hosts[0] != role.hosts[role.rank] and role.local_rank == 0
        self._devices = DeviceSampler(folder) if is_first_there else None

    def count(self, num_steps: int) -> None:
        """Agents of this rank have made so many steps."""
        self._num_steps += num_steps

    def report(self, device: str) -> Report:
        """Since the last call, or the beginning. device: on which this rank learns."""
        role, at = self._role, self._role.clock()
        waited = self.waited + sum(sync.waited for sync in role.syncs)
        seconds = max(at - self._before[0], 1e-9)
        status = RankStatus(
            rank=role.rank,
            host=role.hosts[role.rank] if role.hosts else "",
            device=device,
            steps_per_second=(self._num_steps - self._before[1]) / seconds,
            waiting=min(1.0, (waited - self._before[2]) / seconds),
            devices=None if self._devices is None else self._devices.sample(),
        )
        self._before = at, self._num_steps, waited
        return Report(status=status, warnings=tuple(self._warnings()))

    def close(self) -> None:
        """Training is over."""
        if self._mail is not None:
            self._mail.close()
        if self._devices is not None:
            self._devices.close()

    def _warnings(self) -> list[LogEmitted]:
        """Those of another rank than 0, whose log has its own."""
        found = []
        for envelope in [] if self._mail is None else self._mail.drain():
            match envelope.event:
                case LogEmitted(level="warning" | "error", source=source, message=text):
                    found.append(f"{source}: {text}" if source else text)
                case EnvironmentRestarting(environment=environment, worker=worker, reason=reason):
                    found.append(f"{environment}: {reason}; worker {worker} is started again")
                case WorkerFailed(worker=worker, error=error):
                    found.append(f"{worker} failed: {error}")
        name = self._role.name_of(self._role.rank)
        return [LogEmitted("warning", RANKS, f"{name}: {text}") for text in found]
