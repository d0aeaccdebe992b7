"""How a screen of a test is connected to its run: by shared objects, or by lines as another process would have them."""

from __future__ import annotations

from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.codec import decode, decode_command, encode, encode_command
from rl_tui.engine.session.messages import Command, Envelope, Hint
from rl_tui.engine.session.snapshot import Snapshot, SnapshotReader
from rl_tui.engine.session.view import RunView
from tests.fakes import FakeSession


class Connection:
    """That of every screen that is opened now. is_by_lines: nothing is shared."""

    is_by_lines = False


def sent(view: RunView) -> RunView:
    """The view after it has travelled, its last curve first."""
    snapshot = Snapshot(view)
    reader = SnapshotReader(snapshot.first)
    for curve in reversed(snapshot.curves):
        assert not reader.is_complete
        reader.add(snapshot.line(curve))
    assert reader.is_complete
    return reader.view


class BusOfLines(EventBus):
    """Every event is delivered as its line says."""

    def _deliver(self, envelope: Envelope) -> None:
        super()._deliver(decode(encode(envelope)))


class SessionOfLines(FakeSession):
    """Every command arrives as its line says, and every event is delivered so."""

    def make_bus(self) -> EventBus:
        """One whose events travel."""
        return BusOfLines()

    def send(self, message: Command | Hint) -> None:
        """The same once it has travelled."""
        super().send(decode_command(encode_command(message)))
