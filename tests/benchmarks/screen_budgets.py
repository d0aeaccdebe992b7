"""What the screen promises, measured on a pseudo-terminal while three behaviors train in the same process."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.benchmarks.processes import PYTHON, ROOT
from tests.benchmarks.tables import row, table
from tests.pseudo_terminal import PseudoTerminal

SIZE = (120, 40)
HELP, HELP_SHOWN, CLOSE = "?", "Keys for", "escape"
MARK_P50_MS, MARK_P95_MS, MARK_SLOW_MS = 30.0, 100.0, 500.0
MARK_FIRST_PAINT_MS = 500.0
MARK_BYTES_PER_SECOND, SLOW_BYTES_PER_SECOND = 20_000, 50_000
WARM_SECONDS, WATCHES = 5.0, 15
PRESSES, QUICK_PRESSES = 60, 5
STARTS, QUICK_STARTS = 7, 2

TRAINING = """\
default_settings:
  trainer_type: ppo
  hyperparameters: {batch_size: 256, buffer_size: 2048, num_epoch: 4}
  network_settings: {hidden_units: 64, num_layers: 2}
  max_steps: 1000000000
  summary_freq: 10000
behaviors:
  CartPole: {trainer_type: ppo, max_steps: 1000000000}
  Acrobot: {trainer_type: ppo, max_steps: 1000000000}
  Pendulum: {trainer_type: ppo, max_steps: 1000000000}
env_settings:
  env:
    CartPole: gymnasium:CartPole-v1
    Acrobot: gymnasium:Acrobot-v1
    Pendulum: gymnasium:Pendulum-v1
  num_envs: 8
  seed: 1
"""


@dataclass(frozen=True, slots=True)
class Budgets:
    """Milliseconds, seconds and bytes per second as they were measured, raw."""

    first_paint_seconds: list[float]  # from the start of the process to a picture with the run's name
    key_ms: list[float]  # from a key to its picture, as fast as the terminal takes it
    slow_key_ms: list[float]  # the same on a terminal that takes 50 kB/s
    training_bytes_per_second: float
    frozen_bytes_per_second: float  # the view is frozen, training goes on
    over_bytes_per_second: float  # the run is over


def measure_budgets(*, is_quick: bool) -> Budgets:
    """Everything, one program after the other."""
    with TemporaryDirectory(prefix="rl-tui-bench-") as name:
        folder = Path(name)
        (folder / "three.yaml").write_text(TRAINING)
        presses, starts = (QUICK_PRESSES, QUICK_STARTS) if is_quick else (PRESSES, STARTS)
        first_paints = [first_paint(folder, index) for index in range(starts)]
        with program(folder, "keys") as terminal:
            wait_until_training(terminal)
            training = bytes_per_second(terminal)
            key_ms = press_often(terminal, presses)
            terminal.press(" ")
            terminal.wait_for("VIEW FROZEN")
            terminal.watch(2.0)
            frozen = bytes_per_second(terminal)
        with program(folder, "slow", bytes_per_second=SLOW_BYTES_PER_SECOND) as terminal:
            wait_until_training(terminal)
            slow_key_ms = press_often(terminal, presses // 2 + 1)
        over = bytes_once_over(folder)
    return Budgets(first_paints, key_ms, slow_key_ms, training, frozen, over)


def program(folder: Path, run_id: str, *more: str, bytes_per_second: float | None = None) -> PseudoTerminal:
    """The real program on a terminal; three behaviors train in its process."""
    command = [*PYTHON, "-m", "rl_tui", "three.yaml", "--run-id", run_id, *more]
    variables = {"PYTHONPATH": str(ROOT / "src"), "XDG_STATE_HOME": str(folder), "LANG": "C.UTF-8"}
    return PseudoTerminal(command, SIZE, folder=folder, variables=variables, bytes_per_second=bytes_per_second)


def first_paint(folder: Path, index: int) -> float:
    """Seconds from the start of the process until the state line stands on the terminal."""
    with program(folder, f"paint-{index}") as terminal:
        return terminal.wait_for_bytes(b"starting engine")


def wait_until_training(terminal: PseudoTerminal) -> None:
    """All three train, and have for a while."""
    terminal.wait_for("TRAINING 3/3")
    terminal.watch(WARM_SECONDS)


def press_often(terminal: PseudoTerminal, presses: int) -> list[float]:
    """Milliseconds from each press of `?` until its page is painted."""
    waits = random.Random(1)
    milliseconds = []
    for _ in range(presses):
        terminal.press(HELP)
        milliseconds.append(1000 * terminal.wait_for(HELP_SHOWN))
        terminal.watch(waits.uniform(0.15, 0.3))
        terminal.press(CLOSE)
        terminal.wait_for(HELP_SHOWN, absent=True)  # not counted: a lone escape is held back to report it from alt+key
        terminal.watch(waits.uniform(0.15, 0.3))
    return milliseconds


def bytes_once_over(folder: Path) -> float:
    """Bytes per second of a run that has reached its end and whose screen was left on."""
    short = [
        word for name in ("CartPole", "Acrobot", "Pendulum") for word in ("--set", f"behaviors.{name}.max_steps=4000")
    ]
    with program(folder, "over", *short) as terminal:
        terminal.wait_for("FINISHED")
        terminal.watch(15.0)  # words to the user have gone by then
        return bytes_per_second(terminal)


def bytes_per_second(terminal: PseudoTerminal) -> float:
    """What it is sent in a usual second: the median of some, for a warning may come in one of them."""
    return median(terminal.watch(1.0) for _ in range(WATCHES))


def quantile(values: list[float], share: float) -> float:
    """The smallest value that `share` of them do not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def report(measured: Budgets) -> str:
    """The budgets as text, each with its mark."""
    p50, p95 = median(measured.key_ms), quantile(measured.key_ms, 0.95)
    slow = quantile(measured.slow_key_ms, 0.95)
    paint = median(measured.first_paint_seconds)
    rows = [
        row("key to paint, p50", p50, MARK_P50_MS, "ms"),
        row("key to paint, p95", p95, MARK_P95_MS, "ms"),
        row("key to paint at 50 kB/s, p95", slow, MARK_SLOW_MS, "ms"),
        row("first paint, median", 1000 * paint, MARK_FIRST_PAINT_MS, "ms"),
        row("sent while training", measured.training_bytes_per_second, MARK_BYTES_PER_SECOND, "B/s"),
        row("sent while the view is frozen", measured.frozen_bytes_per_second, 0, "B/s"),
        row("sent once the run is over", measured.over_bytes_per_second, 0, "B/s"),
    ]
    head = (
        f"(g) the screen at {SIZE[0]}x{SIZE[1]}, three behaviors training in its process, {len(measured.key_ms)} keys"
    )
    return f"{head}\n\n{table(('', 'measured', 'mark', ''), rows)}"
