"""The player's end of the connection to a trainer."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc

EXCHANGE = "/communicator_objects.UnityToExternalProto/Exchange"
GIVES_UP_SECONDS = 0.2  # to find a trainer
OPTIONS = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_send_message_length", -1),  # Unity sets no limit of its own; replies keep the default of 4 MiB
]


class NoTrainer(Exception):
    """No trainer listens, or it is gone."""


class Connection:
    """Sends requests to the trainer at a port of this machine, one at a time. record: keeps their bytes there."""

    def __init__(self, port: int, record: Path | None = None) -> None:
        self._channel = grpc.insecure_channel(f"localhost:{port}", OPTIONS)
        self._call = self._channel.unary_unary(EXCHANGE)
        self._record = record
        self.count = 0  # requests that were answered
        if record is not None:
            record.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._channel.close()

    def exchange(self, request: bytes) -> bytes:
        """The reply, however late it is. Raises NoTrainer where there is none."""
        try:
            reply: bytes = self._call(request)
        except grpc.RpcError as error:
            raise NoTrainer(f"{error.code().name}: {error.details()}") from error
        if self._record is not None:
            (self._record / f"{self.count:04}.request").write_bytes(request)
            (self._record / f"{self.count:04}.response").write_bytes(reply)
        self.count += 1
        return reply

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def call_another_method(self) -> None:
        """Raises NoTrainer: there is none but `Exchange`."""
        self._call = self._channel.unary_unary(f"{EXCHANGE}Twice")
        self.exchange(b"")

    def send_last(self, request: bytes) -> None:
        """Whether it arrives or not: the player leaves."""
        try:
            self._call(request, timeout=1)
        except grpc.RpcError:
            time.sleep(0)
