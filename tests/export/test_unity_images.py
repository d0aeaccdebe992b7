"""A policy that learned from a player's uncompressed images acts in the game as it does here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.export.onnx_graph import OnnxGraph
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.sampling.environments.unity.wire.agents import BehaviorReader
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from tests.export.exporters import actor_exporter
from tests.unity_player.messages import Brain, Info, Sensor, Speech
from tests.weights import Kind

pytestmark = pytest.mark.usefixtures("one_torch_thread")

CHANNELS, HEIGHT, WIDTH, AGENTS = 3, 20, 24, 6


@pytest.mark.parametrize("version", ["3.0.0-exp.1", "3.0.0", "4.0.0", "4.0.1"])
def test_the_exported_policy_acts_alike_on_the_images_that_the_game_gives_it(version: str, tmp_path: Path) -> None:
    """Unity's inference gives a graph channels, rows, columns with every package, whatever order it sends."""
    images = np.random.default_rng(1).random((AGENTS, CHANNELS, HEIGHT, WIDTH), np.float32)
    brain = Brain("Eye", (Sensor("Raw", (CHANNELS, HEIGHT, WIDTH), properties=(1, 2, 2)),), continuous=2)
    sent = Speech(package_version=version).list(brain, [Info(id, [image]) for id, image in enumerate(images)])
    reader = BehaviorReader("Eye", brain.parameters(), sent, version)
    kind = Kind(reader.spec)
    network = kind.network.model_copy(update={"deterministic": True})
    policy = make_policy(kind.spec, network, kind.is_squashed, seed=0)
    policy.load(kind.weights())
    files = BehaviorFolder("Eye", tmp_path / "Eye")
    actor_exporter(kind.spec, kind.network, kind.is_squashed).export(kind.weights(), 0, files)

    in_training = policy.act(reader.read(sent).decisions).actions.continuous
    in_the_game = OnnxGraph(files.export(0).read_bytes())({"obs_0": images})["deterministic_continuous_actions"]

    np.testing.assert_allclose(in_the_game, in_training, rtol=0, atol=1e-5)
    assert np.ptp(in_training, axis=0).min() > 0.01, "the comparison would also pass on constants"
