from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.config.behavior import ExportedKind
from rl_tui.engine.errors import ExportError, NotSupportedError
from rl_tui.engine.export.onnx_policy import OnnxPolicy
from rl_tui.engine.export.random_inputs import InputGenerator
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, DecisionSteps, ObservationSpec, State
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from tests.export.exporters import actor_exporter
from tests.weights import CARTPOLE, HOPPER, KINDS, MIXED, Kind

pytestmark = pytest.mark.usefixtures("one_torch_thread")

STEP = 7


def exported(folder: Path, kind: Kind, *policies: ExportedKind) -> BehaviorFolder:
    files = BehaviorFolder("Agent", folder / "Agent")
    actor_exporter(kind.spec, kind.network, kind.is_squashed, policies).export(kind.weights(), STEP, files)
    return files


@pytest.fixture(scope="module")
def hopper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph for Unity."""
    return exported(tmp_path_factory.mktemp("hopper"), Kind(HOPPER)).export(STEP)


@pytest.mark.parametrize("name", ["ppo hybrid memory normalized", "sac two cameras memory", "ppo flat image"])
def test_it_acts_through_episodes_as_the_policy_of_the_same_weights(tmp_path: Path, name: str) -> None:
    kind = KINDS[name]
    network = kind.network.model_copy(update={"deterministic": True})
    policies = [
        make_policy(kind.spec, network, kind.is_squashed, seed=0),
        OnnxPolicy(exported(tmp_path, kind).export(STEP), kind.spec, is_deterministic=True),
    ]
    policies[0].load(kind.weights())
    assert policies[0].memory_size == policies[1].memory_size
    generator = InputGenerator(
        kind.spec, FeatureLayout.of(kind.spec.observations, kind.network), kind.weights(), np.random.default_rng(4)
    )
    memories = [np.zeros((3, policy.memory_size), np.float32) for policy in policies]
    for step in range(8):
        decisions = generator.familiar().slice(0, 3).decisions()
        for remembered in memories:
            remembered[step % 3 :: 3] *= step % 4 != 3  # one agent starts a new episode
        choices = [policy.act(decisions, memory) for policy, memory in zip(policies, memories, strict=True)]
        ours, theirs = (choice.actions for choice in choices)
        np.testing.assert_allclose(theirs.continuous, ours.continuous, rtol=0, atol=1e-5)
        np.testing.assert_array_equal(theirs.discrete, ours.discrete)
        assert np.isnan(choices[1].log_probs).all()
        assert choices[1].log_probs.shape == choices[0].log_probs.shape
        if policies[0].memory_size:
            memories = [choice.memories.copy() for choice in choices]
            np.testing.assert_allclose(memories[1], memories[0], rtol=0, atol=1e-5)


def test_a_mask_is_obeyed_and_none_allows_everything(tmp_path: Path) -> None:
    path = exported(tmp_path, Kind(CARTPOLE)).export(STEP)
    rows = np.random.default_rng(0).standard_normal((200, 4), np.float32)
    decisions = DecisionSteps(np.arange(200), (rows,), np.zeros(200, np.float32))
    sampling = OnnxPolicy(path, CARTPOLE, is_deterministic=False)
    assert set(sampling.act(decisions).actions.discrete[:, 0]) == {0, 1}
    decisions.action_mask = np.tile([False, True], (200, 1))
    assert set(sampling.act(decisions).actions.discrete[:, 0]) == {1}


def test_sampled_actions_differ_from_call_to_call_and_likeliest_do_not(hopper: Path) -> None:
    decisions = DecisionSteps(np.zeros(1, np.int64), (np.ones((1, 11), np.float32),), np.zeros(1, np.float32))
    for is_deterministic in (True, False):
        policy = OnnxPolicy(hopper, HOPPER, is_deterministic)
        first, second = (policy.act(decisions).actions.continuous for _ in range(2))
        assert np.array_equal(first, second) == is_deterministic


def test_it_acts_by_the_policies_beside_the_graph_for_unity(tmp_path: Path) -> None:
    kind = KINDS["ppo hybrid"]
    files = exported(tmp_path, kind, "stochastic", "greedy")
    decisions = (
        InputGenerator(MIXED, FeatureLayout(MIXED.observations), kind.weights(), np.random.default_rng(4))
        .familiar()
        .decisions()
    )
    greedy = OnnxPolicy(files.policy(STEP, "greedy"), MIXED, is_deterministic=False).act(decisions).actions
    expected = OnnxPolicy(files.export(STEP), MIXED, is_deterministic=True).act(decisions).actions
    np.testing.assert_array_equal(greedy.continuous, expected.continuous)
    np.testing.assert_array_equal(greedy.discrete, expected.discrete)
    drawn = OnnxPolicy(files.policy(STEP, "stochastic"), MIXED, is_deterministic=False).act(decisions).actions
    assert not np.array_equal(drawn.continuous, expected.continuous)


@pytest.mark.parametrize("is_deterministic", [True, False])
def test_it_acts_by_a_graph_of_ml_agents(mlagents_data: Path, is_deterministic: bool) -> None:
    ball = BehaviorSpec("3DBall", (ObservationSpec("observation", (8,)),), ActionSpec(continuous=2))
    policy = OnnxPolicy(mlagents_data / "results" / "first3DBallRun" / "3DBall.onnx", ball, is_deterministic)
    tilted = np.array([[0.1, 0, 1, 4, -1, 0, 0, 0], [0.1, 0, -1, 4, 1, 0, 0, 0]], np.float32)
    actions = policy.act(DecisionSteps(np.arange(2), (tilted,), np.zeros(2, np.float32))).actions.continuous
    assert actions.shape == (2, 2)
    assert (np.abs(actions) <= 1).all()


@pytest.mark.parametrize(
    ("spec", "is_deterministic", "reason"),
    [
        (BehaviorSpec("Other", (ObservationSpec("o", (10,)),), ActionSpec(3)), True, "invalid dimensions"),
        (BehaviorSpec("Other", (ObservationSpec("o", (11, 2)),), ActionSpec(3)), True, "nvalid rank"),
        (BehaviorSpec("Other", (), ActionSpec(3)), True, "missing"),
        (
            BehaviorSpec("Other", HOPPER.observations, ActionSpec(2)),
            True,
            r"must be float32\[1, 2\] for Other, got float32\[1, 3\]",
        ),
        (
            BehaviorSpec("Other", HOPPER.observations, ActionSpec(3, (2,))),
            False,
            "must have the output discrete_actions, got ver",
        ),
    ],
)
def test_a_graph_of_another_behavior_is_refused(
    hopper: Path, spec: BehaviorSpec, is_deterministic: bool, reason: str
) -> None:
    with pytest.raises(ExportError, match=f"^{hopper}: .*{reason}") as refused:
        OnnxPolicy(hopper, spec, is_deterministic)
    assert "\n" not in str(refused.value)


def test_the_most_likely_actions_of_a_graph_that_only_samples_are_refused(tmp_path: Path) -> None:
    path = exported(tmp_path, Kind(HOPPER), "stochastic").policy(STEP, "stochastic")
    with pytest.raises(ExportError, match="output deterministic_continuous_actions, got continuous_actions"):
        OnnxPolicy(path, HOPPER, is_deterministic=True)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: path.unlink(), "cannot be read: No such file"),
        (lambda path: path.write_bytes(b"not a graph"), "must be valid ONNX"),
        (lambda path: path.write_bytes(path.read_bytes()[:-20]), "must be valid ONNX"),
        (lambda path: path.write_bytes(b""), "must be valid ONNX"),
    ],
)
def test_a_file_that_is_not_a_graph_is_refused(
    tmp_path: Path, hopper: Path, spoil: Callable[[Path], object], reason: str
) -> None:
    path = tmp_path / "Hopper.onnx"
    path.write_bytes(hopper.read_bytes())
    spoil(path)
    with pytest.raises(ExportError, match=f"^{path}: .*{reason}") as refused:
        OnnxPolicy(path, HOPPER, is_deterministic=True)
    assert "\n" not in str(refused.value)


def test_it_has_no_state_and_takes_no_weights(hopper: Path) -> None:
    policy = OnnxPolicy(hopper, HOPPER, is_deterministic=True)
    assert policy.state() == State()
    policy.load_state(State())
    with pytest.raises(NotSupportedError, match="cannot load other weights"):
        policy.load(Kind(HOPPER).weights())
