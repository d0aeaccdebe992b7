"""The Unity Editor, which its user starts, stops and starts again."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from rl_tui.engine.errors import ConfigError, EnvironmentFailure
from rl_tui.engine.sampling.environments.unity import ports
from rl_tui.engine.sampling.environments.unity.environment import UnityEnvironment
from rl_tui.engine.sampling.failures import InstanceStopped
from tests.deadline import DEADLINE_SECONDS, wait_until
from tests.sampling.unity.playing import BALL, play, playing, unity_settings, zeros
from tests.unity_player.connection import EXCHANGE
from tests.unity_player.executable import make_player
from tests.unity_player.log import notes
from tests.warm_start import WarmProcess


def press_play(folder: Path, *arguments: str) -> WarmProcess:
    """A stand-in that connects as the Editor does."""
    words = [str(make_player(folder, *arguments)), "--editor", "--mlagents-port", str(ports.EDITOR_PORT)]
    return WarmProcess(words, stdout=subprocess.DEVNULL)


def recorded(folder: Path) -> list[bytes]:
    """The first requests of a player."""
    with playing(folder, "--record", str(folder / "record")) as environment:
        environment.reset(None)
    return [path.read_bytes() for path in sorted((folder / "record").glob("*.request"))]


def play_until_stopped(environment: UnityEnvironment) -> None:
    """Step until its user stops it."""
    with pytest.raises(InstanceStopped, match="Play was stopped in the Unity Editor"):
        play(environment, 1000)


def test_the_editor_may_be_stopped_and_started_as_often_as_its_user_likes(
    editor: UnityEnvironment, tmp_path: Path
) -> None:
    assert editor.specs == {}
    for _ in range(2):
        with press_play(tmp_path) as process:
            play(editor, 3)
            assert editor.awaits == ""
            assert list(editor.specs) == [BALL]
            process.terminate()
            with pytest.raises(InstanceStopped, match="Play was stopped in the Unity Editor"):
                play(editor, 3)
        assert process.returncode == 0
        assert list(editor.specs) == [BALL]
    with press_play(tmp_path):
        play(editor, 3)
        editor.close()


def test_each_connection_has_the_seed_of_the_reset_that_waited_for_it(editor: UnityEnvironment, tmp_path: Path) -> None:
    for seed in (40, None):
        log = tmp_path / f"{seed}.log"
        with press_play(tmp_path, "-logFile", str(log)) as process:
            editor.reset(seed)
            process.terminate()
            play_until_stopped(editor)
        assert notes(log)[1]["seed"] == (seed or 0)


def test_the_user_is_asked_to_press_play_while_a_reset_waits(editor: UnityEnvironment, tmp_path: Path) -> None:
    waiting = threading.Thread(target=editor.reset, args=(None,))
    waiting.start()
    wait_until(lambda: bool(editor.awaits))
    assert editor.awaits == f"Press Play in the Unity Editor, which connects to port {ports.EDITOR_PORT}"
    with press_play(tmp_path):
        waiting.join(DEADLINE_SECONDS)
        assert editor.awaits == ""
        editor.close()


@pytest.mark.parametrize("request_number", [5, 6])
def test_an_editor_that_crashes_is_waited_for_like_one_that_was_stopped(
    editor: UnityEnvironment, tmp_path: Path, request_number: int
) -> None:
    with press_play(tmp_path, "--trouble", f"kill@{request_number}"):
        play_until_stopped(editor)
    with press_play(tmp_path):
        play(editor, 2)
        editor.close()


def test_a_connection_that_is_closed_while_the_trainer_thinks_is_noticed_at_once(
    editor: UnityEnvironment, tmp_path: Path
) -> None:
    requests = recorded(tmp_path)
    with grpc.insecure_channel(f"127.0.0.1:{editor._client.port}") as channel:
        call = channel.unary_unary(EXCHANGE)
        with ThreadPoolExecutor(1) as thread:
            first = thread.submit(editor.reset, None)
            for request in requests[:2]:
                call(request, timeout=DEADLINE_SECONDS)
            pending = call.future(requests[2])
            answer = first.result(20)
            assert not pending.done()
    with pytest.raises(InstanceStopped):
        editor.step(zeros(editor.specs, answer))


def test_an_editor_with_another_agent_than_before_is_refused(editor: UnityEnvironment, tmp_path: Path) -> None:
    with press_play(tmp_path) as process:
        play(editor, 1)
        process.kill()
    with pytest.raises(InstanceStopped):
        editor.reset(None)
    spec = f'[{{"name": "{BALL}", "observations": [[5]], "continuous": 2}}]'
    with press_play(tmp_path, "--task", "crowd", "--spec", spec):
        with pytest.raises(EnvironmentFailure, match=f"{BALL[:6]}.*must stay as they were when this run began"):
            editor.reset(None)
        editor.close()


def test_a_second_editor_on_the_machine_is_refused_by_naming_who_has_the_port(tmp_path: Path) -> None:
    program = "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); "
    with (
        pytest.MonkeyPatch.context() as patch,
        subprocess.Popen(
            [sys.executable, "-c", program + "sys.stdin.read()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as owner,
    ):
        assert owner.stdout is not None
        patch.setattr(ports, "EDITOR_PORT", int(owner.stdout.readline()))
        said = rf"which the Unity Editor connects to, is taken by process {owner.pid} \(.*\): end it first"
        with pytest.raises(ConfigError, match=said):
            UnityEnvironment(None, 0, unity_settings(tmp_path))
        owner.communicate()
