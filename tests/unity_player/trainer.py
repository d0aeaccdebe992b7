"""The smallest trainer that a player can talk to, for tests of the player itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from types import TracebackType
from typing import Self

import grpc

from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages
from tests.deadline import DEADLINE_SECONDS
from tests.unity_player.arguments import CAPABILITIES
from tests.unity_player.connection import EXCHANGE
from tests.warm_start import WarmProcess


class Trainer:
    """Listens on a free port; starts one player, and answers it. Everything that a request says is returned parsed."""

    def __init__(self) -> None:
        self._requests: Queue[bytes] = Queue(1)
        self._replies: Queue[bytes] = Queue(1)
        self._server = grpc.server(ThreadPoolExecutor(1), options=[("grpc.max_receive_message_length", -1)])
        handlers = {"Exchange": grpc.unary_unary_rpc_method_handler(self._exchange)}
        service = grpc.method_handlers_generic_handler(EXCHANGE.split("/")[1], handlers)
        self._server.add_generic_rpc_handlers((service,))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._player: WarmProcess | None = None

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._player is not None:
            self._player.kill()
            self._player.wait()
        self._replies.put(b"")
        self._server.stop(0).wait()

    def start(self, player: Path, *arguments: str) -> WarmProcess:
        """Start a player that connects to this trainer."""
        self._player = WarmProcess([player, "--mlagents-port", str(self.port), *arguments])
        return self._player

    def receive_bytes(self) -> bytes:
        """The next request, as it came."""
        return self._requests.get(timeout=DEADLINE_SECONDS)

    def receive(self) -> messages.UnityMessageProto:
        """The next request."""
        return messages.UnityMessageProto.FromString(self.receive_bytes())

    def say(self, message: messages.UnityMessageProto) -> None:
        """Answer the request that was received last."""
        self._replies.put(message.SerializeToString(), timeout=DEADLINE_SECONDS)

    def shake_hands(
        self, side_channel: bytes = b"", seed: int = 1, capabilities: Sequence[str] = CAPABILITIES
    ) -> messages.UnityRLInitializationOutputProto:
        """Up to the first RESET; what the player said of itself."""
        said = self.receive().unity_output.rl_initialization_output
        first = messages.UnityMessageProto(header=messages.HeaderProto(status=200))
        first.unity_input.rl_initialization_input.seed = seed
        first.unity_input.rl_initialization_input.communication_version = "1.5.0"
        first.unity_input.rl_initialization_input.num_areas = 1
        first.unity_input.rl_initialization_input.capabilities.CopyFrom(
            messages.UnityRLCapabilitiesProto(**dict.fromkeys(capabilities, True))
        )
        self.say(first)
        self.receive()
        self.act({}, messages.RESET, side_channel)
        return said

    def act(
        self,
        actions: Mapping[str, Sequence[messages.AgentActionProto]],
        command: int = messages.STEP,
        side_channel: bytes = b"",
    ) -> None:
        """Answer with actions."""
        reply = messages.UnityMessageProto(header=messages.HeaderProto(status=200))
        for name, acts in actions.items():
            reply.unity_input.rl_input.agent_actions[name] = messages.AgentActionListProto(
                value=acts
            ).SerializeToString()
        reply.unity_input.rl_input.command = command
        reply.unity_input.rl_input.side_channel = side_channel
        self.say(reply)

    def close(self) -> None:
        """Answer that the conversation is over."""
        self.say(messages.UnityMessageProto(header=messages.HeaderProto(status=400)))

    def _exchange(self, request: bytes, _: grpc.ServicerContext) -> bytes:
        self._requests.put(request)
        return self._replies.get()


def agents(message: messages.UnityMessageProto) -> dict[str, Sequence[messages.AgentInfoProto]]:
    """The agents of a request, by behavior."""
    lists = message.unity_output.rl_output.agentInfos
    return {name: messages.AgentInfoListProto.FromString(infos).value for name, infos in lists.items()}
