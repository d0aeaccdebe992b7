"""Who calls the server: the player that was started here, or the Unity Editor."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Protocol

import psutil

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.unity import handshake, ports
from rl_tui.engine.sampling.environments.unity.player import LaunchPlan, Player
from rl_tui.engine.sampling.failures import InstanceStopped

_LEAVE_SECONDS = 1.5  # for a player to leave by itself; the pool kills the group of its worker after 2
_EXIT_SECONDS = 1.0  # between the end of a connection and the exit status of its process

_NEVER_CONNECTS = (
    "it was built without the com.unity.ml-agents package, or its first scene has no agent; it needs longer to start "
    "(timeout_wait); it has no screen to draw on (no_graphics, or xvfb-run where agents see images); it shows a "
    "dialog, or was built for another system"
)
_SILENT = (
    "no agent requests decisions (a Decision Requester is missing, or Behavior Type is not Default); one step takes "
    "longer than that (timeout_wait, time_scale); the player is stuck or shows a dialog"
)


class Client(Protocol):
    """The other end of an exchange.

    name: in messages. awaits: what the user has to do until it connects, "" for nothing. seconds: for each answer.
    """

    port: int
    name: str
    awaits: str
    seconds: float

    def start(self) -> None:
        """The server listens: the client may connect."""

    def admit(self, peer_port: int, first: bytes) -> str:
        """Why a connection from this port is refused; "" if it is the client's. first: its first message. Called by
        another thread."""

    def require_alive(self, peer_port: int | None) -> None:
        """Raise if the client has gone. peer_port: of its connection, if it has one."""

    def gone(self) -> Exception:
        """The error for a client that has left."""

    def silent(self, *, is_connected: bool) -> Exception:
        """The error for a client that has not sent anything in time."""

    def unreadable(self, text: str) -> Exception:
        """The error for a client that has sent what is no message of the protocol, which the text says."""

    def end(self) -> None:
        """It was asked to leave: make sure that it does."""


class StartedPlayer:
    """A player that this process starts and ends."""

    name = "the player"
    awaits = ""

    def __init__(self, plan: LaunchPlan, port: int, seconds: float) -> None:
        self.port, self.seconds = port, seconds
        self._plan = plan
        self._player = Player(plan)
        self._starting = threading.Lock()
        self._was_connected = False

    def start(self) -> None:
        """Start the player. Raises EnvironmentFailure if the system cannot."""
        with self._starting:
            try:
                self._player.start(self.port)
            except OSError as error:
                reason = error.strerror or str(error)
                raise EnvironmentFailure(
                    f"{self._plan.path} cannot be started: {reason}. Was it built for this system and processor?"
                ) from error

    def admit(self, peer_port: int, first: bytes) -> str:
        """Only the player itself, or what it has started, as wrapper scripts do."""
        with self._starting:
            processes = self._player.processes()
        if ports.client_within(processes, peer_port, self.port) is not None:
            self._was_connected = True
            return ""
        return "only the player that was started here may connect"

    def require_alive(self, peer_port: int | None) -> None:
        """Raises EnvironmentFailure, also if the process runs without its connection: players do not reconnect."""
        if not self._player.is_alive:
            raise self.gone()
        if peer_port is not None and ports.client_within(self._player.processes(), peer_port, self.port) is None:
            raise self.gone()

    def gone(self) -> EnvironmentFailure:
        """With how the process ended, and the last lines it wrote."""
        if not self._player.wait(_EXIT_SECONDS):
            return self._failure("the player closed its connection; its process is still running")
        when = "" if self._was_connected else f" before it connected to port {self.port}"
        return self._failure(f"the player {self._player.how_it_ended()}{when}")

    def silent(self, *, is_connected: bool) -> EnvironmentFailure:
        """With the likely causes."""
        if is_connected:
            return self._failure(f"the player sent nothing for {self.seconds:g} s. Likely causes: {_SILENT}")
        return self._failure(
            f"the player did not connect to port {self.port} within {self.seconds:g} s. Likely causes: "
            f"{_NEVER_CONNECTS}"
        )

    def unreadable(self, text: str) -> EnvironmentFailure:
        """It was started here, and does not work."""
        return EnvironmentFailure(text)

    def end(self) -> None:
        """By force, if it takes too long."""
        if self._player.is_started and not self._player.wait(_LEAVE_SECONDS):
            self._player.kill()

    def _failure(self, text: str) -> EnvironmentFailure:
        log = f" (log: {self._plan.log})" if self._plan.log is not None and self._plan.log.exists() else ""
        failure = EnvironmentFailure(f"{text}{log}")
        failure.detail = self._player.tail()
        return failure


class Editor:
    """The Unity Editor, which connects when its user presses Play, as often as that happens.

    It may be any process of the user's: one that does not speak the protocol only loses its connection. warn: called
    with a line for the user.
    """

    name = "the Unity Editor"
    seconds = math.inf

    def __init__(self, port: int, warn: Callable[[str], None]) -> None:
        self.port = port
        self._warn = warn
        self.awaits = f"Press Play in the Unity Editor, which connects to port {port}"
        self._pid: int | None = None

    def start(self) -> None:
        """It was started by its user."""

    def admit(self, peer_port: int, first: bytes) -> str:
        """Any process of the same user that begins as Unity does."""
        if not handshake.is_greeting(first):
            return f"the first message must be Unity's greeting, got {len(first):,} bytes of something else"
        self._pid = ports.client_of_user(peer_port, self.port)
        return "" if self._pid is not None else "only an Editor of the same user may connect"

    def require_alive(self, peer_port: int | None) -> None:
        """Raises InstanceStopped."""
        if peer_port is None or self._pid is None:
            return
        try:
            process = psutil.Process(self._pid)
        except psutil.Error as error:
            raise self.gone() from error
        if ports.client_within([process], peer_port, self.port) is None:
            raise self.gone()

    def gone(self) -> InstanceStopped:
        """Its user stopped it, which is no failure."""
        return InstanceStopped("Play was stopped in the Unity Editor", None)

    def silent(self, *, is_connected: bool) -> EnvironmentFailure:
        """It may be paused for as long as its user likes."""
        raise AssertionError("the Editor has no time limit")

    def unreadable(self, text: str) -> InstanceStopped:
        """Its connection is closed, and another one is waited for."""
        self._warn(f"{text}: its connection is closed")
        return InstanceStopped(text, None)

    def end(self) -> None:
        """It leaves play mode by itself."""
