"""Signals that learn: what they see and when, that their state is saved, and how they fail."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import ConfigError, NonFiniteError, PluginError
from rl_tui.engine.learning.on_policy import trainer as module
from rl_tui.engine.learning.on_policy.actor_critic import TorchActorCritic
from rl_tui.engine.learning.rewards import learned
from rl_tui.engine.learning.rewards.learned import LearnedSignal
from rl_tui.engine.learning.sac import trainer as sac
from rl_tui.engine.learning.trainer import Metrics, Trainer
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Ending, ObservationSpec, State, Trajectories
from tests.learning.rewards import signals
from tests.learning.rollouts import Simulation, acted
from tests.packages import Packages
from tests.pretended_device import DEVICE, PretendedDevice

CPU = torch.device("cpu")
SPEC = BehaviorSpec("Walker", (ObservationSpec("speed", (3,)), ObservationSpec("place", (2,))), ActionSpec(2, (3,)))
MEMORY = {"memory": {"sequence_length": 4, "memory_size": 4}}
TRAINERS: dict[str, dict[str, Any]] = {
    "ppo": {"batch_size": 16, "buffer_size": 32, "num_epoch": 2},
    "sac": {"batch_size": 16, "buffer_size": 200, "steps_per_update": 8, "save_replay_buffer": True},
}


@pytest.fixture(autouse=True)
def built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signals of these tests have names."""
    for name in ("Counting", "Distillation"):
        target = f"{signals.__name__}:{name}Settings"
        monkeypatch.setitem(registry.BUILT_IN["reward_signals"], name.lower(), target)  # type: ignore[arg-type]  # a dict


def trainer(
    name: str,
    signal: str,
    seed: int = 0,
    network: Mapping[str, object] = {},
    device: torch.device = CPU,
    learning_rate_of_signal: float | None = None,
    **hyper: object,
) -> Trainer:
    """With the environment's reward and half of the signal's."""
    layers = {"hidden_units": 8, "num_layers": 1}
    rate = {} if learning_rate_of_signal is None else {"learning_rate": learning_rate_of_signal}
    config = BehaviorConfig.model_validate(
        {
            "trainer_type": name,
            "hyperparameters": TRAINERS[name] | hyper,
            "network_settings": layers | dict(network),
            "reward_signals": {
                "extrinsic": {},
                signal: {"strength": 0.5, "gamma": 1.0, "network_settings": layers | {"normalize": True}} | rate,
            },
            "time_horizon": 16,
        }
    )
    made: Trainer = registry.implementation("trainers", name)(SPEC, config, seed, device)
    return made


def signal_of(made: Trainer) -> Any:
    """The one besides the environment's reward."""
    return made._streams._streams[1].signal  # type: ignore[attr-defined]  # every trainer has them


def block(made: Trainer, seed: int) -> Trajectories:
    return acted(made.make_policy(seed), np.random.default_rng(seed), [12, 16, 4], SPEC, masked=True)


def fed(made: Trainer, count: int, start: int = 0) -> list[Metrics]:
    """What updates report that depend only on their number and on the policy."""
    found = []
    for number in range(start, start + count):
        made.add(block(made, number))
        found.append(made.update(32 * number))
    return found


def reloaded(state: State) -> State:
    """As a file gives it back."""
    return State({name: array.copy() for name, array in state.tensors.items()}, json.loads(json.dumps(state.values)))


def same(first: State, second: State) -> bool:
    equal = [np.array_equal(array, second.tensors[name]) for name, array in first.tensors.items()]
    return first.tensors.keys() == second.tensors.keys() and all(equal) and first.values == second.values


@pytest.mark.parametrize("name", TRAINERS)
@pytest.mark.parametrize("ablated", [None, "fixed.target", "fixed.mini_batches", "network", "random", "normalizer"])
def test_a_network_of_its_own_is_saved_and_learns_on_bit_for_bit(name: str, ablated: str | None) -> None:
    """20 updates are 10, a checkpoint and 10 more, unless a part of the signal's state is left as it begins."""
    straight, loaded = trainer(name, "distillation"), trainer(name, "distillation", seed=9)
    fed(straight, 10)
    state, replay, fresh = reloaded(straight.state()), straight.replay(), loaded.state()
    if ablated is not None:
        prefix, values = f"reward_distillation.{ablated}", state.values["reward_distillation"]
        state.tensors.update({key: array for key, array in fresh.tensors.items() if key.startswith(prefix)})
        assert isinstance(values, dict)
        values.update({k: v for k, v in fresh.part("reward_distillation").values.items() if k == ablated})
    loaded.load(state)
    if replay is not None:
        loaded.load_replay(reloaded(replay))
    reported = [fed(each, 10, start=10) for each in (straight, loaded)]
    assert (reported[0] == reported[1]) == (ablated in (None, "fixed.mini_batches"))
    assert same(straight.state(), loaded.state()) == (ablated is None)


@pytest.mark.parametrize("name", TRAINERS)
def test_its_loss_is_reported_and_falls(name: str) -> None:
    made = trainer(name, "distillation")
    metrics = fed(made, 20)
    values = "Policy/Distillation Value Estimate" if name == "ppo" else "Policy/Distillation Value"
    assert values in metrics[0]
    losses = [each["Losses/Distillation Loss"] for each in metrics]
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])
    ended = acted(made.make_policy(0), np.random.default_rng(0), [5, 5], SPEC, ending=Ending.TERMINATED)
    assert len(made.add(ended)["Policy/Distillation Reward"]) == 2
    assert made.num_parameters == trainer(name, "counting").num_parameters + signal_of(made).num_parameters


@pytest.mark.parametrize("name", TRAINERS)
def test_asking_for_the_loss_changes_nothing(name: str) -> None:
    queried, other = trainer(name, "distillation"), trainer(name, "distillation")
    for each in (queried, other):
        fed(each, 2)
    assert queried.loss(block(queried, 7)) == queried.loss(block(queried, 7))
    assert same(queried.state(), other.state())
    assert fed(queried, 2, start=2) == fed(other, 2, start=2)


@pytest.mark.parametrize("in_torch", [False, True])
@pytest.mark.parametrize("network", [{}, MEMORY])
def test_ppo_updates_it_after_every_mini_batch_on_the_same_rows(
    network: dict[str, object], in_torch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_torch:  # as on other devices
        monkeypatch.setattr(module, "make_actor_critic", lambda networks, *_: TorchActorCritic(networks, CPU))
    ppo = trainer("ppo", "counting", network=network)
    learned: list[np.ndarray[Any, Any]] = []
    networks = ppo._network  # type: ignore[attr-defined]  # of PPO
    forward = networks.forward

    def spy(features: Any, sequences: Any) -> Any:
        learned.append(np.asarray(features[0]))
        return forward(features, sequences)

    monkeypatch.setattr(networks, "forward", spy)
    ppo.add(Simulation(ppo.make_policy(0), SPEC, num_agents=8, horizon=4).run(5))
    metrics = ppo.update(32)
    seen = signal_of(ppo).seen
    assert len(seen) == len(learned) == 4
    for transitions, features in zip(seen, learned, strict=True):
        np.testing.assert_array_equal(np.concatenate(transitions.observations, 1), features)
    assert metrics["Policy/Mini-Batches"] == 2.5
    assert metrics["Policy/Every Other"] == 0.5


@pytest.mark.parametrize(
    ("network", "hyper"),
    [
        ({}, {}),
        ({}, {"n_step": 3}),
        ({}, {"prioritized_replay": {}, "n_step": 2}),
        (MEMORY, {}),
        ({}, {"target_q": True}),
    ],
)
def test_sac_learns_from_what_replayed_steps_are_paid_now(
    network: dict[str, object], hyper: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`Counting` pays half of the number of its mini-batches, undiscounted, for each of the n steps."""
    made = trainer("sac", "counting", network=network, **hyper)
    drawn: list[tuple[int, Any]] = []
    soft_batch = sac.soft_batch

    def spy(minibatch: Any, *rest: Any, **named: Any) -> Any:
        drawn.append((len(signal_of(made).seen), minibatch))
        return soft_batch(minibatch, *rest, **named)

    monkeypatch.setattr(sac, "soft_batch", spy)
    simulation = Simulation(made.make_policy(0), SPEC, num_agents=4, horizon=16)
    stored = [simulation.run(16) for _ in range(3)]
    for each in stored:
        made.add(each)
        made.update(64)
    assert len({count for count, _ in drawn}) == 3
    assert all(drawn[count][0] == count for count, _ in drawn)  # those of the updates before
    earned = {float(reward) for each in stored for reward in each.rewards}
    for count, minibatch in drawn:
        steps = np.log(minibatch.discounts[:, 0]) / np.log(np.float32(0.99))
        assert steps.max() == pytest.approx(hyper.get("n_step", 1), rel=1e-4)
        np.testing.assert_allclose(minibatch.rewards[:, 1], 0.5 * count * steps, rtol=1e-4)
        if "n_step" not in hyper:
            assert set(minibatch.rewards[:, 0].tolist()) <= earned


def test_sac_uses_the_network_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer("sac", "distillation")
    differs: list[bool] = []
    soft_batch, stored = sac.soft_batch, made._replay._columns["rewards"]  # type: ignore[attr-defined]  # of SAC

    def spy(minibatch: Any, *rest: Any, **named: Any) -> Any:
        now = 0.5 * signal_of(made).evaluate_transitions(minibatch)
        np.testing.assert_allclose(minibatch.rewards[:, 1], now, rtol=1e-6)
        differs.append(not np.allclose(stored[minibatch.rows, 1], now, rtol=0.01))
        batch = soft_batch(minibatch, *rest, **named)
        discounts = np.stack([np.where(minibatch.terminated, 0, np.float32(0.99)), np.ones(16)], 1)
        np.testing.assert_array_equal(batch.discounts, discounts)  # the signal ignores the ends of episodes
        return batch

    monkeypatch.setattr(sac, "soft_batch", spy)
    fed(made, 5)
    assert differs[:4] == [False] * 4
    assert all(differs[4:])


@pytest.mark.parametrize(("steps", "mini_batches"), [(8, 12), (4, 24), (32, 3), (64, 1)])
def test_sac_updates_it_once_for_so_many_steps(steps: int, mini_batches: int) -> None:
    made = trainer("sac", "counting", reward_signal_steps_per_update=steps, n_step=3)
    metrics = fed(made, 3)
    seen = signal_of(made).seen
    assert [transitions.num_rows for transitions in seen] == [16] * mini_batches
    assert ["Policy/Mini-Batches" in each for each in metrics].count(True) == min(3, mini_batches)


def test_sac_shows_it_single_steps_also_where_it_sums_several() -> None:
    """The environments' observations are numbered, and the next one has the next number."""
    made = trainer("sac", "counting", n_step=3)
    numbers = np.arange(32, dtype=np.float32)
    seen = block(made, 0)
    ends = np.cumsum(seen.lengths)
    rows = numbers[:, None] + np.zeros(3, np.float32)
    after = ends[:, None] + np.zeros(3, np.float32)
    columns = {"observations": (rows, seen.observations[1]), "next_observations": (after, seen.next_observations[1])}
    made.add(type(seen)(**{field: columns.get(field, getattr(seen, field)) for field in seen.__slots__}))
    made.update(32)
    found = signal_of(made).seen
    assert found
    for transitions in found:
        first, following = transitions.observations[0][:, 0], transitions.next_observations[0][:, 0]
        np.testing.assert_array_equal(following, first + 1)
        segments = ends.searchsorted(first, "right")
        is_last = first + 1 == ends[segments]
        np.testing.assert_array_equal(transitions.endings, np.where(is_last, seen.endings[segments], Ending.CUT))


def test_transitions_of_a_block_follow_each_other() -> None:
    seen = Simulation(trainer("ppo", "counting").make_policy(0), SPEC, num_agents=3, horizon=5).run(20)
    found = Transitions.of(seen)
    ends = np.cumsum(seen.lengths)
    for segment, (end, length) in enumerate(zip(ends, seen.lengths, strict=True)):
        for row in range(end - length, end):
            is_last = row == end - 1
            for column, after, following in zip(
                seen.observations, seen.next_observations, found.next_observations, strict=True
            ):
                np.testing.assert_array_equal(following[row], after[segment] if is_last else column[row + 1])
            assert found.endings[row] == (seen.endings[segment] if is_last else Ending.CUT)
    rows = np.random.default_rng(0).permutation(seen.num_rows)[:10]
    some = Transitions.of(seen, rows)
    np.testing.assert_array_equal(some.next_observations[1], found.next_observations[1][rows])
    np.testing.assert_array_equal(some.discrete_actions, seen.discrete_actions[rows])
    np.testing.assert_array_equal(some.terminated, found.endings[rows] == Ending.TERMINATED)


@pytest.mark.parametrize("name", TRAINERS)
@pytest.mark.parametrize("mini_batches", [1, 4])
def test_what_is_not_finite_is_named_and_leaves_a_signal_as_it_was_without_its_state(
    name: str, mini_batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one mini-batch its loss is that before the step."""
    hyper = {"batch_size": 32, "num_epoch": 1} if name == "ppo" else {"reward_signal_steps_per_update": 32}
    made = trainer(name, "distillation", **(hyper if mini_batches == 1 else {}))
    fed(made, 2)
    made.add(block(made, 2))
    before, signal = reloaded(made.state()), signal_of(made)
    monkeypatch.setattr(signal, "settings", signal.settings.model_copy(update={"learning_rate": float("nan")}))
    with monkeypatch.context() as whole_state:
        whole_state.delattr(LearnedSignal, "state")
        whole_state.delattr(LearnedSignal, "load")
        what = "Losses/Distillation Loss" if mini_batches > 1 else "what distillation learned"
        with pytest.raises(NonFiniteError, match=f"reward_signals: {what} is not finite"):
            made.update(96)
    for part in ("reward_distillation", *(["network"] if name == "ppo" else [])):
        assert same(made.state().part(part), before.part(part))


@pytest.mark.parametrize("name", TRAINERS)
def test_a_signal_with_a_state_alone_is_restored_from_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer(name, "counting")
    fed(made, 2)
    before, signal = made.state().part("reward_counting"), signal_of(made)
    made.add(block(made, 2))
    monkeypatch.setattr(signal, "update", lambda steps: signal.seen.append(steps) or {"Losses/Counting Loss": np.nan})
    with pytest.raises(NonFiniteError, match="Losses/Counting Loss is not finite"):
        made.update(96)
    assert same(made.state().part("reward_counting"), before)
    assert before.number("count") > 0


def test_a_reward_that_is_not_finite_names_the_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer("ppo", "distillation")
    monkeypatch.setattr(signal_of(made), "rewards", lambda steps: torch.full((steps.num_rows,), np.inf))
    with pytest.raises(
        NonFiniteError, match=r"reward_signals\.distillation: a reward must be a finite number, got inf"
    ):
        made.add(block(made, 3))


@pytest.mark.parametrize("name", TRAINERS)
def test_undoing_copies_nothing_to_the_host_or_back(name: str) -> None:
    with PretendedDevice().everywhere() as device:
        made = trainer(name, "distillation", device=DEVICE)
        made.add(block(made, 0))
        made.update(32)
        streams = made._streams  # type: ignore[attr-defined]  # every trainer has them
        state, counts = made.state(), (device.num_waits, device.num_arrivals)
        snapshot = streams.snapshot()
        assert (device.num_waits, device.num_arrivals) == counts
        streams.update(Transitions.of(block(made, 2)))
        changed, counts = made.state(), (device.num_waits, device.num_arrivals)
        streams.restore(snapshot)
        assert (device.num_waits, device.num_arrivals) == counts
        assert not same(changed.part("reward_distillation"), state.part("reward_distillation"))
        assert same(made.state().part("reward_distillation"), state.part("reward_distillation"))


def test_nothing_is_kept_of_signals_that_do_not_learn() -> None:
    made = trainer("ppo", "distillation")
    streams = made._streams  # type: ignore[attr-defined]  # every trainer has them
    assert [signal for signal, _ in streams.snapshot()] == [signal_of(made)], "nothing of the environment's reward"


def test_the_rows_of_a_block_are_evaluated_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, parts = trainer("ppo", "distillation"), trainer("ppo", "distillation")
    experience = block(whole, 0)
    expected = signal_of(whole).evaluate(experience)
    monkeypatch.setattr(learned, "ROWS_OF_VECTORS", 5)
    np.testing.assert_allclose(signal_of(parts).evaluate(experience), expected, rtol=1e-5)


@pytest.mark.parametrize("name", TRAINERS)
def test_its_learning_rate_can_be_changed(name: str) -> None:
    """As if the file had the new one; each block is learned from once the change is made."""
    rate = "reward_signals.distillation.learning_rate"
    changed, from_file = trainer(name, "distillation"), trainer(name, "distillation", learning_rate_of_signal=0.05)
    assert changed.hyperparameters()[rate] == 0.01
    changed.set_hyperparameter(rate, 0.05)
    assert changed.hyperparameters() == from_file.hyperparameters()
    assert fed(changed, 3) == fed(from_file, 3)
    assert same(changed.state(), from_file.state())


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("learning_rate", -1.0, "reward_signals.distillation.learning_rate: must be greater than 0, got -1.0"),
        ("learning_rate", float("nan"), "reward_signals.distillation.learning_rate: must be a finite number, got nan"),
        ("lerning_rate", 1.0, "cannot be changed .*. Did you mean reward_signals.distillation.learning_rate?"),
        ("strength", 1.0, "reward_signals.distillation.strength: cannot be changed while it trains"),
    ],
)
def test_what_a_file_could_not_say_of_a_signal_changes_nothing(key: str, value: float, reason: str) -> None:
    made, other = trainer("ppo", "distillation"), trainer("ppo", "distillation")
    with pytest.raises(ConfigError, match=reason):
        made.set_hyperparameter(f"reward_signals.distillation.{key}", value)
    assert made.hyperparameters() == other.hyperparameters()
    assert fed(made, 2) == fed(other, 2)


BROKEN = """
import numpy as np
import torch
from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.learning.rewards.base import RewardSignal
from rl_tui.engine.specs import State

class BrokenSettings(RewardSignalSettings):
    implementation = "broken:Broken"
    learns = {learns}
    is_reevaluated = {is_reevaluated}
    changeable = {changeable}

    rate: float = 1.0

class Broken(RewardSignal):
    num_parameters = {num_parameters}

    def __init__(self, settings, context):
        self.n = 0
        {made}

    def {method}(self, steps):
        return {paid}

    def update(self, transitions):
        self.n += 1
        return {learned}

    def state(self):
        return {state}
"""
WHOLE = {
    "learns": True,
    "is_reevaluated": False,
    "changeable": (),
    "num_parameters": 1,
    "made": "",
    "method": "evaluate",
    "paid": "steps.rewards",
    "learned": {},
    "state": "State()",
}
STATE = "state must return a State of numpy arrays"


def broken(packages: Packages, **changes: object) -> Trainer:
    """A trainer with an installed signal, of which this is changed."""
    packages.install("broken", BROKEN.format(**WHOLE | changes), reward_signals="broken = broken:BrokenSettings")
    return trainer("ppo", "broken")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learns": False}, "Broken must define `update` if and only if `learns` of its settings is True"),
        ({"method": "pay"}, "Broken must define `evaluate` or `evaluate_transitions`"),
        ({"is_reevaluated": True}, "Broken must define `evaluate_transitions`, since `is_reevaluated` of"),
        ({"changeable": ("rate",)}, "Broken must define `change_settings`, since `changeable` of its settings"),
        ({"made": "self.m"}, r"its constructor raised AttributeError: .* has no attribute 'm', at .*broken.py:\d+ in"),
        ({"num_parameters": None}, "num_parameters must be a whole number, or a property that is one, got None"),
        ({"num_parameters": "lambda self: 3"}, "num_parameters must be .*, got a method"),
        ({"num_parameters": "property(lambda self: self.m)"}, "num_parameters raised AttributeError: .*, at"),
        ({"state": "{}"}, f"{STATE}, got dict"),
        ({"state": "None"}, f"{STATE}, got None"),
        ({"state": "State({'a': torch.zeros(2)})"}, rf"{STATE} of numbers, got a: a Tensor of shape \[2\]"),
        ({"state": "State({'a': np.array(['b'])})"}, rf"{STATE} of numbers, got a: <U1\[1\]"),
        (
            {"state": "State({}, {'a': np.int64(3)})"},
            "the values of its state must be plain JSON: Object of type int64",
        ),
        ({"state": "self.m"}, r"state raised AttributeError: .* has no attribute 'm', at .*broken.py:\d+ in state"),
    ],
)
def test_an_installed_signal_that_cannot_be_trained_or_saved_is_refused_before_the_run(
    changes: dict[str, object], message: str, packages: Packages
) -> None:
    with pytest.raises(PluginError, match=r"^broken of broken 1\.0.*: " + message) as raised:
        broken(packages, **changes)
    assert bool(raised.value.detail) == (" raised " in message), "a traceback where its own code raised"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"paid": "steps.reward"}, "evaluate raised AttributeError: .* has no attribute 'reward', at"),
        ({"paid": "steps.rewards[:3]"}, r"evaluate must return a numpy array f32\[32\], got float32\[3\]"),
        ({"paid": "torch.zeros(32)"}, r"evaluate must return a numpy array f32\[32\], got a Tensor of shape \[32\]"),
        (
            {"method": "evaluate_transitions", "paid": "None"},
            r"evaluate_transitions must return a numpy array f32\[32\], got None",
        ),
        ({"learned": "{}['loss']"}, r"update raised KeyError: 'loss', at .*broken.py:\d+ in update"),
        ({"learned": "exec('raise SystemExit')"}, r"update raised SystemExit, at .*broken.py:\d+ in update"),
        ({"learned": "None"}, "update must return a mapping from tags to numbers, got None"),
        ({"learned": "{5: 1.0}"}, "update must return a mapping from tags to numbers, got the tag 5"),
        ({"learned": "{'a': 'b'}"}, "update must return numbers or tensors of one element, got a: 'b'"),
        ({"learned": "{'a': np.ones(3)}"}, r"update must return numbers or .*, got a: float64\[3\]"),
        ({"learned": "{'a': torch.ones(3)}"}, r"update must return numbers or .*, got a: a Tensor of shape \[3\]"),
        (
            {"state": "State({'a': np.zeros(self.n)})"},
            r"state must always return the same arrays, .*: a was float64\[0\], is float64\[4\]",
        ),
        (
            {"state": "State({'a': np.zeros(1)} if self.n else {})"},
            r"state must always return the same arrays, .*: a was none, is float64\[1\]",
        ),
    ],
)
def test_an_installed_signal_that_fails_is_named_with_its_package(
    changes: dict[str, object], message: str, packages: Packages
) -> None:
    made = broken(packages, **changes)
    with pytest.raises(PluginError, match=r"^broken of broken 1\.0.*: " + message):
        fed(made, 2)  # the second takes a snapshot of the state
