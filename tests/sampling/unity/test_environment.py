"""A player as an environment: what it receives, what it says, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import cast

import numpy as np
import psutil
import pytest

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.unity.environment import UnityEnvironment
from rl_tui.engine.sampling.parameters import COPY_STRIDE, Parameters, ParameterValues
from rl_tui.engine.specs import Actions
from tests.deadline import DEADLINE_SECONDS, wait_until
from tests.sampling.unity.playing import BALL, play, players_of, playing, unity_settings, zeros
from tests.unity_player.executable import ROOT, make_player
from tests.unity_player.log import notes


def test_a_player_is_ready_once_made_and_plays_until_it_is_closed(tmp_path: Path) -> None:
    with playing(tmp_path, "--max-steps", "3") as environment:
        assert environment.specs[BALL].actions.continuous == 2
        assert environment.num_agents == {BALL: 12}
        answers = play(environment, 3)
        assert [len(answer[BALL].decisions.agent_ids) for answer in answers] == [12, 12, 12, 12]
        terminals = answers[3][BALL].terminals
        assert terminals is not None
        assert terminals.truncated.all()
        assert answers[1][BALL].decisions.rewards == pytest.approx([0.1] * 12)
    assert players_of(tmp_path) == []


def test_a_player_receives_its_seed_the_areas_and_the_settings_of_the_engine(tmp_path: Path) -> None:
    settings = {"seed": 40, "num_areas": 2, "width": 100, "height": 50, "quality_level": 3, "time_scale": 7.0}
    rates = {"target_frame_rate": 30, "capture_frame_rate": 0, "env_args": ["--own", "word"], "no_graphics": True}
    with playing(tmp_path, number=3, **settings, **rates) as environment:
        assert environment.num_agents == {BALL: 24}
        port = environment._client.port
    received = notes(tmp_path / "logs" / "Player-3.log")
    assert received[0]["port"] == port
    assert received[0]["ignored"] == ["--own", "word"]
    assert {"-nographics", "-batchmode"} <= set(received[0]["arguments"])  # type: ignore[call-overload]
    assert (received[1]["seed"], received[1]["num_areas"], received[1]["communication_version"]) == (43, 2, "1.5.0")
    assert len(received[1]["capabilities"]) == 7  # type: ignore[arg-type]
    engine = {line["key"]: line["value"] for line in received if line.get("channel") == "engine configuration"}
    assert engine == {
        "resolution": [100, 50],
        "quality_level": 3,
        "time_scale": 7.0,
        "target_frame_rate": 30,
        "capture_frame_rate": 0,
    }


def test_no_graphics_monitor_leaves_the_first_player_its_window(tmp_path: Path) -> None:
    for number in (0, 1):
        with playing(tmp_path, number=number, no_graphics_monitor=True):
            pass
    said = [notes(tmp_path / "logs" / f"Player-{number}.log")[0]["arguments"] for number in (0, 1)]
    assert ["-nographics" in words for words in said] == [False, True]  # type: ignore[operator]


def test_a_later_reset_begins_all_episodes_again(tmp_path: Path) -> None:
    with playing(tmp_path) as environment:
        play(environment, 5)
        again = environment.reset(None)
        assert again[BALL].terminals is None
        assert len(environment.step(zeros(environment.specs, again))[BALL].decisions.agent_ids) == 12
    assert sum("reset" in line for line in notes(tmp_path / "logs" / "Player-0.log")) == 2


def test_behaviors_that_appear_later_and_agents_that_rest_reach_their_own_actions(tmp_path: Path) -> None:
    spec = [
        {"name": "Early?team=0", "observations": [[2]], "continuous": 1, "agents": 3},
        {"name": "Late?team=0", "observations": [[4]], "branches": [5], "late": 4, "agents": 2, "period": 2},
    ]
    with playing(tmp_path, "--task", "crowd", "--spec", json.dumps(spec)) as environment:
        assert list(environment.specs) == ["Early?team=0"]
        answer, rewards = environment.reset(None), []
        for _ in range(12):
            actions = zeros(environment.specs, answer)
            for name, steps in answer.items():
                wanted = steps.decisions.observations[0][:, 0]
                if name == "Early?team=0":
                    actions[name] = Actions((2 * wanted - 1)[:, None].astype(np.float32), actions[name].discrete)
            answer = environment.step(actions)
            if "Early?team=0" in answer:
                rewards.append(answer["Early?team=0"].decisions.rewards.mean())
        assert list(environment.specs) == ["Early?team=0", "Late?team=0"]
        assert environment.num_agents["Late?team=0"] == 1  # they take turns
    assert rewards == pytest.approx([1.0] * len(rewards))


def test_what_unity_measures_comes_with_the_steps(tmp_path: Path) -> None:
    with playing(tmp_path, "--statistics") as environment:
        answers = play(environment, 2)
        statistics = answers[2][BALL].statistics
    assert statistics is not None
    found = {(one.name, one.method) for one in statistics}
    assert found == {
        ("Player/Average", "average"),
        ("Player/Last", "last"),
        ("Player/Sum", "sum"),
        ("Player/Histogram", "histogram"),
    }


def test_a_player_behind_a_wrapper_is_served_and_ended(tmp_path: Path) -> None:
    with playing(tmp_path, "--wrapper") as environment:
        assert len(play(environment, 2)) == 3
        assert len(players_of(tmp_path)) >= 1
    assert players_of(tmp_path) == []


@pytest.mark.usefixtures("impatient")
def test_a_player_that_does_not_leave_is_killed(tmp_path: Path) -> None:
    with playing(tmp_path, "--refuses-to-quit") as environment:
        play(environment, 1)
    assert players_of(tmp_path) == []


def test_the_logs_of_an_earlier_player_are_kept_once(tmp_path: Path) -> None:
    for _ in range(2):
        with playing(tmp_path):
            pass
    names = {file.name for file in (tmp_path / "logs").iterdir()}
    assert {"Player-0.log", "Player-0-prev.log"} <= names


def test_an_own_log_file_is_left_to_the_user(tmp_path: Path) -> None:
    own = tmp_path / "own.log"
    with playing(tmp_path, env_args=["-logfile", str(own)]):
        pass
    assert notes(own)[0]["arguments"].count("-logFile") == 0  # type: ignore[attr-defined]


def test_a_missing_capability_is_named_and_deprecated_actions_are_sent(tmp_path: Path) -> None:
    arguments = "--without", "hybridActions", "--without", "multiAgentGroups", "--deprecated-actions"
    with playing(tmp_path, *arguments) as environment:
        play(environment, 3)
        lines = [text for _, text in environment.pop_notes()]
    assert lines == ["the player does not support groups of agents: group rewards are not sent"]


def test_images_whose_order_cannot_be_known_from_the_package_are_named(tmp_path: Path) -> None:
    with playing(tmp_path, "--task", "visual", "--package-version", "develop") as environment:
        [line] = [text for _, text in environment.pop_notes()]
    assert line.startswith("Visual?team=0: 'Raw' [20, 24, 3] is not compressed, and is read as channels, height, width")
    assert "('develop')" in line


def test_an_interpreter_exits_although_the_environment_was_not_closed(tmp_path: Path) -> None:
    player = make_player(tmp_path, "--lifetime", "30")
    program = f"""
import sys
from pathlib import Path
from rl_tui.engine.sampling.environments.settings import UnitySettings
from rl_tui.engine.sampling.environments.unity.environment import UnityEnvironment
environment = UnityEnvironment(Path({str(player)!r}), 0, UnitySettings(base_port={unity_settings(tmp_path).base_port}))
environment.reset(None)
raise ValueError("on purpose")
"""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, check=False, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert (done.returncode, "on purpose" in done.stderr) == (1, True)


def test_a_reply_that_unity_would_not_receive_is_refused_with_its_size(tmp_path: Path) -> None:
    with playing(tmp_path) as environment:
        answer = environment.reset(None)
        for _ in range(50):
            environment.set_parameters(Parameters({"name" * 30_000: 1.0}))
        with pytest.raises(EnvironmentFailure, match=r"smaller than 4,194,304 bytes.*got 6,0\d\d,\d\d\d"):
            environment.step(zeros(environment.specs, answer))


def test_a_message_beyond_four_mebibytes_arrives(tmp_path: Path) -> None:
    spec = [{"name": "Large", "observations": [[600_000]], "continuous": 1, "agents": 2}]
    with playing(tmp_path, "--task", "crowd", "--spec", json.dumps(spec)) as environment:
        (steps,) = play(environment, 1)[1].values()
        (observation,) = steps.decisions.observations
        assert observation.nbytes > 4 * 2**20


def test_what_an_environment_opened_is_closed_with_it(tmp_path: Path) -> None:
    def opened() -> tuple[int, int]:
        return psutil.Process().num_fds(), threading.active_count()

    with playing(tmp_path) as environment:
        play(environment, 2)
    before = opened()
    for _ in range(3):
        with playing(tmp_path) as environment:
            play(environment, 2)
    wait_until(lambda: all(now <= then for now, then in zip(opened(), before, strict=True)))


def test_environment_parameters_go_with_the_next_message(tmp_path: Path) -> None:
    with playing(tmp_path) as environment:
        environment.set_parameters(Parameters({"gravity": -9.5}))
        play(environment, 1)
    assert parameters_received(tmp_path, 0) == {"gravity": -9.5}


def parameters_received(folder: Path, number: int) -> dict[object, object]:
    lines = notes(folder / "logs" / f"Player-{number}.log")
    received = [line for line in lines if line.get("channel") == "environment parameters"]
    drawn = ("seed", "sampler", "arguments")
    return {line["key"]: line["value"] if "value" in line else [line[key] for key in drawn] for line in received}


def test_unity_draws_from_samplers_itself_and_each_player_other_numbers(tmp_path: Path) -> None:
    text = """
environment_parameters:
  mass: {sampler_type: uniform, sampler_parameters: {min_value: 1, max_value: 2, seed: 5}}
  wind: {sampler_type: gaussian, sampler_parameters: {mean: 0.5, st_dev: 2, seed: 6}}
  size: {sampler_type: multirangeuniform, sampler_parameters: {intervals: [[1, 2], [7, 9]], seed: 7}}
  drag: {sampler_type: constant, sampler_parameters: {value: 4}}
"""
    parameters = Parameters(cast(ParameterValues, parse_config(text.encode(), "c.yaml").environment_parameters))
    for number in (0, 1):
        with playing(tmp_path, number=number) as environment:
            environment.set_parameters(parameters)
            play(environment, 1)
    drawn = {
        "mass": [5, "uniform", [1.0, 2.0]],
        "wind": [6, "gaussian", [0.5, 2.0]],
        "size": [7, "multirange", [1.0, 2.0, 7.0, 9.0]],
        "drag": 4.0,
    }
    assert parameters_received(tmp_path, 0) == drawn
    assert parameters_received(tmp_path, 1)["mass"] == [5 + COPY_STRIDE, "uniform", [1.0, 2.0]]


def test_parameters_that_are_set_before_the_first_steps_come_before_the_first_reset(tmp_path: Path) -> None:
    settings = unity_settings(tmp_path).adapted(Adaptation(has_parameters=True))
    environment = UnityEnvironment(make_player(tmp_path), 0, settings)
    try:
        environment.set_parameters(Parameters({"gravity": -9.5}))
        assert list(environment.specs) == [BALL]
        play(environment, 1)
    finally:
        environment.close()
    lines = notes(tmp_path / "logs" / "Player-0.log")
    (given,) = [number for number, line in enumerate(lines) if line.get("channel") == "environment parameters"]
    (reset,) = [number for number, line in enumerate(lines) if "reset" in line]
    assert given < reset


def test_a_user_may_have_side_channels(tmp_path: Path) -> None:
    names = ["tests.sampling.unity.echoes:Echo"]
    with playing(tmp_path, side_channels=names) as environment:
        play(environment, 3)
        (channel,) = environment._channels._own.values()
        assert channel.received == [b"0", b"1", b"2", b"3"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tests.sampling.unity.echoes:Deaf", "must have channel_id, on_message and pop_messages, has no on_message"),
        ("tests.sampling.unity.echoes:Nameless", "channel_id .* must be a uuid.UUID, got 'echo'"),
        ("tests.sampling.unity.echoes:Engine", "must differ from every other"),
        ("tests.sampling.unity.echoes:Missing", "no attribute 'Missing'"),
    ],
)
def test_what_is_no_side_channel_is_refused_before_a_player_starts(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        UnityEnvironment(tmp_path / "nothing", 0, unity_settings(tmp_path, side_channels=[name]))
