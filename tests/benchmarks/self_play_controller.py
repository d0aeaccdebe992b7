"""Self-play beside mlagents 1.1.0: `python -m tests.benchmarks.self_play_controller --peer FOLDER`.

FOLDER is a virtual environment with mlagents 1.1.0. Generated sequences of trajectories are given to its GhostTrainer
and GhostController and to rl-tui's matchmaking, which draw the same numbers: after every round of trajectories the team
that learns, the steps, the snapshots with their slots and versions, the opponents of every team and what acts for it
must be the same, and ratings equal to 1e-9. `--record FILE` keeps cases and ML-Agents' answers, which `make test`
compares.

What differs by design is no part of the cases, or switched off (docs/mlagents-differences.md):
- games are rated, not trajectories: a side is one agent, whose games end with its trajectories;
- an opponent plays its game to the end: an agent's games are in the round in which they begin;
- with more than two teams every opponent counts: here the last one, in ML-Agents once instead of once for each team;
- a snapshot that has left the window keeps its rating: also in ML-Agents, in a slot behind those of the window;
- a game is rated against what has played it, in ML-Agents against what was drawn before the learning trainer's turn: in
  a round trajectories of one behavior arrive;
- the first team that learns is the one with the smallest number, in ML-Agents any one: they appear in this order;
- nothing is resumed, no learner ends, and no environment is reset.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.peer_python import ask, fault_of
from tests.benchmarks.tables import table, verdict
from tests.running.self_play.decisions import ENDS, GOES_ON, INTERRUPTED, decide, largest_difference

CASES = 200
ROUNDS = 100
TOLERANCE = 1e-9  # of ratings
GAMES: dict[str, dict[str, list[int]]] = {
    "2 teams": {"Player": [0, 1]},
    "3 teams": {"Player": [0, 1, 2]},
    "asymmetric": {"Striker": [0], "Goalie": [1]},
    "asymmetric, 2 and 1": {"Hider": [0, 1], "Seeker": [2]},
    "asymmetric, 3": {"Cop": [0], "Thief": [1], "Judge": [2]},
}


def cases(count: int, num_rounds: int, seed: int) -> Iterator[dict[str, Any]]:
    """Cases as tests/running/self_play/decisions.py describes them, of every kind of game in turn."""
    for number in range(count):
        teams = [*GAMES.values()][number % len(GAMES)]
        yield case(random.Random(seed * 1_000_003 + number), teams, num_rounds)


def case(chance: random.Random, teams: Mapping[str, Sequence[int]], num_rounds: int) -> dict[str, Any]:
    """Behaviors have settings of their own."""
    return {
        "teams": teams,
        "settings": {name: _settings(chance) for name in teams},
        "seeds": {name: chance.randint(0, 9999) for name in teams},
        "rounds": [_round(chance, teams) for _ in range(num_rounds)],
    }


def _settings(chance: random.Random) -> dict[str, Any]:
    return {
        "save_steps": chance.choice([10, 40, 150]),
        "team_change": chance.choice([20, 90, 400]),
        "swap_steps": chance.choice([1, 10, 60, 200]),
        "window": chance.choice([1, 2, 3, 10]),
        "play_against_latest_model_ratio": chance.choice([0.0, 0.25, 0.5, 1.0]),
        "initial_elo": chance.choice([1200.0, 900.0, 1234.5]),
    }


def _round(chance: random.Random, teams: Mapping[str, Sequence[int]]) -> list[Any]:
    """A few games of a behavior, whose teams take as many steps in each."""
    name = chance.choice([*teams])
    trajectories = []
    for _ in range(chance.randint(0, 4)):
        steps = chance.choice([1, 5, 9, chance.randint(1, 20)])  # often exactly at a threshold
        ending = chance.choices([ENDS, GOES_ON, INTERRUPTED], [8, 1, 1])[0]
        reward = chance.choice([1.0, 0.0, -1.0, 0.25])
        trajectories += [[team, steps, reward if team % 2 == 0 else -reward, ending] for team in teams[name]]
    return [name, chance.random() < 0.5, trajectories]


def described(answers: Iterable[Sequence[Mapping[str, Any]]]) -> Counter[str]:
    """How much was decided."""
    counts = Counter[str]()
    for answer in answers:
        learning = answer[0]["learning"]
        counts["games"] += answer[-1]["games"]
        for after in answer[1:]:
            counts["changes of team"] += after["learning"] != learning
            learning = after["learning"]
            for found in after["behaviors"].values():
                drawn = (found["swapped"] or {}).values()
                counts["swaps"] += found["swapped"] is not None
                counts["snapshots drawn"] += sum(slot is not None for slot, _ in drawn)
                counts["newest drawn"] += sum(slot is None for slot, _ in drawn)
                counts["snapshots taken"] += found["saved"] is not None
                counts["ratings"] += len(found["ratings"])
    return counts


COUNTED = "games", "swaps", "snapshots drawn", "newest drawn", "changes of team", "snapshots taken", "ratings"


def rows(asked: Sequence[dict[str, Any]], peers: Sequence[Any], differences: Sequence[float]) -> list[tuple[str, ...]]:
    """A row for each kind of game, and one for all."""
    kinds = [*GAMES, "all"]
    found = []
    for kind in kinds:
        which = [place for place, one in enumerate(asked) if kind == "all" or one["teams"] == GAMES[kind]]
        counts = described(peers[place] for place in which)
        differing = sum(differences[place] > TOLERANCE for place in which)
        largest = max((differences[place] for place in which), default=0.0)
        found.append((kind, *(f"{counts[name]:,}" for name in COUNTED), f"{largest:.1e}", f"{differing}"))
    return found


def main() -> int:
    """1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--peer", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--cases", type=int, default=CASES, metavar="N")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="of each case")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--record", type=Path, metavar="FILE")
    chosen = parser.parse_args()
    python = chosen.peer / "bin/python"
    if fault := fault_of(python, "mlagents.trainers.trainer, mlagents.trainers.ghost.controller"):
        parser.error(f"--peer: {fault}")
    asked, begun = list(cases(chosen.cases, chosen.rounds, chosen.seed)), time.monotonic()
    ours = [decide(one) for one in asked]
    own_seconds, begun = time.monotonic() - begun, time.monotonic()
    peers = list(ask(python, Path(__file__).with_name("self_play_controller_peer.py"), asked))
    differences = [largest_difference(*pair) for pair in zip(ours, peers, strict=True)]
    print(table(("", *COUNTED, "largest difference", "cases that differ"), rows(asked, peers, differences)))
    print(f"rl-tui {own_seconds:.1f} s, mlagents 1.1.0 with its start {time.monotonic() - begun:.1f} s")
    differing = [place for place, difference in enumerate(differences) if difference > TOLERANCE]
    print(f"differences: {len(differing)} in {len(asked):,} cases: {verdict(not differing)}")
    for place in differing[:3]:
        print(json.dumps({"case": asked[place], "ours": ours[place], "mlagents": peers[place]}))
    if chosen.record:
        lines = [
            json.dumps({"case": one, "answer": answer}, separators=(",", ":"))
            for one, answer in zip(asked, peers, strict=True)
        ]
        chosen.record.write_text("\n".join(lines) + "\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
