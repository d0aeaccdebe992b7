"""mlagents_envs' own BaseEnv beside a Unity player: `python -m tests.benchmarks.base_env --peer FOLDER`.

FOLDER is a virtual environment with mlagents_envs 1.1.0, of the Python that runs this. Two equal stand-in players of
each task are played with the same actions: one by rl-tui, and one by the UnityEnvironment of mlagents_envs, named
`mlagents:mlagents_envs.environment:UnityEnvironment`. Everything that rl-tui receives of both must be equal. Ends with
1 where it is not.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rl_tui.engine.experience import columns_of
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import make_environments
from rl_tui.engine.specs import DecisionSteps, Int64, Steps, TerminalSteps
from tests.benchmarks.tables import table, verdict
from tests.fakes import RandomPolicy
from tests.unity_player.executable import make_player

TASKS = {
    "ball": ("--task", "ball", "--max-steps", "40"),
    "ball, ids that change": ("--task", "ball", "--ids", "change"),
    "basic, with masks": ("--task", "basic", "--max-steps", "30"),
    # up to 4.0.0 mlagents_envs takes the floats of images, which are H, W, C, for C, H, W
    "visual": ("--task", "visual", "--package-version", "4.0.1"),
    "groups": ("--task", "groups"),
    "teams": ("--task", "teams"),
    "crowd": ("--task", "crowd"),
}
STEPS, SEED = 200, 3
OFFICIAL = "mlagents:mlagents_envs.environment:UnityEnvironment"
PURE = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"  # the messages of mlagents_envs were compiled for an old protobuf


def play(own: Environment, official: Environment) -> int:
    """How many agents were equal. Raises AssertionError."""
    policies: dict[str, RandomPolicy] = {}
    count = 0
    expected, found = own.reset(SEED), official.reset(SEED)
    for _ in range(STEPS):
        count += require_equal(expected, found)
        for name in own.specs.keys() - policies.keys():
            policies[name] = RandomPolicy(own.specs[name].actions, SEED)
        actions = {name: policies[name].act(steps.decisions).actions for name, steps in sorted(expected.items())}
        expected, found = own.step(actions), official.step(actions)
    return count


def require_equal(expected: Mapping[str, Steps], found: Mapping[str, Steps]) -> int:
    """The number of agents. Raises AssertionError where anything differs."""
    assert expected.keys() == found.keys(), (expected.keys(), found.keys())
    count = 0
    for name, steps in expected.items():
        assert (steps.terminals is None) == (found[name].terminals is None)
        parts = [(steps.decisions, found[name].decisions)]
        if steps.terminals is not None and (terminals := found[name].terminals) is not None:
            parts.append((steps.terminals, terminals))
        for ours, theirs in parts:
            require_equal_columns(ours, theirs)
            count += len(ours.agent_ids)
    return count


def require_equal_columns(ours: DecisionSteps | TerminalSteps, theirs: DecisionSteps | TerminalSteps) -> None:
    """Images are bytes here and fractions there."""
    for mine, other in zip(ours.observations, theirs.observations, strict=True):
        if mine.dtype == np.uint8:
            np.testing.assert_allclose(mine, other * 255, atol=0.501)  # the mean of three bytes is a fraction there
        else:
            np.testing.assert_array_equal(mine, other)
    for column in (one for one in columns_of(type(ours)) if one.name != "action_mask"):
        fill = np.full(len(ours.agent_ids), column.fill)
        mine, other = (
            fill if found is None else found for found in (getattr(ours, column.name), getattr(theirs, column.name))
        )
        np.testing.assert_array_equal(mine, other if not column.holds_ids else without_team(other), column.name)
    np.testing.assert_array_equal(ours.agent_ids, without_team(theirs.agent_ids))
    if isinstance(ours, TerminalSteps):
        np.testing.assert_array_equal(ours.truncated, theirs.truncated)
    else:
        np.testing.assert_array_equal(allowed(ours), allowed(theirs))


def without_team(ids: Int64) -> Int64:
    """Ids of a second team begin at 2**40; -1 is none."""
    return np.where(ids < 0, ids, ids % 2**40)


def allowed(steps: DecisionSteps) -> Any:
    """The mask; True where there is none."""
    return True if steps.action_mask is None else steps.action_mask


def outcome(arguments: tuple[str, ...], folder: Path) -> str:
    """How many agents were equal, or what was not."""
    player = make_player(folder, *arguments)
    named = {"file_name": str(player), "log_folder": str(folder)}
    [own] = make_environments(f"unity:{player}", "B", range(1), {"seed": SEED, "base_port": 5455})
    [official] = make_environments(OFFICIAL, "B", range(1), {"seed": SEED, "base_port": 5405, **named})
    try:
        return f"{play(own, official):,}"
    except AssertionError as error:
        return " ".join(str(error).split())[:200]
    finally:
        own.close()
        official.close()


def main() -> int:
    """1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--peer", type=Path, required=True, metavar="FOLDER")
    peer = parser.parse_args().peer
    if os.environ.get(PURE) != "python":
        words = [sys.executable, "-m", "tests.benchmarks.base_env", "--peer", str(peer)]
        os.execve(sys.executable, words, {**os.environ, PURE: "python"})
    packages = list(peer.glob("lib/python*/site-packages/mlagents_envs"))
    if not packages:
        parser.error(f"--peer: must be a virtual environment with mlagents_envs, got {peer}")
    sys.path.append(str(packages[0].parent))  # the last one: all other packages are those of this Python
    rows = []
    for name, arguments in TASKS.items():
        with TemporaryDirectory(prefix="rl-tui-bench-") as folder:
            rows.append((name, outcome(arguments, Path(folder))))
    is_equal = all(found.replace(",", "").isdigit() for _, found in rows)
    print(table(("task", "agents that were equal"), rows))
    print(f"a BaseEnv of mlagents_envs 1.1.0 is what the player says: {verdict(is_equal)}")
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
