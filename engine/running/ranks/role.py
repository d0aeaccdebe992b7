"""What one rank of a run has: rank 0 everything, the others only training."""

from __future__ import annotations

import hmac
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Final, TypeVar

from rl_tui.engine.config.environment_name import EDITOR
from rl_tui.engine.config.naming import switched_on
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.errors import NotSupportedError, SyncError
from rl_tui.engine.learning.sync import ONE_RANK, ProcessGroup, Sync
from rl_tui.engine.running.ranks.link import Link, limit_waiting
from rl_tui.engine.running.ranks.messages import Found
from rl_tui.engine.specs import BehaviorSpec

M = TypeVar("M")
KEY_BYTES = 32


@dataclass(frozen=True)
class Role:
    """Given to a run at its start. links: of rank 0 to the others, in their order; of another rank to rank 0.

    deadline: in seconds of `clock`, after which a silent rank is lost.
    """

    rank: int = 0
    size: int = 1
    links: Sequence[Link] = field(default=(), repr=False)
    deadline: float = 0.0
    clock: Callable[[], float] = time.monotonic

    @property
    def leads(self) -> bool:
        """Whether it has the folder and its lock, logs, files, writers, health, commands: rank 0, or the only one."""
        return self.rank == 0

    @property
    def has_others(self) -> bool:
        """Whether there are several ranks."""
        return self.size > 1

    def make_sync(self) -> Sync:
        """What the trainer of one more behavior agrees on with others. Every rank makes them in the same order."""
        return ProcessGroup(self.deadline) if self.has_others else ONE_RANK

    def share(self, kind: type[M], make: Callable[[], M]) -> M:
        """What rank 0 makes, on every rank. Raises SyncError."""
        if not self.leads:
            return self.receive(kind)
        made = make()
        for link in self.links:
            link.send(made)
        return made

    def receive(self, kind: type[M]) -> M:
        """On another rank than 0: what that shares. Raises SyncError."""
        return self.links[0].wait_for(kind)

    def share_specs(self, own: Mapping[str, BehaviorSpec]) -> Mapping[str, BehaviorSpec]:
        """The behaviors that any rank has found, those of rank 0 first. Raises SyncError."""
        if not self.has_others:
            return own
        if not self.leads:
            self.links[0].send(Found(own))
        return self.share(Found, lambda: Found(self._all_specs(own))).specs

    def _all_specs(self, own: Mapping[str, BehaviorSpec]) -> Mapping[str, BehaviorSpec]:
        specs = dict(own)
        for rank, link in enumerate(self.links, 1):
            for name, spec in link.wait_for(Found).specs.items():
                if specs.setdefault(name, spec) != spec:
                    raise SyncError(f"{name} has other observations or actions on rank {rank} than on others")
        return specs

    def require_supported(self, config: RunConfig) -> None:
        """Raises NotSupportedError for what one rank can do, and several cannot yet."""
        if not self.has_others:
            return
        refused = [f"behaviors.{name}.threaded: true" for name, one in config.behaviors.items() if one.threaded]
        cloned = [(name, one) for name, one in config.behaviors.items() if not one.hyperparameters.learns_from_rewards]
        refused += [f"behaviors.{name}.trainer_type: {one.trainer_type}" for name, one in cloned]
        if config.default_settings is not None and config.default_settings.threaded:
            refused.append("default_settings.threaded: true")
        if not isinstance(config.env_settings.environment, str):
            refused.append("env_settings.env: an environment for each behavior")
        elif config.env_settings.environment == EDITOR:
            refused.append("env_settings.env: an Editor, of which there is one")
        if config.checkpoint_settings.inference:
            refused.append(switched_on("checkpoint_settings.inference"))
        if refused:
            raise NotSupportedError("\n".join(f"{each} is not supported on several ranks yet" for each in refused))

    def close(self) -> None:
        """Other ranks find that this one has left."""
        for link in self.links:
            link.close()


ALONE: Final = Role()


def join_ranks(deadline: float, clock: Callable[[], float] = time.monotonic) -> Role:
    """The role of this process, once torch.distributed is initialized: every rank calls this. Raises SyncError."""
    from torch import distributed

    rank, size = distributed.get_rank(), distributed.get_world_size()
    if size == 1:
        return ALONE
    address: list[Any] = [None]
    try:
        if rank == 0:
            with socket.create_server((os.environ.get("MASTER_ADDR", "localhost"), 0), backlog=size) as server:
                server.settimeout(deadline)
                key = os.urandom(KEY_BYTES)
                distributed.broadcast_object_list([(server.getsockname(), key)])
                found = dict(_accepted(server, key, deadline) for _ in range(size - 1))
            links = [Link(found[other], f"rank {other} of {size}", deadline, clock) for other in sorted(found)]
        else:
            distributed.broadcast_object_list(address)
            place, key = address[0]
            connection = _connected(place, key, rank, deadline)
            links = [Link(connection, f"rank 0 of {size}", deadline, clock)]
    except (OSError, EOFError, RuntimeError) as error:  # RuntimeError: of gloo
        raise SyncError(f"rank {rank} of {size} cannot reach the others: {error}") from error
    return Role(rank, size, links, deadline, clock)


def _connected(address: tuple[str, int], key: bytes, rank: int, deadline: float) -> Connection:
    connection = _blocking(socket.create_connection(address[:2], deadline), deadline)
    connection.send_bytes(key)
    connection.send(rank)
    return connection


def _blocking(connected: socket.socket, seconds: float) -> Connection:
    """A call on it waits, but not longer than that."""
    connected.setblocking(True)
    connection = Connection(connected.detach())
    limit_waiting(connection, seconds)
    return connection


def _accepted(server: socket.socket, key: bytes, deadline: float) -> tuple[int, Connection]:
    """The rank that connects, and its connection. Nothing is unpickled of a program that does not know the key."""
    while True:
        connection = _blocking(server.accept()[0], deadline)
        if hmac.compare_digest(connection.recv_bytes(KEY_BYTES), key):
            return int(connection.recv()), connection
        connection.close()
