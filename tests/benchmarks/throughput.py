"""`make bench`: what rl-tui reaches, beside Stable-Baselines3, and what its screen, its start and its memory cost."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from tests.benchmarks import comparison, crowd, memory, screen_budgets, screen_cost, screen_load, startup, watch_cost
from tests.benchmarks.processes import limit_cpus
from tests.benchmarks.settings import WORKLOADS

PARTS = tuple(sorted((*WORKLOADS, "d", "e", "f", "g", "h", "n", "o")))
ON_A_DEVICE = ("a", "b", "c", "i", "j")
START_UP_CALLS, QUICK_START_UP_CALLS = 10, 3

Raw = list[dict[str, object]]


def main(words: Sequence[str] | None = None) -> None:
    """Measure the chosen parts one after the other, print each as soon as it is known, keep the raw numbers."""
    arguments = parse(words)
    limit = limit_cpus(arguments.cpus)
    print(machine(limit, arguments.device), flush=True)
    raw: dict[str, Raw] = {}
    for part in arguments.only:
        text, raw[part] = measure(part, arguments)
        print(f"\n{text}", flush=True)
    if arguments.json is not None:
        arguments.json.write_text(
            json.dumps({"machine": machine(limit, arguments.device), "parts": raw}, indent=1) + "\n"
        )


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.throughput", description=__doc__)
    parts = "a to c, i (SAC), j (images): beside Stable-Baselines3; k to m: what a memory costs;"
    parts += " d: what the screen takes from training; e: start-up; f: memory; g: keys, first picture and bytes sent;"
    parts += " h: what the screen's own work costs; n: what watching a policy takes from training;"
    parts += " o: many agents that come and go"
    parser.add_argument("--only", type=_parts, metavar="a,c", help=f"parts to measure ({parts})")
    device = "torch's name of a device on which all peers compute, a single-file implementation among them: a, c, i, j"
    parser.add_argument("--device", metavar="cuda", help=device)
    parser.add_argument("--rounds", type=_positive, help="rounds beside Stable-Baselines3, a seed each (3)")
    parser.add_argument("--pairs", type=_positive, help="pairs of d and n (5)")
    parser.add_argument("--cpus", type=_positive, default=2, help="CPUs that everything shares (2), where Linux can")
    parser.add_argument("--quick", action="store_true", help="see that it works: one short round, numbers mean little")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the raw numbers there")
    arguments = parser.parse_args(words)
    arguments.only = arguments.only or (PARTS if arguments.device is None else ("a", "c", "i", "j"))
    if arguments.device is not None and (others := set(arguments.only) - set(ON_A_DEVICE)):
        parser.error(f"--device: only {', '.join(ON_A_DEVICE)} are measured on one, not {', '.join(sorted(others))}")
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 3)
    arguments.pairs = arguments.pairs or (1 if arguments.quick else 5)
    return arguments


def measure(part: str, arguments: argparse.Namespace) -> tuple[str, Raw]:
    """One part as text and as raw numbers."""
    is_quick: bool = arguments.quick
    match part:
        case "d":
            pairs = screen_cost.measure_screen_cost(arguments.pairs, is_quick=is_quick)
            return screen_cost.report(pairs), _raw(pairs)
        case "e":
            commands = startup.measure_start_up(QUICK_START_UP_CALLS if is_quick else START_UP_CALLS)
            return startup.report(commands), _raw(commands)
        case "f":
            growth = memory.measure_memory(is_quick=is_quick)
            return memory.report(growth), _raw([growth])
        case "g":
            budgets = screen_budgets.measure_budgets(is_quick=is_quick)
            return screen_budgets.report(budgets), _raw([budgets])
        case "h":
            load = screen_load.measure_load(is_quick=is_quick)
            return screen_load.report(load), _raw([load])
        case "n":
            cost = watch_cost.measure_watch_cost(arguments.pairs, is_quick=is_quick)
            return watch_cost.report(cost), _raw([cost])
        case "o":
            crowding = crowd.measure_crowd(is_quick=is_quick)
            return crowd.report(crowding), _raw([crowding])
        case _:
            device = arguments.device
            measurements = comparison.compare(part, arguments.rounds, is_quick=is_quick, device=device)
            return comparison.report(part, measurements, is_quick=is_quick, device=device), _raw(measurements)


def machine(num_cpus: int, device: str | None = None) -> str:
    """One line by which a reader can judge the figures."""
    on = "" if device is None else f"; computing on {comparison.device_name(device)}"
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "gymnasium", "stable-baselines3"))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{platform.system()} {platform.machine()}, {num_cpus} of {os.cpu_count()} CPUs, load {load} before the start;"
        f" Python {platform.python_version()}, {packages}{on}"
    )


def _raw(measured: Iterable[object]) -> Raw:
    return [dataclasses.asdict(one) for one in measured]  # type: ignore[call-overload]  # all are dataclasses


def _parts(text: str) -> tuple[str, ...]:
    parts = tuple(text.split(","))
    wrong = [part for part in parts if part not in PARTS]
    if wrong:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is no part: {', '.join(PARTS)} are")
    return parts


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


if __name__ == "__main__":
    main()
