"""Players in trouble: each failure has one message, which says what happened, and leaves nothing behind."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rl_tui.engine.errors import ConfigError, EnvironmentFailure
from rl_tui.engine.sampling.environments.unity import conversation, ports
from rl_tui.engine.sampling.environments.unity.environment import UnityEnvironment
from tests.deadline import DEADLINE_SECONDS
from tests.sampling.unity.playing import free_port, play, players_of, playing, unity_settings, zeros
from tests.unity_player.connection import EXCHANGE
from tests.unity_player.executable import ROOT, make_player
from tests.warm_start import WarmProcess

LISTEN = """
import socket, sys
listener = socket.socket()
listener.bind(("127.0.0.1", {port}))
listener.listen()
print(flush=True)
sys.stdin.read()
"""
CALL = """
import grpc
try:
    grpc.insecure_channel("127.0.0.1:{port}").unary_unary("{method}")(b"", timeout=300)
except grpc.RpcError as error:
    print(error.code().name, error.details())
"""

MUTE = """
import sys, time
from pathlib import Path
import grpc
port = sys.argv[sys.argv.index("--mlagents-port") + 1]
with grpc.insecure_channel("localhost:" + port) as channel:
    for path in sorted(Path("{record}").glob("*.request"))[:3]:
        channel.unary_unary("{method}")(path.read_bytes())
time.sleep(60)
"""


def failed(folder: Path, *arguments: str, steps: int = 10, **settings: object) -> EnvironmentFailure:
    """How an environment with such a player fails within these steps."""
    with pytest.raises(EnvironmentFailure) as caught, playing(folder, *arguments, **settings) as environment:
        play(environment, steps)
    assert players_of(folder) == []
    return caught.value


def refused(environment: UnityEnvironment) -> str:
    """What a program hears that calls the port of that environment without being its player."""
    program = CALL.format(port=environment._client.port, method=EXCHANGE)
    with WarmProcess([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        return str(process.communicate(timeout=DEADLINE_SECONDS)[0]).strip()


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("crash@5", "the player was killed by SIGSEGV"),
        ("kill@5", "the player was killed by SIGKILL"),
        ("exit:7@5", "the player exited with code 7"),
        ("leave@5", "the player exited with code 0"),
        ("garbage@5", "the player sent 255 bytes that are no message of ML-Agents' protocol"),
        ("silent@5", "a message must say what the agents observed"),
        ("lists@5", "3DBall"),
        ("shape@5", r"3DBall.*shape.*8.*9"),
        ("missing@5", "3DBall.*observation"),
        ("stranger@5", r"behavior 'Stranger\?team=0' must follow its description, got 3DBall\?team=0"),
    ],
)
def test_a_player_in_trouble_is_a_failure_that_says_what_happened(tmp_path: Path, trouble: str, said: str) -> None:
    failure = failed(tmp_path, "--trouble", trouble)
    assert re.search(said, str(failure)), str(failure)


def test_a_crash_comes_with_the_end_of_the_players_log(tmp_path: Path) -> None:
    failure = failed(tmp_path, "--trouble", "crash@5")
    log = tmp_path / "logs" / "Player-0.log"
    assert f"(log: {log})" in str(failure)
    assert failure.detail.startswith(f"{log}:\n")
    assert failure.detail.endswith("Caught trouble: crash at request 5")


def test_a_wrapper_that_reports_the_signal_of_its_player_is_understood(tmp_path: Path) -> None:
    path = make_player(tmp_path, "--trouble", "crash@3", name="inner")
    wrapper = tmp_path / "player.sh"
    wrapper.write_text(f'#!/bin/sh\n"{path}" "$@"\nexit $?\n')
    wrapper.chmod(0o755)
    environment = UnityEnvironment(wrapper, 0, unity_settings(tmp_path))
    with pytest.raises(EnvironmentFailure, match=r"the player exited with code 139 \(SIGSEGV\)"):
        play(environment, 5)
    environment.close()


def end_patience(monkeypatch: pytest.MonkeyPatch, folder: Path, words: str) -> None:
    """The time that the trainer waits for its player is over once the player has written these words."""
    log, now = folder / "logs" / "Player-0.log", time.monotonic

    def later() -> float:
        return now() + (2 * DEADLINE_SECONDS if log.exists() and words in log.read_text() else 0)

    monkeypatch.setattr(conversation, "time", SimpleNamespace(monotonic=later))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("arguments", [("--trouble", "hang@5"), ("--slow-step", f"{DEADLINE_SECONDS}")])
def test_a_player_that_is_silent_for_too_long_is_named_with_likely_causes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, str]
) -> None:
    end_patience(monkeypatch, tmp_path, "Caught trouble: hang" if "hang@5" in arguments else "reset")
    said = rf"^the player sent nothing for {DEADLINE_SECONDS:g} s\. Likely causes: no agent requests"
    assert re.search(said, str(failed(tmp_path, *arguments)))


@pytest.mark.usefixtures("impatient")
def test_a_player_that_never_connects_is_named_with_likely_causes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_patience(monkeypatch, tmp_path, "not wanted")
    failure = failed(tmp_path, "--never-connects")
    said = rf"the player did not connect to port \d+ within {DEADLINE_SECONDS:g} s\. Likely causes: it was built"
    assert re.match(said, str(failure))
    assert "Will perform inference" not in str(failure)
    assert "not wanted" in failure.detail


def test_a_program_that_is_no_player_is_named_with_its_exit_code(tmp_path: Path) -> None:
    program = tmp_path / "player"
    program.write_text("#!/bin/sh\necho no license >&2\nexit 4\n")
    program.chmod(0o755)
    with pytest.raises(EnvironmentFailure, match=r"the player exited with code 4 before it connected") as caught:
        UnityEnvironment(program, 0, unity_settings(tmp_path))
    assert "Player-0.out:\nno license" in caught.value.detail


def test_a_file_of_another_system_is_named(tmp_path: Path) -> None:
    program = tmp_path / "player"
    program.write_bytes(b"\x7fELF\x00")
    program.chmod(0o755)
    with pytest.raises(
        EnvironmentFailure, match=r"cannot be started: Exec format error\. Was it built for this system"
    ):
        UnityEnvironment(program, 0, unity_settings(tmp_path))


@pytest.mark.parametrize(
    ("version", "is_spoken"), [("1.0.0", True), ("1.9.2", True), ("2.0.0", False), ("0.15.0", False)]
)
def test_the_major_version_of_the_protocol_must_be_ours(tmp_path: Path, version: str, is_spoken: bool) -> None:
    arguments = "--communication-version", version, "--package-version", "9.1.0"
    if is_spoken:
        with playing(tmp_path, *arguments) as environment:
            play(environment, 1)
    else:
        said = f"package 9.1.0 speaks version {version} of the protocol, this program 1.5.0"
        assert said in str(failed(tmp_path, *arguments))


def test_another_program_on_the_port_is_refused_and_the_player_goes_on(tmp_path: Path) -> None:
    with playing(tmp_path) as environment:
        answer = environment.reset(None)
        assert refused(environment) == "PERMISSION_DENIED the port serves another client"
        environment.step(zeros(environment.specs, answer))
        ((level, text),) = environment.pop_notes()
    assert level == "warning"
    assert re.match(r"a connection to port \d+ by process \d+ \(.+\) was refused: the port serves another client", text)


def test_another_program_that_comes_before_the_player_is_refused_and_named(tmp_path: Path) -> None:
    port, refusal = free_port(), tmp_path / "refusal"
    call = CALL.format(port=port, method=EXCHANGE).replace("timeout=300", "timeout=300, wait_for_ready=True")
    late = tmp_path / "late.sh"
    late.write_text(f'#!/bin/sh\nuntil [ -s "{refusal}" ]; do sleep 0.05; done\nexec "{make_player(tmp_path)}" "$@"\n')
    late.chmod(0o755)
    with refusal.open("w") as output:
        stranger = WarmProcess([sys.executable, "-c", call], stdout=output, cwd=ROOT)
    environment = UnityEnvironment(late, 0, unity_settings(tmp_path, base_port=port))
    play(environment, 2)
    ((_, text),) = environment.pop_notes()
    environment.close()
    assert stranger.wait(DEADLINE_SECONDS) == 0
    assert refusal.read_text().strip() == "PERMISSION_DENIED only the player that was started here may connect"
    assert re.search(rf"by process {stranger.pid} \(.+\) was refused: only the player that was started here", text)


def test_a_taken_port_is_skipped_and_its_owner_named(tmp_path: Path) -> None:
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-c", LISTEN.format(port=port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        with playing(tmp_path, base_port=port) as environment:
            play(environment, 1)
            used = environment._client.port
            notes = environment.pop_notes()
        with pytest.raises(
            ConfigError, match=rf"port {port} is taken by process {owner.pid} \(.*python.*\): end it, or"
        ):
            UnityEnvironment(tmp_path / "player", 0, unity_settings(tmp_path, base_port=port, is_port_fixed=True))
        owner.communicate()
    assert used == port + 100
    assert [level for level, _ in notes] == ["info"]
    assert re.match(rf"port {port} is taken by process {owner.pid} \(.*\): player 0 uses {used}", notes[0][1])


def test_a_port_that_is_taken_between_the_look_and_the_start_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, is_free = free_port(), ports.is_free
    looks: list[int] = []

    def looked_at(one: int) -> bool:
        looks.append(one)
        return len(looks) == 1 or is_free(one)  # the first time, it still was free

    monkeypatch.setattr(ports, "is_free", looked_at)
    with socket.create_server(("127.0.0.1", port)), playing(tmp_path, base_port=port) as environment:
        play(environment, 1)
        assert environment._client.port == port + 100
    assert looks == [port, port, port + 100]


@pytest.mark.usefixtures("impatient")
def test_a_player_that_leaves_while_its_process_goes_on_is_a_failure(tmp_path: Path) -> None:
    failure = failed(tmp_path, "--trouble", "leave@5", "--refuses-to-quit")
    assert str(failure).startswith("the player closed its connection; its process is still running")


@pytest.mark.usefixtures("impatient")
def test_a_player_that_closes_its_connection_without_a_word_and_goes_on_is_a_failure(tmp_path: Path) -> None:
    record, script, player = tmp_path / "record", tmp_path / "mute.py", tmp_path / "mute"
    with playing(tmp_path, "--record", str(record)) as environment:
        play(environment, 1)
    script.write_text(MUTE.format(method=EXCHANGE, record=record))
    player.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
    player.chmod(0o755)
    environment = UnityEnvironment(player, 0, unity_settings(tmp_path))
    with pytest.raises(EnvironmentFailure, match="the player closed its connection; its process is still running"):
        play(environment, 1)
    environment.close()
    assert players_of(tmp_path) == []
