"""Whole runs whose Unity players are killed and stopped, and that are killed themselves, by the real command line."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from rl_tui.engine.session.codec import decode
from rl_tui.engine.session.messages import CheckpointSaved, EnvironmentRestarted, EnvironmentRestarting, RunStateChanged
from tests.deadline import DEADLINE_SECONDS
from tests.end_to_end.program import events_of, finish, read_until, start
from tests.end_to_end.test_unity import UNENDING, players_of
from tests.sampling.driving import named_memory, survivors
from tests.unity_player.executable import make_player

SIGNALS = signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP
NO_LIMIT = ["--max-lifetime-restarts", "-1", "--restarts-rate-limit-n", "-1"]


@contextlib.contextmanager
def train(
    folder: Path, *flags: str, text: str = UNENDING, arguments: Sequence[str] = ("--slow-step", "0.005")
) -> Iterator[subprocess.Popen[str]]:
    """A run in three players that ends only when it is told to. text: of its file. arguments: of the players."""
    (folder / "run.yaml").write_text(text)
    make_player(folder, *arguments)
    names = ["--no-ui", "--run-id", "u1", "--env=./player", "--num-envs", "3", "--timeout-wait", "60"]
    training = start("run.yaml", *names, *NO_LIMIT, *flags, folder=folder, from_cold=True)  # its workers are its own
    try:
        yield training
    finally:
        training.kill()
        training.communicate()


class Violence(threading.Thread):
    """Sends a signal to a random player now and then, and Ctrl-C to the run in the end."""

    def __init__(
        self,
        training: subprocess.Popen[str],
        folder: Path,
        seconds: float,
        signals: Sequence[signal.Signals] = SIGNALS,
        pause: tuple[float, float] = (0.5, 3.5),
    ) -> None:
        """seconds: how long, at least; each player is started again at least once. pause: seconds, from and to."""
        super().__init__()
        self._signals, self._pause = signals, pause
        self._training, self._folder = training, folder
        self._end = time.monotonic() + seconds
        self._luck = random.Random(3)
        self.num_sent = 0

    def run(self) -> None:
        """Until the end, or that of the run."""
        pause = threading.Event()
        while not self._is_over() and self._training.poll() is None:
            if players := players_of(self._folder):
                with contextlib.suppress(psutil.Error):
                    psutil.Process(self._luck.choice(players)).send_signal(self._luck.choice(self._signals))
                    self.num_sent += 1
            pause.wait(self._luck.uniform(*self._pause))
        self._training.send_signal(signal.SIGINT)

    def _is_over(self) -> bool:
        late = time.monotonic() - self._end
        return late > DEADLINE_SECONDS or (late > 0 and restarted_workers(self._folder) == {0, 1, 2})


def restarted_workers(folder: Path) -> set[int]:
    """So far: the last line may not be whole yet."""
    lines = (folder / "results/u1/events.jsonl").read_text().rpartition("\n")[0].splitlines()
    events = [decode(line).event for line in lines]
    return {event.worker for event in events if isinstance(event, EnvironmentRestarted)}


def kill(training: subprocess.Popen[str]) -> list[psutil.Process]:
    """Kill a run; which of its processes are never gone."""
    processes = psutil.Process(training.pid).children(recursive=True)
    assert len(processes) >= 5, "three workers and their players, of whom one may not have been started again"
    assert named_memory(training.pid, *(process.pid for process in processes)) == set()
    training.kill()
    return survivors(processes, DEADLINE_SECONDS)


@pytest.mark.slow
def test_a_killed_run_leaves_no_player_not_even_one_that_ignores_it(tmp_path: Path) -> None:
    with train(tmp_path, arguments=("--stays-alive", "--refuses-to-quit", "--slow-step", "0.01")) as training:
        read_until(training, "Mean Reward")
        stopped, killed, _ = map(psutil.Process, players_of(tmp_path))
        stopped.suspend()
        killed.kill()
        read_until(training, "restart 1: .* was killed by SIGKILL")
        deadline = time.monotonic() + DEADLINE_SECONDS  # a worker that is being started ends a little later
        while len(players_of(tmp_path)) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert kill(training) == []
    assert players_of(tmp_path) == []


@pytest.mark.faults
@pytest.mark.timeout(1200)
def test_a_run_whose_players_are_killed_for_a_minute_saves_everything_and_resumes(tmp_path: Path) -> None:
    with train(tmp_path) as training:
        said = read_until(training, "Mean Reward")
        violence = Violence(training, tmp_path, 60)
        violence.start()
        exit_code, stdout, stderr = finish(training, 60 + 2 * DEADLINE_SECONDS)
        violence.join()
    assert (exit_code, stderr) == (130, ""), said + stdout
    assert players_of(tmp_path) == []
    events = events_of(tmp_path / "results/u1")
    restarts = [event for event in events if isinstance(event, EnvironmentRestarting)]
    saved = [event for event in events if isinstance(event, CheckpointSaved)][-1]
    print(f"{violence.num_sent} signals, {len(restarts)} restarts, saved at step {saved.step}")
    assert violence.num_sent >= 15
    assert len(restarts) >= violence.num_sent / 3, "some signals reach a player that is stopped already"
    assert restarted_workers(tmp_path) == {0, 1, 2}
    assert isinstance(events[-1], RunStateChanged)
    assert (events[-1].state, events[-1].exit_code) == ("stopped", 130)
    steps = [int(step) for step in re.findall(r"Step: (\d+)\.", said + stdout)]
    assert saved.step >= steps[-1] > steps[0]

    with train(tmp_path, "--resume") as training:
        assert f" from step {saved.step} of" in read_until(training, "from step")
        read_until(training, "Mean Reward")
        assert kill(training) == []
    assert players_of(tmp_path) == []
