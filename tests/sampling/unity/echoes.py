"""Side channels as users write them, right and wrong ones."""

from __future__ import annotations

from uuid import UUID

from tests.unity_player.side_channels import ECHO, ENGINE


class Echo:
    """Sends numbers; the stand-in player sends back what it hears on this channel."""

    channel_id = ECHO

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self._count = 0

    def on_message(self, payload: bytes) -> None:
        self.received.append(payload)

    def pop_messages(self) -> list[bytes]:
        self._count += 1
        return [str(self._count - 1).encode()]


class Nameless(Echo):
    channel_id: UUID = "echo"  # type: ignore[assignment]


class Engine(Echo):
    channel_id = ENGINE


class Deaf:
    channel_id = ECHO
