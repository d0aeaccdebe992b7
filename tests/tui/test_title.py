"""The title of the terminal's window: what the run does, in few bytes, and given back."""

from __future__ import annotations

import re
from pathlib import Path

from rl_tui.engine.session.messages import RunStateChanged
from rl_tui.engine.session.view import RunView
from rl_tui.tui.command_line.train_arguments import parse_train_arguments, screen_options
from rl_tui.tui.panes.state_line import title_of
from rl_tui.tui.terminal.sequences import POP_TITLE, PUSH_TITLE, title_sequence
from tests.tui import scenes
from tests.tui.test_terminal import LiveScreen

HOSTILE = "\x1b]0;gone\x07\x9c\x1b\\evil\u202e\nname"


def test_title_says_which_run_how_far_it_is_and_what_it_does() -> None:
    story = scenes.healthy(2)
    assert title_of(story.view(), "x.yaml") == "rl-tui walker-ppo 32% training"
    for state in ("paused", "stopping", "failed"):
        story.publish(RunStateChanged(state))
        assert title_of(story.view(), "x.yaml") == f"rl-tui walker-ppo 32% {state}"
    assert title_of(RunView(), "ppo/CartPole") == "rl-tui ppo/CartPole starting"
    assert title_of(scenes.finished(1).view(), "") == "rl-tui walker-ppo 100% finished"


def test_a_name_from_outside_steers_no_terminal() -> None:
    title = title_of(RunView(), HOSTILE * 20)
    assert "evil" in title
    assert len(title) < 80
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", title)


def test_console_that_would_print_the_title_gets_none() -> None:
    assert title_sequence("rl-tui", {"TERM": "linux"}) == ""
    assert title_sequence("rl-tui", {"TERM": "tmux-256color", "TMUX": "x"}) == "\x1b]2;rl-tui\x1b\\"


def test_title_is_wanted_unless_it_is_said_otherwise() -> None:
    assert screen_options({}).has_title
    assert not parse_train_arguments(["x.yaml", "--no-title"]).options.has_title


def test_former_title_comes_back_at_the_end(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--happening", "pause") as live:
        live.terminal.wait_for_bytes(b"% paused\x1b")
        live.leave()
        raw = bytes(live.terminal.raw).decode()
    titles = re.findall(r"\x1b\]2;([^\x1b\x07]*)\x1b\\", raw)
    assert re.fullmatch(r"rl-tui live \d+% paused", titles[-1])
    assert len(titles) == len(set(titles))
    assert raw.count(PUSH_TITLE) == raw.count(POP_TITLE) == 1
    assert raw.index(PUSH_TITLE) < raw.index("\x1b]2;")
    assert raw.rindex("\x1b]2;") < raw.index(POP_TITLE)


def test_without_a_title_none_is_set(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--no-title", "--happening", "end") as live:
        live.terminal.wait_for("FINISHED")
        live.terminal.press("q")
        live.report()
        for sequence in (PUSH_TITLE, POP_TITLE, "\x1b]2;"):
            assert sequence.encode() not in live.terminal.raw
