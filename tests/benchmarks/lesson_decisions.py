"""When lessons end, beside mlagents 1.1.0: `python -m tests.benchmarks.lesson_decisions --peer FOLDER`.

FOLDER is a virtual environment with mlagents 1.1.0. Generated curricula and episodes are decided on by both, and every
decision must be the same: which lesson each parameter is at after every round, when a full reset is due, and the seeds
of samplers. `--record FILE` keeps the first cases and ML-Agents' answers, which `make test` compares.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.peer_python import fault_of
from tests.benchmarks.tables import table, verdict
from tests.running.lessons.decisions import decide

CASES = 10_000
BEHAVIORS = "Walker", "Runner", "Swimmer"
UNKNOWN = "Nowhere"  # which never appears
SAMPLERS: dict[str, dict[str, Any]] = {
    "uniform": {"min_value": 1, "max_value": 2},
    "gaussian": {"mean": 3, "st_dev": 0.5},
    "multirangeuniform": {"intervals": [[0, 1], [2, 4]]},
    "constant": {"value": 5},
}


def cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Cases as tests/running/lessons/decisions.py describes them."""
    for number in range(count):
        yield case(random.Random(seed * 1_000_003 + number))


def case(chance: random.Random) -> dict[str, Any]:
    """One to four parameters, and the episodes of one to three behaviors, some of which appear late."""
    behaviors = BEHAVIORS[: chance.randint(1, 3)]
    parameters = {f"parameter_{index}": _parameter(chance, behaviors) for index in range(chance.randint(1, 4))}
    max_steps = {name: chance.choice([20, 1000, 50_000]) for name in behaviors}
    rounds = list(_rounds(chance, max_steps))
    return {"parameters": parameters, "seed": chance.randint(0, 9999), "max_steps": max_steps, "rounds": rounds}


def _parameter(chance: random.Random, behaviors: Sequence[str]) -> Any:
    if chance.random() < 0.2:
        return _value(chance)
    count = chance.randint(1, 5)
    lessons = []
    for number in range(count):
        lesson = {"name": f"Lesson{number}", "value": _value(chance)}
        if number < count - 1 or chance.random() < 0.2:  # those of the last one have no effect
            lesson["completion_criteria"] = _criteria(chance, behaviors)
        lessons.append(lesson)
    return {"curriculum": lessons}


def _value(chance: random.Random) -> Any:
    if chance.random() < 0.5:
        return chance.choice([0.0, 1.0, -2.5])
    kind = chance.choice(list(SAMPLERS))
    seed = {"seed": chance.randint(0, 99)} if chance.random() < 0.3 else {}
    return {"sampler_type": kind, "sampler_parameters": {**SAMPLERS[kind], **seed}}


def _criteria(chance: random.Random, behaviors: Sequence[str]) -> dict[str, Any]:
    is_progress = chance.random() < 0.3
    threshold = (
        chance.randint(0, 20) / 20 if is_progress else chance.choice([-1, 0, 0.5, 0.75, 1.0, round(_real(chance), 3)])
    )
    every = {
        "measure": "progress" if is_progress else "reward",
        "min_lesson_length": chance.randint(0, 8),
        "signal_smoothing": chance.random() < 0.5,
        "threshold": threshold,
        "require_reset": chance.random() < 0.3,
    }
    kept = {key: value for key, value in every.items() if chance.random() < 0.85 or (is_progress and key == "measure")}
    return {"behavior": UNKNOWN if chance.random() < 0.05 else chance.choice(behaviors), **kept}


def _rounds(chance: random.Random, max_steps: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Returns rise slowly; some are exactly at a threshold, and some are not numbers."""
    count = chance.randint(15, 60)
    begins = {name: chance.choice([0, 0, 0, count // 3]) for name in max_steps}
    steps = dict.fromkeys(max_steps, 0)
    for number in range(count):
        present = [name for name in max_steps if number >= begins[name]]
        for name in present:
            steps[name] += _num_steps(chance, max_steps[name], count)
        yield {
            name: [steps[name], [_return(chance, number / count) for _ in range(_num_episodes(chance))]]
            for name in present
        }


def _num_steps(chance: random.Random, max_steps: int, num_rounds: int) -> int:
    """Of a round; often as many as lead exactly to a threshold."""
    return (
        chance.choice([0, 0, max_steps // 20]) if chance.random() < 0.7 else chance.randint(0, max_steps // num_rounds)
    )


def _num_episodes(chance: random.Random) -> int:
    return chance.choice([0, 0, 1, 1, 2, 5])


def _return(chance: random.Random, progress: float) -> float:
    if chance.random() < 0.02:
        return float("nan")
    return chance.choice([0.0, 0.5, 1.0]) if chance.random() < 0.5 else round(_real(chance) + progress, 4)


def _real(chance: random.Random) -> float:
    return chance.uniform(-0.5, 1.0)


def ask_peer(python: Path, asked: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """ML-Agents' answers, in order. Raises RuntimeError with what it said if it fails."""
    script = Path(__file__).with_name("lesson_decisions_peer.py")
    lines = "".join(f"{json.dumps(one)}\n" for one in asked)
    ended = subprocess.run([python, script], input=lines, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    return map(json.loads, ended.stdout.splitlines())


def described(answers: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """How much was decided."""
    counts: Counter[str] = Counter()
    for answer in answers:
        before = [0] * len(answer["seeds"])
        for lessons, must_reset in answer["rounds"]:
            counts["rounds"] += 1
            counts["lessons that ended"] += sum(lessons) - sum(before)
            counts["several at once"] += sum(new > old for new, old in zip(lessons, before, strict=True)) > 1
            counts["full resets"] += must_reset
            before = lessons
    return [(name, f"{count:,}") for name, count in counts.items()]


def main() -> int:
    """1 if any decision differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--peer", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--cases", type=int, default=CASES, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--record", type=Path, metavar="FILE")
    chosen = parser.parse_args()
    python = chosen.peer / "bin/python"
    if fault := fault_of(python, "mlagents.trainers"):
        parser.error(f"--peer: {fault}")
    asked, begun = list(cases(chosen.cases, chosen.seed)), time.monotonic()
    ours = [decide(one) for one in asked]
    own_seconds, begun = time.monotonic() - begun, time.monotonic()
    peers = list(ask_peer(python, asked))
    print(table(("decided", "number"), described(peers)))
    differing = [number for number, (own, peer) in enumerate(zip(ours, peers, strict=True)) if own != peer]
    print(f"rl-tui {own_seconds:.1f} s, mlagents 1.1.0 with its start {time.monotonic() - begun:.1f} s")
    print(f"{len(asked) - len(differing):,} of {len(asked):,} curricula decided alike: {verdict(not differing)}")
    for number in differing[:3]:
        print(json.dumps({"case": asked[number], "ours": ours[number], "mlagents": peers[number]}))
    if chosen.record:
        lines = [
            json.dumps({"case": one, "answer": answer}, separators=(",", ":"))
            for one, answer in zip(asked, peers, strict=True)
        ]
        chosen.record.write_text("\n".join(lines) + "\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
