"""The stand-in player speaks as Unity does."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages
from rl_tui.engine.specs import Actions
from tests.deadline import DEADLINE_SECONDS
from tests.unity_player.ball import BallEnvironment, BallWorld
from tests.unity_player.encoding import AgentTemplate
from tests.unity_player.executable import make_player
from tests.unity_player.log import notes
from tests.unity_player.messages import Acts, Brain, Info, Sensor, Speech
from tests.unity_player.trainer import Trainer, agents

BALL = "3DBall?team=0"


def acted(continuous: tuple[float, ...], num: int) -> list[messages.AgentActionProto]:
    return [messages.AgentActionProto(continuous_actions=continuous) for _ in range(num)]


def test_a_player_shakes_hands_announces_its_behavior_once_and_plays_until_the_trainer_closes(tmp_path: Path) -> None:
    player = make_player(tmp_path, "--max-steps", "2")
    with Trainer() as trainer:
        process = trainer.start(player, "-logFile", str(tmp_path / "log"), "-nographics", "-batchmode")
        said = trainer.shake_hands(seed=7)
        assert (said.name, said.communication_version) == ("AcademySingleton", "1.5.0")
        assert not said.brain_parameters
        first = trainer.receive()
        (brain,) = first.unity_output.rl_initialization_output.brain_parameters
        assert (brain.brain_name, brain.action_spec.num_continuous_actions) == (BALL, 2)
        trainer.act({BALL: acted((0.0, 0.0), 12)})
        second = trainer.receive()
        assert not second.unity_output.HasField("rl_initialization_output")
        assert [agent.reward for agent in agents(second)[BALL]] == pytest.approx([0.1] * 12)
        trainer.act({BALL: acted((0.0, 0.0), 12)})
        third = agents(trainer.receive())[BALL]
        assert [(agent.id, agent.done, agent.max_step_reached) for agent in third] == [
            (id, is_done, is_done) for is_done in (True, False) for id in range(12)
        ]
        trainer.close()
        assert process.wait(DEADLINE_SECONDS) == 0
    assert notes(tmp_path / "log")[1]["seed"] == 7


def test_a_signal_makes_a_player_send_its_last_header_and_leave(tmp_path: Path) -> None:
    with Trainer() as trainer:
        process = trainer.start(make_player(tmp_path))
        trainer.shake_hands()
        trainer.receive()
        process.send_signal(signal.SIGTERM)
        trainer.act({BALL: acted((0.0, 0.0), 12)})
        last = trainer.receive()
        assert (last.header.status, last.HasField("unity_output")) == (400, False)
        trainer.close()
        assert process.wait(DEADLINE_SECONDS) == 0


def test_agents_written_from_a_template_are_those_that_protobuf_writes() -> None:
    brain = Brain("B", (Sensor("one", (3,), properties=(1,)), Sensor("goal", (40, 2), is_goal=True)), continuous=1)
    template = AgentTemplate(brain.sensors)
    values = [np.arange(3, dtype=np.float32), np.linspace(-1, 1, 80, dtype=np.float32).reshape(40, 2)]
    floats = b"".join(value.tobytes() for value in values)
    for id, reward, is_interrupted in ((0, 0.0, None), (1, 0.5, True), (300, -2.0, False)):
        for group_id, group_reward in ((0, 0.0), (1, -1.0), (200, 0.0)):
            group = group_id, group_reward
            info = Info(id, values, reward, is_interrupted is not None, bool(is_interrupted), (), *group)
            assert template.info(id, reward, floats, is_interrupted, *group) == Speech().list(brain, [info])


@pytest.mark.parametrize(
    ("version", "has_rows_first"), [("3.0.0-exp.1", True), ("3.0.0", True), ("4.0.0", True), ("4.0.1", False)]
)
def test_the_floats_of_an_image_have_the_order_of_the_package(version: str, has_rows_first: bool) -> None:
    image = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    brain = Brain("B", (Sensor("Raw", (2, 3, 4)), Sensor("Set", (3, 2))))
    info = Speech(package_version=version).info(brain, Info(0, [image, image[0, :, :2]]))
    expected = image.transpose(1, 2, 0) if has_rows_first else image
    assert list(info.observations[0].float_data.data) == expected.ravel().tolist()
    assert list(info.observations[1].float_data.data) == [0, 1, 4, 5, 8, 9]


@pytest.mark.parametrize("keeps_ids", [True, False])
def test_balls_in_a_player_and_in_an_environment_roll_alike(keeps_ids: bool) -> None:
    world = BallWorld(BALL, seed=3, num=4, max_steps=30, keeps_ids=keeps_ids)
    environment = BallEnvironment("3DBall", 4, 30)
    rng = np.random.default_rng(0)
    said, steps = world.reset(), environment.reset(3)["3DBall"]
    for _ in range(100):
        infos = messages.AgentInfoListProto.FromString(said.lists[BALL]).value
        deciding = [info for info in infos if not info.done]
        over = [info for info in infos if info.done]
        decisions, terminals = steps.decisions, steps.terminals
        np.testing.assert_array_equal(
            [info.observations[0].float_data.data for info in deciding], decisions.observations[0]
        )
        np.testing.assert_array_equal([info.reward for info in deciding], decisions.rewards)
        np.testing.assert_array_equal(
            [info.max_step_reached for info in over], [] if terminals is None else terminals.truncated
        )
        actions = rng.uniform(-1, 1, (4, 2)).astype(np.float32)
        said = world.step({BALL: Acts(actions, np.zeros((4, 0), np.int32))})
        steps = environment.step({"3DBall": Actions(actions, np.zeros((4, 0), np.int64))})["3DBall"]
