"""How the ranks of a run find each other, and make sure that they are to train the same."""

from __future__ import annotations

import errno
import hmac
import json
import socket
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from importlib import metadata
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias

import yaml

from rl_tui.engine import registry
from rl_tui.engine.config.diagnostics import visible
from rl_tui.engine.config.loading import effective_yaml
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.errors import ConfigError, SyncError
from rl_tui.engine.running.ranks.link import limit_waiting
from rl_tui.engine.running.ranks.world import KEY, World
from rl_tui.engine.sampling.failures import StartStopped
from rl_tui.engine.session.text import counted
from rl_tui.engine.version import VERSION

QUIET_SECONDS = 5.0  # of waiting, of which nothing is said
LOOK_SECONDS = 0.1  # from one look for a stop, or for a rank that has ended, to the next
LONGEST_HELLO = 1 << 22  # bytes, before it is known who sends them
HELLO_SECONDS = 10.0  # for the rest of one that has begun to arrive
NUM_SHOWN = 3  # settings in which ranks differ
ABSENT = "nothing"
Look: TypeAlias = Callable[[str], float]  # given what is waited for, the seconds that are left; it may raise


@dataclass(frozen=True, slots=True)
class Hello:
    """What a rank says of itself before anything else, as JSON: another version may be at the other end.

    proof: that it knows the secret of the ranks. settings: of its configuration, by path. plugins: installed packages
    with their versions. gpu: the identifier of the one that it would train on; "" for none.
    """

    rank: int
    size: int
    host: str
    proof: str
    versions: Mapping[str, str]
    settings: Mapping[str, str]
    plugins: Sequence[str]
    gpu: str = ""

    def encoded(self) -> bytes:
        """One message."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def decoded(content: bytes) -> Hello:
        """Raises ValueError for what is no hello."""
        try:
            return Hello(**json.loads(content))
        except TypeError as error:
            raise ValueError(str(error)) from error


def hello_of(world: World, config: RunConfig, gpu: str = "") -> Hello:
    """This rank's own."""
    return Hello(
        rank=world.rank,
        size=world.size,
        host=socket.gethostname(),
        proof=_proof(world.key, world.rank, world.size),
        versions={"rl-tui": VERSION} | {name: metadata.version(name) for name in ("torch", "numpy")},
        settings=_flat(yaml.safe_load(effective_yaml(config)) or {}),
        plugins=_plugins(),
        gpu=gpu,
    )


@dataclass(frozen=True, slots=True)
class Met:
    """hellos: of all ranks, in their order. connections: of rank 0 to the others, of another to rank 0."""

    hellos: Sequence[Hello]
    connections: Sequence[Connection] = field(repr=False)


def listen(address: str, port: int, world: World) -> socket.socket:
    """Where rank 0 waits for the others; port 0 stands for any that is free. Raises ConfigError."""
    try:
        return socket.create_server((address, port), backlog=world.size)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]  # the address comes before
        advice = ". Another run may use it: set MASTER_PORT to a free one" if error.errno == errno.EADDRINUSE else ""
        raise ConfigError(
            f"rank 0 of {world.size} cannot wait for the others at {place_of(address, port)}: {reason}{advice}"
        ) from error


def meet(
    world: World,
    own: Hello,
    server: socket.socket | None,
    seconds: float,
    check: Callable[[], None],
    is_stopped: Callable[[], bool],
    say: Callable[[str], object],
) -> Met:
    """All ranks have met, and are alike. server: of rank 0, to which the others connect; it is the caller's.

    seconds: how long a rank waits for others. check: called meanwhile; it may raise. say: called once with what is
    waited for, if that takes a while. Raises ConfigError where they differ, SyncError where one does not come,
    StartStopped once `is_stopped`.
    """
    start, has_said = time.monotonic(), False

    def look(waits_for: str) -> float:
        nonlocal has_said
        check()
        if is_stopped():
            raise StartStopped
        waited = time.monotonic() - start
        if waited > QUIET_SECONDS and not has_said:
            has_said = True
            say(f"waiting up to {seconds:g} s for {waits_for}")
        return seconds - waited

    return _as_guest(world, own, seconds, look) if server is None else _as_host(world, own, server, seconds, look)


def _as_host(world: World, own: Hello, server: socket.socket, seconds: float, look: Look) -> Met:
    server.setblocking(False)
    found: dict[int, tuple[Hello, Connection]] = {}
    strangers: list[Connection] = []  # who have not said who they are: some other program may have found this port
    with ExitStack() as leaving:
        refused, unknown = "", list[str]()
        while len(found) < world.size - 1 and not refused:
            missing = [str(rank) for rank in range(1, world.size) if rank not in found]
            who = f"rank{'s' if missing[1:] else ''} {', '.join(missing)}"
            if look(f"{who} of {world.size}") <= 0:
                came = f" ({'; '.join(unknown)} came, with another {KEY} or none)" if unknown else ""
                raise SyncError(
                    f"{who} {'have' if missing[1:] else 'has'} not come within {seconds:g} s: this is rank 0 of"
                    f" {world.size}, on {own.host}{came}"
                )
            for ready in wait([server, *strangers, *(connection for _, connection in found.values())], LOOK_SECONDS):
                if ready is server:
                    with suppress(OSError):
                        strangers.append(blocking(server.accept()[0], HELLO_SECONDS))
                        leaving.callback(strangers[-1].close)
                elif ready in strangers:
                    strangers.remove(ready)
                    refused = refused or _introduced(ready, world, own, found, unknown)
                else:  # it says nothing before it is answered
                    gone = next(hello for hello, connection in found.values() if connection is ready)
                    raise SyncError(f"{_who(gone)} has ended before all others had come")
        hellos = [own, *(found[rank][0] for rank in sorted(found))]
        connections = [found[rank][1] for rank in sorted(found)]
        refused = refused or "\n".join(filter(None, (_difference(own, hello) for hello in hellos[1:])))
        known = [asdict(hello) | {"settings": {}} for hello in hellos]
        for connection in connections:
            _answer(connection, refused, known)
        for stranger in strangers:
            _answer(stranger, refused or f"all ranks have met {_who(own)} already: this one is not of its run")
        if refused:
            raise ConfigError(refused)
        leaving.pop_all()
    for stranger in strangers:
        stranger.close()
    return Met(hellos, connections)


def _introduced(
    connection: Connection,
    world: World,
    own: Hello,
    found: MutableMapping[int, tuple[Hello, Connection]],
    unknown: list[str],
) -> str:
    """Add a rank that says who it is to those that were found; why it cannot be one of them. unknown: gets the name of
    one with another key, which may belong to another run."""
    try:
        hello = Hello.decoded(connection.recv_bytes(LONGEST_HELLO))
        has_key = hmac.compare_digest(hello.proof, _proof(world.key, hello.rank, hello.size))
    except (OSError, EOFError, TypeError, ValueError):  # another program
        connection.close()
        return ""
    if not has_key:
        unknown.append(_who(hello))
        _answer(connection, f"{_who(hello)} has another {KEY} than rank 0, or none")
        connection.close()
        return ""
    other = own if hello.rank == 0 else found[hello.rank][0] if hello.rank in found else None
    if hello.size == own.size and other is not None:
        refused = f"{_who(hello)} is there twice, the other one on {other.host}: each needs a RANK of its own"
        _answer(connection, refused)
        return refused
    found[hello.rank] = hello, connection
    return _other_size(own, hello)


def _answer(connection: Connection, refused: str, hellos: Sequence[Mapping[str, Any]] = ()) -> None:
    """What one that came hears: why it is refused, or "" and the hellos of all."""
    with suppress(OSError):  # it has ended, which shows soon
        connection.send_bytes(json.dumps([refused, hellos]).encode())


def _as_guest(world: World, own: Hello, seconds: float, look: Look) -> Met:
    place, reason = place_of(world.address, world.port), "it was not tried"
    host = f"rank 0 of {world.size} at {place}"
    while (left := look(host)) > 0:
        try:
            connected = socket.create_connection((world.address, world.port), min(left, 10.0))
        except OSError as error:  # rank 0 may start later
            reason = error.strerror or str(error)
            time.sleep(LOOK_SECONDS)
            continue
        connection = blocking(connected, seconds)
        try:
            connection.send_bytes(own.encoded())
            while not connection.poll(LOOK_SECONDS):
                if look(f"{host}, which waits for others") <= 0:
                    raise SyncError(
                        f"{host} has said nothing for {seconds:g} s: another rank has not come, or it is no rank"
                    )
            refused, hellos = json.loads(connection.recv_bytes(LONGEST_HELLO * world.size))
        except (OSError, EOFError, ValueError) as error:
            connection.close()
            raise SyncError(
                f"rank 0 of {world.size}, at {place}, has ended or is no rank of this run: {str(error) or 'it hung up'}"
            ) from error
        if refused:
            raise ConfigError(refused)
        return Met([Hello(**each) for each in hellos], [connection])
    raise SyncError(f"rank 0 of {world.size} does not answer at {place} within {seconds:g} s ({reason})")


def place_of(address: str, port: int) -> str:
    """An address in words."""
    return f"{address}:{port}" if port else address


def blocking(connected: socket.socket, seconds: float) -> Connection:
    """A call on it waits, but not longer than that."""
    connected.setblocking(True)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # messages are short, and waited for
    connection = Connection(connected.detach())
    limit_waiting(connection, seconds)
    return connection


def _proof(key: str, rank: int, size: int) -> str:
    return hmac.digest(key.encode(), f"rank {rank} of {size}".encode(), "sha256").hex()


def _who(hello: Hello) -> str:
    return f"rank {hello.rank} of {hello.size} on {hello.host}"


def _plugins() -> list[str]:
    """What is installed beside this program."""
    found = [plugin for kind in registry.BUILT_IN for plugin in registry.plugins(kind)]
    return sorted({f"{plugin.name} of {plugin.package}" for plugin in found if plugin.package})


def _flat(settings: Mapping[str, Any], path: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            found |= _flat(value, f"{path}{name}.")
        else:
            found[f"{path}{name}"] = json.dumps(value)
    return found


def _other_size(own: Hello, other: Hello) -> str:
    if other.size == own.size:
        return ""
    return f"{_who(other)} is there, and {_who(own)}: start all with the same number"


def _difference(own: Hello, other: Hello) -> str:
    """What of another rank is not as it is on rank 0, "" where nothing is."""
    who = _who(other)
    for name, version in own.versions.items():
        if (found := other.versions.get(name, ABSENT)) != version:
            return f"{who} has {name} {found}, and rank 0 on {own.host} has {version}: install the same on all"
    if other.plugins != own.plugins:
        here, there = (", ".join(each.plugins) or "none" for each in (own, other))
        return f"{who} has other plug-ins ({there}) than rank 0 on {own.host} ({here}): install the same on all"
    paths = [*own.settings, *(path for path in other.settings if path not in own.settings)]
    values = [(path, other.settings.get(path, ABSENT), own.settings.get(path, ABSENT)) for path in paths]
    differing = [each for each in values if each[1] != each[2]]
    if not differing:
        return ""
    shown = "; ".join(
        f"{visible(path)} is {visible(there)} there, {visible(here)} here"
        for path, there, here in differing[:NUM_SHOWN]
    )
    more = f"; and {counted(len(differing) - NUM_SHOWN, 'other setting')}" if differing[NUM_SHOWN:] else ""
    return f"{who} has another configuration than rank 0 on {own.host}: {shown}{more}"
