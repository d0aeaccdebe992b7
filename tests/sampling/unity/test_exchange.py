"""The server of one client."""

from __future__ import annotations

import grpc
import pytest

from rl_tui.engine.sampling.environments.unity.exchange import Exchange, Gone
from tests.sampling.unity.playing import DEADLINE, free_port, wait_until
from tests.unity_player.connection import EXCHANGE


def test_a_client_that_closes_its_connection_while_it_is_owed_a_reply_has_gone() -> None:
    exchange = Exchange(free_port(), lambda _: "", lambda _: None)
    exchange.open()
    with grpc.insecure_channel(f"127.0.0.1:{exchange.port}") as channel:
        pending = channel.unary_unary(EXCHANGE).future(b"first")
        assert exchange.wait(DEADLINE) == b"first"
        assert not pending.done()
    request = exchange._current
    assert request is not None
    wait_until(lambda: request.is_answered)  # by the server, which has noticed
    exchange.reply(b"too late")
    with pytest.raises(Gone):
        exchange.wait(DEADLINE)
    exchange.close(b"")
    exchange.stop()


def test_every_call_after_the_end_is_answered_with_the_farewell() -> None:
    exchange = Exchange(free_port(), lambda _: "", lambda _: None)
    exchange.open()
    with grpc.insecure_channel(f"127.0.0.1:{exchange.port}") as channel:
        call = channel.unary_unary(EXCHANGE)
        pending = call.future(b"first")
        assert exchange.wait(DEADLINE) == b"first"
        exchange.close(b"farewell")
        assert pending.result(DEADLINE) == b"farewell"
        assert call(b"second", timeout=DEADLINE) == b"farewell"
    exchange.stop()
