"""How a process joins other ranks: by what a launcher says, or with others that it has started itself."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

import psutil
import torch
from torch import distributed

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.errors import SyncError
from rl_tui.engine.running.ranks.link import Link, limit_waiting
from rl_tui.engine.running.ranks.local_ranks import LocalRanks
from rl_tui.engine.running.ranks.meeting import Met, hello_of, listen, meet, place_of
from rl_tui.engine.running.ranks.messages import RANKS
from rl_tui.engine.running.ranks.role import Role
from rl_tui.engine.running.ranks.supported import parts_of, require_supported
from rl_tui.engine.running.ranks.world import AGENT_STORE, World, new_key
from rl_tui.engine.sampling.failures import StartStopped
from rl_tui.engine.session.bus import EventBus

TCPStore = distributed.TCPStore  # type: ignore[attr-defined]  # documented, and not re-exported explicitly
MARGIN_SECONDS = 30.0  # beyond a call into an environment, during which a rank says nothing
START_CALLS = 5  # of that length: a Unity player may take four to start
POLL_SECONDS = 0.2


def join_world(
    world: World,
    config: RunConfig,
    seconds: float,
    local: LocalRanks | None,
    is_stopped: Callable[[], bool],
    leaving: ExitStack,
    bus: EventBus,
) -> Role:
    """The role of this process, once all ranks are there, and torch.distributed connects them.

    seconds: for which ranks wait for each other. local: those that this process has started. leaving: gets what is to
    be done at the end of the run. bus: for what is waited for. Raises RlTuiError, StartStopped once `is_stopped`.
    """
    require_supported(config, world.size)
    server, world = _find(world, seconds, is_stopped) if local is None else (local.server, world)
    check = (lambda: None) if local is None else local.check
    try:
        say = partial(bus.log, "info", RANKS)
        met = meet(world, hello_of(world, config, _gpu(world)), server, seconds, check, is_stopped, say)
    finally:
        if server is not None:
            server.close()
    for connection in met.connections:
        leaving.callback(connection.close)
    role = role_of(world, config, met, config.env_settings.timeout_wait + MARGIN_SECONDS)
    _open_group(world, role.links, seconds)
    leaving.callback(_close_group)
    return role


def role_of(
    world: World, config: RunConfig, met: Met, deadline: float, clock: Callable[[], float] = time.monotonic
) -> Role:
    """The role of a rank that has met the others. deadline: in seconds of the clock, beyond which a silent one is
    lost."""
    starting = START_CALLS * config.env_settings.timeout_wait + MARGIN_SECONDS
    role = Role(
        world.rank, world.size, (), deadline, clock, starting, [hello.host for hello in met.hellos],
        world.local_rank, world.local_size, world.launcher, has_own_gpus(met), parts_of(config, world.size),
    )  # fmt: skip
    for connection in met.connections:
        limit_waiting(connection, deadline)
    others = range(1, world.size) if role.leads else range(1)
    links = [
        Link(connection, role.name_of(other), deadline, clock)
        for other, connection in zip(others, met.connections, strict=True)
    ]
    return replace(role, links=links)


def has_own_gpus(met: Met) -> bool:
    """Whether each rank would train on a GPU that is no other's."""
    gpus = {(hello.host, hello.gpu) for hello in met.hellos if hello.gpu}
    return len(gpus) == len(met.hellos)


def _find(world: World, seconds: float, is_stopped: Callable[[], bool]) -> tuple[socket.socket | None, World]:
    """Where rank 0 listens, and where the others find it. Raises RlTuiError, StartStopped."""
    if os.environ.get(AGENT_STORE) != "True":
        return (listen(world.address, world.port, world) if world.rank == 0 else None), world
    # torchrun listens at that port, and keeps for the others where rank 0 does
    place, key = place_of(world.address, world.port), f"rl-tui/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    try:
        store = TCPStore(world.address, world.port, is_master=False, timeout=timedelta(seconds=seconds))
        if world.rank == 0:
            server, secret = _listening(world), new_key()
            store.set(key, f"{server.getsockname()[1]} {secret}")
            return server, replace(world, key=secret)
        until = time.monotonic() + seconds
        while not store.check([key]):
            if is_stopped():
                raise StartStopped
            if time.monotonic() > until:
                raise SyncError(f"rank 0 of {world.size} has not come to {place} within {seconds:g} s")
            time.sleep(POLL_SECONDS)
        port, secret = store.get(key).decode().split()
    except RuntimeError as error:  # of torch
        raise SyncError(f"torchrun does not answer at {place}: {_first_line(error)}") from error
    return None, replace(world, port=int(port), key=secret)


def _open_group(world: World, links: Sequence[Link], seconds: float) -> None:
    """torch.distributed connects all ranks with each other. Raises SyncError."""
    _use_interface(links[0])
    wait = timedelta(seconds=seconds)
    try:
        if world.rank == 0:
            with _listening(world) as server:
                port = server.getsockname()[1]
                for link in links:
                    link.send(port)
                store = TCPStore(
                    world.address, port, world.size, is_master=True, timeout=wait, wait_for_workers=False,
                    master_listen_fd=server.detach(),
                )  # fmt: skip
        else:
            port = links[0].wait_for(int, seconds)
            store = TCPStore(world.address, port, world.size, is_master=False, timeout=wait)
        distributed.init_process_group("gloo", store=store, rank=world.rank, world_size=world.size, timeout=wait)
    except RuntimeError as error:  # of torch
        text = f"rank {world.rank} of {world.size} cannot reach the others: {_first_line(error)}"
        raise SyncError(text) from error


def _close_group() -> None:
    with suppress(RuntimeError):  # another rank is lost
        distributed.destroy_process_group()  # else torch aborts the process at its end


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _listening(world: World) -> socket.socket:
    """At the address by which others find this machine, or else at all that it has."""
    try:
        return socket.create_server((world.address, 0), backlog=world.size)
    except OSError:  # the address is that of a gateway
        return listen("", 0, world)


def _use_interface(link: Link) -> None:
    """gloo connects by the interface that the ranks have met by: the name of this machine may lead elsewhere."""
    with socket.socket(fileno=os.dup(link.connection.fileno())) as connected:
        own = connected.getsockname()[0]
    for name, addresses in psutil.net_if_addrs().items():
        if any(address.address == own for address in addresses):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)


def _gpu(world: World) -> str:
    """The identifier of the one that this rank would train on; "" for none."""
    number = torch.cuda.device_count()
    return str(torch.cuda.get_device_properties(world.local_rank % number).uuid) if number else ""
