"""The top line: what matters most stays, whatever else there is to say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rl_tui.engine.session.messages import DevicesSampled, WarningRaised
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.glyphs import UNICODE
from rl_tui.tui.drawing.lines import cells
from rl_tui.tui.keys.keymap import Keymap
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.state_line import state_line
from rl_tui.tui.state.choices import ScreenState
from rl_tui.tui.state.command_status import CommandStatus
from tests.tui import scenes

SLOW = "link slow"


def frame_of(view: RunView, *notes: str, is_frozen: bool = False, now: float = 2.0) -> Frame:
    """What the line is drawn from, `now` seconds after the last event."""
    return Frame(
        view, ScreenState(), CommandStatus(), Keymap(), view.now + now, UNICODE, notes=notes, is_frozen=is_frozen
    )


def line_of(frame: Frame, width: int) -> str:
    """The line's text, which is never too long."""
    spans = state_line(frame, width)
    assert cells(spans) <= width
    return "".join(span.text for span in spans)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_slow_link_pushes_out_nothing_that_matters_more(width: int) -> None:
    line = line_of(frame_of(scenes.eventful().view(), SLOW), width)
    for words in ("TRAINING 2/2", "! 2 warnings", " 32%", "walker-ppo", "ckpt 2m" if width < 100 else "2m"):
        assert words in line


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("is_frozen", [True, False])
def test_state_warnings_progress_and_checkpoint_stay_at_the_worst_of_times(width: int, is_frozen: bool) -> None:
    story = scenes.healthy(12)
    for kind in range(13):
        story.publish(WarningRaised(f"kind {kind}", "Walker", "a warning", "an advice"))
    sample = next(envelope.event for envelope in story.published if isinstance(envelope.event, DevicesSampled))
    story.publish(replace(sample, disk_free_bytes=scenes.GIB))
    view = story.view()
    assert view.run is not None
    view.run = replace(view.run, run_id="a-run-with-a-name-that-is-longer-than-there-is-room")
    line = line_of(frame_of(view, "demo 10x", SLOW, is_frozen=is_frozen, now=9.0), width)
    for words in ("TRAINING 12/12", "! 13 warnings", "! disk 1.0G", "39%", "ckpt" if width == 80 else " 2m"):
        assert words in line
    assert ("FROZEN" if is_frozen else "! no data") in line


def test_progress_is_said_on_every_terminal_on_which_the_state_is() -> None:
    for width in range(40, 201):
        line = line_of(frame_of(scenes.healthy(3).view()), width)
        assert "TRAINING 3/3" in line
        assert " 33%" in line


def test_a_bar_stands_beside_the_percentage_where_there_is_room() -> None:
    assert "━━━━━━━─────────────  33% " in line_of(frame_of(scenes.healthy(3).view()), 140)
    assert "━" not in line_of(frame_of(scenes.eventful().view(), SLOW), 80)


def test_state_stays_on_the_narrowest_terminal() -> None:
    assert line_of(frame_of(scenes.healthy(12).view()), 20) == " ● TRAINING 12/12"
    assert line_of(frame_of(scenes.healthy(12).view()), 3) == " ●"
