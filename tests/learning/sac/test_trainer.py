"""The trainer as a whole: when it learns, what it reports, what it saves, what it refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import ConfigError, NonFiniteError
from rl_tui.engine.learning.sac.trainer import SACTrainer
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Ending, ObservationSpec, State, Trajectories
from tests.learning.rollouts import acted

CPU = torch.device("cpu")
SEEN = (ObservationSpec("speed", (3,)), ObservationSpec("angle", (2,)))
SPECS = {
    "continuous": BehaviorSpec("Walker", SEEN, ActionSpec(2)),
    "discrete": BehaviorSpec("Walker", SEEN, ActionSpec(0, (3, 2))),
    "hybrid": BehaviorSpec("Walker", SEEN, ActionSpec(2, (3, 2))),
}


def config(network: Mapping[str, object] | None = None, **hyper: object) -> BehaviorConfig:
    """Small and quick, with these settings."""
    return BehaviorConfig.model_validate(
        {
            "trainer_type": "sac",
            "hyperparameters": {"batch_size": 16, "buffer_size": 200, "learning_rate": 1e-2} | hyper,
            "network_settings": {"hidden_units": 8, "num_layers": 1} | dict(network or {}),
            "max_steps": 1000,
        }
    )


def trainer(settings: BehaviorConfig, kind: str = "hybrid", seed: int = 0) -> SACTrainer:
    return SACTrainer(SPECS[kind], settings, seed, CPU)


def block(sac: SACTrainer, rows: int, kind: str = "hybrid", seed: int = 5, masked: bool = False) -> Trajectories:
    """Segments of at most ten rows that the trainer's policy acted."""
    lengths = [10] * (rows // 10) + ([rows % 10] if rows % 10 else [])
    is_masked = masked and bool(SPECS[kind].actions.branches)
    return acted(sac.make_policy(3), np.random.default_rng(seed), lengths, SPECS[kind], is_masked)


def same(first: State, second: State) -> bool:
    assert first.tensors.keys() == second.tensors.keys()
    tensors = all(np.array_equal(array, second.tensors[name]) for name, array in first.tensors.items())
    return tensors and first.values == second.values


def minibatches_of(sac: SACTrainer) -> int:
    """How many mini-batches the networks have learned from."""
    steps = sac.state().part("actor").values["adam_steps"]
    assert isinstance(steps, int)
    return steps


def test_an_update_is_due_when_the_buffer_holds_a_mini_batch_and_makes_up_for_every_step_so_far() -> None:
    sac = trainer(config())
    sac.add(block(sac, 15))
    assert not sac.is_ready()
    sac.add(block(sac, 1))
    assert sac.is_ready()
    sac.update(16)
    assert not sac.is_ready()
    assert sac.num_updates == sac.weights().version == 1
    assert minibatches_of(sac) == 16


@pytest.mark.parametrize(("steps_per_update", "learned"), [(0.5, 60), (1, 30), (4, 7), (7.5, 4)])
def test_steps_before_the_first_update_are_not_made_up_for(steps_per_update: float, learned: int) -> None:
    sac = trainer(config(buffer_init_steps=50, steps_per_update=steps_per_update))
    sac.add(block(sac, 50))
    assert not sac.is_ready()
    sac.add(block(sac, 30))
    sac.update(80)
    assert minibatches_of(sac) == learned


def test_fractions_of_a_mini_batch_are_not_lost() -> None:
    sac = trainer(config(steps_per_update=3))
    for _ in range(30):
        sac.add(block(sac, 2))
        if sac.is_ready():
            sac.update(60)
    assert minibatches_of(sac) == 20


@pytest.mark.parametrize("target_q", [False, True])
def test_targets_follow_by_tau(target_q: bool) -> None:
    sac = trainer(config(target_q=target_q, tau=0.25, steps_per_update=20))
    source = "q" if target_q else "value"
    before = sac.state()
    sac.add(block(sac, 20))
    sac.update(20)
    after = sac.state()
    assert minibatches_of(sac) == 1
    for name, target in before.part("target").tensors.items():
        ours = after.part(source).tensors[f"parameters.{name}"]
        np.testing.assert_allclose(after.part("target").tensors[name], target + 0.25 * (ours - target), rtol=1e-5)


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("hyper", [{}, {"target_q": True, "n_step": 3}, {"prioritized_replay": {}}])
def test_numbers_are_reported_by_the_tags_of_ml_agents(kind: str, hyper: dict[str, object]) -> None:
    sac = trainer(config(**hyper), kind)
    metrics = dict(sac.add(block(sac, 40, kind, masked=True))) | dict(sac.update(40))
    expected = {
        "Losses/Policy Loss",
        "Losses/Q1 Loss",
        "Losses/Q2 Loss",
        "Policy/Entropy",
        "Policy/Extrinsic Value",
        "Policy/Extrinsic Reward",
        "Policy/Learning Rate",
        "Policy/Replay Steps",
    }
    expected |= set() if "target_q" in hyper else {"Losses/Value Loss"}
    expected |= set() if kind == "discrete" else {"Policy/Continuous Entropy Coeff"}
    expected |= set() if kind == "continuous" else {"Policy/Discrete Entropy Coeff"}
    assert set(metrics) == expected
    assert all(np.isfinite(value).all() for value in metrics.values())


def test_a_trainer_continues_from_a_saved_state_and_buffer_as_if_it_had_never_stopped() -> None:
    settings = config({"normalize": True}, save_replay_buffer=True, prioritized_replay={})
    first, second = trainer(settings), trainer(settings, seed=1)
    first.add(block(first, 40))
    first.update(40)
    state, replay = first.state(), first.replay()
    assert replay is not None
    second.load(State(state.tensors, json.loads(json.dumps(state.values))))
    second.load_replay(State(replay.tensors, json.loads(json.dumps(replay.values))))
    assert same(first.state(), second.state())
    more = block(first, 10, seed=6)
    for sac in (first, second):
        sac.add(more)
        sac.update(50)
    assert same(first.state(), second.state())
    assert not same(first.state(), state)


def test_without_its_buffer_a_resumed_trainer_fills_a_new_one_first() -> None:
    settings = config(buffer_init_steps=30)
    first, second = trainer(settings), trainer(settings)
    first.add(block(first, 60))
    first.update(60)
    assert first.replay() is None
    second.load(first.state())
    second.add(block(first, 30))
    assert not second.is_ready()
    second.add(block(first, 5))
    second.update(95)
    assert minibatches_of(second) == minibatches_of(first) + 5


def test_rolling_back_forgets_what_came_after() -> None:
    sac = trainer(config(save_replay_buffer=True))
    sac.add(block(sac, 40))
    sac.update(40)
    state, kept = sac.state(), sac.replay()
    sac.add(block(sac, 20, seed=7))
    sac.update(60)
    sac.load(state)
    assert same(sac.state(), state)
    replay = sac.replay()
    assert kept is not None
    assert replay is not None
    assert same(replay, kept)


def test_a_minibatch_that_overflows_is_reported_and_not_learned() -> None:
    sac = trainer(config(), "continuous")
    sac.add(block(sac, 20, "continuous"))
    sac.update(20)
    before = sac.state()
    bad = block(sac, 20, "continuous")
    sac.add(replace(bad, rewards=np.full(20, 3e38, np.float32)))
    with pytest.raises(NonFiniteError, match="step 40"):
        sac.update(40)
    after = sac.state()
    for name, array in before.tensors.items():
        np.testing.assert_array_equal(after.tensors[name], array)


def test_a_reward_that_is_no_number_is_refused_with_its_agent() -> None:
    sac = trainer(config(), "continuous")
    bad = block(sac, 10, "continuous")
    rewards = bad.rewards.copy()
    rewards[4] = np.nan
    with pytest.raises(NonFiniteError, match="agent 0"):
        sac.add(replace(bad, rewards=rewards))


def test_the_losses_are_reported_without_changing_anything() -> None:
    sac = trainer(config({"normalize": True}, save_replay_buffer=True))
    sac.add(block(sac, 40))
    sac.update(40)
    before, replay = sac.state(), sac.replay()
    seen = block(sac, 25, seed=9)
    first, second = sac.loss(seen), sac.loss(seen)
    assert first == second
    assert {"Losses/Policy Loss", "Losses/Q1 Loss", "Losses/Q2 Loss", "Losses/Value Loss"} <= set(first)
    assert all(np.isfinite(value) for value in first.values())
    after = sac.replay()
    assert same(sac.state(), before)
    assert replay is not None
    assert after is not None
    assert same(after, replay)
    assert sac.loss(block(sac, 25, seed=10)) != first


def test_hyperparameters_change_while_it_trains() -> None:
    sac = trainer(config(steps_per_update=1))
    values = {"learning_rate": 0.01, "tau": 0.005, "steps_per_update": 1.0, "target_entropy": -2.0}
    assert sac.hyperparameters() == values
    sac.set_hyperparameter("steps_per_update", 10)
    sac.add(block(sac, 40))
    sac.update(40)
    assert minibatches_of(sac) == 4
    with pytest.raises(ConfigError, match="batch_size"):
        sac.set_hyperparameter("batch_size", 8)


def test_the_learning_rate_falls_to_the_end_when_its_schedule_is_linear() -> None:
    sac = trainer(config(learning_rate_schedule="linear"))
    sac.add(block(sac, 40))
    assert sac.update(500)["Policy/Learning Rate"] == pytest.approx(0.005, rel=1e-6)


def test_others_have_their_turn_between_mini_batches() -> None:
    sac, turns = trainer(config()), []
    sac.add(block(sac, 25))

    def should_continue() -> bool:
        turns.append(1)
        return True

    sac.update(25, should_continue)
    assert len(turns) == 25


def test_an_update_that_is_stopped_early_leaves_the_rest_to_the_next_one() -> None:
    sac = trainer(config(steps_per_update=1))
    sac.add(block(sac, 25))
    answers = iter([True, True, False])
    assert "Losses/Q1 Loss" in sac.update(25, lambda: next(answers))
    assert (minibatches_of(sac), sac.num_updates, sac.is_ready()) == (3, 1, True)
    sac.update(25)
    assert (minibatches_of(sac), sac.num_updates, sac.is_ready()) == (25, 2, False)


def test_a_resumed_trainer_with_an_empty_buffer_fills_it_before_it_continues_with_what_was_left() -> None:
    sac, resumed = (trainer(config(steps_per_update=1, buffer_init_steps=60)) for _ in range(2))
    sac.add(block(sac, 80))
    sac.update(80, lambda: False)
    resumed.load(sac.state())
    resumed.add(block(resumed, 40))
    assert not resumed.is_ready()
    resumed.add(block(resumed, 20))
    assert resumed.is_ready()


def test_no_draw_is_made_from_the_generators_of_the_process() -> None:
    np.random.seed(0)
    state, torch_state = np.random.get_state()[1].tolist(), torch.get_rng_state()
    sac = trainer(config(prioritized_replay={}))
    sac.add(block(sac, 40))
    sac.update(40)
    assert np.random.get_state()[1].tolist() == state
    assert torch.equal(torch.get_rng_state(), torch_state)


@pytest.mark.parametrize("target_q", [False, True])
def test_targets_at_a_cut_expect_only_what_was_allowed_next(target_q: bool) -> None:
    """A value network needs no mask for the value of the next state."""
    sac = trainer(config(target_q=target_q), "discrete")
    cut = acted(sac.make_policy(3), np.random.default_rng(5), [1] * 8, SPECS["discrete"], True, Ending.CUT)
    found = []
    for forbidden in (0, 1):
        allowed = np.ones((8, 5), np.bool_)
        allowed[:, forbidden] = False
        found.append(sac.loss(replace(cut, next_action_mask=allowed))["Losses/Q1 Loss"])
    assert (found[0] != found[1]) == target_q


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("ending", [Ending.TERMINATED, Ending.TRUNCATED])
def test_q_learns_nothing_from_a_state_whose_choices_are_not_known(ending: Ending, masked: bool) -> None:
    sac = trainer(config(target_q=True), "discrete")
    ended = acted(sac.make_policy(3), np.random.default_rng(5), [1] * 8, SPECS["discrete"], masked, ending)
    losses = sac.loss(ended)
    assert (losses["Losses/Q1 Loss"] == 0) == (masked and ending is Ending.TRUNCATED)


GOLDEN = {
    ("continuous", False): {"Policy Loss": -1.4167, "Q1 Loss": 0.59151, "Q2 Loss": 0.64792, "Value Loss": 0.3493},
    ("continuous", True): {"Policy Loss": -1.12084, "Q1 Loss": 0.92352, "Q2 Loss": 0.9128},
    ("discrete", False): {"Policy Loss": -0.95627, "Q1 Loss": 0.60763, "Q2 Loss": 0.56263, "Value Loss": 0.12019},
    ("hybrid", True): {"Policy Loss": -0.52481, "Q1 Loss": 0.42829, "Q2 Loss": 0.43415},
}


@pytest.mark.parametrize(("kind", "target_q"), GOLDEN)
def test_losses_from_a_fixed_seed_are_what_they_were(kind: str, target_q: bool) -> None:
    sac = trainer(config(target_q=target_q), kind)
    sac.add(block(sac, 40, kind, masked=True))
    metrics = sac.update(40)
    found = {name.partition("/")[2]: metrics[name] for name in metrics if name.startswith("Losses/")}
    assert found == pytest.approx(GOLDEN[kind, target_q], rel=1e-3)
