"""The other ranks of a run on this machine, started and ended by rank 0."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from subprocess import DEVNULL, Popen, TimeoutExpired

from rl_tui.engine.errors import ConfigError, SyncError
from rl_tui.engine.running.ranks.world import KEY, LIFELINE, World

LOOPBACK = "127.0.0.1"
ENDING_SECONDS = 5.0  # for ranks that end by themselves: rank 0 has said so, or has ended its connection


class LocalRanks:
    """Used by one thread. server: where rank 0 waits for them. world: of rank 0."""

    def __init__(self, size: int, key: str) -> None:
        """key: a secret that no other program has."""
        self.server = socket.create_server((LOOPBACK, 0), backlog=size)
        port = self.server.getsockname()[1]
        self.world = World(0, size, 0, size, LOOPBACK, port, "rl-tui", key)
        self._processes: dict[int, Popen[bytes]] = {}
        self._lifeline = -1

    def start(self, words: Sequence[str]) -> None:
        """Start them with this command line of rl-tui."""
        theirs, self._lifeline = os.pipe()
        world, common = self.world, dict(os.environ)
        common |= {"WORLD_SIZE": str(world.size), "LOCAL_WORLD_SIZE": str(world.size), LIFELINE: str(theirs)}
        common |= {"MASTER_ADDR": world.address, "MASTER_PORT": str(world.port), KEY: world.key}
        try:
            for rank in range(1, world.size):
                self._processes[rank] = Popen(  # this program
                    [sys.executable, "-m", "rl_tui", *words],
                    env=common | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                    stdin=DEVNULL,
                    pass_fds=[theirs],
                    start_new_session=True,  # Ctrl-C, and a terminal that closes, are for rank 0
                )
        finally:
            os.close(theirs)

    def check(self) -> None:
        """Once one has ended, raises ConfigError, as where it cannot read what rank 0 has read; SyncError where it was
        killed."""
        for rank, process in self._processes.items():
            if (code := process.poll()) is not None:
                who = f"rank {rank} of {self.world.size}"
                kind = SyncError if code < 0 else ConfigError
                raise kind(f"{who} {ended_how(code)} before it joined: see its output")

    def end(self) -> None:
        """Wait a moment for their end, then end them."""
        self.server.close()
        until = time.monotonic() + ENDING_SECONDS
        for process in self._processes.values():
            with suppress(TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
        if self._lifeline >= 0:
            os.close(self._lifeline)  # the kernel kills those that are left, with all that they have started
            self._lifeline = -1
        for process in self._processes.values():
            process.wait()


def ended_how(code: int) -> str:
    """The end of a process in words. code: as Popen has it."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
