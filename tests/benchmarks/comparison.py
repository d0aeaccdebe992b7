"""rl-tui beside Stable-Baselines3 on the same tasks, round by round, and what the rounds say together."""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory

from tests.benchmarks.peers import (
    RL_TUI,
    RL_TUI_BFLOAT16,
    RL_TUI_MEMORY,
    RL_TUI_THREADED,
    SB3,
    SINGLE_FILE,
    Measurement,
    peers_of,
)
from tests.benchmarks.processes import ROOT, run_python
from tests.benchmarks.settings import WORKLOADS, AnyWorkload
from tests.benchmarks.tables import table, verdict

RETURN_MARK = 0.95  # of Stable-Baselines3's mean return
BFLOAT16_MARK = 2.0  # times Stable-Baselines3's throughput
WITH_THESE_TESTS = {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
QUICK_ROLLOUTS = {"a": 10, "b": 3, "c": 5, "i": 2, "j": 2, "k": 2, "l": 10, "m": 2}


def compare(name: str, rounds: int, *, is_quick: bool, device: str | None = None) -> list[Measurement]:
    """Every peer once a round, in the same order, each in a fresh process; round i has seed i.

    device: see `peers_of`; None is the CPU.
    """
    measurements = []
    with TemporaryDirectory(prefix="rl-tui-bench-") as folder:
        for seed in range(1, rounds + 1):
            for peer in peers_of(WORKLOADS[name], device):
                words = ["-m", "tests.benchmarks.peers", peer, name, "--seed", str(seed), "--device", device or "cpu"]
                if is_quick:
                    words += ["--rollouts", str(QUICK_ROLLOUTS[name])]
                said = run_python(*words, folder=Path(folder), variables=WITH_THESE_TESTS)
                measurement = Measurement(**json.loads(said.splitlines()[-1]))
                print(f"({name}) round {seed}, {peer}: {measurement.throughput:,.0f} steps/s", file=sys.stderr)
                measurements.append(measurement)
    return measurements


def report(name: str, measurements: Sequence[Measurement], *, is_quick: bool, device: str | None = None) -> str:
    """The comparison as text: throughput, returns, marks, and where the time of rl-tui went.

    On a device there are no marks, but a table for docs/benchmarks.md.
    """
    workload = WORKLOADS[name].cut(QUICK_ROLLOUTS[name]) if is_quick else WORKLOADS[name]
    peers = peers_of(workload, device)
    of_peer = {peer: [m for m in measurements if m.peer == peer] for peer in peers}
    base = of_peer[peers[0]]
    rows = [_row(peer, of_peer[peer], base) for peer in peers]
    name_of_base = "SB3" if peers[0] == SB3 else "its twin"
    times, over = f"x {name_of_base}", f"/ {name_of_base}"
    head = ("", "steps/s", "min .. max", times, "min .. max", "steps/CPU-s", times, "updates", "return", over)
    split_rows = [_split_row(peer, of_peer[peer]) for peer in peers if peer not in (SB3, SINGLE_FILE)]
    split_head = ("share of the time", "environment", "inference", "update", "everything else")
    return "\n".join(
        (
            f"{workload.title}, rounds: {len(base)}",
            "",
            table(head, rows),
            _marks(workload, of_peer) if device is None else _markdown(workload, of_peer, device),
            "",
            table(split_head, split_rows),
            "(with threaded: true the update runs beside the other three)",
        )
    )


def _row(peer: str, own: list[Measurement], base: list[Measurement]) -> tuple[str, ...]:
    speeds = [m.throughput for m in own]
    cpu_speeds = [m.steps / m.cpu_seconds for m in own]
    ratios = speed_ratios(own, base)
    cpu_ratio = median(speed / (m.steps / m.cpu_seconds) for speed, m in zip(cpu_speeds, base, strict=True))
    return (
        label(peer),
        f"{median(speeds):,.0f}",
        f"{min(speeds):,.0f} .. {max(speeds):,.0f}",
        f"{median(ratios):.2f}",
        f"{min(ratios):.2f} .. {max(ratios):.2f}",
        f"{median(cpu_speeds):,.0f}",
        f"{cpu_ratio:.2f}",
        f"{median(m.num_updates for m in own):g}",
        _number(mean_return(own), ".1f"),
        _number(return_ratio(own, base), ".2f"),
    )


def label(peer: str) -> str:
    """A peer's name for readers."""
    return {
        SB3: f"Stable-Baselines3 {importlib.metadata.version('stable-baselines3')}",
        SINGLE_FILE: "single-file, as CleanRL's",
        RL_TUI: "rl-tui, threaded: false",
        RL_TUI_THREADED: "rl-tui, threaded: true",
        RL_TUI_BFLOAT16: "rl-tui, precision: bfloat16",
        RL_TUI_MEMORY: "rl-tui, with a memory",
    }[peer]


def speed_ratios(own: Sequence[Measurement], base: Sequence[Measurement]) -> list[float]:
    """Throughput as a multiple of another's in the same round, where the machine was the same."""
    return [ours.throughput / theirs.throughput for ours, theirs in zip(own, base, strict=True)]


def mean_return(measurements: Sequence[Measurement]) -> float | None:
    """The mean over the rounds; None when no episode ended in some."""
    returns = [m.mean_return for m in measurements if m.mean_return is not None]
    return mean(returns) if len(returns) == len(measurements) else None


def return_ratio(own: Sequence[Measurement], base: Sequence[Measurement]) -> float | None:
    """Own mean return over another's; None where that is no positive number and a ratio says nothing."""
    ours, theirs = mean_return(own), mean_return(base)
    return None if ours is None or theirs is None or theirs <= 0 else ours / theirs


def device_name(device: str) -> str:
    """What a reader knows it by."""
    import torch

    is_cuda = torch.device(device).type == "cuda"
    return f"{device}, {torch.cuda.get_device_name(device)}" if is_cuda else device


def _markdown(workload: AnyWorkload, of_peer: dict[str, list[Measurement]], device: str) -> str:
    """The table as the documentation has it."""
    base, file = of_peer[SB3], of_peer[SINGLE_FILE]
    environment = workload.environment
    lines = [
        f"\n| ({workload.name}) {environment} on {device_name(device)} | steps/s | x SB3 | x single-file | return |",
        "|---|---|---|---|---|",
    ]
    for peer, own in of_peer.items():
        ratios = (_range(speed_ratios(own, other)) for other in (base, file))
        speed, reached = median(m.throughput for m in own), _number(mean_return(own), ".0f")
        number = f"{speed:,.0f}".replace(",", " ")
        lines.append(f"| {label(peer)} | {number} | {' | '.join(ratios)} | {reached} |")
    return "\n".join(lines)


def _range(ratios: list[float]) -> str:
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _marks(workload: AnyWorkload, of_peer: dict[str, list[Measurement]]) -> str:
    """Either way of running may reach the marks, but the same one both; other arithmetic has a mark of its own."""
    if RL_TUI_MEMORY in of_peer:
        ratio = median(speed_ratios(of_peer[RL_TUI_MEMORY], of_peer[RL_TUI]))
        return f"mark: {workload.mark:g} x the throughput of its twin {verdict(ratio >= workload.mark)} ({ratio:.2f})"
    sb3 = of_peer[SB3]
    ratios = {peer: median(speed_ratios(own, sb3)) for peer, own in of_peer.items()}
    best = max((peer for peer in (RL_TUI, RL_TUI_THREADED) if peer in ratios), key=ratios.__getitem__)
    returns = return_ratio(of_peer[best], sb3)
    said = (
        f"marks, held to {label(best)}: {workload.mark:g} x the throughput {verdict(ratios[best] >= workload.mark)}"
        f" ({ratios[best]:.2f}); {RETURN_MARK:g} x the return"
        f" {'not comparable' if returns is None else f'{verdict(returns >= RETURN_MARK)} ({returns:.2f})'}"
    )
    if RL_TUI_BFLOAT16 in ratios:
        ratio = ratios[RL_TUI_BFLOAT16]
        said += f"; bfloat16: {BFLOAT16_MARK:g} x the throughput {verdict(ratio >= BFLOAT16_MARK)} ({ratio:.2f})"
    return said


def _split_row(peer: str, own: list[Measurement]) -> tuple[str, ...]:
    """Medians of each round's shares of its wall time; beside a threaded update the other three fill it."""
    shares = {key: median(m.split[key] / m.seconds for m in own) for key in own[0].split}
    return (label(peer), *(f"{share:.1%}" for share in shares.values()))


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
