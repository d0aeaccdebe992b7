"""A trainer that derives from `OnPolicyTrainer`, and terms of its loss whose derivative is written nowhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.on_policy import added_terms
from rl_tui.engine.learning.on_policy import trainer as module
from rl_tui.engine.learning.on_policy.actor_critic import TorchActorCritic
from rl_tui.engine.learning.on_policy.rollout import Rollout
from rl_tui.engine.learning.on_policy.settings import OnPolicySettings
from rl_tui.engine.learning.on_policy.trainer import OnPolicyTrainer
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.learning.sync import ONE_RANK
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, State, Trajectories
from tests.fakes import MateCritic
from tests.learning.on_policy.penalized import CRITIC, PENALTY, InClosedForm, PenalizedSettings, PenalizedTrainer
from tests.learning.rollouts import SPEC, Simulation
from tests.plugin_examples import PAGE

CPU = torch.device("cpu")
ACTIONS = {"continuous": ActionSpec(2), "discrete": ActionSpec(0, (3, 2)), "hybrid": SPEC.actions}
MEMORY = {"memory": {"sequence_length": 4, "memory_size": 8}}


@pytest.fixture(params=["numpy", "torch"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """In what networks compute."""
    if request.param == "torch":
        monkeypatch.setattr(module, "make_actor_critic", lambda networks, *_: TorchActorCritic(networks, CPU))
    return str(request.param)


def made(
    kind: type[PenalizedTrainer], actions: str = "hybrid", network: Mapping[str, Any] | None = None, **hyper: Any
) -> PenalizedTrainer:
    network_settings = {"hidden_units": 8, "num_layers": 1, "normalize": True} | dict(network or {})
    config = BehaviorConfig.model_validate({"network_settings": network_settings, "max_steps": 1000})
    config = config.model_copy(update={"hyperparameters": PenalizedSettings(**hyper)})
    return kind(BehaviorSpec("Walker", SPEC.observations, ACTIONS[actions]), config, 0, CPU)


def simulated(trainer: OnPolicyTrainer[Any, Any], actions: str = "hybrid") -> Trajectories:
    spec = BehaviorSpec("Walker", SPEC.observations, ACTIONS[actions])
    return Simulation(trainer.make_policy(3), spec, num_agents=5, horizon=8).run(20)


def parameters(state: State) -> dict[str, np.ndarray]:
    return {name: array for name, array in state.tensors.items() if name.startswith("network.parameters")}


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("network", [{}, MEMORY], ids=["plain", "memory"])
@pytest.mark.parametrize("actions", ACTIONS)
def test_gradient_by_autograd_is_that_in_closed_form(actions: str, network: dict[str, Any]) -> None:
    """Of a policy that has moved since the rows were collected: where it has not, that of a divergence is zero."""
    found, penalties = [], []
    for kind in (PenalizedTrainer, InClosedForm):
        trainer = made(kind, actions, network)
        block = simulated(trainer, actions)
        prepared = trainer._prepare(Rollout.of([(block, trainer._evaluate(block))]), ONE_RANK)
        random = np.random.default_rng(1)
        trainer._network.parameters += trainer._place(
            0.3 * random.standard_normal(trainer.num_parameters).astype(np.float32)
        )
        (part, *_), beta = module.split_rows(prepared.num_rows, 3, random, prepared.sequences), 3.0
        added = trainer._added_terms(beta)
        terms = trainer._backward(prepared.minibatch(part), beta, added)
        found.append(([float(term) for term in terms], np.asarray(trainer._network.gradient).copy()))
        penalties.append(float(trainer._metrics(terms, added)[PENALTY]))
    (by_autograd, ours), (closed, theirs) = found
    assert penalties[0] > 1e-2
    np.testing.assert_allclose(by_autograd, closed, rtol=1e-5, atol=1e-6)
    largest = abs(theirs).max()
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5 * largest)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("actions", ACTIONS)
def test_updates_by_autograd_learn_what_those_in_closed_form_learn(actions: str) -> None:
    by_autograd, closed, without = (
        made(PenalizedTrainer, actions), made(InClosedForm, actions), made(PenalizedTrainer, actions, beta=0.0)
    )  # fmt: skip
    block = simulated(by_autograd, actions)
    for _ in range(3):
        reported = []
        for trainer in (by_autograd, closed, without):
            trainer.add(block)
            reported.append(trainer.update(100))
        assert reported[0].keys() == reported[1].keys()
        assert reported[0][PENALTY] > 0
        assert list(reported[0].values()) == pytest.approx(
            [reported[1][tag] for tag in reported[0]], rel=2e-3, abs=1e-5
        )
    for name, array in parameters(closed.state()).items():
        np.testing.assert_allclose(parameters(by_autograd.state())[name], array, atol=1e-3, err_msg=name)
    moved = [abs(parameters(without.state())[name] - array).max() for name, array in parameters(closed.state()).items()]
    assert max(moved) > 1e-2, "the penalty makes a difference"


@pytest.mark.usefixtures("form")
def test_losses_on_experience_contain_added_terms_and_change_nothing() -> None:
    by_autograd, closed = made(PenalizedTrainer), made(InClosedForm)
    block = simulated(by_autograd)
    for trainer in (by_autograd, closed):
        trainer.add(block)
        trainer.update(100)
    before = parameters(by_autograd.state())
    ours, theirs = by_autograd.loss(block), closed.loss(block)
    assert ours.keys() == theirs.keys() == {*InClosedForm.tags}
    assert list(ours.values()) == pytest.approx([theirs[tag] for tag in ours], rel=2e-3, abs=1e-5)
    for name, array in parameters(by_autograd.state()).items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.usefixtures("form")
def test_a_users_loss_comes_after_the_trainers_own_terms() -> None:
    trainer, seen = made(PenalizedTrainer), []
    trainer.on_loss(lambda inputs: 0 * inputs.entropy + 7)
    trainer.on_train_step(lambda step: seen.append(dict(step.losses)))
    trainer.add(simulated(trainer))
    metrics = trainer.update(100)
    expected = [*trainer.tags, PENALTY, CRITIC, "Losses/Custom Loss"]
    assert list(metrics)[: len(expected)] == expected == list(seen[0])
    assert metrics["Losses/Custom Loss"] == pytest.approx(7)


def test_hyperparameter_that_weighs_a_term_is_changed_while_it_trains() -> None:
    changed, raised = made(PenalizedTrainer), made(PenalizedTrainer, beta=9.0)
    changed.set_hyperparameter("beta", 9.0)
    block = simulated(changed)
    for trainer in (changed, raised):
        trainer.add(block)
        trainer.update(100)
    for name, array in parameters(changed.state()).items():
        np.testing.assert_array_equal(array, parameters(raised.state())[name])


def test_ppo_pays_nothing_for_terms_that_it_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("nothing is to be differentiated by autograd")

    settings = {"hyperparameters": {"batch_size": 32, "buffer_size": 64}, "network_settings": {"hidden_units": 8}}
    ppo = PPOTrainer(SPEC, BehaviorConfig.model_validate(settings), 0, CPU)
    monkeypatch.setattr(torch.autograd, "backward", never)
    monkeypatch.setattr(added_terms, "_evaluated", never)
    block = simulated(ppo)
    ppo.add(block)
    assert "Losses/Value Loss" in ppo.update(100)
    assert "Losses/Value Loss" in ppo.loss(block)


class SeesMates(PenalizedTrainer):
    """With a critic that says what it is shown."""

    @property
    def _critic(self) -> MateCritic:
        return MateCritic()


def test_a_critic_of_a_trainer_is_shown_mates_as_the_networks_are_shown_observations() -> None:
    trainer = made(SeesMates, network={"normalize": True})
    block = simulated(trainer)
    trainer._evaluate(block)  # which moves the normalizer away from where it begins
    counts = np.arange(block.num_segments) % 3
    which = np.arange(block.num_segments).repeat(counts)
    seen = tuple(column[which] for column in block.next_observations)
    grouped = replace(block, next_mate_counts=counts, next_mate_observations=seen)
    following = trainer._features(block.next_observations)
    joint = trainer._next_joint_steps(grouped, following)
    assert joint is not None
    np.testing.assert_array_equal(joint.counts, counts)
    for ours, own in zip(joint.features, following, strict=True):
        np.testing.assert_array_equal(ours, own[which])
        assert not np.array_equal(ours, np.concatenate(seen, 1))
    alone = trainer._next_joint_steps(block, following)
    assert alone is not None
    assert not alone.counts.any()
    assert made(PenalizedTrainer)._next_joint_steps(grouped, following) is None


def test_settings_that_lack_what_the_update_reads_are_refused_where_they_are_declared() -> None:
    with pytest.raises(TypeError, match=r"Incomplete must have the fields .*buffer_size"):
        type("Incomplete", (OnPolicySettings,), {"implementation": "nowhere:Trainer", "__module__": __name__})


@pytest.mark.usefixtures("form")
def test_the_page_of_plug_ins_adds_a_term_to_ppo() -> None:
    """Its snippet as it stands."""
    snippet = re.search(r"```python\n(    def _added_terms\(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert snippet is not None
    names: dict[str, Any] = {"AddedTerm": added_terms.AddedTerm, "Base": PPOTrainer, "torch": torch}
    exec(f"from __future__ import annotations\nclass Added(Base):\n{snippet[1]}", names)  # noqa: S102  # our own page
    hyperparameters = {"batch_size": 16, "learning_rate": 0.01}
    config = BehaviorConfig.model_validate({"hyperparameters": hyperparameters, "max_steps": 1000})
    trainers = [kind(SPEC, config, 0, CPU) for kind in (PPOTrainer, names["Added"])]
    for trainer in trainers:
        trainer.add(simulated(trainer))
    plain, added = (trainer.update(0) for trainer in trainers)
    assert added["Losses/Value Change"] > 0
    assert plain["Losses/Value Loss"] != added["Losses/Value Loss"]
