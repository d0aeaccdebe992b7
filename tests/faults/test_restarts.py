"""A run that is killed again and again, and started by the same command line each time, reaches its end."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from rl_tui.engine.session.messages import BehaviorStarted, MetricsReported, RunStateChanged
from tests.end_to_end.program import events_of, finish, read_until, start

INTERVAL = 400
ROLLOUT = 64  # steps between two updates, which is when a checkpoint is due
CONFIGURATION = f"""\
behaviors:
  Slow:
    trainer_type: ppo
    hyperparameters: {{batch_size: 32, buffer_size: {ROLLOUT}, num_epoch: 1}}
    network_settings: {{hidden_units: 8, num_layers: 1}}
    time_horizon: 16
    max_steps: 1500
    summary_freq: 50
    checkpoint_interval: {INTERVAL}
    keep_checkpoints: 3
env_settings: {{env: "slow_line:make", num_envs: 4, seed: 1}}
"""
SLOW_LINE = """\
import time
from rl_tui.engine.sampling.environments.toys.line import Line


class Slow(Line):
    # An interval takes 0.4 seconds, longer than a checkpoint with its export.
    def step(self, actions):
        time.sleep(0.001)
        return super().step(actions)


def make():
    return Slow("Slow", 1)
"""


STARTING = "starting"
MOMENTS = (("Slow: training", 1.5), (STARTING, 2.5), (" saved", 0.5))  # killed at most so many seconds later


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one process printed. step: where it began, None if it was killed before."""

    exit_code: int
    step: int | None
    newest_step: int
    newest_checkpoint: int


@pytest.mark.parametrize(
    ("kills", "flags"),
    [
        (1, ()),
        pytest.param(3, (), marks=pytest.mark.slow),
        pytest.param(60, (), marks=pytest.mark.faults),
        pytest.param(60, ("--num-workers", "2"), marks=pytest.mark.faults),
    ],
)
def test_a_run_that_is_killed_at_random_moments_loses_at_most_an_interval_each_time(
    tmp_path: Path, kills: int, flags: tuple[str, ...]
) -> None:
    (tmp_path / "slow.yaml").write_text(CONFIGURATION.replace("1500", str(kills * 600)))
    (tmp_path / "slow_line.py").write_text(SLOW_LINE)
    luck, attempts = random.Random(7), list[Attempt]()
    while not attempts or attempts[-1].exit_code != 0:
        moment, seconds = MOMENTS[len(attempts) % len(MOMENTS)] if len(attempts) < kills else ("", 0.0)
        attempts.append(attempt(tmp_path, flags, moment, luck.uniform(0, seconds)))
        assert attempts[-1].exit_code in (-9, 0), attempts
        assert len(attempts) <= kills + 1, attempts
    saved = reached = 0
    for one in attempts:
        if one.step is not None:
            assert saved <= one.step, "a checkpoint that was announced was not continued"
            assert reached - one.step <= INTERVAL + 2 * ROLLOUT, f"{reached - one.step} steps were lost"
            reached = one.newest_step
        saved = max(saved, one.newest_checkpoint)
    starts = [one.step for one in attempts if one.step is not None]
    assert starts == sorted(starts)
    assert len(set(starts)) > len(attempts) / 4, "hardly any process saved anything: the test proves nothing"
    (folder,) = (tmp_path / "results").iterdir()
    assert folder.name == "slow"
    events = events_of(folder)
    assert [event.step for event in events if isinstance(event, BehaviorStarted)][-1] == starts[-1]
    assert max(map(step_of, (folder / "Slow/checkpoints").iterdir())) >= kills * 600  # its event may have been lost
    assert events[-1] == RunStateChanged("finished", "", 0)
    assert any(isinstance(event, MetricsReported) for event in events)


@pytest.mark.faults
def test_a_run_that_is_killed_before_its_interval_continues_from_a_checkpoint_by_the_clock(tmp_path: Path) -> None:
    settings = CONFIGURATION.replace(f"interval: {INTERVAL}", "seconds: 1").replace("1500", "100000")
    (tmp_path / "slow.yaml").write_text(settings)
    (tmp_path / "slow_line.py").write_text(SLOW_LINE)
    process = start("slow.yaml", "--no-ui", folder=tmp_path)
    said = read_until(process, r"checkpoint of step \d+ removed: .*\n")  # a second one has replaced it
    process.kill()
    said += finish(process)[1]
    steps = [int(step) for step in re.findall(r"step (\d+) saved \(clock", said)]
    checkpoints = tmp_path / "results/slow/Slow/checkpoints"
    assert checkpoints / f"Slow-{steps[-1]}" in checkpoints.iterdir()
    again = start("slow.yaml", "--no-ui", "--resume", folder=tmp_path)
    begun = re.search(r"from step (\d+) of", read_until(again, "from step .*\n"))
    again.terminate()
    assert finish(again)[0] == 143
    assert begun is not None
    assert int(begun[1]) >= steps[-1]
    assert len(list(checkpoints.iterdir())) == 2, "the newest by the clock, and the last one"


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def attempt(folder: Path, flags: tuple[str, ...], moment: str, delay: float) -> Attempt:
    """Start the run, and kill it `delay` seconds after the line of that moment; without one it ends by itself."""
    process = start("slow.yaml", "--no-ui", "--resume-or-start", *flags, folder=folder)
    assert process.stdout is not None
    said, timers = "", list[threading.Timer]()
    if moment == STARTING:
        timers.append(kill_later(process.kill, delay))
    for line in process.stdout:
        said += line
        if moment and moment in line and not timers:
            timers.append(kill_later(process.kill, delay))
    exit_code, _, stderr = finish(process)
    for timer in timers:
        timer.cancel()
    assert stderr == "", stderr
    begun = re.search(r"from step (\d+) of", said)
    return Attempt(
        exit_code,
        int(begun[1]) if begun else None,
        max(map(int, re.findall(r"Slow\. Step: (\d+)\.", said)), default=int(begun[1]) if begun else 0),
        max(map(int, re.findall(r"step (\d+) saved", said)), default=0),
    )


def kill_later(kill: Callable[[], None], delay: float) -> threading.Timer:
    timer = threading.Timer(delay, kill)
    timer.start()
    return timer
