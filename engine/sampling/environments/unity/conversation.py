"""The messages of one connection, checked as far as every message is alike."""

from __future__ import annotations

import time

from google.protobuf.message import DecodeError

from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages
from rl_tui.engine.sampling.environments.unity.clients import Client
from rl_tui.engine.sampling.environments.unity.exchange import Exchange, Gone
from rl_tui.engine.sampling.environments.unity.handshake import FAREWELL, OK

_FIRST_CHECK_SECONDS, _CHECK_SECONDS = 0.05, 0.5  # until a silent client is looked for, and at most between checks


class Conversation:
    """Each message is answered once. Owned by one environment."""

    def __init__(self, exchange: Exchange, client: Client) -> None:
        self._exchange, self._client = exchange, client

    def receive(self, deadline: float) -> messages.UnityMessageProto:
        """The client's next message, until this monotonic time.

        Raises what the client raises for one that is not of the protocol, when it has left, or said nothing in time.
        """
        content = self._wait(deadline)
        try:
            message: messages.UnityMessageProto = messages.UnityMessageProto.FromString(content)
        except DecodeError as error:
            text = f"{self._client.name} sent {len(content):,} bytes that are no message of ML-Agents' protocol"
            raise self._client.unreadable(text) from error
        if not message.HasField("header"):
            text = f"{self._client.name} sent a message of {len(content):,} bytes without a header"
            raise self._client.unreadable(text)
        if message.header.status != OK:
            self._exchange.reply(FAREWELL)  # it leaves once it is answered
            raise self._client.gone()
        return message

    def say(self, message: messages.UnityMessageProto) -> None:
        """Answer the last message. Raises EnvironmentFailure if that is too large."""
        self._exchange.reply(message.SerializeToString())

    def _wait(self, deadline: float) -> bytes:
        pause = _FIRST_CHECK_SECONDS
        while True:
            left = deadline - time.monotonic()
            try:
                content = self._exchange.wait(min(left, pause))
            except Gone as error:
                raise self._client.gone() from error
            if content is not None:
                return content
            self._client.require_alive(self._exchange.peer_port)
            if left <= 0:
                raise self._client.silent(is_connected=self._exchange.peer_port is not None)
            pause = min(2 * pause, _CHECK_SECONDS)
