"""The program as several ranks, each in processes of its own as under a launcher, and what goes wrong with one."""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from rl_tui.engine.session.codec import decode
from rl_tui.engine.session.messages import CheckpointSaved, Event, RunStateChanged
from rl_tui.engine.storage.checkpoints import CheckpointStore
from tests.deadline import DEADLINE_SECONDS, wait_until
from tests.end_to_end.program import finish, start
from tests.sampling.driving import survivors

HOST = socket.gethostname()
LOOPBACK = "127.0.0.1"
FIRST_PORT, LAST_PORT = 20_000, 32_000  # below those that Linux gives to connections
TIMEOUT_WAIT = 5  # of the environments: a rank that says nothing is lost 30 s after that
LOST, ENVIRONMENT_FAILED, DIVERGED, UNSAVED, TERMINATED = 9, 3, 5, 7, 143
KILLED = -signal.SIGKILL, 128 + signal.SIGKILL  # the process itself, or the one that does its work
ENDLESS = 100_000_000

CONFIGURATION = f"""\
behaviors:
  Line:
    trainer_type: ppo
    hyperparameters: {{batch_size: 32, buffer_size: 64, num_epoch: 1}}
    network_settings: {{hidden_units: 8, num_layers: 1}}
    time_horizon: 16
    max_steps: {ENDLESS}
    summary_freq: 64
    checkpoint_interval: 128
    keep_checkpoints: 3
env_settings:
  env: faulty_line:Faulty
  num_envs: 6
  seed: 1
  timeout_wait: {TIMEOUT_WAIT}
torch_settings: {{device: cpu}}
"""

# All ranks have the same configuration: what differs is in their surroundings.
WORLD = """\
import math
import os
import time

from rl_tui.engine.sampling.environments.toys.line import Line


class Faulty(Line):
    def __init__(self):
        super().__init__("Line", 1)
        self._fault, self._at, self._count = os.environ.get("FAULT", ""), int(os.environ.get("FAULT_AT", "0")), 0

    def step(self, actions):
        self._count += 1
        time.sleep(0.0005)  # a run is not over before a test looks at it
        is_due = self._count == self._at
        if is_due and self._fault == "raises":
            raise RuntimeError("the floor has opened")
        steps = super().step(actions)
        if is_due and self._fault == "pays no number":
            steps["Line"].decisions.rewards[:] = math.nan
        return steps
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the process of a rank did."""

    exit_code: int
    stdout: str
    stderr: str


class RankedProgram:
    """One run, of which every rank is a process of this one's. processes: in the order of ranks."""

    def __init__(self, folder: Path, run_id: str, processes: Sequence[subprocess.Popen[str]]) -> None:
        self.results = folder / "results" / run_id
        self.processes = processes
        self._seen: dict[int, psutil.Process] = {}

    def look(self) -> None:
        """Note which processes there are, so that all of them can be missed in the end."""
        for process in self.processes:
            with contextlib.suppress(psutil.Error):
                top = psutil.Process(process.pid)
                for each in (top, *top.children(recursive=True)):
                    self._seen[each.pid] = each

    def kill(self) -> None:
        """Whatever is left."""
        self.look()
        for each in self._seen.values():
            with contextlib.suppress(psutil.Error):
                each.kill()
        for process in self.processes:
            process.kill()
            process.communicate()

    def worker(self, rank: int) -> psutil.Process:
        """The process that trains: the one that was started watches it."""
        top = psutil.Process(self.processes[rank].pid)
        return next(iter(top.children()), top)

    def signal(self, rank: int, number: signal.Signals) -> None:
        """To the process that trains."""
        self.look()
        self.worker(rank).send_signal(number)

    def wait_until_saved(self) -> None:
        """There is a checkpoint."""
        log = self.results / "events.jsonl"
        wait_until(lambda: log.exists() and '"event": "CheckpointSaved"' in log.read_text())

    def finish(self, *, stopped: int | None = None) -> list[Ended]:
        """How each rank ended. stopped: the rank that is stopped and, once all others have ended, goes on."""
        self.look()
        order = sorted(range(len(self.processes)), key=lambda rank: rank == stopped)
        ended: dict[int, Ended] = {}
        for rank in order:
            if rank == stopped:
                with contextlib.suppress(psutil.NoSuchProcess):
                    self.signal(rank, signal.SIGCONT)
            ended[rank] = Ended(*finish(self.processes[rank]))
        left = survivors(list(self._seen.values()), DEADLINE_SECONDS)
        assert not left, left
        return [ended[rank] for rank in range(len(self.processes))]

    @property
    def events(self) -> list[Event]:
        """Of the run's log, whose last line may not be whole where rank 0 was killed."""
        lines = (self.results / "events.jsonl").read_text().rpartition("\n")[0].splitlines()
        return [decode(line).event for line in lines]

    @property
    def reason(self) -> str:
        """Of the end, as rank 0 has it."""
        return [event for event in self.events if isinstance(event, RunStateChanged)][-1].reason

    @property
    def saved(self) -> list[CheckpointSaved]:
        """All, oldest first."""
        return [event for event in self.events if isinstance(event, CheckpointSaved)]

    def newest_step(self) -> int:
        """Of the newest checkpoint, which can be read, as all others can."""
        store = CheckpointStore(self.results / "Line" / "checkpoints", "Line", 3)
        steps = [store.load(path)[1].step for path in store.folder.glob("Line-*")]
        assert steps, "there is no checkpoint"
        newest = store.newest_valid().path
        assert newest is not None
        assert store.step_of(newest) == max(steps)
        return max(steps)


def write(folder: Path, max_steps: int = ENDLESS) -> None:
    """The configuration, and the module of its environments."""
    (folder / "line.yaml").write_text(CONFIGURATION.replace(str(ENDLESS), str(max_steps)))
    (folder / "faulty_line.py").write_text(WORLD)


def free_port(luck: random.Random) -> int:
    """One at which nothing listens now."""
    while True:
        port = luck.randint(FIRST_PORT, LAST_PORT)
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind((LOOPBACK, port))
            return port


def of_launcher(rank: int, size: int, port: int, address: str = LOOPBACK) -> dict[str, str]:
    """The variables that it sets."""
    return {
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": address, "MASTER_PORT": str(port),
    }  # fmt: skip


@contextmanager
def ranks(
    folder: Path,
    *words: str,
    size: int,
    run_id: str = "run",
    more: Mapping[int, Mapping[str, str]] | None = None,
    folders: Mapping[int, Path] | None = None,
) -> Iterator[RankedProgram]:
    """The program with these words, on so many ranks. By rank: more, variables; folders, other ones."""
    others = folders or {}
    port = free_port(random.Random())
    command = ["line.yaml", "--no-ui", "--run-id", run_id, *words]
    processes = [
        start(
            *command,
            folder=others.get(rank, folder),
            more={**of_launcher(rank, size, port), **(more or {}).get(rank, {})},
        )
        for rank in range(size)
    ]
    program = RankedProgram(folder, run_id, processes)
    try:
        yield program
    finally:
        program.kill()


def named(rank: int, size: int) -> str:
    """How messages call a rank of this machine."""
    return f"rank {rank} of {size} on {HOST}"
