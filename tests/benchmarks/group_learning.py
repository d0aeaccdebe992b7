"""What trainers of groups learn: `python -m tests.benchmarks.group_learning [--only WORLD] [--seeds 1,2,3]`.

rescue: what groups earn in the last tenth of the preset poca/Rescue, where 1 is the best possible; PPO learns by the
same settings. line: ML-Agents' world of two agents by its settings and within its budget; the mean end of the last 20
episodes, where 1.06 is the best. simple_spread: the mean return of agents in the last tenth of the presets.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import yaml

import rl_tui
from rl_tui.engine.session.messages import MetricsReported
from tests.benchmarks.tables import table, verdict
from tests.end_to_end.program import events_of
from tests.learning.poca.group_on_a_line import BEHAVIOR, GroupOnALine
from tests.learning.poca.test_it_learns import SETTINGS

PRESETS = Path(__file__).parents[2] / "config"
GROUP_RETURN, RETURN = "Environment/Group Cumulative Reward", "Environment/Cumulative Reward"
Row = tuple[str, str, str, str]


def main() -> None:
    """Train and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(WORLDS), action="append")
    parser.add_argument("--seeds", default="1,2,3")
    arguments = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only or sorted(WORLDS):
            for seed in map(int, arguments.seeds.split(",")):
                for trainer, found, mark, word in WORLDS[name](Path(folder), seed):
                    rows.append((f"{name}, {trainer}, seed {seed}", found, mark, word))
                    print(table(("world", "found", "mark", ""), rows), flush=True)


def rescue(folder: Path, seed: int) -> Iterator[Row]:
    """MA-POCA and MAPPO save at least 0.9 of what they can, PPO less than 0.6."""
    preset = yaml.safe_load((PRESETS / "poca/Rescue.yaml").read_text())
    for trainer in ("poca", "mappo", "ppo"):
        preset["behaviors"]["Rescue"]["trainer_type"] = trainer
        found, minutes = _trained(folder, preset, seed, GROUP_RETURN)
        is_reached, mark = (found < 0.6, "< 0.6") if trainer == "ppo" else (found >= 0.9, "0.9")
        yield f"{trainer}, {minutes:.1f} min", f"{found:.3f}", mark, verdict(is_reached)


def line(folder: Path, seed: int) -> Iterator[Row]:
    """ML-Agents' mark is 0.9."""
    for trainer in ("poca", "mappo"):
        for is_discrete in (False, True):
            document = {
                "behaviors": {BEHAVIOR: SETTINGS | {"trainer_type": trainer}},
                "env_settings": {
                    "env": "mlagents:tests.learning.poca.group_on_a_line:GroupOnALine",
                    "env_kwargs": {"is_discrete": is_discrete},
                },
            }
            _trained(folder, document, seed, RETURN)
            assert GroupOnALine.newest is not None
            found = mean(GroupOnALine.newest.final_rewards[-20:])
            kind = "discrete" if is_discrete else "continuous"
            yield f"{trainer}, {kind}", f"{found:.3f}", "0.9", verdict(found >= 0.9)


def simple_spread(folder: Path, seed: int) -> Iterator[Row]:
    """MA-POCA earns at least what PPO does."""
    earned: dict[str, float] = {}
    for trainer in ("ppo", "poca"):
        preset = yaml.safe_load((PRESETS / f"{trainer}/SimpleSpread.yaml").read_text())
        tag = RETURN if trainer == "ppo" else GROUP_RETURN
        earned[trainer], minutes = _trained(folder, preset, seed, tag)
        word = "" if trainer == "ppo" else verdict(earned["poca"] >= earned["ppo"])
        mark = "" if trainer == "ppo" else f"{earned['ppo']:.2f}"
        yield f"{trainer}, {minutes:.1f} min", f"{earned[trainer]:.2f}", mark, word


def _trained(folder: Path, document: Mapping[str, Any], seed: int, tag: str) -> tuple[float, float]:
    """The mean of a metric in the last tenth of the summaries of a run, and the minutes that it took."""
    path, start = folder / "run.yaml", time.monotonic()
    path.write_text(yaml.safe_dump(dict(document)))
    run = rl_tui.train(str(path), run_id="run", results_dir=str(folder), seed=seed, quiet=True, force=True)
    minutes = (time.monotonic() - start) / 60
    reported = [event.metrics[tag] for event in events_of(run.path) if isinstance(event, MetricsReported)]
    return mean(reported[-max(1, len(reported) // 10) :]), minutes


WORLDS: dict[str, Callable[[Path, int], Iterator[Row]]] = {
    "line": line,
    "rescue": rescue,
    "simple_spread": simple_spread,
}

if __name__ == "__main__":
    main()
