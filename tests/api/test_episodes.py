"""Recorded episodes as experience, and what policies say of actions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

import rl_tui
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.specs import Actions, DecisionSteps
from tests.api.test_policies import Puzzle
from tests.running import runs
from tests.running.runs import equal

pytestmark = pytest.mark.filterwarnings("ignore:.*Box.*precision:UserWarning")
MEMORY = {"memory_size": 8, "sequence_length": 8}
Episode = dict[str, Any]


def behavior(**changes: Any) -> dict[str, Any]:
    """As the others, with one quick export."""
    return runs.behavior(**{"export_policies": ["raw"], **changes})


def played(policy: rl_tui.ActingPolicy, env: gymnasium.Env[Any, Any], steps: int) -> Episode:
    """An episode of at most so many steps, as a program of its own would record it."""
    observation, info = env.reset(seed=3)
    policy.reset()
    found: Episode = {"observations": [observation], "actions": [], "rewards": [], "log_probs": [], "raw_actions": []}
    masks, is_over = [info.get("action_mask")], False
    while not is_over and len(found["rewards"]) < steps:
        evaluated = policy.evaluate(observation, action_mask=masks[-1])
        observation, reward, terminated, truncated, info = env.step(evaluated.action)
        found["observations"].append(observation)
        found["actions"].append(evaluated.action)
        found["rewards"].append(reward)
        found["log_probs"].append(evaluated.log_probs)
        found["raw_actions"].append(evaluated.raw_action)
        masks.append(info.get("action_mask"))
        is_over = terminated or truncated
    found |= {"observations": stacked(found["observations"]), "actions": stacked(found["actions"])}
    found |= {"terminated": terminated, "truncated": truncated}
    return found if masks[0] is None else found | {"action_masks": masks}


def stacked(elements: list[Any]) -> Any:
    """A batch of elements of a space, nested as the space is."""
    if isinstance(elements[0], Mapping):
        return {key: stacked([element[key] for element in elements]) for key in elements[0]}
    if isinstance(elements[0], tuple):
        return tuple(map(stacked, map(list, zip(*elements, strict=True))))
    return np.stack(elements)


def segments(block: rl_tui.Trajectories) -> Iterator[Episode]:
    """Every segment of a collected block as an episode that goes on where it was cut, in an environment's own terms."""
    ends = np.cumsum(block.lengths)
    for index, (end, length) in enumerate(zip(ends, block.lengths, strict=True)):
        rows = slice(end - length, end)
        raw = block.continuous_actions[rows]
        torque = np.clip(raw, -3, 3) / np.float32(3) * 2
        yield {
            "observations": np.append(block.observations[0][rows], block.next_observations[0][index : index + 1], 0),
            "actions": torque if raw.shape[1] else block.discrete_actions[rows, 0],
            "rewards": block.rewards[rows],
            "terminated": block.endings[index] == 1,
            "truncated": block.endings[index] == 2,
            "log_probs": block.log_probs[rows],
            "raw_actions": raw,
        }


SAC = {"trainer_type": "sac", "hyperparameters": {"batch_size": 16, "buffer_size": 300, "buffer_init_steps": 32}}


@pytest.mark.parametrize("trainer", [{}, SAC], ids=["ppo", "sac"])
@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
def test_recorded_episodes_are_learned_from_as_collected_experience_bit_for_bit(
    env: str, trainer: dict[str, Any], tmp_path: Path
) -> None:
    """With log-probabilities and raw actions as the policy knew them."""
    settings = behavior(network_settings__normalize=True, **trainer)
    with (
        rl_tui.Learner(settings, env, tmp_path / "a", seed=1, num_envs=3) as collecting,
        rl_tui.Learner(settings, env, tmp_path / "b", seed=1, num_envs=3) as foreign,
    ):
        while collecting.num_updates < 3:
            block = collecting.collect()
            losses = collecting.learn(block)
            recorded = rl_tui.Trajectories.from_episodes(segments(block), foreign.policy())
            assert foreign.learn(recorded) == losses
        own, other = (learner._learner.trainer.state() for learner in (collecting, foreign))
        assert equal(own.tensors, other.tensors)
        assert own.values == other.values
        assert any((array != 0).any() for name, array in own.tensors.items() if ".adam_mean." in name)


def test_sac_learns_from_a_long_episode_of_an_unknown_policy(tmp_path: Path) -> None:
    env = gymnasium.make("Pendulum-v1")
    env.action_space.seed(1)
    observation, _ = env.reset(seed=1)
    seen, actions, rewards = [observation], list[Any](), list[float]()
    for _ in range(200):
        actions.append(env.action_space.sample())
        observation, reward, *_ = env.step(actions[-1])
        seen.append(observation)
        rewards.append(float(reward))
    episode = {"observations": np.stack(seen), "actions": np.stack(actions), "rewards": rewards, "truncated": True}
    settings = behavior(**SAC, reward_signals={"extrinsic": {"gamma": 0.9}})
    with rl_tui.Learner(settings, "Pendulum-v1", tmp_path / "a", seed=1) as learner:
        drawn = list[rl_tui.Minibatch]()
        learner.on_train_step(
            lambda step: drawn.append(step.sample) if isinstance(step.sample, rl_tui.Minibatch) else None
        )
        block = rl_tui.Trajectories.from_episodes([episode], learner.policy())
        assert block.episode_returns.tolist() == pytest.approx([sum(rewards)], rel=1e-5)
        assert learner.learn(block) is not None
        assert learner.step == 200
        by_reward = {np.float32(reward).tobytes(): row for row, reward in enumerate(rewards)}
        for sample in drawn:
            for row, reward in enumerate(sample.rewards[:, 0]):
                index = by_reward[reward.tobytes()]
                np.testing.assert_allclose(sample.continuous_actions[row] * 2, actions[index], atol=1e-6)
                np.testing.assert_array_equal(sample.next_observations[0][row], seen[index + 1])


KINDS: Mapping[str, tuple[Any, dict[str, Any]]] = {
    "discrete": ("CartPole-v1", {}),
    "continuous": ("Pendulum-v1", {}),
    "nested, masked": (Puzzle, {}),
    "memory": ("CartPole-v1", {"network_settings__memory": MEMORY}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_episodes_of_the_policy_itself_do_not_diverge_from_it(kind: str, tmp_path: Path) -> None:
    env, changes = KINDS[kind]
    made = env() if callable(env) else gymnasium.make(env, max_episode_steps=30)
    with rl_tui.Learner(behavior(**changes), env, tmp_path / "a", seed=1) as learner:
        learner.run(2)
        policy = learner.policy("stochastic", seed=2)
        episodes = [played(policy, made, 30) for _ in range(3)]
        exact = rl_tui.Trajectories.from_episodes(episodes, learner.policy())
        assert exact.num_rows == sum(len(episode["rewards"]) for episode in episodes)
        assert exact.action_mask is None or exact.action_mask.shape == (exact.num_rows, 5)
        without = [{k: v for k, v in each.items() if k not in ("log_probs", "raw_actions")} for each in episodes]
        computed = rl_tui.Trajectories.from_episodes(without, learner.policy())
        for block in (exact, computed):
            losses = learner.loss(block)
            assert abs(losses["Policy/KL Divergence"]) < 1e-6
            assert losses["Policy/Clip Fraction"] == 0
        np.testing.assert_allclose(computed.log_probs, exact.log_probs, atol=1e-4)
        inside = abs(exact.continuous_actions) < 3
        np.testing.assert_allclose(computed.continuous_actions[inside], exact.continuous_actions[inside], atol=1e-4)
        np.testing.assert_array_equal(computed.discrete_actions, exact.discrete_actions)
        if exact.memories is not None:
            assert computed.memories is not None
            assert (exact.memories[exact.lengths.cumsum()[:-1]] == 0).all(), "each episode begins with none"
            assert exact.memories.any()
        before = learner.step
        learner.learn(exact)
        assert learner.step == before + exact.num_rows


def test_episode_of_another_policy_changes_the_ratios(tmp_path: Path) -> None:
    with rl_tui.Learner(behavior(), "CartPole-v1", tmp_path / "a", seed=1) as learner:
        episode = played(learner.policy("stochastic", seed=2), gymnasium.make("CartPole-v1"), 30)
        episode["log_probs"] = np.log(np.full(len(episode["rewards"]), 0.1))
        block = rl_tui.Trajectories.from_episodes([episode], learner.policy())
        assert learner.loss(block)["Policy/Clip Fraction"] == 1


def test_names_of_other_libraries_are_known(tmp_path: Path) -> None:
    seen, zeros = np.zeros((3, 4), np.float32), np.zeros(2)
    minari = SimpleNamespace(
        id=0, observations=seen, actions=[0, 1], rewards=zeros, terminations=[False, True], truncations=[False, False]
    )
    imitation = SimpleNamespace(obs=seen, acts=np.array([0, 1]), rews=zeros, infos=None, terminal=True)
    tianshou = {"obs": seen[:2], "act": [0, 1], "rew": zeros, "terminated": True, "obs_next": seen[1:], "info": {}}
    d3rlpy = {"observations": seen, "actions": [[0], [1]], "rewards": zeros[:, None], "terminated": True}
    with rl_tui.Learner(behavior(), "CartPole-v1", tmp_path / "a") as learner:
        policy = learner.policy()
        blocks = [rl_tui.Trajectories.from_episodes([each], policy) for each in (minari, imitation, tianshou, d3rlpy)]
        for block in blocks:
            assert block.endings.tolist() == [1]
            assert block.discrete_actions.ravel().tolist() == [0, 1]
            for name, column in vars_of(block).items():
                np.testing.assert_array_equal(column, vars_of(blocks[0])[name], err_msg=name)
            learner.loss(block)


def vars_of(block: rl_tui.Trajectories) -> dict[str, Any]:
    return {field.name: getattr(block, field.name) for field in dataclasses.fields(block)}


def wrong(**changes: Any) -> Episode:
    episode = {
        "observations": np.zeros((3, 4), np.float32), "actions": [0, 1], "rewards": [0.0, 1.0], "terminated": True,
    }  # fmt: skip
    return {name: value for name, value in (episode | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("episode", "message"),
    [
        (wrong(rewards=None), r"episodes\[0\]: must have rewards, got a dict without"),
        (wrong(observations=None, actions=None), r"must have observations and actions, got a dict without"),
        (wrong(rewards=[]), r"rewards: must be of one step or more, with the shape \(T,\), got \(0,\)"),
        (wrong(rewards=[0.0, np.nan]), r"rewards: must be finite numbers, got nan"),
        (wrong(rewards=["a", "b"]), r"rewards: must be numbers: "),
        (wrong(observations=np.zeros((4, 4))), r"observations: must have 3 rows, one more than rewards, got 4"),
        (wrong(observations=np.zeros((2, 4))), r"observations: must have 3 rows.* or else next_observations.* got 2"),
        (wrong(observations=np.zeros((3, 5))), r"observations: must be of its space: .*\(3, 4\) of its space, got"),
        (wrong(observations=7), r"observations: must be a batch"),
        (
            wrong(observations=np.zeros((2, 4)), next_observations=np.zeros((1, 4))),
            r"observations: next_observations: must be of its space: .*\(2, 4\)",
        ),
        (wrong(actions=[0]), r"actions: must have the shape \(2,\) of its space, got \(1,\)"),
        (wrong(actions=[0, 2]), r"actions: must be in the action space, got other choices"),
        (wrong(actions=[0, 0.5]), r"actions: must be in the action space, got other choices"),
        (wrong(terminated=[True, False]), r"terminated: must be False before the last step, got True at step 0"),
        (wrong(truncated=[0, 2]), r"truncated: must be True or False, of the episode or of each of its 2 steps"),
        (wrong(log_probs=np.zeros((2, 3))), r"log_probs: must have the shape \(2, 1\), a column for each dimension"),
        (wrong(log_probs=[0.0, -np.inf]), r"log_probs: must be finite numbers, got -inf"),
        (wrong(raw_actions=np.zeros((2, 1))), r"raw_actions: must have the shape \(2, 0\)"),
        (wrong(action_masks=np.ones((4, 2))), r"action_masks: must have 2 or 3 rows, got 4"),
        (wrong(action_masks=np.ones((2, 3))), r"action_masks: action_mask must have 2 entries, got 3"),
        (wrong(terminated=None, action_masks=np.ones((2, 2))), r"must have 3 rows where the episode goes on, got 2"),
        (wrong(log_prob_s=1), r"log_prob_s: must be .*Did you mean log_probs"),
    ],
)
def test_wrong_episode_is_refused_by_name(episode: Episode, message: str, shared_policy: rl_tui.ActingPolicy) -> None:
    with pytest.raises(rl_tui.ConfigError, match=message):
        rl_tui.Trajectories.from_episodes([episode], shared_policy)


@pytest.fixture(scope="module")
def shared_policy(tmp_path_factory: pytest.TempPathFactory) -> rl_tui.ActingPolicy:
    with rl_tui.Learner(behavior(), "CartPole-v1", tmp_path_factory.mktemp("learner") / "a") as learner:
        return learner.policy()


def test_what_are_no_episodes_is_refused(shared_policy: rl_tui.ActingPolicy, tmp_path: Path) -> None:
    read: Any = rl_tui.Trajectories.from_episodes
    for given, message in (({}, "got a dict"), (3, "got a int"), ([], "at least one episode, got none")):
        with pytest.raises(rl_tui.ConfigError, match=f"episodes: must .*{message}"):
            read(given, shared_policy)
    many = [wrong(), *[wrong(rewards=[])] * 12]
    with pytest.raises(rl_tui.ConfigError, match=r"^episodes\[1\](.|\n)*episodes\[10\].*\nand 2 more$"):
        read(many, shared_policy)
    with rl_tui.Learner(runs.behavior(export_policies=["greedy"]), "CartPole-v1", tmp_path / "a") as learner:
        learner.export()
    onnx = rl_tui.load_policy(tmp_path / "a")
    with pytest.raises(rl_tui.NotSupportedError, match=r"this policy knows no log-probabilities: use learner\.policy"):
        read([wrong()], onnx)
    with pytest.raises(rl_tui.NotSupportedError, match="this policy knows no log-probabilities"):
        onnx.evaluate(np.zeros(4, np.float32))


def test_episodes_of_an_environment_without_spaces(tmp_path: Path) -> None:
    with rl_tui.Learner(behavior(), Line("Walker", 2), tmp_path / "a", seed=1) as learner:
        collected = learner.collect()
        of_first = slice(0, int(collected.lengths[0]))
        steps = int(collected.lengths[0])
        episode = {
            "observations": tuple(
                np.append(rows[of_first], after[:1], 0)
                for rows, after in zip(collected.observations, collected.next_observations, strict=True)
            ),
            "actions": Actions(
                np.clip(collected.continuous_actions[of_first], -3, 3) / 3, collected.discrete_actions[of_first]
            ),
            "rewards": collected.rewards[of_first],
        }
        policy = learner.policy("stochastic", seed=1)
        block = rl_tui.Trajectories.from_episodes([episode], policy)
        inside = (abs(collected.continuous_actions[of_first]) < 3).all(1)
        np.testing.assert_allclose(block.log_probs[inside], collected.log_probs[of_first][inside], atol=1e-4)
        learner.learn(block)
        assert learner.step == steps
        decisions = DecisionSteps(np.arange(2), collected.observations and tuple(
            rows[:2] for rows in collected.observations
        ), np.zeros(2, np.float32))  # fmt: skip
        evaluated = policy.evaluate(decisions)
        again = policy.evaluate(decisions, evaluated.action)
        np.testing.assert_allclose(again.log_probs, evaluated.log_probs, atol=1e-5)
        for changes, message in (
            ({"observations": episode["observations"][0]}, "observations: must be a tuple of 2 arrays"),
            ({"actions": [0] * steps}, "actions: must be Actions, got a list"),
        ):
            with pytest.raises(rl_tui.ConfigError, match=message):
                rl_tui.Trajectories.from_episodes([episode | changes], policy)


def test_policy_evaluates_its_actions_and_given_ones(tmp_path: Path) -> None:
    with rl_tui.Learner(behavior(), "CartPole-v1", tmp_path / "a", seed=1, num_envs=2) as learner:
        policy, other = learner.policy("stochastic", seed=5), learner.policy("stochastic", seed=5)
        block = learner.collect()
        seen = block.observations[0]
        evaluated = policy.evaluate(seen)
        np.testing.assert_array_equal(evaluated.action, other.act(seen))
        assert evaluated.log_prob.shape == (block.num_rows,)
        assert evaluated.log_probs.shape == (block.num_rows, 1)
        both = [np.exp(policy.evaluate(seen, np.full(block.num_rows, choice)).log_prob) for choice in (0, 1)]
        np.testing.assert_allclose(sum(both), 1, atol=1e-5)
        assert set(evaluated.action.tolist()) == {0, 1}
        own = policy.evaluate(seen, block.discrete_actions[:, 0])
        np.testing.assert_allclose(own.log_probs, block.log_probs, atol=1e-5)
        one = policy.evaluate(seen[0], 1)
        assert (one.action, one.log_prob.shape, one.log_probs.shape) == (1, (), (1,))
        with pytest.raises(rl_tui.ConfigError, match="action: must be in the action space, got other choices"):
            policy.evaluate(seen[0], 2)
        learner.export()
    raw = rl_tui.load_policy(tmp_path / "a", "raw")
    np.testing.assert_array_equal(raw.evaluate(seen, evaluated.action).log_probs, evaluated.log_probs)


@pytest.mark.parametrize("trainer", ["ppo", "sac"])
def test_value_is_the_critics_as_of_the_policys_step(trainer: str, tmp_path: Path) -> None:
    hyper = {} if trainer == "ppo" else {"hyperparameters": {"batch_size": 16, "buffer_init_steps": 32}}
    settings = behavior(trainer_type=trainer, network_settings__normalize=True, **hyper)
    with rl_tui.Learner(settings, "Pendulum-v1", tmp_path / "a", seed=1) as learner:
        learner.run(2)
        policy, block, seen = learner.policy(), learner.collect(), list[Any]()
        values = policy.value(block.observations[0])
        assert values.shape == (block.num_rows,)
        assert policy.value(block.observations[0][0]) == pytest.approx(values[0], abs=1e-5)
        if trainer == "ppo":
            own = learner._learner.trainer
            features = own._features(block.observations)
            np.testing.assert_allclose(own._network.values(features)[0][:, 0], values, atol=1e-5)
        for _ in range(3):
            learner.run()
        np.testing.assert_array_equal(policy.value(block.observations[0]), values, "it does not change")
        assert not np.allclose(learner.policy().value(block.observations[0]), values)
        learner.export()
        seen.append(block.observations[0])
    with pytest.raises(rl_tui.NotSupportedError, match=r"a policy of a file has no critic, only learner\.policy"):
        rl_tui.load_policy(tmp_path / "a", "raw").value(seen[0])


def test_value_says_why_there_is_none(tmp_path: Path) -> None:
    target_q = behavior(trainer_type="sac", hyperparameters={"target_q": True})
    memory = behavior(network_settings__memory=MEMORY)
    for number, (settings, message) in enumerate(((target_q, "no value network where target_q"), (memory, "memory"))):
        with rl_tui.Learner(settings, "CartPole-v1", tmp_path / str(number)) as learner:
            policy = learner.policy()
            with pytest.raises(rl_tui.NotSupportedError, match=message):
                policy.value(np.zeros(4, np.float32))
