"""Training on several ranks is training in one process that sees the rows of all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.learning.sync.ranks import Ranks
from tests.learning.sync.training import (
    CONTINUOUS,
    DISCRETE,
    HYBRID,
    MEMORY,
    Case,
    Trained,
    train,
    train_alone,
)

pytestmark = pytest.mark.usefixtures("transport")

MINIBATCH = {"normalize_advantage": "minibatch", "max_grad_norm": 0.5}
OF_ONE_RANK = ("Losses/Distillation Loss", "Policy/Extrinsic Reward", "Policy/Shared Reward", "Policy/Replay Steps")
CASES = {
    "ppo": Case("ppo", HYBRID, (4, 2)),
    "ppo in torch, passes ended by target_kl": Case(
        "ppo", CONTINUOUS, (4, 2), hyperparameters=MINIBATCH | {"target_kl": 2e-4}, is_in_torch=True
    ),
    "ppo with memory": Case("ppo", DISCRETE, (3, 2), network=MEMORY),
    "ppo, rows for few mini-batches on one rank": Case(
        "ppo", HYBRID, (4, 2, 1), 1, hyperparameters={"batch_size": 3, "num_epoch": 1}
    ),
    "ppo with a custom loss": Case("ppo", HYBRID, (4, 2), has_custom_loss=True),
    "ppo with a custom loss, rows for few mini-batches on one rank": Case(
        "ppo", CONTINUOUS, (4, 2, 1), 1, hyperparameters={"batch_size": 3, "num_epoch": 1}, has_custom_loss=True
    ),
    "ppo with a signal that learns": Case(
        "ppo", CONTINUOUS, (2, 1), 3, has_learned_signal=True, hyperparameters={"batch_size": 6}
    ),
    "ppo with demonstrations": Case("ppo", HYBRID, (4, 2), clones=True),
    "ppo with memory, demonstrations for some ranks": Case("ppo", CONTINUOUS, (3, 2, 1), network=MEMORY, clones=True),
    "poca": Case("poca", HYBRID, (3, 2), 12),
    "mappo, groups for few mini-batches on one rank": Case(
        "mappo", HYBRID, (4, 1, 1), 6, hyperparameters={"batch_size": 8, "num_epoch": 1}
    ),
    "sac with demonstrations": Case("sac", HYBRID, (2, 1), 4, hyperparameters={"steps_per_update": 10}, clones=True),
    "sac": Case("sac", CONTINUOUS, (4, 2), 4, 40, hyperparameters={"buffer_init_steps": 90}),
    "sac with priorities": Case(
        "sac", DISCRETE, (2, 1, 1), 4, hyperparameters={"prioritized_replay": {}, "steps_per_update": 10}
    ),
    "sac with memory": Case("sac", CONTINUOUS, (2, 1), 4, 10, network=MEMORY, hyperparameters={"steps_per_update": 10}),
}
QUICK = ("ppo", "poca", "ppo with demonstrations", "ppo with a custom loss", "sac")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_ranks_stay_equal_and_learn_what_one_process_would(name: str, request: pytest.FixtureRequest) -> None:
    case = CASES[name]
    ranks: Ranks = request.getfixturevalue({2: "two", 3: "three"}[len(case.agents)])
    found: list[Trained] = ranks.results(train, case)
    for one in found[1:]:
        assert one.digests == found[0].digests
    assert len(set(found[0].digests)) == case.updates
    first, alone = found[0], train_alone(case)
    added = {one.state.part("trainer").values.get("num_added") for one in found}
    assert len(added) == 1, "a replay buffer counts the steps of all"
    expected = alone.state
    assert expected.tensors.keys() == first.state.tensors.keys()
    for tensor, array in first.state.tensors.items():
        np.testing.assert_allclose(array, expected.tensors[tensor], rtol=1e-6, atol=1e-6, err_msg=tensor)
    for part in ("network", "actor", "q", "reward_extrinsic"):
        assert first.state.part(part).values == pytest.approx(expected.part(part).values, rel=1e-9)
    for own, its in zip(first.metrics, alone.metrics, strict=True):
        shared = [tag for tag in its if tag not in OF_ONE_RANK]
        assert {tag: own[tag] for tag in shared} == pytest.approx({tag: its[tag] for tag in shared}, rel=1e-6, abs=1e-6)
        assert len(shared) > 4


@pytest.mark.slow
def test_passes_were_ended_by_target_kl() -> None:
    """Or the case of that name would show nothing."""
    case = CASES["ppo in torch, passes ended by target_kl"]
    steps = [train_alone(one).state.part("network").values["adam_steps"] for one in (case, without_target(case))]
    assert 0.5 * float(str(steps[1])) < float(str(steps[0])) < 0.95 * float(str(steps[1]))


def without_target(case: Case) -> Case:
    return replace(case, hyperparameters={**case.hyperparameters, "target_kl": None})


def test_a_signal_learns_from_no_minibatch_of_which_a_rank_has_no_rows(two: Ranks) -> None:
    """One that averages its gradients would wait for that rank."""
    case = replace(CASES["ppo with a signal that learns"], hyperparameters={"batch_size": 2}, updates=5)
    first, second = two.results(train, case)
    assert first.digests == second.digests
    learned = first.state.part("network").number("adam_steps")
    nested: Any = first.state.part("reward_shared").values["network"]
    of_signal = nested["adam_steps"]
    assert 0 < of_signal < learned


def test_ranks_stay_equal_where_a_signal_learns_from_replayed_steps(two: Ranks) -> None:
    hyperparameters = {"steps_per_update": 5, "reward_signal_steps_per_update": 10}
    case = Case("sac", CONTINUOUS, (2, 1), updates=5, has_learned_signal=True, hyperparameters=hyperparameters)
    first, second = two.results(train, case)
    assert first.digests == second.digests
    nested: Any = first.state.part("reward_shared").values["network"]
    assert nested["adam_steps"] == round(first.state.part("q").number("adam_steps") / 2)
