"""What a player does wrong, and at which request. Requests count from 0; the first two are those of the handshake.

KIND@REQUEST is one of:

    crash       by a segmentation fault        kill            by SIGKILL
    abort       by SIGABRT                     cut             closes the connection, and never speaks again
    method      is called that no trainer has, which ends the player as gRPC's other errors do
    exit:CODE   without a word                 leave           as a player does whose user ends it
    hang        and never speaks again         garbage         bytes that are no message
    lists       bytes that are no agents       silent          a message without output
    shape       the first observation is longer than it was
    missing     the first agent lacks its last observation
    nan         the first number observed is none; in the same way `infinite` and, of the reward, `nan-reward`
    twin        the first agent appears twice   stranger        a behavior that was never announced has an agent
    again       the message before this one, another time

Each happens before that request is sent, or to it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages

GARBAGE = bytes(range(255, 0, -1))


@dataclass(frozen=True)
class Trouble:
    """One thing that goes wrong. detail: what follows a colon, the exit code of `exit`."""

    kind: str
    request: int
    detail: str = ""

    def happen(self, content: bytes) -> bytes:
        """What is sent instead of a request, unless the process does not live to send it."""
        if self.kind in PROCESS:
            PROCESS[self.kind](self.detail)
        if self.kind == "garbage":
            return GARBAGE
        said = messages.UnityMessageProto.FromString(content)
        if self.kind == "silent":
            said.ClearField("unity_output")
        else:
            lists = said.unity_output.rl_output.agentInfos
            name = next(name for name in sorted(lists) if lists[name])
            CHANGES[self.kind](lists, name)
        return bytes(said.SerializeToString())


def trouble(words: str) -> Trouble:
    """For KIND@REQUEST or KIND:DETAIL@REQUEST. Raises ValueError where there is no such trouble."""
    name, _, request = words.partition("@")
    kind, _, detail = name.partition(":")
    if kind not in {*PROCESS, *CHANGES, "garbage", "silent", "leave", "again", "cut", "method"}:
        raise ValueError(f"no such trouble: {kind}")
    return Trouble(kind, int(request), detail)


def in_turn(troubles: Sequence[Trouble], file: Path) -> Trouble:
    """The next one, with the first after the last. file: counts how often it was asked for, by any process."""
    with file.open("ab") as count:
        fcntl.flock(count, fcntl.LOCK_EX)
        number = count.seek(0, os.SEEK_END)
        count.write(b".")
    return troubles[number % len(troubles)]


def _signal(number: signal.Signals) -> Callable[[str], None]:
    return lambda _: os.kill(os.getpid(), number)


def _exit(code: str) -> None:
    os._exit(int(code or 1))


def _hang(_: str) -> None:
    while True:
        time.sleep(60)


def _agents(change: Callable[[messages.AgentInfoListProto], None]) -> Callable[..., None]:
    """A change of the list of one behavior."""

    def changed(lists: dict[str, bytes], name: str) -> None:
        infos = messages.AgentInfoListProto.FromString(lists[name])
        change(infos)
        lists[name] = infos.SerializeToString()

    return changed


def _longer(infos: messages.AgentInfoListProto) -> None:
    observation = infos.value[0].observations[0]
    observation.shape[0] += 1
    observation.float_data.data.extend([0.0] * (len(observation.float_data.data) // (observation.shape[0] - 1)))


def _missing(infos: messages.AgentInfoListProto) -> None:
    del infos.value[0].observations[-1]


def _number(value: float) -> Callable[[messages.AgentInfoListProto], None]:
    def set_first(infos: messages.AgentInfoListProto) -> None:
        observations = infos.value[0].observations
        next(seen for seen in observations if seen.float_data.data).float_data.data[0] = value

    return set_first


def _reward(infos: messages.AgentInfoListProto) -> None:
    infos.value[0].reward = float("nan")


def _twin(infos: messages.AgentInfoListProto) -> None:
    first = next(info for info in infos.value if not info.done)
    infos.value.add().CopyFrom(first)


def _stranger(lists: dict[str, bytes], name: str) -> None:
    lists["Stranger?team=0"] = lists[name]


def _no_list(lists: dict[str, bytes], name: str) -> None:
    lists[name] = GARBAGE


PROCESS: dict[str, Callable[[str], None]] = {
    "crash": _signal(signal.SIGSEGV),
    "abort": _signal(signal.SIGABRT),
    "kill": _signal(signal.SIGKILL),
    "exit": _exit,
    "hang": _hang,
}
CHANGES: dict[str, Callable[..., None]] = {
    "shape": _agents(_longer),
    "missing": _agents(_missing),
    "nan": _agents(_number(float("nan"))),
    "infinite": _agents(_number(float("inf"))),
    "nan-reward": _agents(_reward),
    "twin": _agents(_twin),
    "stranger": _stranger,
    "lists": _no_list,
}
