"""Runs, learners and checks of BaseEnvs are like those of any environment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rl_tui
from rl_tui.engine.running.environment_check import check
from rl_tui.tui.cli import main
from tests.running import runs
from tests.running.runs import configuration, equal, run_to_end, tensors_of
from tests.sampling.base_env.disguise import Disguised, toy

TOY = "mlagents:tests.sampling.base_env.disguise:toy"


class Unseeded(Disguised):
    """Takes no seed, and is never the same."""

    def __init__(self) -> None:
        super().__init__(toy("line").inner)

    def reset(self) -> None:  # type: ignore[override]
        super().reset(int(np.random.default_rng().integers(2**31)))


def train(folder: Path, env: str, num_envs: int, **kwargs: Any) -> Path:
    """The last checkpoint of a run in four areas."""
    settings = {"env": env, "num_envs": num_envs, "seed": 5, "env_kwargs": kwargs}
    config = configuration(folder, {"Walker": runs.behavior(export_policies=["raw"])}, env_settings=settings)
    assert run_to_end(config).launch.exit_code == 0
    return max((folder / "results/run/Walker/checkpoints").iterdir())


def test_a_run_learns_what_it_learns_without_the_disguise_bit_for_bit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = train(tmp_path / "plain", "toy:line", 4)
    disguised = train(tmp_path / "disguised", TOY, 1, name="line", num_agents=4)
    assert plain.name == disguised.name
    assert equal(tensors_of(plain), tensors_of(disguised))
    assert main(["evaluate", str(tmp_path / "disguised/results/run"), "--episodes", "8"]) == 0
    assert re.search(r"\nepisodes +8 +8\n", capsys.readouterr().out)


def test_programs_may_pass_a_base_env_or_what_makes_one(tmp_path: Path) -> None:
    own = toy("line")
    with rl_tui.Learner(runs.behavior(export_policies=[]), own, tmp_path / "object") as learner:
        learner.run(1)
        assert learner.num_updates == 1
    assert own.num_closed == 0
    with rl_tui.Learner(runs.behavior(export_policies=[]), Unseeded, tmp_path / "class") as learner:
        learner.run(1)
        assert learner.num_updates == 1


def test_check_env_says_how_the_episodes_of_a_base_env_can_be_repeated() -> None:
    found = list(check(TOY, {"name": "line"}, 2, 30, seed=1))
    assert "the same seed and actions give the same episodes" in [finding.text for finding in found]
    [warning] = [one for one in check(f"mlagents:{__name__}:Unseeded", {}, 1, 30, seed=1) if one.kind == "warning"]
    assert warning.text.endswith(
        "a run cannot be repeated. Give its reset an argument seed, and draw from a generator of it"
    )
