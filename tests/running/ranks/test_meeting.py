"""Ranks that cannot be one run are refused by name before anything is trained."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rl_tui.engine.errors import ConfigError, RlTuiError, SyncError
from rl_tui.engine.running.ranks import meeting
from rl_tui.engine.running.ranks.local_ranks import LocalRanks
from rl_tui.engine.running.ranks.meeting import Hello, Met, hello_of, listen, meet
from rl_tui.engine.running.ranks.world import KEY, World, new_key
from rl_tui.engine.sampling.failures import StartStopped
from tests.deadline import DEADLINE_SECONDS, wait_until
from tests.running.runs import behavior, configuration

LOOPBACK = "127.0.0.1"
HOST = socket.gethostname()
SOON = 0.3  # seconds, for what comes to its end by waiting that long
PATIENCE = 60.0  # seconds, which pass when a test says so


def worlds(size: int) -> list[World]:
    """Of ranks that have a secret. The port is found once rank 0 listens."""
    key = new_key()
    return [World(rank, size, rank, size, LOOPBACK, 0, "a test", key) for rank in range(size)]


@pytest.fixture
def hello(tmp_path: Path) -> Callable[[World], Hello]:
    """Of a rank with that configuration."""
    config = configuration(tmp_path, {"Walker": behavior()})
    return lambda world: hello_of(world, config)


@pytest.fixture
def time_ends_once_one_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank 0 that waits for PATIENCE seconds has waited long enough as soon as another has said who it is."""
    now, introduced = [0.0], meeting._introduced

    def pass_time(*arguments: Any) -> str:
        try:
            return introduced(*arguments)
        finally:
            now[0] += PATIENCE

    monkeypatch.setattr(meeting, "_introduced", pass_time)
    monkeypatch.setattr(meeting, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep))


def outcomes(
    there: Sequence[World],
    hellos: Sequence[Hello],
    seconds: float = DEADLINE_SECONDS,
    meanwhile: Callable[[int], object] = lambda port: None,
    is_stopped: Callable[[], bool] = lambda: False,
    say: Callable[[str], object] = print,
) -> list[Any]:
    """What each rank that is there has met, or why not. The first is rank 0, which waits that many seconds.
    meanwhile: called with its port, before any other is there."""
    with listen(LOOPBACK, 0, there[0]) as server, ThreadPoolExecutor(len(there)) as threads:
        port = server.getsockname()[1]

        def outcome(world: World, own: Hello) -> Met | RlTuiError | StartStopped:
            own_server, patience = (server, seconds) if world is there[0] else (None, DEADLINE_SECONDS)
            try:
                met = meet(replace(world, port=port), own, own_server, patience, lambda: None, is_stopped, say)
            except (RlTuiError, StartStopped) as error:
                return error
            for connection in met.connections:
                connection.close()
            return met

        first = threads.submit(outcome, there[0], hellos[0])
        meanwhile(port)
        others = [threads.submit(outcome, *each) for each in zip(there[1:], hellos[1:], strict=True)]
        return [each.result() for each in (first, *others)]


def refusal(found: Sequence[Any], kind: type[RlTuiError] = ConfigError) -> str:
    """What all ranks say: the same."""
    assert all(isinstance(each, kind) for each in found), found
    (text,) = {str(each) for each in found}
    return text


def test_ranks_that_are_alike_meet(hello: Callable[[World], Hello]) -> None:
    there = worlds(3)
    found = outcomes(there, [hello(world) for world in there])
    assert [len(met.connections) for met in found] == [2, 1, 1]
    assert [[one.rank for one in met.hellos] for met in found] == [[0, 1, 2]] * 3


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"settings": {"env_settings.seed": "2"}}, "env_settings.seed is 2 there, 1 here"),
        ({"versions": {"rl-tui": "0.0.0"}}, "has rl-tui 0.0.0, and rank 0"),
        ({"versions": {"torch": "1.0"}}, "has torch 1.0, and rank 0"),
        ({"plugins": ["mine of my-package 1.0"]}, "has other plug-ins (mine of my-package 1.0) than rank 0"),
    ],
)
def test_rank_that_differs_is_named_on_all(changes: dict[str, Any], text: str, hello: Callable[[World], Hello]) -> None:
    there = worlds(3)
    hellos = [hello(world) for world in there]
    changed = {
        name: hellos[2].__getattribute__(name) | value if isinstance(value, dict) else value
        for name, value in changes.items()
    }
    said = refusal(outcomes(there, [*hellos[:2], replace(hellos[2], **changed)]))
    assert said.startswith(f"rank 2 of 3 on {HOST} has")
    assert text in said


def test_few_of_many_settings_are_shown(hello: Callable[[World], Hello]) -> None:
    there = worlds(2)
    own, other = (hello(world) for world in there)
    many = dict.fromkeys([f"a.{number}" for number in range(10)], "1")
    said = refusal(outcomes(there, [own, replace(other, settings={**other.settings, **many})]))
    assert "a.2 is 1 there, nothing here; and 7 other settings" in said


def test_ranks_of_different_numbers_are_named_at_once(hello: Callable[[World], Hello]) -> None:
    """Also where rank 0 still waits for others."""
    there = worlds(3)
    stranger = replace(there[1], size=5)
    said = refusal(outcomes([there[0], stranger], [hello(there[0]), hello(stranger)]))
    assert said == f"rank 1 of 5 on {HOST} is there, and rank 0 of 3 on {HOST}: start all with the same number"


def test_two_processes_that_are_the_same_rank_are_named_at_once(hello: Callable[[World], Hello]) -> None:
    there = worlds(3)
    found = outcomes([there[0], there[1], there[1]], [hello(there[0]), hello(there[1]), hello(there[1])])
    said = f"rank 1 of 3 on {HOST} is there twice, the other one on {HOST}: each needs a RANK of its own"
    assert refusal(found) == said


@pytest.mark.usefixtures("time_ends_once_one_came")
def test_rank_that_does_not_come_is_named(hello: Callable[[World], Hello]) -> None:
    there = worlds(4)
    first, other = outcomes([there[0], there[2]], [hello(there[0]), hello(there[2])], PATIENCE)
    assert str(first) == f"ranks 1, 3 have not come within {PATIENCE:g} s: this is rank 0 of 4, on {HOST}"
    assert isinstance(other, SyncError)


def test_rank_0_that_does_not_answer_is_named_with_its_address(hello: Callable[[World], Hello]) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
    world = replace(worlds(2)[1], port=port)
    with pytest.raises(SyncError, match=f"rank 0 of 2 does not answer at {LOOPBACK}:{port} within 0.3 s") as caught:
        meet(world, hello(world), None, SOON, lambda: None, lambda: False, print)
    assert "Connection refused" in str(caught.value)


def test_port_in_use_is_named() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        text = f"rank 0 of 2 cannot wait for the others at {LOOPBACK}:{port}: Address already in use. Another run"
        with pytest.raises(ConfigError, match=text):
            listen(LOOPBACK, port, worlds(2)[0])


ANSWERS = {"http": b"HTTP/1.1 400 Bad Request\r\n\r\n", "large": struct.pack("!iQ", -1, 1 << 62), "none": b""}


@pytest.mark.parametrize("answer", ANSWERS)
def test_other_program_that_answers_in_place_of_rank_0_is_named(answer: str, hello: Callable[[World], Hello]) -> None:
    with socket.create_server((LOOPBACK, 0)) as server, ThreadPoolExecutor(1) as threads:
        world = replace(worlds(2)[1], port=server.getsockname()[1])

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 20)
                connection.sendall(ANSWERS[answer])

        threads.submit(serve)
        with pytest.raises(SyncError, match="has ended or is no rank of this run"):
            meet(world, hello(world), None, DEADLINE_SECONDS, lambda: None, lambda: False, print)


SENT = {
    "nothing": b"",
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "no hello": struct.pack("!i", 2) + b"{}",
    "no object": struct.pack("!i", 2) + b"[]",
}


@pytest.mark.parametrize("sent", SENT)
def test_other_program_that_finds_the_port_keeps_no_rank_waiting(sent: str, hello: Callable[[World], Hello]) -> None:
    there = worlds(2)
    kept = []

    def intrude(port: int) -> None:
        kept.append(socket.create_connection((LOOPBACK, port)))
        kept[0].sendall(SENT[sent])

    found = outcomes(there, [hello(world) for world in there], meanwhile=intrude)
    kept[0].close()
    assert all(isinstance(each, Met) for each in found), found


def test_rank_with_another_key_is_refused_and_keeps_no_rank_waiting(hello: Callable[[World], Hello]) -> None:
    there = worlds(2)
    stranger = replace(there[1], key="")

    def intrude(port: int) -> None:
        with pytest.raises(ConfigError) as caught:
            meet(replace(stranger, port=port), hello(stranger), None, DEADLINE_SECONDS, lambda: None, bool, print)
        assert str(caught.value) == f"rank 1 of 2 on {HOST} has another {KEY} than rank 0, or none"

    found = outcomes(there, [hello(world) for world in there], meanwhile=intrude)
    assert all(isinstance(each, Met) for each in found), found


@pytest.mark.usefixtures("time_ends_once_one_came")
def test_only_rank_that_came_is_named_if_it_has_another_key(hello: Callable[[World], Hello]) -> None:
    there = worlds(2)
    stranger = replace(there[1], key="")
    first, other = outcomes([there[0], stranger], [hello(there[0]), hello(stranger)], PATIENCE)
    assert str(first) == (
        f"rank 1 has not come within {PATIENCE:g} s: this is rank 0 of 2, on {HOST}"
        f" (rank 1 of 2 on {HOST} came, with another {KEY} or none)"
    )
    assert isinstance(other, ConfigError)


def test_one_that_comes_when_all_have_met_is_refused(hello: Callable[[World], Hello]) -> None:
    """It has connected, but not yet said who it is, when the last rank that was missing says so."""
    there, kept = worlds(2), []

    def come(port: int) -> None:
        kept.append(meeting.blocking(socket.create_connection((LOOPBACK, port)), DEADLINE_SECONDS))

    found = outcomes(there, [hello(world) for world in there], meanwhile=come)
    assert all(isinstance(each, Met) for each in found), found
    with kept[0]:
        refused, hellos = json.loads(kept[0].recv_bytes())
    assert refused == f"all ranks have met rank 0 of 2 on {HOST} already: this one is not of its run"
    assert not hellos


def test_ranks_say_for_what_they_wait(hello: Callable[[World], Hello], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "QUIET_SECONDS", 0.0)
    there, said = worlds(3), list[str]()
    hellos = [hello(world) for world in there[:2]]
    outcomes(there[:2], hellos, is_stopped=lambda: len(said) == 2, say=said.append)
    first, other = sorted(said)
    assert first == f"waiting up to {DEADLINE_SECONDS:g} s for rank 0 of 3 at {LOOPBACK}:{first.rpartition(':')[2]}"
    assert other in {f"waiting up to {DEADLINE_SECONDS:g} s for rank{which} of 3" for which in ("s 1, 2", " 2")}


def test_rank_that_ends_while_others_are_waited_for_is_named(hello: Callable[[World], Hello]) -> None:
    there = worlds(3)
    gone = replace(there[1], port=0)

    def come_and_go(port: int) -> None:
        content = hello(gone).encoded()
        with socket.create_connection((LOOPBACK, port)) as connected:
            connected.sendall(struct.pack("!i", len(content)) + content)

    (first,) = outcomes([there[0]], [hello(there[0])], meanwhile=come_and_go)
    assert isinstance(first, SyncError)
    assert str(first) == f"rank 1 of 3 on {HOST} has ended before all others had come"


def test_stop_ends_the_waiting_on_both_sides(hello: Callable[[World], Hello]) -> None:
    there = worlds(3)
    stops = iter([False] * 4)
    found = outcomes(there[:2], [hello(world) for world in there[:2]], is_stopped=lambda: next(stops, True))
    assert isinstance(found[0], StartStopped), found


@pytest.mark.parametrize(("code", "kind"), [("sys.exit(2)", ConfigError), ("os.kill(os.getpid(), 9)", SyncError)])
def test_started_rank_that_ends_before_it_joins_is_named(
    code: str, kind: type[RlTuiError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/usr/bin/env python3\nimport os, sys\n{code}\n")
    program.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(program))
    ranks = LocalRanks(2, new_key())
    ranks.start([])
    try:
        wait_until(lambda: any(process.poll() is not None for process in ranks._processes.values()))
        with pytest.raises(kind, match=r"rank 1 of 2 (ended with exit code 2|was ended by SIGKILL) before it joined"):
            ranks.check()
    finally:
        ranks.end()
