"""The server of one client."""

from __future__ import annotations

import os

import grpc
import pytest

from rl_tui.engine.sampling.environments.unity import ports
from rl_tui.engine.sampling.environments.unity.exchange import Exchange, Gone
from tests.deadline import DEADLINE_SECONDS, wait_until
from tests.sampling.unity.playing import free_port
from tests.unity_player.connection import EXCHANGE


def test_a_client_that_closes_its_connection_while_it_is_owed_a_reply_has_gone() -> None:
    exchange = Exchange(free_port(), lambda *_: "", lambda _: None)
    exchange.open()
    with grpc.insecure_channel(f"127.0.0.1:{exchange.port}") as channel:
        pending = channel.unary_unary(EXCHANGE).future(b"first")
        assert exchange.wait(DEADLINE_SECONDS) == b"first"
        assert not pending.done()
    request = exchange._current
    assert request is not None
    wait_until(lambda: request.is_answered)  # by the server, which has noticed
    exchange.reply(b"too late")
    with pytest.raises(Gone):
        exchange.wait(DEADLINE_SECONDS)
    exchange.close(b"")
    exchange.stop()


def test_a_program_that_tries_without_end_is_refused_each_time_and_noted_a_few_times() -> None:
    notes: list[str] = []
    exchange = Exchange(free_port(), lambda *_: "only the player may connect", notes.append)
    exchange.open()
    for number in range(6):
        options = [("grpc.use_local_subchannel_pool", 1), ("number", number)]  # a connection of its own
        channel = grpc.insecure_channel(f"127.0.0.1:{exchange.port}", options)
        with channel, pytest.raises(grpc.RpcError, match="only the player may connect"):
            channel.unary_unary(EXCHANGE)(b"first", timeout=DEADLINE_SECONDS)
    assert len(notes) == 3
    caller = ports.in_words(os.getpid())
    assert notes[0] == f"a connection to port {exchange.port} by {caller} was refused: only the player may connect"
    assert notes[2] == f"{notes[0]}; further ones will be refused without a line"
    exchange.close(b"")
    exchange.stop()


def test_every_call_after_the_end_is_answered_with_the_farewell() -> None:
    exchange = Exchange(free_port(), lambda *_: "", lambda _: None)
    exchange.open()
    with grpc.insecure_channel(f"127.0.0.1:{exchange.port}") as channel:
        call = channel.unary_unary(EXCHANGE)
        pending = call.future(b"first")
        assert exchange.wait(DEADLINE_SECONDS) == b"first"
        exchange.close(b"farewell")
        assert pending.result(DEADLINE_SECONDS) == b"farewell"
        assert call(b"second", timeout=DEADLINE_SECONDS) == b"farewell"
    exchange.stop()
