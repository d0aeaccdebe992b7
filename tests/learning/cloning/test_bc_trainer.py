"""The trainer that learns from demonstrations alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import NonFiniteError, NotSupportedError
from rl_tui.engine.learning.bc.settings import HELD_OUT, LOSS
from rl_tui.engine.learning.bc.trainer import BCTrainer
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec, State
from tests.learning.demonstrations import SPECS, Recorded, random_demonstrations
from tests.learning.rollouts import acted

CPU = torch.device("cpu")
LENGTHS = [11, 7, 12, 10]
PATH = "walks.demo"
MEMORY = {"memory": {"sequence_length": 4, "memory_size": 6}}
EVERYTHING = BehaviorSpec(
    "Walker",
    (
        ObservationSpec("camera", (20, 20, 1), "uint8"),
        ObservationSpec("speed", (3,)),
        ObservationSpec("enemies", (4, 3)),
        ObservationSpec("target", (2,), is_goal=True),
    ),
    ActionSpec(2, (3, 2)),
)


def trainer(
    steps: Recorded | None,
    spec: BehaviorSpec = SPECS["hybrid"],
    network: Mapping[str, Any] | None = None,
    seed: int = 0,
    **hyper: object,
) -> BCTrainer:
    """Small and quick. steps: None for a trainer that has not got them yet."""
    config = BehaviorConfig.model_validate(
        {
            "trainer_type": "bc",
            "hyperparameters": {"demo_path": PATH, "batch_size": 8, "learning_rate": 1e-2, "validation": 0.25} | hyper,
            "network_settings": {"hidden_units": 8, "num_layers": 1} | dict(network or {}),
            "max_steps": 1000,
        }
    )
    made = BCTrainer(spec, config, seed, CPU)
    if steps is not None:
        made.use_demonstrations({PATH: steps})
    return made


def same(first: State, second: State) -> bool:
    assert first.tensors.keys() == second.tensors.keys()
    tensors = all(np.array_equal(array, second.tensors[name]) for name, array in first.tensors.items())
    return tensors and first.values == second.values


def read(steps: Recorded) -> set[int]:
    """The rows that were read since the last call."""
    rows = {int(row) for rows in steps.reads for row in rows}
    steps.reads.clear()
    return rows


@pytest.mark.parametrize("network", [{}, MEMORY, {"normalize": True}], ids=["plain", "memory", "normalized"])
@pytest.mark.parametrize("spec", [*SPECS.values(), EVERYTHING], ids=[*SPECS, "everything"])
def test_every_actor_learns_what_was_demonstrated(spec: BehaviorSpec, network: Mapping[str, object]) -> None:
    """One and the same action, also in the episode that it has not seen."""
    steps = random_demonstrations(spec, LENGTHS)
    steps.continuous[:], steps.discrete[:] = 0.5, 1
    bc = trainer(steps, spec, network, learning_rate_schedule="constant")
    reports = [bc.update(0) for _ in range(40)]
    for tag in (LOSS, HELD_OUT):
        assert reports[-1][tag] < 0.25 * reports[0][tag]
    assert reports[-1]["Policy/Learning Rate"] == 1e-2
    assert bc.num_updates == bc.weights().version == 40


def test_held_out_episodes_are_whole_ones_and_are_never_learned_from() -> None:
    steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
    bc = trainer(steps, samples_per_update=0, batch_size=1)
    learned, held_out = set[int](), set[int]()
    for _ in range(3):
        bc.update(0)
        learned |= {int(row) for rows in steps.reads[:-1] for row in rows}
        held_out |= set(steps.reads[-1].tolist())
        steps.reads.clear()
    assert learned | held_out == set(range(40))
    assert not learned & held_out
    assert held_out in [set(range(begin, end)) for begin, end in steps.episodes.tolist()]
    assert bc.rows_per_update == len(learned)


@pytest.mark.parametrize(
    ("validation", "lengths", "held_out"), [(0.0, [5, 5], 0), (0.9, [5], 0), (0.01, [5] * 9, 5), (0.99, [5] * 3, 10)]
)
def test_at_least_one_episode_is_held_out_and_one_is_learned_from(
    validation: float, lengths: list[int], held_out: int
) -> None:
    steps = random_demonstrations(SPECS["hybrid"], lengths)
    bc = trainer(steps, validation=validation, batch_size=1)
    assert bc.rows_per_update == sum(lengths) - held_out
    assert (HELD_OUT in bc.update(0)) == bool(held_out)


def test_which_episodes_are_held_out_follows_from_the_seed() -> None:
    found = []
    for seed in (0, 0, 1, 2, 3):
        steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
        trainer(steps, seed=seed).update(0)
        found.append(tuple(steps.reads[-1].tolist()))
    assert found[0] == found[1]
    assert len(set(found)) > 1


def test_an_update_reads_so_many_rows_and_as_many_held_out_ones() -> None:
    steps = random_demonstrations(SPECS["hybrid"], [30] * 4)
    bc = trainer(steps, samples_per_update=20)
    assert bc.rows_per_update == 16
    bc.update(0)
    assert [len(rows) for rows in steps.reads] == [8, 8, 20]
    assert len(read(steps)) == 36


def test_normalization_is_by_the_steps_that_are_learned_from() -> None:
    """Once: a resumed training does not count them again."""
    steps = random_demonstrations(SPECS["continuous"], LENGTHS)
    steps.observations[1][:] = 100 + 5 * steps.observations[1]
    bc = trainer(steps, SPECS["continuous"], {"normalize": True}, batch_size=1)
    bc.update(0)
    of_normalizer = bc.state().part("normalizer")
    assert of_normalizer.number("steps") == 1 + bc.rows_per_update
    held_out = np.isin(np.arange(40), steps.reads[-1])
    seen = np.concatenate(steps.observations, 1)[~held_out]
    expected = seen.sum(0, dtype=np.float64) / (len(seen) + 1)  # ML-Agents counts one row of zeros
    np.testing.assert_allclose(of_normalizer.tensors["mean"], expected, rtol=1e-5)
    other = trainer(steps, SPECS["continuous"], {"normalize": True}, batch_size=1)
    other.load(bc.state())
    other.update(0)
    assert same(other.state().part("normalizer"), of_normalizer)


def test_the_learning_rate_falls_to_nothing_at_max_steps() -> None:
    bc = trainer(random_demonstrations(SPECS["hybrid"], LENGTHS))
    rates = [bc.update(step)["Policy/Learning Rate"] for step in (0, 500, 1000, 2000)]
    assert rates == pytest.approx([1e-2, 5e-3, 1e-10, 1e-10])


@pytest.mark.parametrize("network", [{}, MEMORY | {"normalize": True}], ids=["plain", "memory"])
@pytest.mark.parametrize("seed", range(4))
def test_a_resumed_training_is_the_same_bit_for_bit(network: Mapping[str, object], seed: int) -> None:
    """Whatever its new seed: what was held out is never learned from later."""
    steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
    one, other = trainer(steps, network=network), trainer(steps if seed == 3 else None, network=network, seed=seed)
    for _ in range(3):
        one.update(10)
    kept = one.state()
    other.load(State(dict(kept.tensors), json.loads(json.dumps(kept.values))))
    other.use_demonstrations({PATH: steps})
    assert same(other.state(), kept)
    reports = [[each.update(step) for step in (20, 30)] for each in (one, other)]
    assert reports[0] == reports[1]
    assert same(one.state(), other.state())
    assert not same(one.state(), kept)


@pytest.mark.parametrize("updates", [0, 2])
def test_a_failed_update_leaves_everything_as_it_was(updates: int) -> None:
    steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
    bc = trainer(steps, network={"normalize": True})
    for _ in range(updates):
        bc.update(0)
    before = bc.state()
    steps.continuous[:] = np.nan
    with pytest.raises(NonFiniteError, match="cloning is not finite at step 7; the state before"):
        bc.update(7)
    assert same(bc.state(), before)


def test_experience_is_not_learned_from() -> None:
    steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
    one, other = trainer(steps), trainer(steps)
    assert one.add(acted(one.make_policy(3), np.random.default_rng(0), [9], SPECS["hybrid"])) == {}
    assert one.update(0) == other.update(0)
    assert same(one.state(), other.state())


def test_it_is_ready_once_it_has_demonstrations() -> None:
    bc = trainer(None)
    assert not bc.is_ready()
    bc.use_demonstrations({PATH: random_demonstrations(SPECS["hybrid"], LENGTHS)})
    assert bc.is_ready()


def test_an_update_that_is_stopped_early_has_learned_from_what_it_has_read() -> None:
    steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
    bc = trainer(steps, validation=0)
    assert bc.update(0, lambda: False)[LOSS] > 0
    assert len(steps.reads) == 1


def test_its_policy_does_what_was_demonstrated() -> None:
    steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
    steps.continuous[:], steps.discrete[:] = [0.9, -0.3], [2, 1]
    bc = trainer(steps, learning_rate_schedule="constant")
    for _ in range(150):
        bc.update(0)
    block = acted(bc.make_policy(3, is_greedy=True), np.random.default_rng(0), [50], SPECS["hybrid"])
    np.testing.assert_allclose(block.continuous_actions.clip(-3, 3) / 3, np.tile([0.9, -0.3], (50, 1)), atol=0.15)
    assert (block.discrete_actions == [2, 1]).all()


def test_behavioral_cloning_beside_it_is_refused() -> None:
    settings = {"demo_path": PATH}
    config = BehaviorConfig.model_validate(
        {"trainer_type": "bc", "hyperparameters": settings, "behavioral_cloning": settings}
    )
    bc = BCTrainer(SPECS["hybrid"], config, 0, CPU)
    with pytest.raises(NotSupportedError, match="BCTrainer has no behavioral cloning"):
        bc.use_demonstrations({PATH: random_demonstrations(SPECS["hybrid"], LENGTHS)})
