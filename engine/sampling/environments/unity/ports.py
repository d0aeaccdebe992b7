"""Ports on this machine: which one a player gets, and which process is at the other end of a connection."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator

import psutil

from rl_tui.engine.config.naming import name_of
from rl_tui.engine.errors import ConfigError, EnvironmentFailure

EDITOR_PORT = 5004
HOST = "127.0.0.1"
_STRIDE = 100  # between the ports that are tried: the next ones belong to other players of the run
_LAST_PORT = 65535


def choose_port(wanted: int, *, is_fixed: bool) -> int:
    """A free port: the wanted one, or where that need not be, one after it.

    Raises ConfigError, naming the process that has the wanted port, and EnvironmentFailure if there is no other.
    """
    if is_free(wanted):
        return wanted
    if is_fixed:
        setting = name_of("env_settings.base_port")
        raise ConfigError(f"port {wanted} is taken{by_owner(wanted)}: end it, or choose another {setting}")
    for port in range(wanted + _STRIDE, _LAST_PORT + 1, _STRIDE):
        if is_free(port):
            return port
    raise EnvironmentFailure(f"port {wanted} is taken{by_owner(wanted)}, and so is every port tried after it")


def editor_port() -> int:
    """The port that the Editor connects to. Raises ConfigError, naming the process that has it."""
    if not is_free(EDITOR_PORT):
        raise ConfigError(
            f"port {EDITOR_PORT}, which the Unity Editor connects to, is taken{by_owner(EDITOR_PORT)}: end it first; "
            f"several runs can train in builds at once ({name_of('env_settings.env')}=PATH), in the Editor only one"
        )
    return EDITOR_PORT


def is_free(port: int) -> bool:
    """Whether this process could listen on the port."""
    with socket.socket() as probe:
        if os.name == "posix":  # a connection that was closed a moment ago blocks nothing
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except (OSError, OverflowError):
            return False
    return True


def by_owner(port: int) -> str:
    """` by process NUMBER (NAME)`, as far as the system lets us see it; else nothing."""
    for process, connection in _connections(_visible_processes()):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
            return f" by {in_words(process.pid)}"
    return ""


def in_words(pid: int) -> str:
    """The process, for a message."""
    try:
        return f"process {pid} ({psutil.Process(pid).name()})"
    except psutil.Error:
        return f"process {pid}"


def client_within(tree: list[psutil.Process], peer_port: int, port: int) -> int | None:
    """The process of these that is connected to `port` from `peer_port`."""
    return _first(tree, lambda connection: _is_between(connection, peer_port, port))


def client_of_user(peer_port: int, port: int) -> int | None:
    """The process connected to `port` from `peer_port`, if this process and it have the same user."""
    own = psutil.Process().username()
    processes = (process for process in _visible_processes() if _username(process) == own)
    return _first(processes, lambda connection: _is_between(connection, peer_port, port))


def client_in_words(peer_port: int, port: int) -> str:
    """The process connected to `port` from `peer_port`, as far as the system lets us see it."""
    pid = _first(_visible_processes(), lambda connection: _is_between(connection, peer_port, port))
    return "a process that has ended or is of another user" if pid is None else in_words(pid)


def _is_between(connection: psutil._common.pconn, peer_port: int, port: int) -> bool:
    return bool(connection.raddr) and connection.laddr.port == peer_port and connection.raddr.port == port


def _first(
    processes: Iterator[psutil.Process] | list[psutil.Process], fits: Callable[[psutil._common.pconn], bool]
) -> int | None:
    return next((process.pid for process, connection in _connections(processes) if fits(connection)), None)


def _connections(
    processes: Iterator[psutil.Process] | list[psutil.Process],
) -> Iterator[tuple[psutil.Process, psutil._common.pconn]]:
    """TCP connections with their processes. Processes of other users are left out where they cannot be read."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            for connection in process.net_connections("tcp"):
                yield process, connection


def _visible_processes() -> Iterator[psutil.Process]:
    yield from psutil.process_iter()


def _username(process: psutil.Process) -> str | None:
    try:
        return str(process.username())
    except psutil.Error:
        return None
