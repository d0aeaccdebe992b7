"""What connects to a run's socket and does not speak as it should: no command is taken, and nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from rl_tui.engine.errors import AttachError
from rl_tui.engine.remote.client import attach_to
from rl_tui.engine.remote.greeting import greeting_of_client, read_client
from rl_tui.engine.remote.server import MOST_CLIENTS
from rl_tui.engine.remote.sockets import FOLDER_VARIABLE, socket_path
from rl_tui.engine.session.codec import decode_command, encode_command
from rl_tui.engine.session.messages import AddNote, Attend, Pause, ProgressReported, RollBack, SetHyperparameter, Stop
from tests.deadline import DEADLINE_SECONDS, wait_until
from tests.remote.served import Served, attached, served
from tests.tui import scenes

OTHER_USER = 65534
FRAMES = (
    greeting_of_client("view"),
    greeting_of_client("outcomes"),
    *map(
        encode_command,
        (
            Pause(),
            Stop(),
            AddNote("a"),
            SetHyperparameter("Walker", "beta", 0.1),
            RollBack("Walker", "/a"),
            Attend(True, "a"),
        ),
    ),
    json.dumps({"v": 1, "part": '{"v": 1, "command": "Pause", "id": "a", "behavior": null}', "more": False}),
)


def own_threads() -> set[str]:
    """Names of all but those that watch over the tests."""
    return {thread.name for thread in threading.enumerate() if not thread.name.startswith("pytest_timeout")}


@pytest.fixture
def socket_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Served, Path]]:
    """A run and its socket. Afterwards the run serves others as before, and has kept no descriptor and no thread."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "sockets"))
    with served(tmp_path, scenes.healthy(1).view()) as run:
        path = socket_path(run.path, os.getpid())
        wait_until(path.exists)
        with attached(run.path):
            pass
        wait_until(lambda: run.server.num_clients == 0)
        descriptors, threads = psutil.Process().num_fds(), own_threads()
        yield run, path
        wait_until(lambda: run.server.num_clients == 0)
        assert run.session.commands == []
        # The server's own thread may hold one for a moment, as while it makes its socket again: now, or when those were
        # counted that may be left.
        wait_until(lambda: psutil.Process().num_fds() <= descriptors and own_threads() <= threads)
        with attached(run.path) as session:
            run.publish(ProgressReported("Walker", 1_000_000, 1_000_000, 1.0, 1))
            wait_until(lambda: session.live.snapshot().behaviors["Walker"].step == 1_000_000)


def connected(path: Path) -> socket.socket:
    """A connection that has read nothing yet."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(DEADLINE_SECONDS)
    connection.connect(str(path))
    return connection


def mutated(frame: str, luck: random.Random) -> bytes:
    """The frame with bytes changed, left out, doubled or swapped."""
    content = bytearray(frame.encode())
    for _ in range(luck.choice((1, 1, 2, 8))):
        at = luck.randrange(len(content))
        match luck.randrange(5):
            case 0:
                content[at] = luck.randrange(256)
            case 1:
                del content[at : at + luck.randrange(1, 9)]
            case 2:
                content[at:at] = content[at : at + luck.randrange(1, 9)]
            case 3:
                content[at] ^= 1 << luck.randrange(8)
            case _:
                content = content[: at + 1]
        if not content:
            break
    return bytes(content)


def is_of_protocol(line: bytes) -> bool:
    """Whether a line is a command, a greeting or a part of one all the same: only its text has changed."""
    for read in (decode_command, read_client, lambda text: json.loads(text)["part"]):
        with contextlib.suppress(Exception):
            read(line.decode())  # type: ignore[operator]  # each takes a text
            return True
    return False


@pytest.mark.parametrize("times", [200, pytest.param(10_000, marks=pytest.mark.faults)])
def test_mutated_frames_are_no_commands(socket_of: tuple[Served, Path], times: int) -> None:
    _, path = socket_of
    luck, num_dropped = random.Random(1), 0
    while num_dropped < times:
        content = mutated(luck.choice(FRAMES), luck)
        if any(is_of_protocol(line) for line in content.split(b"\n")):
            continue
        with connected(path) as connection:
            greeted = luck.random() < 0.7
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(
                    (f"{greeting_of_client('outcomes')}\n".encode() if greeted else b"") + content + b"\n"
                )
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):
                    pass
        num_dropped += 1
    print(f"\n{times:,} mutated frames: none was taken as a command")


@pytest.mark.parametrize("times", [100, pytest.param(1000, marks=pytest.mark.faults)])
def test_many_connections_at_once_are_refused_beyond_the_limit(socket_of: tuple[Served, Path], times: int) -> None:
    run, path = socket_of
    with contextlib.ExitStack() as stack:
        for _ in range(times):
            with contextlib.suppress(BlockingIOError):  # more wait to be accepted than the kernel lets
                connection = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                connection.setblocking(False)
                connection.connect(str(path))
        wait_until(lambda: run.server.num_clients == MOST_CLIENTS)
        with pytest.raises(AttachError, match="the most that it serves"):
            attach_to(run.path)
        run.publish(ProgressReported("Walker", 500_000, 500_000, 1.0, 1))


def half_open(path: Path) -> None:
    """It stays, and says nothing."""
    with connected(path):
        time.sleep(0.1)


def dies_within_a_frame(path: Path) -> None:
    with connected(path) as connection:
        connection.sendall(f"{greeting_of_client('view')}\n".encode() + encode_command(Pause()).encode()[:-3])


def is_reset(path: Path) -> None:
    """Its end is gone at once, with what was sent to it unread."""
    connection = connected(path)
    connection.sendall(f"{greeting_of_client('view')}\n".encode())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def sends_without_end(path: Path) -> None:
    """A line that does not end."""
    with connected(path) as connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for _ in range(100):
            connection.sendall(b"x" * (1 << 16))


@pytest.mark.parametrize("client", [half_open, dies_within_a_frame, is_reset, sends_without_end])
def test_client_that_does_not_go_on_is_dropped(
    socket_of: tuple[Served, Path], client: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, path = socket_of
    for _ in range(20):
        client(path)


def test_client_that_never_reads_does_not_hold_up_the_run(socket_of: tuple[Served, Path]) -> None:
    run, path = socket_of
    memory = psutil.Process().memory_info().rss
    with connected(path) as connection:
        connection.sendall(f"{greeting_of_client('view')}\n".encode())
        wait_until(lambda: run.server.num_clients == 1)
        longest = 0.0
        for step in range(20_000):
            begin = time.perf_counter()
            run.publish(ProgressReported("Walker", step, step, 1.0, 1))
            longest = max(longest, time.perf_counter() - begin)
        with attached(run.path) as session:
            run.publish(ProgressReported("Walker", 20_000, 20_000, 1.0, 1))  # of the burst some may be left out
            wait_until(lambda: session.live.snapshot().behaviors["Walker"].step == 20_000)
    assert psutil.Process().memory_info().rss - memory < 64 << 20
    print(f"\na client that never reads: 20,000 events, the longest took {1e3 * longest:.1f} ms to publish")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_cannot_connect(socket_of: tuple[Served, Path]) -> None:
    """Neither through the folder, nor where that would let him in: the kernel says who he is."""
    _, path = socket_of

    def attempt() -> str:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.setuid(OTHER_USER)
                connection = connected(path)
                os.write(writing, b"let in" if connection.recv(1) else b"dropped")
            except OSError as error:
                os.write(writing, (error.strerror or "").encode())
            finally:
                os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        with os.fdopen(reading, "rb") as said:
            return said.read().decode()

    assert attempt() == "Permission denied"
    folders = [path.parent, *path.parents][:-1]
    modes = {folder: folder.stat().st_mode for folder in folders}
    try:
        for folder in folders:
            folder.chmod(0o777)
        path.chmod(0o777)
        assert attempt() == "dropped"
    finally:
        for folder, mode in modes.items():
            folder.chmod(mode)


@pytest.mark.parametrize("fake", ["socket that nothing serves", "link", "file"])
def test_what_stands_in_the_place_of_the_socket_is_not_spoken_to(socket_of: tuple[Served, Path], fake: str) -> None:
    run, path = socket_of
    elsewhere, made = path.with_name("elsewhere"), path.with_name("made")
    os.link(path, elsewhere)
    if fake == "link":
        made.symlink_to(elsewhere)
    elif fake == "file":
        made.write_text("")
    else:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
            stale.bind(str(made))
    made.replace(path)  # at once: the socket would be made again
    try:
        with pytest.raises(
            AttachError, match=r"does not answer at .* \((not a socket of this user|Connection refused|it is not)"
        ):
            attach_to(run.path)
    finally:
        path.unlink()
        wait_until(path.exists)  # it is made again
