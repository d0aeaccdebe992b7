"""Behavioral cloning of a teacher, which labels what its student visits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import CheckpointError, ConfigError, NonFiniteError
from rl_tui.engine.learning.bc.settings import HELD_OUT, LOSS
from rl_tui.engine.learning.bc.trainer import BCTrainer
from rl_tui.engine.specs import Actions, ActionSpec, BehaviorSpec, DecisionSteps, ObservationSpec, State, Trajectories
from tests.learning.cloning.test_bc_trainer import EVERYTHING, MEMORY, same
from tests.learning.demonstrations import SPECS
from tests.learning.rollouts import Simulation, acted
from tests.learning.written import Written

CPU = torch.device("cpu")
HYBRID = SPECS["hybrid"]


def by_first(spec: BehaviorSpec) -> Written:
    """To one side or the other, by the first number of the last vector."""

    def choose(decisions: DecisionSteps) -> Actions:
        seen = decisions.observations[-1]
        first = seen.reshape(len(seen), -1)[:, :1]
        continuous = np.tanh(first) * np.ones((1, spec.actions.continuous), np.float32)
        return Actions(continuous, (first > 0) * (np.array(spec.actions.branches, np.int64) - 1))

    return Written(choose)


def trainer(
    teacher: Written | None = None,
    spec: BehaviorSpec = HYBRID,
    network: Mapping[str, Any] | None = None,
    seed: int = 0,
    **hyper: object,
) -> BCTrainer:
    """Small and quick, with a teacher of its own where none is given."""
    settings = {"teacher": "expert.onnx", "batch_size": 16, "steps_per_update": 20, "samples_per_update": 320}
    config = BehaviorConfig.model_validate(
        {
            "trainer_type": "bc",
            "hyperparameters": settings | {"learning_rate": 1e-2, "learning_rate_schedule": "constant"} | hyper,
            "network_settings": {"hidden_units": 8, "num_layers": 1} | dict(network or {}),
            "max_steps": 1000,
        }
    )
    made = BCTrainer(spec, config, seed, CPU)
    made.use_teacher(teacher or by_first(spec))
    return made


def visited(bc: BCTrainer, random: np.random.Generator, spec: BehaviorSpec = HYBRID) -> Trajectories:
    """What its policy does in 24 steps."""
    return Simulation(bc.make_policy(1), spec, 3, 8, int(random.integers(1 << 30))).run(9, end=0.0)


@pytest.mark.parametrize("network", [{}, MEMORY, {"normalize": True}], ids=["plain", "memory", "normalized"])
@pytest.mark.parametrize("spec", [*SPECS.values(), EVERYTHING], ids=[*SPECS, "everything"])
def test_every_student_learns_what_its_teacher_does(spec: BehaviorSpec, network: Mapping[str, object]) -> None:
    """Also where it has not been yet: what is held out is known before it is learned from."""
    bc, random, found = trainer(spec=spec, network=network), np.random.default_rng(0), []
    for step in range(30):
        new = bc.add(visited(bc, random, spec))[HELD_OUT]
        assert bc.is_ready()
        found.append((*new, bc.update(step)[LOSS]))
    first, last = np.array(found[:3]).mean(0), np.array(found[-3:]).mean(0)
    assert (last < 0.35 * first).all()
    assert bc.num_updates == bc.weights().version == 30


def test_what_the_student_does_itself_is_not_learned() -> None:
    """The same experience but for the actions leads to the same student."""
    random = np.random.default_rng(0)
    one, other = trainer(), trainer()
    block = visited(one, random)
    one.add(block)
    otherwise = visited(trainer(seed=5), np.random.default_rng(0))
    assert (block.continuous_actions != otherwise.continuous_actions).any()
    other.add(otherwise)
    assert one.update(0) == other.update(0)
    assert same(one.state(), other.state())


def test_every_step_is_labeled_once_and_old_labels_stay() -> None:
    """The last update has learned from labels of the first block, too."""
    teacher, random = by_first(HYBRID), np.random.default_rng(0)
    bc = trainer(teacher)
    for count in range(1, 5):
        samples = bc.add(visited(bc, random))
        assert samples["Policy/Labels"] == [24.0 * count]
        assert teacher.asked == 24 * count
        bc.update(0)
        assert teacher.asked == 24 * count


def test_the_oldest_labels_make_room() -> None:
    bc, random = trainer(buffer_size=30), np.random.default_rng(0)
    labels = [bc.add(visited(bc, random))["Policy/Labels"][0] for _ in range(4)]
    assert labels[0] == 24
    assert max(labels) <= 31
    assert bc.replay_bytes > 0
    bc.update(0)


def test_an_update_waits_for_new_steps_and_a_full_minibatch() -> None:
    bc, random = trainer(batch_size=40), np.random.default_rng(0)
    bc.add(visited(bc, random))
    assert not bc.is_ready(), "24 labels fill no mini-batch of 40"
    bc.add(visited(bc, random))
    assert bc.is_ready()
    bc.update(0)
    assert not bc.is_ready(), "nothing is new"
    assert bc.rows_per_update == 20


def test_a_mask_is_passed_on_to_the_teacher() -> None:
    masks = []

    def choose(decisions: DecisionSteps) -> Actions:
        masks.append(decisions.action_mask)
        return by_first(HYBRID).act(decisions).actions

    bc = trainer(Written(choose))
    block = acted(bc.make_policy(1), np.random.default_rng(0), [24], HYBRID, masked=True)
    bc.add(block)
    (mask,) = masks
    assert np.array_equal(mask, block.action_mask)


def test_the_loss_of_experience_is_how_far_it_is_from_the_teacher() -> None:
    bc, random = trainer(), np.random.default_rng(0)
    block = visited(bc, random)
    before = bc.state()
    (held_out,) = bc.add(block)[HELD_OUT]
    assert bc.loss(block)[LOSS] == pytest.approx(held_out)
    bc.load(before)
    assert same(bc.state(), before)


def test_normalization_is_by_what_was_visited() -> None:
    spec = BehaviorSpec("Walker", (ObservationSpec("speed", (3,)),), ActionSpec(1))
    bc, random = trainer(spec=spec, network={"normalize": True}), np.random.default_rng(0)
    block = visited(bc, random, spec)
    bc.add(block)
    statistics = bc.state().part("normalizer")
    assert statistics.number("steps") == 25
    expected = block.observations[0].sum(0, dtype=np.float64) / 25  # ML-Agents counts one row of zeros
    np.testing.assert_allclose(statistics.tensors["mean"], expected, rtol=1e-5)


@pytest.mark.parametrize("network", [{}, MEMORY | {"normalize": True}], ids=["plain", "memory"])
def test_a_resumed_training_is_the_same_bit_for_bit(network: Mapping[str, object]) -> None:
    one, random = trainer(network=network), np.random.default_rng(0)
    for _ in range(3):
        one.add(visited(one, random))
        one.update(10)
    one.add(visited(one, random))
    kept, replay = one.state(), one.replay()
    assert replay is not None
    other = trainer(network=network, seed=4)
    other.load(State(dict(kept.tensors), json.loads(json.dumps(kept.values))))
    other.load_replay(replay)
    assert same(other.state(), kept)
    block = visited(one, random)
    reports = [(each.add(block), each.is_ready(), each.update(20)) for each in (one, other)]
    assert reports[0] == reports[1]
    assert same(one.state(), other.state())


def test_a_roll_back_drops_later_labels() -> None:
    bc, random = trainer(), np.random.default_rng(0)
    bc.add(visited(bc, random))
    bc.update(0)
    kept = bc.state()
    bc.add(visited(bc, random))
    bc.update(1)
    bc.load(kept)
    assert same(bc.state(), kept)
    assert bc.add(visited(bc, random))["Policy/Labels"] == [48.0]


def test_labels_are_saved_unless_that_is_off() -> None:
    assert trainer(save_replay_buffer=False).replay() is None
    with pytest.raises(CheckpointError):
        trainer().load_replay(State())


def test_a_failed_update_leaves_everything_as_it_was() -> None:
    random = np.random.default_rng(0)
    nothing = Actions(np.full((24, 2), np.nan, np.float32), np.zeros((24, 2), np.int64))
    bc = trainer(Written(lambda decisions: nothing))
    bc.add(visited(bc, random))
    before = bc.state()
    with pytest.raises(NonFiniteError, match="by cloning is not finite at step 7; the state before"):
        bc.update(7)
    assert same(bc.state(), before)


def test_it_continues_from_what_demonstrations_have_taught() -> None:
    """Counts that the other source has are not needed."""
    config = BehaviorConfig.model_validate(
        {
            "trainer_type": "bc",
            "hyperparameters": {"demo_path": "a.demo"},
            "network_settings": {"hidden_units": 8, "num_layers": 1},
        }
    )
    first, then = BCTrainer(HYBRID, config, 3, CPU), trainer()
    then.load(first.state())
    assert all(np.array_equal(then.weights().arrays[name], array) for name, array in first.weights().arrays.items())
    first.load(then.state())


@pytest.mark.parametrize(
    ("hyper", "message"),
    [
        ({}, "demo_path: must be given, unless there is a teacher"),
        ({"demo_path": "a.demo", "teacher": "b.onnx"}, "teacher: must be null where demo_path is given"),
        ({"teacher": "b.onnx", "batch_size": 20, "buffer_size": 10}, r"batch_size: must be at most buffer_size \(10\)"),
    ],
)
def test_there_is_one_source(hyper: dict[str, object], message: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=r"(?s)" + message.split(":")[1].strip()):
        BehaviorConfig.model_validate({"trainer_type": "bc", "hyperparameters": hyper})
