"""Real processes as the ranks of torch.distributed, over gloo; one group of them serves many tests."""

from __future__ import annotations

import faulthandler
import itertools
import os
import socket
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from rl_tui.engine.learning.sync import ProcessGroup
from rl_tui.engine.running.ranks.shared_memory import shared_memory
from tests.deadline import DEADLINE_SECONDS
from tests.warm_start import ROOT, WarmProcess


class Dead(Exception):
    """Instead of a result: the process of this rank has ended."""


class Ranks:
    """Processes that carry out the same function at the same time."""

    def __init__(self, connections: Sequence[Connection]):
        self._connections = connections
        self.in_memory = False  # that they share, or over gloo

    def run(self, work: Callable[..., Any], *arguments: Any, deadline: float = DEADLINE_SECONDS / 2) -> list[Any]:
        """`work(group, *arguments)` on every rank, with a new ProcessGroup: what each returned or raised."""
        for connection in self._connections:
            connection.send((work, deadline, self.in_memory, arguments))
        return [self._receive(rank, connection) for rank, connection in enumerate(self._connections)]

    def _receive(self, rank: int, connection: Connection) -> Any:
        try:
            assert connection.poll(DEADLINE_SECONDS), f"rank {rank} did not answer; it has printed where it is"
            return connection.recv()
        except (EOFError, ConnectionError):
            return Dead()

    def results(self, work: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What each returned. Fails if one raised."""
        found = self.run(work, *arguments)
        for one in found:
            if isinstance(one, BaseException):
                raise AssertionError("a rank raised") from one
        return found


@contextmanager
def start_ranks(size: int, folder: Path) -> Iterator[Ranks]:
    """So many processes, ended at the end. folder: where they find each other."""
    program = f"from {__name__} import serve; import sys; serve(*sys.argv[1:])"
    processes, connections = [], []
    for rank in range(size):
        ours, theirs = socket.socketpair()
        words = [str(rank), str(size), str(folder / "store"), str(theirs.fileno())]
        with theirs:
            process = WarmProcess([sys.executable, "-c", program, *words], cwd=ROOT, pass_fds=[theirs.fileno()])
        processes.append(process)
        connections.append(Connection(ours.detach()))
    try:
        yield Ranks(connections)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for connection in connections:
            connection.close()


def serve(rank: str, size: str, store: str, descriptor: str) -> None:
    """The main of a rank: carry out what is sent."""
    torch.set_num_threads(1)
    loopback = "lo" if sys.platform == "linux" else "lo0"  # the name of this machine may not resolve
    os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)
    connection = Connection(int(descriptor))
    for number in itertools.count():
        work, deadline, in_memory, arguments = connection.recv()
        faulthandler.dump_traceback_later(0.8 * DEADLINE_SECONDS)
        place = f"file://{store}-{number}"
        distributed.init_process_group("gloo", init_method=place, rank=int(rank), world_size=int(size))
        try:
            group = ProcessGroup(deadline)
            if in_memory:
                group.transport = shared_memory(group, deadline, lambda: "") or group.transport
            result = work(group, *arguments)
        except Exception as error:  # noqa: BLE001  # it is the result
            error.add_note(traceback.format_exc())
            result = error
        distributed.destroy_process_group()  # of hundreds of groups, threads would take a tenth of a core
        faulthandler.cancel_dump_traceback_later()
        connection.send(result)
