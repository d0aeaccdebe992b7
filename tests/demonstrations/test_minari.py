"""Datasets of Minari as demonstrations."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rl_tui.engine.demonstrations.opening import open_demonstrations
from rl_tui.engine.errors import DemonstrationError
from rl_tui.engine.process.installation import command_for_extra
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.specs import CUT, TERMINATED, TRUNCATED, BehaviorSpec
from rl_tui.tui.cli import main

minari = pytest.importorskip("minari")

LENGTHS_AND_ENDS = [(5, "terminations"), (3, "truncations"), (4, None)]


@pytest.fixture(autouse=True)
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


def make(name: str, observation: spaces.Space, action: spaces.Space, **about: Any) -> list[dict[str, Any]]:
    """A dataset of random numbers; returns its episodes."""
    from minari.data_collector import EpisodeBuffer

    chance = np.random.default_rng(1)
    episodes = []
    for seed, (length, end) in enumerate(LENGTHS_AND_ENDS):
        observation.seed(seed)
        action.seed(seed)
        flags = {
            key: [key == end and n == length - 1 for n in range(length)] for key in ("terminations", "truncations")
        }
        seen = [observation.sample() for _ in range(length + 1)]
        if isinstance(observation, spaces.Dict):
            batch: Any = {key: np.stack([one[key] for one in seen]) for key in observation.spaces}
        else:
            batch = np.stack(seen)
        actions = np.stack([action.sample() for _ in range(length)])
        episodes.append({"observations": batch, "actions": actions, "rewards": chance.normal(size=length), **flags})
    buffers = [
        EpisodeBuffer(**{key: list(one) if key == "rewards" else one for key, one in e.items()}) for e in episodes
    ]
    minari.create_dataset_from_buffers(
        name,
        buffers,
        observation_space=observation,
        action_space=action,
        algorithm_name="random",
        author="tests",
        author_email="tests@example.org",
        code_permalink="https://example.org",
        description="random numbers",
        **about,
    )
    return episodes


@pytest.mark.filterwarnings("ignore::UserWarning:minari")
@pytest.mark.parametrize("keep_bytes", [0, 2**29], ids=["read each time", "kept"])
def test_steps_of_a_dataset_are_those_of_its_episodes(keep_bytes: int) -> None:
    episodes = make("test/numbers-v0", spaces.Box(-1, 1, (3,)), spaces.Box(-2, 2, (2,)))
    opened = open_demonstrations("minari:test/numbers-v0", keep_bytes=keep_bytes)
    assert opened.episodes.tolist() == [[0, 5], [5, 8], [8, 12]]
    assert opened.steps.endings[[4, 7, 11]].tolist() == [TERMINATED, TRUNCATED, CUT]
    assert opened.steps.num_unfinished == 1
    np.testing.assert_allclose(opened.steps.rewards, np.concatenate([e["rewards"] for e in episodes]), rtol=1e-6)
    for rows in (np.arange(12), np.array([11, 0, 4, 5, 5])):
        steps = opened.transitions(rows)
        before = np.concatenate([one["observations"][:-1] for one in episodes])[rows]
        after = np.concatenate([one["observations"][1:] for one in episodes])[rows]
        actions = np.concatenate([one["actions"] for one in episodes])[rows] / 2  # bounds are -1 and 1 everywhere else
        np.testing.assert_array_equal(steps.observations[0], before)
        np.testing.assert_array_equal(steps.next_observations[0], after)
        np.testing.assert_allclose(steps.continuous_actions, actions, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::UserWarning:minari")
def test_nested_observations_and_choices_with_a_start_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    observation = spaces.Dict({"place": spaces.Box(-1, 1, (2,)), "door": spaces.Discrete(3)})
    episodes = make("doors-v0", observation, spaces.Discrete(4, start=1))
    steps = open_demonstrations("minari:doors-v0").transitions(np.arange(12))
    doors = np.concatenate([one["observations"]["door"][:-1] for one in episodes])
    actions = np.concatenate([one["actions"] for one in episodes])
    assert [column.shape[1:] for column in steps.observations] == [(3,), (2,)]
    np.testing.assert_array_equal(steps.observations[0].argmax(axis=1), doors)
    np.testing.assert_array_equal(steps.discrete_actions.ravel(), actions - 1)
    assert main(["demonstrations", "info", "minari:doors-v0"]) == 0
    shown = capsys.readouterr().out
    assert "steps          12\n" in shown
    assert "episodes       3, of which 1 not recorded to its end\n" in shown
    assert "branch 0       4 choices" in shown


@pytest.mark.filterwarnings("ignore::UserWarning:minari")
def test_dataset_fits_the_environment_that_it_was_made_in() -> None:
    env = gymnasium.make("CartPole-v1")
    make("cartpole-v0", env.observation_space, env.action_space, env="CartPole-v1")
    [made] = EnvironmentSource("gymnasium:CartPole-v1", "CartPole", {}).make(0, 1)
    behavior = made.specs["CartPole"]
    made.close()
    opened = open_demonstrations("minari:cartpole-v0", behavior)
    assert opened.spec.name == "CartPole-v1"
    other = replace(behavior, actions=replace(behavior.actions, branches=(3,)))
    assert message_of("cartpole-v0", other).splitlines() == [
        "minari:cartpole-v0: these demonstrations are not of the behavior CartPole:",
        "  discrete actions: must have branches of [3] choices, got [2]",
    ]


def message_of(name: str, behavior: BehaviorSpec | None = None) -> str:
    with pytest.raises(DemonstrationError) as refused:
        open_demonstrations(f"minari:{name}", behavior)
    return str(refused.value)


@pytest.mark.filterwarnings("ignore::UserWarning:minari")
def test_what_cannot_be_read_is_refused(datasets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert message_of("no-v0") == (
        "minari:no-v0: no such dataset on this machine; `minari download no-v0` gets a public one"
    )
    assert message_of("a b").startswith("minari:a b: ")
    make("texts-v0", spaces.Box(-1, 1, (3,)), spaces.Discrete(2))
    [file] = (datasets / "texts-v0").rglob("*.hdf5")
    file.write_bytes(file.read_bytes()[:2000])
    assert message_of("texts-v0").startswith("minari:texts-v0: ")
    monkeypatch.setitem(sys.modules, "minari", None)
    assert message_of("texts-v0").endswith(command_for_extra("minari"))
