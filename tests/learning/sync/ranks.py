"""Real processes as the ranks of torch.distributed, over gloo; one group of them serves many tests."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from rl_tui.engine.learning.sync import ProcessGroup
from tests.deadline import DEADLINE_SECONDS

PRELOADED = ["torch.distributed", "rl_tui.engine.learning.ppo.trainer", "rl_tui.engine.learning.sac.trainer"]


class Dead(Exception):
    """Instead of a result: the process of this rank has ended."""


class Ranks:
    """Processes that carry out the same function at the same time."""

    def __init__(self, processes: Sequence[BaseProcess], connections: Sequence[Connection]):
        self.processes = processes
        self._connections = connections

    def run(self, work: Callable[..., Any], *arguments: Any, deadline: float = DEADLINE_SECONDS / 2) -> list[Any]:
        """`work(group, *arguments)` on every rank, with a new ProcessGroup: what each returned or raised."""
        for connection in self._connections:
            connection.send((work, deadline, arguments))
        return [self._receive(connection) for connection in self._connections]

    def _receive(self, connection: Connection) -> Any:
        try:
            assert connection.poll(DEADLINE_SECONDS), "a rank did not answer"
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
    context: ForkServerContext = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)  # torch is imported once
    pairs = [context.Pipe() for _ in range(size)]
    store = str(folder / "store")
    processes = [
        context.Process(target=_serve, args=(rank, size, store, theirs), daemon=True)
        for rank, (_, theirs) in enumerate(pairs)
    ]
    for process in processes:
        process.start()
    for _, theirs in pairs:
        theirs.close()
    try:
        yield Ranks(processes, [ours for ours, _ in pairs])
    finally:
        for process in processes:
            process.kill()
            process.join()


def _serve(rank: int, size: int, store: str, connection: Connection) -> None:
    """The main of a rank: carry out what is sent."""
    torch.set_num_threads(1)
    loopback = "lo" if sys.platform == "linux" else "lo0"  # the name of this machine may not resolve
    os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    while True:
        work, deadline, arguments = connection.recv()
        try:
            result = work(ProcessGroup(deadline), *arguments)
        except Exception as error:  # noqa: BLE001  # it is the result
            error.add_note(traceback.format_exc())
            result = error
        connection.send(result)
