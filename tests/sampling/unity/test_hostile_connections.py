"""Programs of the same user that speak to the Editor's port without being an Editor."""

from __future__ import annotations

import os
import random
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from rl_tui.engine.sampling.environments.unity import ports
from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages
from rl_tui.engine.sampling.environments.unity.environment import UnityEnvironment
from rl_tui.engine.sampling.failures import InstanceStopped
from rl_tui.engine.specs import Steps
from tests.deadline import wait_until
from tests.sampling.unity.playing import BALL, play, zeros
from tests.sampling.unity.test_editor import press_play
from tests.unity_player.connection import EXCHANGE

DEADLINE = 60.0
GREETING = messages.UnityMessageProto(header=messages.HeaderProto(status=200))
GREETING.unity_output.rl_initialization_output.communication_version = "1.5.0"
WITHOUT_HEADER = messages.UnityMessageProto(unity_output=GREETING.unity_output)
LEAVING = messages.UnityMessageProto(header=messages.HeaderProto(status=400), unity_output=GREETING.unity_output)
STEPS = messages.UnityMessageProto(header=messages.HeaderProto(status=200))
STEPS.unity_output.rl_output.agentInfos[BALL] = b"\xff"
LONG = messages.UnityMessageProto(header=messages.HeaderProto(status=200))
LONG.unity_output.rl_initialization_output.name = "x" * 100_000
CALLS = {
    "nothing": b"",
    "noise": random.Random(1).randbytes(300),
    "5 MiB": bytes(5 * 2**20),
    "a header alone": messages.UnityMessageProto(header=messages.HeaderProto(status=200)).SerializeToString(),
    "no header": WITHOUT_HEADER.SerializeToString(),
    "a farewell": LEAVING.SerializeToString(),
    "agents": STEPS.SerializeToString(),
    "too long a greeting": LONG.SerializeToString(),
}
BYTES = {
    "noise": random.Random(2).randbytes(300),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": bytes.fromhex("16030100a5010000a10303") + bytes(160),
    "the beginning of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 64,
    "nothing": b"",
}


def called(port: int, content: bytes, method: str = EXCHANGE) -> str:
    """What a program hears that calls the port with this message, over a connection of its own."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        try:
            channel.unary_unary(method)(content, timeout=DEADLINE)
        except grpc.RpcError as error:
            return f"{error.code().name}: {error.details()}"
    return "an answer"


def attacked(port: int) -> Mapping[str, str]:
    """What each call was answered; bytes that are no calls are sent besides."""
    for content in BYTES.values():
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as connection:
            connection.sendall(content)
    answers = {name: called(port, content) for name, content in CALLS.items()}
    return answers | {"another method": called(port, CALLS["noise"], f"{EXCHANGE}Twice")}


def test_what_is_no_message_of_ml_agents_is_refused_and_the_editor_is_waited_for_and_plays(
    editor: UnityEnvironment, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(editor.reset, None)
        wait_until(lambda: bool(editor.awaits))
        answers = attacked(ports.EDITOR_PORT)
        assert answers.pop("another method").startswith("UNIMPLEMENTED")
        assert all(text.startswith("PERMISSION_DENIED: the first message must be Unity's") for text in answers.values())
        assert not first.done()
        with press_play(tmp_path):
            answer = first.result(DEADLINE)
            answers = attacked(ports.EDITOR_PORT)
            assert set(answers.values()) > {"PERMISSION_DENIED: the port serves another client"}
            for _ in range(3):
                answer = editor.step(zeros(editor.specs, answer))
            assert len(answer[BALL].decisions.agent_ids) == 12
            lines = [text for _, text in editor.pop_notes()]
            editor.close()
    assert len(lines) == 3
    assert all(
        f"by {ports.in_words(os.getpid())} was refused: the first message must be Unity's" in line for line in lines
    )


def test_a_connection_that_was_refused_may_begin_as_unity_does(editor: UnityEnvironment) -> None:
    """A port at the other end is used by one program after another."""
    with grpc.insecure_channel(f"127.0.0.1:{ports.EDITOR_PORT}") as channel, ThreadPoolExecutor(1) as thread:
        first = thread.submit(editor.reset, None)
        call = channel.unary_unary(EXCHANGE)
        with pytest.raises(grpc.RpcError):
            call(CALLS["noise"], timeout=DEADLINE)
        answer = messages.UnityMessageProto.FromString(call(GREETING.SerializeToString(), timeout=DEADLINE))
        assert answer.unity_input.HasField("rl_initialization_input")
        channel.close()
        with pytest.raises(InstanceStopped):
            first.result(DEADLINE)


def test_who_only_begins_as_unity_does_loses_the_connection_and_the_editor_plays(
    editor: UnityEnvironment, tmp_path: Path
) -> None:
    for name in ("noise", "nothing", "no header"):
        with grpc.insecure_channel(f"127.0.0.1:{ports.EDITOR_PORT}") as channel, ThreadPoolExecutor(1) as thread:
            first = thread.submit(editor.reset, None)
            call = channel.unary_unary(EXCHANGE)
            call(GREETING.SerializeToString(), timeout=DEADLINE)
            last = messages.UnityMessageProto.FromString(call(CALLS[name], timeout=DEADLINE))
            assert last.header.status == 400
            with pytest.raises(InstanceStopped, match=r"the Unity Editor sent .*(no message|without a header)"):
                first.result(DEADLINE)
    with press_play(tmp_path):
        play(editor, 2)
        editor.close()
    assert sum("its connection is closed" in text for _, text in editor.pop_notes()) == 3


def test_connections_without_end_do_not_keep_the_editor_out(editor: UnityEnvironment, tmp_path: Path) -> None:
    stop = threading.Event()

    def attack() -> int:
        count = 0
        while not stop.is_set():
            called(ports.EDITOR_PORT, CALLS["noise"])
            count += 1
        return count

    answers: list[Mapping[str, Steps]] = []
    with ThreadPoolExecutor(4) as threads:
        attackers = [threads.submit(attack) for _ in range(4)]
        try:
            with press_play(tmp_path):
                answers = list(play(editor, 3))
                editor.close()
        finally:
            stop.set()
    assert len(answers) == 4
    assert sum(attacker.result() for attacker in attackers) > 0
