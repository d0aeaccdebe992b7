"""An environment in a player that Unity built, or in the Unity Editor."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.settings import UnitySettings
from rl_tui.engine.sampling.environments.unity import handshake, ports
from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages
from rl_tui.engine.sampling.environments.unity.analytics import AnalyticsReports
from rl_tui.engine.sampling.environments.unity.behaviors import Behaviors
from rl_tui.engine.sampling.environments.unity.blank_images import BlankImages
from rl_tui.engine.sampling.environments.unity.channels import Channels, make_channels
from rl_tui.engine.sampling.environments.unity.clients import Client, Editor, StartedPlayer
from rl_tui.engine.sampling.environments.unity.conversation import Conversation
from rl_tui.engine.sampling.environments.unity.exchange import Exchange, PortTaken
from rl_tui.engine.sampling.environments.unity.group_owners import GroupOwners
from rl_tui.engine.sampling.environments.unity.player import LaunchPlan
from rl_tui.engine.sampling.failures import InstanceStopped
from rl_tui.engine.sampling.parameters import COPY_STRIDE, Parameters, ParameterValues, shifted
from rl_tui.engine.specs import Actions, BehaviorSpec, Steps

_MOST_PORTS = 10  # that other runs take while this one starts
Level: TypeAlias = Literal["debug", "info", "warning"]
_MOST_NOTES = 100  # that wait to be read; the oldest are dropped
_MOST_SEED = 2**31  # exclusive: an int32 on the wire


class Notes:
    """Lines for the user. Added and popped by any thread."""

    def __init__(self) -> None:
        self._lines: deque[tuple[Level, str]] = deque(maxlen=_MOST_NOTES)

    def add(self, level: Level, text: str) -> None:
        """One more line."""
        self._lines.append((level, text))

    def warn(self, text: str) -> None:
        """One more line, about something that is probably wrong."""
        self.add("warning", text)

    def pop(self) -> list[tuple[Level, str]]:
        """The lines since the last call."""
        return [self._lines.popleft() for _ in range(len(self._lines))]


class UnityEnvironment:
    """One player, which is started with it, or the Editor, which may connect at any reset.

    Made, a player has sent its first steps, so that its specs are known; where there are environment parameters, it
    does so once it is asked for them, since scenes read parameters before that. The Editor's specs are not known before
    the first reset, which waits for Play. Where Play is stopped, `step` raises InstanceStopped, and the next reset
    waits again.
    """

    def __init__(self, path: Path | None, number: int, settings: UnitySettings) -> None:
        """path: of the player; None: the Editor. number: of the copy in the run.

        Raises EnvironmentFailure, and ConfigError if a port that must be free is taken.
        """
        self._settings = settings
        self._analytics = settings.analytics if number == 0 else None
        self._reports: AnalyticsReports | None = None  # of the connection, if they are wanted
        self._seed = settings.seed + number
        self._notes = Notes()
        self._awaits = ""
        self._channels = Channels(make_channels(settings.side_channels), self._notes.warn)
        self._client, self._exchange = self._listen(path, number)
        self._conversation = Conversation(self._exchange, self._client)
        self._behaviors: Behaviors | None = None  # of the connection; None without one
        self._blank_images = BlankImages(self._notes.warn)
        self._group_owners = GroupOwners(self._notes.warn)
        self._known: Mapping[str, BehaviorSpec] = {}
        self._first: dict[str, Steps] | None = None  # what the next reset returns
        self._parameters: ParameterValues = {}
        self._number = number
        self._is_untouched = False  # connected, and not asked for its first steps
        try:
            self._client.start()
            if path is not None:
                self._meet(self._seed)
                self._is_untouched = True
                if not settings.adaptation.has_parameters:
                    self._ask_first()
        except BaseException:
            self.close()
            raise

    @property
    def specs(self) -> Mapping[str, BehaviorSpec]:
        """Every behavior that has had agents so far."""
        self._ask_first()
        return self._known if self._behaviors is None else self._behaviors.specs

    @property
    def num_agents(self) -> Mapping[str, int]:
        """Of each behavior, how many agents have waited at once."""
        return dict.fromkeys(self._known, 0) if self._behaviors is None else self._behaviors.num_agents

    @property
    def awaits(self) -> str:
        """What the user has to do before this environment goes on; "" for nothing. May be read by any thread."""
        return self._awaits

    def pop_notes(self) -> list[tuple[Level, str]]:
        """Lines for the user since the last call, with their levels. May be called by any thread."""
        return self._notes.pop()

    def set_parameters(self, parameters: Parameters) -> None:
        """Send them with the next reset or step. Unity draws by itself: each player other numbers."""
        self._parameters = shifted(parameters, self._number * COPY_STRIDE)
        if self._behaviors is not None:
            self._channels.set_parameters(self._parameters)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """The first steps of every agent. Unity takes a seed when it connects, and none later."""
        self._ask_first()
        if self._first is not None:
            first, self._first = self._first, None
            return first
        try:
            if self._behaviors is None:
                return self._reset(self._meet(self._seed if seed is None else seed))
            return self._reset(self._behaviors)
        except InstanceStopped:
            self._disconnect()
            raise

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """What followed these actions."""
        if self._behaviors is None:
            raise EnvironmentFailure("a step must follow a reset")
        reply = _reply(messages.STEP)
        self._behaviors.write(actions, reply.unity_input.rl_input)
        try:
            return self._outcome(self._behaviors, reply)
        except InstanceStopped:
            self._disconnect()
            raise

    def close(self) -> None:
        """Ask the client to leave; a player that does not is killed."""
        self._exchange.close(handshake.FAREWELL)
        self._client.end()
        self._exchange.stop()

    def _ask_first(self) -> None:
        """Have a player that has just connected send its first steps."""
        if self._is_untouched and self._behaviors is not None:
            self._is_untouched = False
            self._first = self._reset(self._behaviors)

    def _meet(self, seed: int) -> Behaviors:
        """Wait for the client, and get to know it."""
        self._channels.forget()
        self._awaits = self._client.awaits
        greeting = handshake.read_greeting(self._conversation.receive(self._deadline()))
        self._awaits = ""
        self._conversation.say(handshake.introduction(seed % _MOST_SEED, self._settings.num_areas))
        self._conversation.receive(self._deadline())
        for line in handshake.consequences(greeting.capabilities):
            self._notes.warn(line)
        is_old = not greeting.capabilities.hybrid_actions
        self._behaviors = Behaviors(greeting.package_version, self._known, self._notes.warn, with_deprecated=is_old)
        self._channels.configure_engine(self._settings)
        self._channels.set_parameters(self._parameters)
        self._reports = self._reports_to(greeting.capabilities)
        return self._behaviors

    def _reports_to(self, capabilities: handshake.Capabilities) -> AnalyticsReports | None:
        if self._analytics is None:
            return None
        if not capabilities.training_analytics:
            self._notes.warn("training_analytics: the player does not support them, and nothing is sent")
            return None
        return AnalyticsReports(self._analytics, self._channels.send)

    def _reset(self, behaviors: Behaviors) -> dict[str, Steps]:
        answer = self._outcome(behaviors, _reply(messages.RESET))
        # what still ends here began before the reset
        return {name: replace(steps, terminals=None) for name, steps in answer.items()}

    def _outcome(self, behaviors: Behaviors, reply: messages.UnityMessageProto) -> dict[str, Steps]:
        """What the client says next of its agents; messages about none of them are answered and skipped."""
        deadline = self._deadline()
        while True:
            reply.unity_input.rl_input.side_channel = self._channels.pop_unsent()
            self._conversation.say(reply)
            output = self._conversation.receive(deadline).unity_output
            if not output.HasField("rl_output"):
                raise EnvironmentFailure("a message must say what the agents observed (rl_output), got none")
            self._channels.receive(output.rl_output.side_channel)
            answer = behaviors.read(output)
            if self._reports is not None:
                self._reports.meet(behaviors.specs)
            if answer:
                break
            reply = _reply(messages.STEP)
        self._group_owners.look(answer)
        if self._settings.no_graphics:
            self._blank_images.look(behaviors.specs, answer)
        statistics = self._channels.pop_statistics()
        if statistics:
            answer = {name: replace(steps, statistics=statistics) for name, steps in answer.items()}
        return answer

    def _disconnect(self) -> None:
        """The client has left; another one may come."""
        self._known = self.specs
        self._behaviors = None
        self._exchange.forget_client(handshake.FAREWELL)

    def _deadline(self) -> float:
        return time.monotonic() + self._client.seconds

    def _listen(self, path: Path | None, number: int) -> tuple[Client, Exchange]:
        """The client, and a server on its port. Another port is looked for where a run that starts at the same time
        has just taken it; where only one will do, looking for it says who has it."""
        left = _MOST_PORTS
        while True:
            client = self._editor() if path is None else self._player(path, number)
            exchange = Exchange(client.port, client.admit, self._notes.warn)
            try:
                exchange.open()
            except PortTaken:
                exchange.stop()
                left -= 1
                if not left:
                    raise
            else:
                return client, exchange

    def _editor(self) -> Client:
        return Editor(ports.editor_port(), self._notes.warn)

    def _player(self, path: Path, number: int) -> Client:
        settings = self._settings
        wanted = settings.base_port + number
        port = ports.choose_port(wanted, is_fixed=settings.is_port_fixed)
        if port != wanted:
            self._notes.add("info", f"port {wanted} is taken{ports.by_owner(wanted)}: player {number} uses {port}")
        plan = LaunchPlan(
            path,
            number,
            settings.env_args,
            no_graphics=settings.no_graphics or (settings.no_graphics_monitor and number > 0),
            log_folder=None if settings.log_folder is None else Path(settings.log_folder),
            shows_output=settings.shows_output,
        )
        return StartedPlayer(plan, port, settings.timeout_wait)


def _reply(command: messages.CommandProto) -> messages.UnityMessageProto:
    reply = messages.UnityMessageProto(header=messages.HeaderProto(status=handshake.OK))
    reply.unity_input.rl_input.command = command
    return reply
