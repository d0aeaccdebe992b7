"""What watching a policy takes from training: turns of one run, watched and unwatched, on a pseudo-terminal."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import psutil

from rl_tui.engine.session.messages import MetricsReported
from tests.benchmarks.processes import PYTHON, ROOT
from tests.benchmarks.runs import read_events
from tests.benchmarks.screen_budgets import WARM_SECONDS, press_often, quantile
from tests.benchmarks.tables import table, verdict
from tests.pseudo_terminal import PseudoTerminal

SIZE = (120, 40)
ENVIRONMENTS = ("CartPole-v1", "HalfCheetah-v5")  # whose step and picture cost little, and whose cost much
MARK_LOSS, MARK_P95_MS = 0.05, 100.0
TURN_SECONDS, QUICK_TURN_SECONDS = 10.0, 4.0
PRESSES, QUICK_PRESSES = 30, 3
WATCH, BACK = "v", "v"

TRAINING = """\
behaviors:
  Watched:
    trainer_type: ppo
    hyperparameters: {{batch_size: 256, buffer_size: 1024, num_epoch: 4}}
    network_settings: {{hidden_units: 64, num_layers: 2, normalize: true}}
    max_steps: 1000000000
    summary_freq: 500
env_settings: {{env: "gymnasium:{environment}", num_envs: 8, seed: 1}}
checkpoint_settings: {{run_id: bench}}
"""


@dataclass(frozen=True, slots=True)
class Turns:
    """Of one turn without a viewer and one with, side by side: steps per second, and the share of the process's own
    processor time that threads beside the one that trains take, which others on the machine disturb less.

    bytes_per_second: sent to the terminal while watching.
    """

    environment: str
    unwatched: float
    watched: float
    unwatched_beside: float
    watched_beside: float
    bytes_per_second: float

    @property
    def loss(self) -> float:
        """The share of the throughput that watching takes."""
        return 1 - self.watched / self.unwatched

    @property
    def taken(self) -> float:
        """The share of the process's time that watching takes from what trains."""
        return self.watched_beside - self.unwatched_beside


@dataclass(frozen=True, slots=True)
class WatchCost:
    """key_ms: from a key to its picture while a policy is watched, the first environment's and so on."""

    turns: list[Turns]
    key_ms: list[float]


def measure_watch_cost(pairs: int, *, is_quick: bool) -> WatchCost:
    """Pairs of turns, the making of the watched environment included; which comes first changes from pair to pair."""
    turns: list[Turns] = []
    key_ms: list[float] = []
    for environment in ENVIRONMENTS:
        with TemporaryDirectory(prefix="rl-tui-bench-") as name:
            found, keys = _of_one_run(environment, Path(name), pairs, is_quick=is_quick)
        turns += found
        key_ms += keys
    return WatchCost(turns, key_ms)


def _of_one_run(environment: str, folder: Path, pairs: int, *, is_quick: bool) -> tuple[list[Turns], list[float]]:
    (folder / "watch.yaml").write_text(TRAINING.format(environment=environment))
    command = [*PYTHON, "-m", "rl_tui", "watch.yaml", "--no-bell"]
    variables = {"PYTHONPATH": str(ROOT / "src"), "XDG_STATE_HOME": str(folder), "LANG": "C.UTF-8"}
    seconds = QUICK_TURN_SECONDS if is_quick else TURN_SECONDS
    marks: list[tuple[bool, float, float, float, int]] = []
    with PseudoTerminal(command, SIZE, folder=folder, variables=variables) as terminal:
        process = psutil.Process(terminal.process.pid)
        terminal.wait_for("TRAINING 1/1")
        terminal.watch(WARM_SECONDS)
        for pair in range(pairs):
            order = (False, True) if pair % 2 == 0 else (True, False)
            marks += [(watched, *_turn(terminal, process, seconds, is_watched=watched)) for watched in order]
        terminal.press(WATCH)
        terminal.wait_for("playing")
        keys = press_often(terminal, QUICK_PRESSES if is_quick else PRESSES)
    summaries = [(e.time, e.event.step) for e in read_events(folder) if isinstance(e.event, MetricsReported)]
    times, steps = np.array(summaries).T
    turns = []
    for pair in range(pairs):
        speeds: dict[bool, tuple[float, float, float]] = {}
        for is_watched, start, end, beside, num_bytes in marks[2 * pair : 2 * pair + 2]:
            made = float(np.diff(np.interp((start, end), times, steps))[0])
            speeds[is_watched] = made / (end - start), beside, num_bytes / (end - start)
        (plain, plain_beside, _), (watched, watched_beside, sent) = speeds[False], speeds[True]
        turns.append(Turns(environment, plain, watched, plain_beside, watched_beside, sent))
        words = f"watching takes {turns[-1].loss:.1%}, of the process's time {turns[-1].taken:.1%}"
        print(f"(n) {environment}, pair {pair + 1}: {words}", file=sys.stderr)
    return turns, keys


def _turn(
    terminal: PseudoTerminal, process: psutil.Process, seconds: float, *, is_watched: bool
) -> tuple[float, float, float, int]:
    """Start and end by the clock of the events, the share of threads beside the one that trains, bytes sent."""
    start, before = time.time(), _thread_seconds(process)
    if is_watched:
        terminal.press(WATCH)
    sent = terminal.watch(seconds)
    end, after = time.time(), _thread_seconds(process)
    used = [seconds - before.get(thread, 0.0) for thread, seconds in after.items()]
    if is_watched:
        terminal.press(BACK)
        terminal.watch(1.0)
    return start, end, 1 - max(used) / sum(used), sent


def _thread_seconds(process: psutil.Process) -> dict[int, float]:
    """Processor time by thread."""
    return {thread.id: thread.user_time + thread.system_time for thread in process.threads()}


def report(cost: WatchCost) -> str:
    """The turns as text, with the marks."""
    rows = []
    for environment in ENVIRONMENTS:
        turns = [turn for turn in cost.turns if turn.environment == environment]
        loss, taken = median(turn.loss for turn in turns), median(turn.taken for turn in turns)
        low, high = min(turn.loss for turn in turns), max(turn.loss for turn in turns)
        speeds = median(turn.unwatched for turn in turns), median(turn.watched for turn in turns)
        sent = median(turn.bytes_per_second for turn in turns)
        rows.append((
            environment, f"{speeds[0]:,.0f}", f"{speeds[1]:,.0f}", f"{loss:.1%} ({low:.1%} to {high:.1%})",
            f"{taken:.1%}", f"{sent / 1000:.1f} kB/s", verdict(loss <= MARK_LOSS),
        ))  # fmt: skip
    head = ("steps/s", "unwatched", "watched", "loss", "of the process", "sent", "")
    p50, p95 = median(cost.key_ms), quantile(cost.key_ms, 0.95)
    keys = f"key to paint while watching: p50 {p50:.0f} ms, p95 {p95:.0f} ms, mark {MARK_P95_MS:.0f} ms"
    return "\n".join(
        (
            f"(n) what watching takes, {SIZE[0]}x{SIZE[1]}, {len(cost.turns) // len(ENVIRONMENTS)} pairs each",
            "",
            table(head, rows),
            f"mark: a loss of {MARK_LOSS:.0%} at most",
            f"{keys} {verdict(p95 <= MARK_P95_MS)}",
        )
    )
