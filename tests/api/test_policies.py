"""Policies that a program acts with: of a learner, and of each kind of file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import onnx
import pytest
import safetensors.numpy
from gymnasium import spaces

import rl_tui
from rl_tui.engine.sampling.environments.space_json import space_from_json, space_to_json
from rl_tui.engine.sampling.environments.toys.line import Line
from tests.running.runs import behavior

pytestmark = pytest.mark.filterwarnings("ignore:.*Box.*precision:UserWarning")


class Puzzle(gymnasium.Env[Any, Any]):
    """Every kind of space, nested, with action masks; the observation is random."""

    observation_space = spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (20, 20, 3), np.uint8),
            "joints": spaces.Tuple((spaces.Box(-np.inf, np.inf, (2,)), spaces.MultiBinary(3))),
            "room": spaces.Discrete(4, start=2),
            "locks": spaces.MultiDiscrete([2, 3], start=[1, 5]),
        }
    )
    action_space = spaces.Dict(
        {
            "push": spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 9.0]), dtype=np.float64),
            "keys": spaces.MultiDiscrete([3, 2], start=[4, 0]),
        }
    )
    mask = np.array([False, True, True, True, True])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self._left = 5
        return self.observation_space.sample(), {"action_mask": self.mask}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space
        assert action["keys"][0] != 4
        self._left -= 1
        return self.observation_space.sample(), 1.0, self._left == 0, False, {"action_mask": self.mask}


ENVIRONMENTS: Mapping[str, tuple[Any, dict[str, Any]]] = {
    "discrete": ("CartPole-v1", {}),
    "continuous, scaled": ("Pendulum-v1", {"network_settings__normalize": True}),
    "continuous, squashed": ("Pendulum-v1", {"trainer_type": "sac", "hyperparameters": {"batch_size": 16}}),
    "nested, masked": (Puzzle, {}),
    "memory": ("CartPole-v1", {"network_settings__memory": {"memory_size": 8, "sequence_length": 8}}),
}


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """An environment, and the folder of a learner that has trained a little."""
    env, changes = ENVIRONMENTS[request.param]
    folder = tmp_path_factory.mktemp("trained") / "a"
    with rl_tui.Learner(behavior(**changes), env, folder, seed=1) as learner:
        learner.run(2)
        learner.export()
    made = env() if callable(env) else gymnasium.make(env)
    return made, folder


def observations(env: Any, count: int) -> list[tuple[Any, Any]]:
    """Some of the environment, each with its action mask."""
    observation, info = env.reset(seed=3)
    found = [(observation, info.get("action_mask"))]
    policy = np.random.default_rng(0)
    env.action_space.seed(int(policy.integers(1000)))
    while len(found) < count:
        action = env.action_space.sample()
        if isinstance(env, Puzzle):
            action["keys"][0] = 5
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            observation, info = env.reset()
        found.append((observation, info.get("action_mask")))
    return found


def assert_close(ours: Any, theirs: Any) -> None:
    """Elements of an action space, as an exported policy must agree with its own."""
    if isinstance(ours, Mapping):
        for key, value in ours.items():
            assert_close(value, theirs[key])
    else:
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=2e-5)


def test_greedy_file_raw_weights_and_checkpoint_act_alike(trained: tuple[Any, Path]) -> None:
    env, folder = trained
    greedy, raw = rl_tui.load_policy(folder), rl_tui.load_policy(folder, "raw")
    unity = rl_tui.load_policy(next(folder.glob("*.onnx")))
    assert all(policy.is_greedy and policy.step == greedy.step for policy in (raw, unity))
    with rl_tui.Learner(folder / "configuration.yaml", env, folder, num_envs=1) as learner:
        assert learner.step == greedy.step
        own = learner.policy()
    for observation, mask in observations(env, 20):
        action = own.act(observation, mask)
        assert action in env.action_space
        assert_close(action, greedy.act(observation, mask))
        assert_close(action, raw.act(observation, mask))
        assert_close(action, unity.act(observation, mask))


def test_sampled_actions_have_the_distribution_of_training(trained: tuple[Any, Path]) -> None:
    env, folder = trained
    if isinstance(env, Puzzle):
        return  # too large a batch
    observation = np.tile(observations(env, 3)[-1][0], (3000, 1))
    files = [rl_tui.load_policy(folder, "stochastic"), rl_tui.load_policy(folder, "raw", greedy=False, seed=2)]
    with rl_tui.Learner(folder / "configuration.yaml", env, folder, num_envs=1) as learner:
        expected = learner.policy("stochastic", seed=1).act(observation).reshape(3000).astype(float)
    assert expected.std() > 0
    for policy in files:
        assert not policy.is_greedy
        drawn = policy.act(observation).reshape(3000).astype(float)
        assert abs(drawn.mean() - expected.mean()) < 5 * expected.std() / np.sqrt(1500)
        assert abs(drawn.std() / expected.std() - 1) < 0.1


def test_raw_policy_draws_the_same_with_the_same_seed(trained: tuple[Any, Path]) -> None:
    env, folder = trained
    found = observations(env, 5)
    first, second, other = (rl_tui.load_policy(folder, "raw", greedy=False, seed=seed) for seed in (7, 7, 8))
    actions = [[str(policy.act(*one)) for one in found] for policy in (first, second, other)]
    assert actions[0] == actions[1] != actions[2]


def test_batch_is_acted_on_as_its_rows_are(trained: tuple[Any, Path]) -> None:
    env, folder = trained
    found = observations(env, 4)
    vector = gymnasium.vector.utils
    batch = vector.concatenate(
        env.observation_space, [one for one, _ in found], vector.create_empty_array(env.observation_space, 4)
    )
    masks = None if found[0][1] is None else np.stack([mask for _, mask in found])
    together, alone = rl_tui.load_policy(folder).act(batch, masks), rl_tui.load_policy(folder)
    for row, action in enumerate(vector.iterate(vector.batch_space(env.action_space, 4), together)):
        alone.reset()
        assert_close(alone.act(*found[row]), action)


def test_memory_lasts_until_it_is_reset(tmp_path: Path) -> None:
    settings = behavior(network_settings__memory={"memory_size": 8, "sequence_length": 8})
    with rl_tui.Learner(settings, "Pendulum-v1", tmp_path / "a", seed=1) as learner:
        learner.run(1)
        learner.export()
    for kind in ("greedy", "raw"):
        policy = rl_tui.load_policy(tmp_path / "a", kind)  # type: ignore[arg-type]  # one of the words
        rows = np.ones((2, 3), np.float32)
        first, second = policy.act(rows), policy.act(rows)
        assert not np.array_equal(first, second)
        policy.reset(np.array([True, False]))
        third = policy.act(rows)
        np.testing.assert_array_equal(third[0], first[0])
        assert not np.array_equal(third[1], first[1])
        policy.reset()
        np.testing.assert_array_equal(policy.act(rows), first)
        with pytest.raises(rl_tui.ConfigError, match=r"observation: must have 2 rows as before, .* got 1\. Call reset"):
            policy.act(rows[:1])
        policy.reset()
        np.testing.assert_allclose(policy.act(rows[:1]), first[:1], rtol=1e-5)


def test_environment_of_our_own_acts_on_its_steps(tmp_path: Path) -> None:
    with rl_tui.Learner(behavior(), "toy:line", tmp_path / "a", seed=1) as learner:
        learner.run(1)
        learner.export()
    policy, env = rl_tui.load_policy(tmp_path / "a"), Line("Agent", 3)
    steps = env.reset(1)
    for _ in range(3):
        steps = env.step({"Agent": policy.act(steps["Agent"].decisions)})
    with pytest.raises(rl_tui.ConfigError, match="must be DecisionSteps, since Agent is of no Gymnasium environment"):
        policy.act(np.zeros(2, np.float32))


@pytest.mark.parametrize("space", [*Puzzle.observation_space.values(), Puzzle.observation_space, Puzzle.action_space])
def test_space_survives_its_json(space: spaces.Space[Any]) -> None:
    assert space_from_json(json.loads(json.dumps(space_to_json(space)))) == space


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a learner."""
    folder = tmp_path_factory.mktemp("cartpole") / "a"
    with rl_tui.Learner(behavior(), "CartPole-v1", folder, behavior="Pole", seed=1) as learner:
        learner.run(1)
        learner.export()
        learner.run(1)
    return folder


def test_newest_of_a_folder_is_loaded(cartpole: Path) -> None:
    steps = sorted(int(path.name.split("-")[1]) for path in (cartpole / "Pole/policies").glob("*greedy.onnx"))
    assert len(steps) == 2
    assert rl_tui.load_policy(cartpole).step == steps[-1]
    assert rl_tui.load_policy(cartpole, behavior="Pole").behavior == "Pole"
    assert rl_tui.load_policy(cartpole / f"Pole/policies/Pole-{steps[0]}-raw.safetensors").step == steps[0]


@pytest.mark.parametrize(
    ("path", "keywords", "message"),
    [
        ("nowhere", {}, "nowhere: no such file or folder"),
        ("", {"behavior": "Pol"}, r'behavior: must be Pole, got "Pol"\. Did you mean Pole\?'),
        ("Pole/policies", {}, "policies: no behavior in it has an exported policy"),
        ("Pole/policies/newest-greedy.onnx", {"kind": "raw"}, "kind: must be greedy, which .* is, got raw"),
        ("Pole/policies/newest-greedy.onnx", {"greedy": False}, "a greedy policy never samples its actions"),
        ("Pole/policies/newest-stochastic.onnx", {"greedy": True}, "a stochastic policy samples its actions"),
        ("Pole/policies/newest-raw.safetensors", {"behavior": "Cart"}, "behavior: must be Pole, of which .* is, got"),
        ("", {"kind": "greddy"}, r'kind: must be stochastic, greedy or raw, got "greddy"\. Did you mean greedy\?'),
        ("configuration.yaml", {}, "configuration.yaml: the graph must be valid ONNX"),
    ],
)
def test_what_cannot_be_loaded_is_refused(cartpole: Path, path: str, keywords: dict[str, Any], message: str) -> None:
    folder = cartpole / "Pole/policies"
    if "newest" in path:
        _, _, kind = path.rpartition("newest")
        path = str(sorted(folder.glob(f"*{kind}"))[-1].relative_to(cartpole))
    with pytest.raises(rl_tui.RlTuiError, match=message):
        rl_tui.load_policy(cartpole / path, **keywords)


def test_file_for_unity_takes_the_place_of_graphs_that_a_run_did_not_export(cartpole: Path, tmp_path: Path) -> None:
    shutil.copytree(cartpole, tmp_path / "run", ignore=shutil.ignore_patterns("policies"))
    newest = rl_tui.load_policy(cartpole)
    for kind, greedy, is_greedy in (
        (None, None, True),
        ("greedy", None, True),
        ("stochastic", None, False),
        (None, False, False),
    ):
        policy = rl_tui.load_policy(tmp_path / "run", kind, greedy=greedy)  # type: ignore[arg-type]  # its words
        assert (policy.behavior, policy.step, policy.is_greedy) == ("Pole", newest.step, is_greedy)
    with pytest.raises(rl_tui.ConfigError, match=r"greedy: must be True with the kind greedy, got False"):
        rl_tui.load_policy(tmp_path / "run", "greedy", greedy=False)
    with pytest.raises(rl_tui.ConfigError, match=r"has no raw policy; it has none\. Export it with export_policies"):
        rl_tui.load_policy(tmp_path / "run", "raw")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([7], r"rows: must be from 0 to 1, the rows of the last batch, got \[7\]"),
        ([-1], "rows: must be from 0 to 1"),
        ([True], "rows: a mask must have 2 entries, .* got 1"),
        (True, "rows: must be a list of whole numbers or a mask, got True"),
        ([0.5], r"rows: must be a list of whole numbers or a mask, got \[0.5\]"),
        (["x"], "rows: must be a list of whole numbers or a mask"),
    ],
)
def test_rows_that_the_last_batch_did_not_have_are_refused(cartpole: Path, rows: Any, message: str) -> None:
    policy = rl_tui.load_policy(cartpole)
    policy.act(np.zeros((2, 4), np.float32))
    for allowed in ([1], [False, True], np.zeros(2, bool), [], None):
        policy.reset(allowed)
        policy.act(np.zeros((2, 4), np.float32))
    with pytest.raises(rl_tui.ConfigError, match=message):
        policy.reset(rows)
    assert repr(policy) == f"<greedy ActingPolicy of Pole at step {policy.step}>"


def test_several_behaviors_need_a_name_and_missing_kinds_are_named(cartpole: Path, tmp_path: Path) -> None:
    for name in ("One", "Two"):
        shutil.copytree(cartpole / "Pole", tmp_path / name)
    with pytest.raises(rl_tui.ConfigError, match="behavior: must be given, One or Two"):
        rl_tui.load_policy(tmp_path)
    with pytest.raises(rl_tui.ConfigError, match="One/policies has no greedy policy; it has none"):
        rl_tui.load_policy(tmp_path, behavior="One")


def test_file_without_what_acting_needs_is_refused_by_name(cartpole: Path, tmp_path: Path) -> None:
    """Such as one of an earlier version."""
    old_graph, old_raw, torn = (tmp_path / name for name in ("old.onnx", "old.safetensors", "torn.safetensors"))
    model = onnx.load(next((cartpole / "Pole/policies").glob("*greedy.onnx")))
    kept = [entry for entry in model.metadata_props if entry.key != "spec"]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    onnx.save(model, old_graph)
    raw = next((cartpole / "Pole/policies").glob("*raw.safetensors"))
    with safetensors.safe_open(raw, "numpy") as file:
        about, arrays = file.metadata(), safetensors.numpy.load_file(raw)
    spec = {key: value for key, value in json.loads(about["spec"]).items() if key != "spaces"}
    safetensors.numpy.save_file(arrays, old_raw, {**about, "spec": json.dumps(spec)})
    for old in (old_graph, old_raw):
        with pytest.raises(rl_tui.ExportError, match=rf"{old}: was written by rl-tui [\d.]+\S* without the spaces"):
            rl_tui.load_policy(old)
    arrays.pop("head.weight")
    safetensors.numpy.save_file(arrays, torn, about)
    with pytest.raises(rl_tui.ExportError, match=r"torn\.safetensors: its arrays and settings do not make a policy"):
        rl_tui.load_policy(torn)
    torn.write_bytes(raw.read_bytes()[:500])
    with pytest.raises(rl_tui.ExportError, match=r"torn\.safetensors: cannot be read"):
        rl_tui.load_policy(torn)


@pytest.mark.parametrize(
    ("observation", "mask", "message"),
    [
        (np.zeros(3, np.float32), None, r"must have the shape \(4,\) of its space, got \(3,\)"),
        ({"a": 1}, None, "observation: must be an element of its space or a batch of them"),
        (None, None, "observation: must be an element of its space or a batch of them"),
        (np.zeros(4, np.float32), [1, 1, 1], "action_mask must have 2 entries, got 3"),
    ],
)
def test_observation_of_another_space_is_refused(cartpole: Path, observation: Any, mask: Any, message: str) -> None:
    with pytest.raises(rl_tui.ConfigError, match=message):
        rl_tui.load_policy(cartpole).act(observation, mask)
