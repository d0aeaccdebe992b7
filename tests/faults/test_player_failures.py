"""A pool of Unity players survives a thousand failures: nothing of them is left, and nothing wrong is learned."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import re
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.unity.ports import is_free
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.reports import Note, Restarted, Restarting
from rl_tui.engine.specs import Ending, Trajectories
from tests.deadline import DEADLINE_SECONDS
from tests.sampling.driving import named_memory, survivors
from tests.sampling.pools.test_restarts import UNLIMITED, Run
from tests.sampling.unity.playing import players_of, unity_settings
from tests.unity_player.executable import make_player

MANY = 1000
SETTLED = 100  # failures, after which memory no longer grows
MAX_GROWTH = 2**20  # bytes
NUM_AGENTS = 8
EPISODE = 4  # steps of agent 0; those of agent i are i % 3 more
WORLD = f'[{{"name": "Walker", "agents": {NUM_AGENTS}, "continuous": 1, "observations": [[3]], "episode": {EPISODE}}}]'

# What a player does at which of its requests: the first two are the handshake, the third has its first steps. The
# first start must succeed.
TROUBLE = (
    "crash@30", "garbage@12", "exit:0@25", "shape@21", "hang@33", "exit:7@18", "lists@40", "cut@14", "method@20",
    "missing@19", "crash@2", "silent@26", "kill@35", "abort@1", "leave@23", "stranger@17", "garbage@0", "crash@15",
    "exit:3@2",
)  # fmt: skip


def of_player(number: signal.Signals) -> Callable[[int], None]:
    """Sends a signal to the player of a worker."""

    def kill(worker: int) -> None:
        for player in psutil.Process(worker).children():
            player.send_signal(number)

    return kill


def of_worker(number: signal.Signals) -> Callable[[int], None]:
    """Sends a signal to a worker."""
    return lambda worker: os.kill(worker, number)


# What happens to every third player that has begun to act, or to the worker process that looks after it.
VIOLENCE = (
    of_player(signal.SIGKILL),
    of_worker(signal.SIGKILL),
    of_player(signal.SIGSEGV),
    of_player(signal.SIGSTOP),
    of_worker(signal.SIGSEGV),
    of_player(signal.SIGKILL),
    of_worker(signal.SIGKILL),
    of_worker(signal.SIGSTOP),
)
REASONS = {  # every kind of failure, as it is reported
    "crash": "player was killed by (SIGSEGV|SIGABRT)",
    "kill": "player was killed by SIGKILL",
    "exit": "player exited with code [037]",
    "hang": "player sent nothing for",
    "cut": "player closed its connection; its process is still running",
    "garbage": "no message of ML-Agents",
    "wrong message": "must say what the agents observed|Walker|must follow its description",
    "worker killed": r"worker \d: the process was killed by",
    "worker hung": "has not returned for",
}


class Takeover:
    """Listens on the port of a player that is about to be started anew, so that it must get another one."""

    def __init__(self, first_port: int) -> None:
        self._first_port = first_port
        self._sockets: dict[int, socket.socket] = {}  # by worker

    def take(self, worker: int) -> None:
        """From now on the port is taken, if not by a connection of another program, which the system gave it."""
        with contextlib.suppress(OSError):
            taken = self._sockets[worker] = socket.create_server(("127.0.0.1", self._first_port + worker))
            taken.setblocking(False)

    def release(self, worker: int) -> None:
        """From now on it is not, if it was."""
        if worker in self._sockets:
            self._sockets.pop(worker).close()


class Audit:
    """Adds up the experience, and checks every row of it, so that none has to be kept."""

    def __init__(self, num_players: int) -> None:
        self._num_players = num_players
        self.num_rows = self.num_episodes = self.num_full = self.num_cut = 0
        self.returns = self.rewards_of_full = 0.0

    def add(self, block: Trajectories) -> None:
        """The reward on a row is that of its own action, and only whole episodes end or count."""
        wanted, chosen = block.observations[0][:, 0], block.continuous_actions[:, 0]
        np.testing.assert_allclose(block.rewards, 1 - np.abs(chosen - (2 * wanted - 1)), atol=1e-5)
        full = EPISODE + block.agent_ids // self._num_players % 3
        is_full = block.lengths == full
        assert (block.lengths <= full).all()
        assert block.begins.all()
        assert set(block.endings[is_full].tolist()) <= {Ending.TERMINATED, Ending.TRUNCATED}
        assert set(block.endings[~is_full].tolist()) <= {Ending.TRUNCATED}
        assert set(block.episode_lengths.tolist()) <= {EPISODE, EPISODE + 1, EPISODE + 2}
        self.num_rows += block.num_rows
        self.num_episodes += len(block.episode_returns)
        self.num_full += int(is_full.sum())
        self.num_cut += int((~is_full).sum())
        self.returns += float(block.episode_returns.sum())
        self.rewards_of_full += float(block.rewards[np.repeat(is_full, block.lengths)].sum())


class Siege(Run):
    """Makes trouble at every restart, and keeps nothing but counts."""

    def __init__(self, pool: ProcessPool, takeover: Takeover) -> None:
        super().__init__(pool)
        self._takeover = takeover
        self._violence, self._turn = itertools.cycle(VIOLENCE), itertools.count()
        self._failing: set[int] = set()  # workers that have failed and not acted since
        self.audit = Audit(pool.num_instances)
        self.memory: list[int] = []  # after each failure
        self.kinds: Counter[str] = Counter()
        self.others: set[str] = set()  # reasons of no kind that is expected
        self.num_lost = 0  # failures of workers that had acted
        self.num_moved = 0  # players whose port was taken
        self.num_shown = 0  # episodes, for display
        self.num_held = self.num_sampled = 0  # in the end

    def cycle(self) -> bool:
        """As a Run, but nothing is kept."""
        has_arrived = super().cycle()
        for report in self.reports:
            match report:
                case Restarting():
                    self._note_failure(report)
                case Restarted():
                    self._begin_again(report.worker)
                case Note():
                    self.num_moved += "is taken by process" in report.text
        self.num_shown += len(self.collector.drain_new_episodes("Walker")[0])
        for block in self.blocks:
            self.audit.add(block)
        self.reports.clear()
        self.blocks.clear()
        return has_arrived

    def finish(self) -> None:
        """Check what is complete, too."""
        while self.collector.is_due("Walker", 1):
            self.audit.add(self.collector.drain("Walker"))
        self.num_held, self.num_sampled = self.collector.num_held("Walker"), self.collector.num_sampled["Walker"]

    def _note_failure(self, report: Restarting) -> None:
        kind = next((kind for kind, words in REASONS.items() if re.search(words, report.reason)), "")
        self.kinds[kind] += 1
        if not kind:
            self.others.add(report.reason)
        if report.worker not in self._failing:
            self.num_lost += 1
            self._failing.add(report.worker)
        self._takeover.release(report.worker)
        if len(self.memory) % 7 == 0:
            self._takeover.take(report.worker)
        gc.collect()
        self.memory.append(psutil.Process().memory_info().rss)

    def _begin_again(self, worker: int) -> None:
        self._failing.remove(worker)
        self._takeover.release(worker)
        if next(self._turn) % 3 == 0:
            next(self._violence)(self.pool.worker_pids[worker])


def first_port(num_players: int) -> int:
    """Of as many free ones in a row as there are players, which the system gives to no connection by itself."""
    return next(port for port in range(21000, 30000, 10) if all(is_free(port + i) for i in range(num_players)))


@contextlib.contextmanager
def besieged(folder: Path, num_players: int) -> Iterator[Siege]:
    """Players that are in trouble, one kind after the other, in a pool that restarts them as often as they need it."""
    troubles = [word for trouble in TROUBLE for word in ("--trouble", trouble)]
    player = make_player(folder, *troubles, "--trouble-in-turn", str(folder / "turn"))
    settings = unity_settings(
        folder,
        base_port=first_port(num_players),
        timeout_wait=6,
        env_args=["--task", "crowd", "--spec", WORLD, "--slow-step", "0.01"],
    )
    source = EnvironmentSource(f"unity:{player}", "Walker", settings.model_dump(mode="json"))
    pool = ProcessPool(source, num_players, num_players, 12.0, folder / "logs", make_quota=UNLIMITED)
    (folder / "logs").mkdir()
    takeover = Takeover(settings.base_port)
    try:
        pool.start()
        pool.reset(5)
        yield Siege(pool, takeover)
    finally:
        pool.close()
        for worker in range(num_players):
            takeover.release(worker)


@pytest.mark.parametrize(
    ("num_failures", "num_players"),
    [
        pytest.param(10, 3, marks=pytest.mark.slow),
        pytest.param(MANY, 8, marks=[pytest.mark.faults, pytest.mark.timeout(2400)]),
    ],
)
def test_mixed_failures_of_players_are_survived_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_failures: int, num_players: int
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    gc.collect()  # what earlier tests of this process have left
    own = psutil.Process()
    children, descriptors, threads = own.children(recursive=True), own.num_fds(), threading.active_count()
    start = time.monotonic()
    with besieged(tmp_path, num_players) as run:
        run.until(lambda: len(run.memory) >= num_failures, seconds=2300)
        seconds = time.monotonic() - start
        players = list({*own.children(recursive=True)} - {*children})
        assert len(run.pool.worker_pids) == num_players
        assert named_memory(own.pid, *(player.pid for player in players)) == set()
        run.finish()
    assert survivors(players, DEADLINE_SECONDS) == []
    assert players_of(tmp_path) == []
    assert (own.children(recursive=True), own.num_fds()) == (children, descriptors)
    assert threading.active_count() == threads
    assert list((tmp_path / "temporary").iterdir()) == []
    print(f"{num_failures} failures in {seconds:.0f} s: {dict(run.kinds)}; {run.num_moved} ports were taken")
    check_experience(run)
    assert run.others == set()
    if num_failures == MANY:
        check_figures(run)


def check_experience(run: Siege) -> None:
    """Every step was learned once, but for the last ones before failures, and every whole episode counted once."""
    audit, num_lost = run.audit, NUM_AGENTS * run.num_lost
    print(f"{audit.num_rows:,} steps in {audit.num_episodes:,} episodes, and {audit.num_cut:,} that were cut off")
    assert run.num_sampled - audit.num_rows - run.num_held == num_lost
    assert audit.num_full == audit.num_episodes == run.num_shown > 0
    assert 0 < audit.num_cut <= num_lost
    assert audit.returns == pytest.approx(audit.rewards_of_full, rel=1e-6)


def check_figures(run: Siege) -> None:
    """Every kind of failure happened, and memory did not grow, by its lowest points: an allocator's peaks pass."""
    grown = min(run.memory[-SETTLED:]) - min(run.memory[SETTLED : 2 * SETTLED])
    print(f"memory grew by {grown / 2**10:.0f} KiB since failures {SETTLED} to {2 * SETTLED}")
    print(f"lowest of each hundred: {[min(run.memory[at : at + 100]) >> 10 for at in range(0, MANY, 100)]} KiB")
    assert min(run.kinds[kind] for kind in REASONS) >= 10
    assert run.num_moved >= MANY / 20
    assert grown < MAX_GROWTH
