"""Messages with wrong bytes in them: each is refused with a reason, or read as protobuf reads it."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import pytest

from rl_tui.engine.errors import EnvironmentFailure, NonFiniteError
from rl_tui.engine.sampling.environments.unity import ports
from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages
from rl_tui.engine.sampling.environments.unity.environment import UnityEnvironment
from rl_tui.engine.sampling.failures import InstanceStopped
from rl_tui.engine.sampling.pools.checks import AnswerCheck
from rl_tui.engine.specs import Steps
from tests.deadline import DEADLINE_SECONDS
from tests.sampling.unity.playing import free_port, play, playing, unity_settings, zeros
from tests.unity_player.connection import EXCHANGE

SPEC = [
    {"name": "Plain?team=0", "observations": [[6]], "continuous": 2, "agents": 5, "episode": 4},
    {"name": "Choice?team=1", "observations": [[3], [4, 2]], "branches": [3, 2], "has_masks": True, "size": 2},
    {"name": "Eye", "observations": [{"shape": [3, 5, 4], "form": "png"}], "continuous": 1, "agents": 2},
]
HELLO, FIRST, STEP = 0, 2, 3  # requests of a player
LAST = messages.UnityMessageProto(header=messages.HeaderProto(status=400)).SerializeToString()


class Speaker:
    """A client that sends given bytes, whatever they are."""

    def __init__(self, port: int) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self._call = self._channel.unary_unary(EXCHANGE)
        self._thread = ThreadPoolExecutor(1)

    def begin(self, requests: list[bytes]) -> Future[None]:
        """Send them one after another, until the trainer ends it."""
        return self._thread.submit(self._send, requests)

    def close(self) -> None:
        self._channel.close()
        self._thread.shutdown()

    def _send(self, requests: list[bytes]) -> None:
        for request in requests:
            reply = messages.UnityMessageProto.FromString(self._call(request, timeout=DEADLINE_SECONDS))
            if reply.header.status != 200:
                return


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """What a player said, from its first message on."""
    folder = tmp_path_factory.mktemp("recorded")
    words = "--task", "crowd", "--spec", json.dumps(SPEC), "--statistics", "--record", str(folder / "record")
    with playing(folder, *words) as environment:
        play(environment, 12)
    return [path.read_bytes() for path in sorted((folder / "record").glob("*.request"))]


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[UnityEnvironment]:
    """An Editor's, which may connect as often as it likes."""
    monkeypatch.setattr(ports, "EDITOR_PORT", free_port())
    made = UnityEnvironment(None, 0, unity_settings(tmp_path))
    monkeypatch.setattr(made._exchange, "_admit", lambda *_: "")  # who it is takes long to find out
    yield made
    made.close()


def mutated(chance: random.Random, content: bytes, other: bytes) -> bytes:
    """The bytes with one to four changes of the kinds that broken programs make."""
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 4))):
        begin = chance.randrange(len(changed) + 1)
        end = min(len(changed), begin + chance.randrange(1, 40))
        match chance.randrange(7):
            case 0 if begin < len(changed):
                changed[begin] ^= 1 << chance.randrange(8)
            case 1:
                del changed[begin:end]
            case 2:
                changed[begin:begin] = chance.randbytes(end - begin)
            case 3:
                changed[begin:begin] = changed[begin:end]
            case 4:
                changed[begin:end] = b"\xff" * (end - begin)
            case 5:
                del changed[begin:]
            case 6:
                changed[begin:end] = other[begin:end]
    return bytes(changed)


def as_protobuf_reads(content: bytes) -> dict[str, list[messages.AgentInfoProto]]:
    """The agents of a message."""
    lists = messages.UnityMessageProto.FromString(content).unity_output.rl_output.agentInfos
    return {name: list(messages.AgentInfoListProto.FromString(lists[name]).value) for name in lists if lists[name]}


def require_equal(steps: Mapping[str, Steps], content: bytes) -> None:
    """The steps are what the message says."""
    expected = as_protobuf_reads(content)
    assert steps.keys() == expected.keys()
    for name, infos in expected.items():
        waiting, ended = ([info for info in infos if info.done is is_done] for is_done in (False, True))
        require_rows(steps[name].decisions, waiting)
        terminals = steps[name].terminals
        assert (terminals is None) == (not ended)
        if terminals is not None:
            require_rows(terminals, ended)
            assert terminals.truncated.tolist() == [info.max_step_reached for info in ended]


def require_rows(rows: object, infos: list[messages.AgentInfoProto]) -> None:
    assert rows.agent_ids.tolist() == [info.id for info in infos]  # type: ignore[attr-defined]
    rewards = np.array([info.reward for info in infos], np.float32)
    np.testing.assert_array_equal(rows.rewards, rewards)  # type: ignore[attr-defined]
    for index, values in enumerate(rows.observations):  # type: ignore[attr-defined]
        for value, info in zip(values, infos, strict=True):
            if value.ndim == 1:
                numbers = np.array(info.observations[index].float_data.data, np.float32)
                np.testing.assert_array_equal(value, numbers)


def outcome(environment: UnityEnvironment, requests: list[bytes]) -> str:
    """`read` for steps that are as the messages say, else the reason why they were refused."""
    try:
        first = environment.reset(None)
        AnswerCheck(environment.specs).check(first)
        answer = environment.step(zeros(environment.specs, first))
        require_equal(answer, requests[STEP])
        AnswerCheck(environment.specs).check(answer)
    except (EnvironmentFailure, NonFiniteError) as failure:
        return type(failure).__name__ if str(failure) else "a failure without a reason"
    return "read"


def survive(environment: UnityEnvironment, recorded: list[bytes], num_messages: int, seed: int) -> Counter[str]:
    """How often there was each outcome."""
    chance, counts = random.Random(seed), Counter[str]()
    speaker = Speaker(environment._client.port)
    for _ in range(num_messages):
        which = chance.choice((HELLO, FIRST, STEP, STEP, STEP, STEP))
        requests = [*recorded[: STEP + 1], LAST]
        requests[STEP] = chance.choice(recorded[STEP:])
        requests[which] = mutated(chance, requests[which], chance.choice(recorded))
        sending = speaker.begin(requests)
        counts[outcome(environment, requests)] += 1
        environment._disconnect()
        environment._known = {}
        sending.result(20)
    speaker.close()
    return counts


@pytest.mark.parametrize(
    "num_messages", [300, pytest.param(10_000, marks=[pytest.mark.faults, pytest.mark.timeout(900)])]
)
def test_mutated_messages_are_refused_or_read_as_they_are(
    environment: UnityEnvironment, recorded: list[bytes], num_messages: int
) -> None:
    counts = survive(environment, recorded, num_messages, seed=7)
    assert sum(counts.values()) == num_messages
    assert counts["read"] > num_messages // 100
    assert counts["EnvironmentFailure"] + counts["WireError"] + counts["InstanceStopped"] > num_messages // 4
    assert counts.keys() <= {"read", "EnvironmentFailure", "WireError", "NonFiniteError", InstanceStopped.__name__}


def test_unchanged_messages_are_read(environment: UnityEnvironment, recorded: list[bytes]) -> None:
    speaker = Speaker(environment._client.port)
    for step in recorded[STEP:]:
        requests = [*recorded[:STEP], step, LAST]
        sending = speaker.begin(requests)
        assert outcome(environment, requests) == "read"
        environment._disconnect()
        sending.result(20)
    speaker.close()
