"""A player: its conversation with a trainer, from the first request to the last."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import time
from collections.abc import Mapping
from types import FrameType

from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages
from tests.unity_player import side_channels
from tests.unity_player.arguments import CAPABILITIES, Options
from tests.unity_player.connection import Connection
from tests.unity_player.log import Log
from tests.unity_player.messages import Acts, Brain, Said, Speech, read_actions
from tests.unity_player.trouble import PROCESS, Trouble
from tests.unity_player.worlds import World, make_world

OK, CLOSED = 200, 400


class Ended(Exception):
    """The conversation is over."""


class Player:
    """Plays until the trainer closes the connection, or a signal ends it. Lives in the main thread of its process."""

    def __init__(self, options: Options, log: Log, connection: Connection) -> None:
        self._options, self._log, self._connection = options, log, connection
        self._announced: set[str] = set()
        self._statistics = 0.0
        self._echoes = b""
        self._before = b""
        self._has_to_leave = False
        self._pause = random.Random(options.port)

    def leave(self, number: int, _frame: FrameType | None = None) -> None:
        """For a signal: end with the next request, or not at all."""
        self._log.note(signal=signal.Signals(number).name)
        if not (self._options.refuses_to_quit or self._options.stays_alive):
            self._has_to_leave = True

    def play(self) -> None:
        """Until it ends. Raises NoTrainer, Ended, ActionsMismatch."""
        world = self._met()
        said = self._reset(world)
        while True:
            command, acts = self._exchanged(world, said)
            if command == messages.QUIT:
                raise Ended("Received QUIT")
            said = self._reset(world) if command == messages.RESET else world.step(acts)
            while not any(said.lists.values()):  # a frame without any info
                said = world.step({})

    def _met(self) -> World:
        """Shake hands; the world that the trainer asked for."""
        said = messages.UnityMessageProto(header=messages.HeaderProto(status=OK))
        output = said.unity_output.rl_initialization_output
        output.name = "AcademySingleton"
        output.communication_version = self._options.communication_version
        output.package_version = self._options.package_version
        output.capabilities.CopyFrom(
            messages.UnityRLCapabilitiesProto(**{name: name not in self._options.without for name in CAPABILITIES})
        )
        reply = self._sent(said).unity_input
        if not reply.HasField("rl_initialization_input") or not reply.rl_initialization_input.HasField("capabilities"):
            raise Ended("NullReferenceException: the trainer sent no capabilities")
        first = reply.rl_initialization_input
        self._log.note(
            seed=first.seed,
            num_areas=first.num_areas,
            communication_version=first.communication_version,
            package_version=first.package_version,
            capabilities=[name for name in CAPABILITIES if getattr(first.capabilities, name)],
        )
        second = self._sent(messages.UnityMessageProto(header=messages.HeaderProto(status=OK)))
        if not second.HasField("unity_input"):
            raise Ended("the trainer sent no input")
        self._hear(second.unity_input.rl_input.side_channel)
        self._log.note(command=messages.CommandProto.Name(second.unity_input.rl_input.command))
        return make_world(
            self._options,
            first.seed,
            max(first.num_areas, 1),
            Speech(first.capabilities, self._options.package_version),
        )

    def _reset(self, world: World) -> Said:
        self._log.note(reset=self._connection.count)
        return world.reset()

    def _exchanged(self, world: World, said: Said) -> tuple[int, dict[str, Acts]]:
        """Say what happened; what to do next."""
        low, high = self._options.slow_step
        if high:
            time.sleep(self._pause.uniform(low, high))
        if said.num_over and self._options.games is not None:
            note = {"pid": os.getpid(), "request": self._connection.count, "over": said.num_over, "won": said.num_won}
            with self._options.games.open("a") as file:
                file.write(f"{json.dumps(note)}\n")
        message = messages.UnityMessageProto(header=messages.HeaderProto(status=OK))
        self._fill(message.unity_output, world.brains, said)
        reply = self._sent(message).unity_input.rl_input
        self._hear(reply.side_channel)
        return reply.command, {
            name: read_actions(
                reply.agent_actions.get(name),
                world.brains[name],
                num,
                self._options.deprecated_actions,
            )
            for name, num in said.waiting.items()
            if num or name in reply.agent_actions
        }

    def _fill(self, output: messages.UnityOutputProto, brains: Mapping[str, Brain], said: Said) -> None:
        for name, infos in said.lists.items():
            output.rl_output.agentInfos[name] = infos
            if infos and name not in self._announced:
                self._announced.add(name)
                parameters = brains[name].parameters(self._options.deprecated_actions)
                output.rl_initialization_output.brain_parameters.append(parameters)
        output.rl_output.side_channel = self._echoes + self._measured()
        self._echoes = b""

    def _measured(self) -> bytes:
        """Statistics of all four methods; their values are 0, 1, 2 and so on, one for each message."""
        if not self._options.statistics:
            return b""
        self._statistics += 1
        names = "Player/Average", "Player/Last", "Player/Sum", "Player/Histogram"
        return b"".join(side_channels.statistic(name, self._statistics, method) for method, name in enumerate(names))

    def _hear(self, content: bytes) -> None:
        for channel, payload in side_channels.unpacked(content):
            try:
                self._log.note(**side_channels.described(channel, payload))
            except (struct.error, KeyError, UnicodeDecodeError) as error:
                raise Ended(f"side channel {channel}: {error}") from error
            if channel in {side_channels.ECHO, side_channels.PROPERTIES}:
                self._echoes += side_channels.packed(channel, payload)

    def _sent(self, message: messages.UnityMessageProto) -> messages.UnityMessageProto:
        """The trainer's reply. Raises Ended when it closes the connection."""
        content = self._troubled(message.SerializeToString())
        if self._has_to_leave:
            self._farewell()
        reply = messages.UnityMessageProto.FromString(self._connection.exchange(content))
        self._before = content
        if reply.header.status != OK:
            raise Ended(f"the trainer closed the connection: {reply.header.status}")
        return reply

    def _troubled(self, content: bytes) -> bytes:
        for trouble in self._options.trouble:
            if trouble.request == self._connection.count and self._may_have_trouble():
                content = self._changed(trouble, content)
        return content

    def _changed(self, trouble: Trouble, content: bytes) -> bytes:
        self._log.say(f"Caught trouble: {trouble.kind} at request {trouble.request}")
        if trouble.kind == "leave":
            self._has_to_leave = True
        if trouble.kind in {"leave", "again"}:
            return self._before
        if trouble.kind == "cut":
            self._connection.close()
            PROCESS["hang"]("")
        if trouble.kind == "method":
            self._connection.call_another_method()
        return trouble.happen(content)

    def _may_have_trouble(self) -> bool:
        """On this port, and not twice where a file says so."""
        if self._options.trouble_on_port not in {None, self._options.port}:
            return False
        if self._options.trouble_once is None:
            return True
        try:
            os.close(os.open(self._options.trouble_once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _farewell(self) -> None:
        """The last words of a player that leaves by itself."""
        last = messages.UnityMessageProto(header=messages.HeaderProto(status=CLOSED))
        self._connection.send_last(last.SerializeToString())
        raise Ended("left")
