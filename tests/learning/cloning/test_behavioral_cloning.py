"""Behavioral cloning beside PPO and SAC: when it learns and how much, what is saved, what a failure leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import DemonstrationError, NonFiniteError, NotSupportedError
from rl_tui.engine.learning.actor_trainer import ActorTrainer
from rl_tui.engine.learning.cloning.behavioral_cloning import LOSS
from rl_tui.engine.learning.trainer import Trainer, make_trainer
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import BehaviorSpec, Ending, Int64, ObservationSpec, State, Trajectories
from tests.learning.demonstrations import SPECS, Recorded, random_demonstrations
from tests.learning.rollouts import acted

CPU = torch.device("cpu")
LENGTHS = [11, 7, 12, 10]
PATH = "walks.demo"
TRAINERS: dict[str, dict[str, Any]] = {
    "ppo": {"batch_size": 16, "buffer_size": 64, "num_epoch": 1},
    "sac": {"batch_size": 16, "buffer_size": 400, "steps_per_update": 32},
}
ONE_MINIBATCH: dict[str, dict[str, Any]] = {"ppo": {}, "sac": {"steps_per_update": 64}}  # of 64 rows
MEMORY = {"memory": {"sequence_length": 4, "memory_size": 6}}
GOAL = BehaviorSpec(
    "Walker", (ObservationSpec("speed", (3,)), ObservationSpec("target", (2,), is_goal=True)), SPECS["hybrid"].actions
)


def config(
    name: str, cloning: Mapping[str, object] | None, network: Mapping[str, object] | None = None, **hyper: object
) -> BehaviorConfig:
    """Small and quick. cloning: added to the path of the demonstrations; None for a training without."""
    return BehaviorConfig.model_validate(
        {
            "trainer_type": name,
            "hyperparameters": {"learning_rate": 1e-2} | TRAINERS[name] | hyper,
            "network_settings": {"hidden_units": 8, "num_layers": 1} | dict(network or {}),
            "behavioral_cloning": None if cloning is None else {"demo_path": PATH, **cloning},
            "max_steps": 1000,
        }
    )


def trainer(settings: BehaviorConfig, steps: Recorded, spec: BehaviorSpec = SPECS["hybrid"]) -> Trainer:
    made = make_trainer(spec, settings, 0, CPU)
    made.use_demonstrations({PATH: steps, "others.demo": random_demonstrations(spec, [3])})
    return made


def trained(of: Trainer, step: int, spec: BehaviorSpec = SPECS["hybrid"], seed: int = 5) -> Mapping[str, float]:
    """The numbers of one update on 64 rows."""
    of.add(rows(of, spec, seed))
    return of.update(step)


def rows(of: Trainer, spec: BehaviorSpec = SPECS["hybrid"], seed: int = 5) -> Trajectories:
    """64 of whole episodes."""
    policy = of.make_policy(3)
    block = acted(policy, np.random.default_rng(seed), [10] * 6 + [4], spec, ending=Ending.TERMINATED)
    return replace(block, memories=np.zeros((64, policy.memory_size), np.float32) if policy.memory_size else None)


def same(first: State, second: State) -> bool:
    assert first.tensors.keys() == second.tensors.keys()
    tensors = all(np.array_equal(array, second.tensors[name]) for name, array in first.tensors.items())
    return tensors and first.values == second.values


def without_cloning(state: State) -> State:
    kept = {name: of for name, of in state.tensors.items() if not name.startswith("behavioral_cloning.")}
    return State(kept, {name: of for name, of in state.values.items() if name != "behavioral_cloning"})


def actor(of: Trainer) -> dict[str, np.ndarray]:
    return dict(of.weights().arrays)


@pytest.mark.parametrize("name", TRAINERS)
@pytest.mark.parametrize("network", [{}, MEMORY, {"normalize": True}], ids=["plain", "memory", "normalized"])
@pytest.mark.parametrize("kind", [*SPECS, "goal"])
def test_every_actor_learns_from_demonstrations(name: str, kind: str, network: Mapping[str, object]) -> None:
    """Of one and the same action it is left with a small loss, whatever the rewards say."""
    spec = SPECS.get(kind, GOAL)
    steps = random_demonstrations(spec, LENGTHS)
    steps.continuous[:], steps.discrete[:] = 0.5, 1
    made = trainer(config(name, {"num_epoch": 10, "batch_size": 8}, network, learning_rate=5e-3), steps, spec)
    losses = [trained(made, step, spec)[LOSS] for step in range(64, 64 * 6, 64)]
    assert all(after < before for before, after in pairwise(losses)), losses
    assert losses[-1] < 0.4 * losses[0]


@pytest.mark.parametrize("name", TRAINERS)
def test_only_the_actor_learns_from_demonstrations(name: str) -> None:
    """Critics, values and the trainer's own moments are those of a training without."""
    steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
    cloning, plain = (trainer(config(name, of, **ONE_MINIBATCH[name]), steps) for of in ({}, None))
    found, expected = ({**trained(each, 64)} for each in (cloning, plain))
    assert found.pop(LOSS) > 0
    assert found == expected
    differ = {
        key
        for key, array in without_cloning(cloning.state()).tensors.items()
        if not np.array_equal(array, plain.state().tensors[key])
    }
    prefix = type(cloning).actor_prefix
    assert differ == {f"{prefix}{key}" for key in actor(cloning)}


@pytest.mark.parametrize(
    ("cloning", "reads"),
    [
        ({}, [16, 16] * 3),  # the trainer's batch size, three passes; 8 of 40 rows fill no mini-batch
        ({"num_epoch": 0, "batch_size": 0}, [16, 16] * 3),
        ({"num_epoch": 1, "batch_size": 7}, [7] * 5),
        ({"num_epoch": 2, "batch_size": 100}, [40] * 2),
        ({"num_epoch": 2, "batch_size": 8, "samples_per_update": 23}, [8, 8] * 2),
        ({"num_epoch": 1, "batch_size": 8, "samples_per_update": 3}, [8]),
    ],
)
def test_an_update_reads_as_many_rows_as_ml_agents(cloning: Mapping[str, object], reads: list[int]) -> None:
    steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
    trained(trainer(config("ppo", cloning), steps), 64)
    assert [len(rows) for rows in steps.reads] == reads


def test_sac_clones_after_each_of_its_mini_batches() -> None:
    steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
    sac = trainer(config("sac", {"num_epoch": 1, "batch_size": 40}, steps_per_update=16), steps)
    trained(sac, 64)
    assert len(steps.reads) == sac.state().part("q").number("adam_steps") == 4


def test_sequences_of_a_memory_are_read_as_a_whole() -> None:
    steps = random_demonstrations(SPECS["hybrid"], [8, 4])
    trained(trainer(config("ppo", {"num_epoch": 1, "batch_size": 9}, MEMORY), steps), 64)
    (rows,) = steps.reads
    assert rows.reshape(2, 4).tolist() == [list(range(first, first + 4)) for first in rows[::4]]
    assert set(rows[::4].tolist()) <= {0, 4, 8}


@pytest.mark.parametrize("name", TRAINERS)
def test_the_learning_rate_falls_to_nothing_at_steps(name: str) -> None:
    """Adam's first step is as long as the learning rate, whatever the gradient."""
    moved = []
    for step in (0, 50, 75, 100, 400):
        steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
        cloning = {"steps": 100, "strength": 0.5, "num_epoch": 1, "batch_size": 40}
        made, plain = (trainer(config(name, of, **ONE_MINIBATCH[name]), steps) for of in (cloning, None))
        found = trained(made, step)
        trained(plain, step)
        assert (LOSS in found) == (step < 100)
        assert bool(steps.reads) == (step < 100)
        moved.append(max(np.abs(array - actor(plain)[key]).max() for key, array in actor(made).items()))
    assert moved == pytest.approx([5e-3, 2.5e-3, 1.25e-3, 0, 0], rel=1e-3, abs=1e-12)


def test_a_changed_learning_rate_is_that_of_cloning_from_the_next_update_on() -> None:
    """With steps of zero it stays as it is, however late it is."""
    moved = []
    for rate in (1e-2, 2e-2):
        steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
        made, plain = (
            trainer(config("sac", of, steps_per_update=64), steps) for of in ({"num_epoch": 1, "batch_size": 40}, None)
        )
        for each in (made, plain):
            each.set_hyperparameter("learning_rate", rate)
            trained(each, 999)
        moved.append(max(np.abs(array - actor(plain)[key]).max() for key, array in actor(made).items()))
    assert moved == pytest.approx([1e-2, 2e-2], rel=1e-3)


@pytest.mark.parametrize("name", TRAINERS)
@pytest.mark.parametrize("network", [{}, MEMORY], ids=["plain", "memory"])
def test_a_resumed_training_is_the_same_bit_for_bit(name: str, network: Mapping[str, object]) -> None:
    steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
    settings = config(name, {"steps": 500, "samples_per_update": 16}, network, buffer_size=64)
    one = trainer(settings, steps)
    trained(one, 64)
    trained(one, 128)
    kept = one.state()
    state = State(dict(kept.tensors), json.loads(json.dumps(kept.values)))
    other = make_trainer(SPECS["hybrid"], settings, 9, CPU)
    other.load(state)
    other.use_demonstrations({PATH: steps})
    replay = one.replay() if name == "sac" else None
    assert replay is None
    assert same(other.state(), kept)
    results = []
    for each in (one, other):
        if name == "sac":
            each.load(state)  # whose replay buffer is not saved
        results.append((trained(each, 192), each.state()))
    assert dict(results[0][0]) == dict(results[1][0])
    assert same(results[0][1], results[1][1])
    assert not same(results[0][1], kept)


class Failing(Recorded):
    """Demonstrations whose second mini-batch cannot be read."""

    def transitions(self, rows: Int64, *, with_next: bool = True) -> Transitions:
        if len(self.reads) == 1:
            raise DemonstrationError("walks.demo: the file was removed")
        return super().transitions(rows, with_next=with_next)


def failing(kind: type[Exception]) -> Recorded:
    """Demonstrations by which an update fails with this error."""
    steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
    if kind is NonFiniteError:
        steps.observations[0][:] = np.nan
        return steps
    return Failing(steps.observations, steps.continuous, steps.discrete, LENGTHS)


@pytest.mark.parametrize("kind", [NonFiniteError, DemonstrationError])
def test_a_failed_update_of_ppo_leaves_everything_as_it_was(kind: type[Exception]) -> None:
    made = trainer(config("ppo", {}), random_demonstrations(SPECS["hybrid"], LENGTHS))
    trained(made, 64)
    before = made.state()
    made.use_demonstrations({PATH: failing(kind)})
    with pytest.raises(kind):
        trained(made, 128)
    assert same(without_shuffling(made.state()), without_shuffling(before))


def without_shuffling(state: State) -> State:
    """PPO does not shuffle again what it has shuffled before."""
    return State(state.tensors, {name: of for name, of in state.values.items() if name != "shuffling"})


@pytest.mark.parametrize("kind", [NonFiniteError, DemonstrationError])
def test_a_failed_cloning_leaves_what_sac_has_learned_before(kind: type[Exception]) -> None:
    made = trainer(config("sac", {}, steps_per_update=64), failing(kind))
    twin = trainer(config("sac", None, steps_per_update=64), failing(kind))
    before = made.state().part("behavioral_cloning")
    with pytest.raises(kind):
        trained(made, 64)
    trained(twin, 64)
    found, expected = without_cloning(made.state()), twin.state()
    counts = {"trainer": {}}  # an update that failed is not counted
    assert same(State(found.tensors, found.values | counts), State(expected.tensors, expected.values | counts))
    assert same(made.state().part("behavioral_cloning"), before)
    assert not made.is_ready()


def test_an_update_that_fails_after_the_cloning_undoes_that_too(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer(config("ppo", {}), random_demonstrations(SPECS["hybrid"], LENGTHS))
    assert isinstance(made, ActorTrainer)
    before = made.state()

    def not_finite() -> None:
        raise NonFiniteError("reward_signals: a loss is not finite")

    monkeypatch.setattr(made._streams, "metrics", not_finite)
    with pytest.raises(NonFiniteError, match="reward_signals"):
        trained(made, 64)
    assert same(without_shuffling(made.state()), without_shuffling(before))


def test_the_message_says_what_is_not_finite_and_when() -> None:
    made = trainer(config("ppo", {}), failing(NonFiniteError))
    with pytest.raises(NonFiniteError, match=r"behavioral_cloning: what .* cloning is not finite at step 64; the"):
        trained(made, 64)


@pytest.mark.parametrize("name", TRAINERS)
def test_an_update_that_is_stopped_early_stops_cloning_too(name: str) -> None:
    steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
    made = trainer(config(name, {"batch_size": 4}), steps)
    made.add(rows(made))
    metrics = made.update(64, lambda: False)
    assert len(steps.reads) == 1
    assert metrics[LOSS] > 0


class Forgetful(Trainer):
    """A trainer of a package that knows nothing of demonstrations."""


class Unfinished(ActorTrainer[Any]):
    """One that has an actor and does not clone."""


def test_a_trainer_that_does_not_clone_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config("ppo", {})
    monkeypatch.setattr("rl_tui.engine.learning.trainer.require_trainer", lambda name: Forgetful)
    with pytest.raises(NotSupportedError, match="behavioral_cloning: Forgetful does not learn from demonstrations"):
        make_trainer(SPECS["hybrid"], settings, 0, CPU)
    Unfinished.__abstractmethods__ = frozenset()
    made = Unfinished(settings.hyperparameters, SPECS["hybrid"], settings, 0, CPU)
    with pytest.raises(NotSupportedError, match="Unfinished has no behavioral cloning"):
        made.use_demonstrations({PATH: random_demonstrations(SPECS["hybrid"], [3])})
