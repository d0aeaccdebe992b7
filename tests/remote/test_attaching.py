"""A run in another process is seen and controlled as one in this."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rl_tui.engine.errors import AttachError
from rl_tui.engine.remote import client, served_client, server
from rl_tui.engine.remote.client import LOST, RemoteSession, attach_to
from rl_tui.engine.remote.greeting import greeting_of_client, read_run
from rl_tui.engine.remote.lines import LineReader
from rl_tui.engine.remote.sockets import FOLDER_VARIABLE, socket_path
from rl_tui.engine.session.messages import (
    Attend,
    EpisodesFinished,
    Pause,
    ProgressReported,
    RunStarted,
    RunStateChanged,
    SaveCheckpoint,
    SetHyperparameter,
    YieldToScreen,
)
from rl_tui.tui.command_line.ctl import ctl
from tests.deadline import DEADLINE_SECONDS, wait_until
from tests.remote.served import Served, attached, served
from tests.tui import scenes


@pytest.fixture(autouse=True)
def sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "sockets"
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    return folder


def is_equal(session: RemoteSession, run: Served) -> bool:
    """Whether both ends have the same view."""
    session.live.fold()
    run.session.live.fold()
    return repr(session.live.view) == repr(run.session.live.view)


def attach_soon(run: Served) -> None:
    """Wait until its socket is there."""
    wait_until(lambda: socket_path(run.path, os.getpid()).exists())


def test_view_is_that_of_the_run_and_follows_it(tmp_path: Path) -> None:
    with served(tmp_path, scenes.healthy(3).view()) as run:
        attach_soon(run)
        with attached(run.path) as session:
            assert is_equal(session, run)
            assert len(session.live.view.behaviors) == 3
            for step in range(200_000, 210_000, 100):
                run.publish(ProgressReported("Walker", step, step, 900.0, step // 100))
                run.publish(EpisodesFinished("Walker", step, 1, 400.0, 1.0, 2.0, 500.0))
            wait_until(lambda: is_equal(session, run))
            assert session.live.view.behaviors["Walker"].step == 209_900


def test_events_while_it_attaches_are_neither_missing_nor_twice(tmp_path: Path) -> None:
    with served(tmp_path, scenes.healthy(1).view()) as run:
        attach_soon(run)
        for _ in range(10):
            before = run.session.live.snapshot().behaviors["Walker"].num_episodes
            run.publish(*(EpisodesFinished("Walker", 200_000, 1, 1.0, 1.0, 1.0, 9.0) for _ in range(50)))
            with attached(run.path) as session:
                run.publish(*(EpisodesFinished("Walker", 200_000, 1, 1.0, 1.0, 1.0, 9.0) for _ in range(50)))
                wait_until(lambda: is_equal(session, run))
                assert session.live.view.behaviors["Walker"].num_episodes == before + 100


def test_commands_and_hints_reach_the_run_and_outcomes_come_back(tmp_path: Path) -> None:
    with served(tmp_path, scenes.healthy(1).view()) as run:
        attach_soon(run)
        with attached(run.path) as session:
            command = SetHyperparameter("Walker", "beta", 0.1)
            for message in (YieldToScreen(0.1), Attend(True, "screen"), Pause(), command):
                session.send(message)
            wait_until(lambda: session.live.outcome(command.id) is not None)
            outcome = session.live.outcome(command.id)
            assert outcome is not None
            assert outcome.ok
            assert run.session.commands[1] == command
            assert run.session.hints[0] == YieldToScreen(0.1)
            assert isinstance(run.session.hints[1], Attend)
            assert run.session.hints[1].screen
        wait_until(lambda: len(run.session.hints) == 3)  # a screen that leaves no longer attends
        assert run.session.hints[2] == Attend(False, run.session.hints[1].screen)


def test_greetings_may_cross(tmp_path: Path) -> None:
    with served(tmp_path, scenes.healthy(1).view()) as run:
        attach_soon(run)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.settimeout(DEADLINE_SECONDS)
            other.connect(str(socket_path(run.path, os.getpid())))
            other.sendall(greeting_of_client("view").encode() + b"\n")
            reader, found = LineReader(), list[str]()
            while not any(message.startswith('{"v": 1, "complete"') for message in found):
                found += reader.feed(other.recv(1 << 16))
            assert read_run(found[0]).run_id == "served"
            assert found[1].startswith('{"v": 1, "view"')


def test_sockets_of_processes_that_are_gone_are_removed(tmp_path: Path, sockets: Path) -> None:
    sockets.mkdir(mode=0o700)
    gone = subprocess.Popen(["true"])
    gone.wait()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
        stale.bind(str(sockets / f"1-2-{gone.pid}"))
    (sockets / "notes-1").touch()
    with served(tmp_path) as run:
        attach_soon(run)
        assert sorted(path.name for path in sockets.iterdir()) == sorted(
            [socket_path(run.path, os.getpid()).name, "notes-1"]
        )
        found = socket_path(run.path, os.getpid()).stat()
        assert (found.st_mode & 0o777, sockets.stat().st_mode & 0o777) == (0o600, 0o700)


def test_many_see_the_same(tmp_path: Path) -> None:
    with served(tmp_path, scenes.healthy(2).view()) as run:
        attach_soon(run)
        with attached(run.path) as one, attached(run.path) as two:
            one.send(SaveCheckpoint("Walker"))
            for session in (one, two):
                wait_until(lambda session=session: is_equal(session, run) and bool(session.live.view.commands))


def test_reader_that_is_behind_gets_the_view_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_client, "QUEUE_BYTES", 20_000)
    with served(tmp_path, scenes.healthy(1).view()) as run:
        attach_soon(run)
        session = attach_to(run.path)  # and does not read
        for step in range(200_000, 300_000, 10):
            run.publish(ProgressReported("Walker", step, step, 900.0, step // 100))
        wait_until(lambda: run.server._mail.num_waiting == 0)
        view = session.live.view
        thread = threading.Thread(target=session.main)
        thread.start()
        wait_until(lambda: is_equal(session, run))
        session.close()
        thread.join(DEADLINE_SECONDS)
        assert session.live.view is not view
        assert session.live.mail.dropped == 0


def test_end_of_the_run_is_the_last_that_comes(tmp_path: Path) -> None:
    with served(tmp_path, scenes.healthy(1).view()) as run:
        attach_soon(run)
        with attached(run.path) as session:
            run.publish(RunStateChanged("finished", "", 0))
            assert session.wait(DEADLINE_SECONDS)
            session.live.fold()
            assert (session.live.view.state, session.live.view.exit_code) == ("finished", 0)
        run.thread.join(DEADLINE_SECONDS)
        assert not socket_path(run.path, os.getpid()).exists()


def test_command_of_a_script_ends_with_an_error_where_the_process_is_gone_before_it_answers(tmp_path: Path) -> None:
    with served(tmp_path, scenes.healthy(1).view()) as run, ThreadPoolExecutor(1) as scripts:
        run.session.answers = False
        attach_soon(run)
        asked = scripts.submit(ctl, [str(run.path), "pause"])
        wait_until(lambda: len(run.session.commands) == 1)
        run.server.close()
        with pytest.raises(AttachError, match="its process ended before it answered"):
            asked.result(DEADLINE_SECONDS)


def test_process_that_is_gone_has_interrupted_the_run(tmp_path: Path) -> None:
    with served(tmp_path, scenes.healthy(1).view()) as run:
        attach_soon(run)
        with attached(run.path) as session:
            for each in list(run.server._clients.values()):
                each.connection.shutdown(socket.SHUT_RDWR)  # as the kernel does
            assert session.wait(DEADLINE_SECONDS)
            session.live.fold()
            assert (session.live.view.state, session.live.view.reason) == ("interrupted", LOST)
            session.send(Pause())  # goes nowhere


def test_earlier_events_of_a_resumed_run_are_in_the_view(tmp_path: Path) -> None:
    story = scenes.healthy(1)

    def past(_: RunStarted) -> Iterator:
        yield from story.published

    with served(tmp_path, resumed=True, past=past) as run:
        attach_soon(run)
        run.publish(ProgressReported("Walker", 300_000, 300_000, 900.0, 100))
        with attached(run.path) as session:
            wait_until(
                lambda: session.live.fold() is not None and session.live.view.behaviors["Walker"].step == 300_000
            )
            assert session.live.view.behaviors["Walker"].num_episodes == story.view().behaviors["Walker"].num_episodes


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b'{"v": 1, "client": {}}\n',
        b'{"v": 1, "client": {"version": "0", "wants": "all", "pid": 1}}\n',
        greeting_of_client("view").encode() + b"\nhello\n",
        greeting_of_client("outcomes").encode() + b'\n{"v": 1, "command": "Pause"}\n',
        b"\xff" * 100 + b"\n",
    ],
    ids=["http", "no wants", "wrong wants", "no command", "no id", "no ascii"],
)
def test_who_does_not_speak_as_it_should_is_dropped_and_no_command_taken(tmp_path: Path, sent: bytes) -> None:
    with served(tmp_path, scenes.healthy(1).view()) as run:
        attach_soon(run)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.settimeout(DEADLINE_SECONDS)
            other.connect(str(socket_path(run.path, os.getpid())))
            other.sendall(sent)
            while other.recv(1 << 16):
                pass
        assert run.session.commands == []
        with attached(run.path) as session:
            assert is_equal(session, run)


def test_who_says_nothing_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "GREETING_SECONDS", 0.1)
    with served(tmp_path) as run:
        attach_soon(run)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.settimeout(DEADLINE_SECONDS)
            other.connect(str(socket_path(run.path, os.getpid())))
            while other.recv(1 << 16):
                pass


def test_run_without_a_process_cannot_be_attached_to(tmp_path: Path) -> None:
    with served(tmp_path) as run:
        attach_soon(run)
    with pytest.raises(AttachError, match="no process trains it now"):
        attach_to(run.path)


def test_run_of_another_version_says_what_can_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "VERSION", "9.9")
    with served(tmp_path) as run:
        attach_soon(run)
        with pytest.raises(AttachError, match=r"and this is 9\.9: attach with that version, or send its process \d+"):
            attach_to(run.path)


def test_stale_socket_of_a_process_that_is_gone_is_not_spoken_to(tmp_path: Path, sockets: Path) -> None:
    with served(tmp_path) as run:
        attach_soon(run)
        path = socket_path(run.path, os.getpid())
        path.unlink()
        with attached(run.path):
            pass  # it was made again
        link = path.with_name("link")
        link.symlink_to(tmp_path / "elsewhere")
        link.replace(path)  # at once: it would be made again
        with pytest.raises(AttachError, match="not a socket of this user"):
            attach_to(run.path)


@pytest.mark.parametrize("fault", ["open", "link", "file", "long"])
def test_without_a_private_folder_it_trains_and_says_why_there_is_no_attaching(
    tmp_path: Path, sockets: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    if fault == "open":
        sockets.mkdir()
        sockets.chmod(0o755)
    elif fault == "link":
        sockets.symlink_to(tmp_path)
    elif fault == "file":
        sockets.touch()
    else:
        monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / ("x" * 120)))
    with served(tmp_path / "results") as run:
        wait_until(lambda: bool(run.logged))
        assert run.logged[0].startswith("no attaching to this run: ")
        run.publish(RunStateChanged("finished", "", 0))
        run.thread.join(DEADLINE_SECONDS)
        assert not run.thread.is_alive()
