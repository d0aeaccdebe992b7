"""Time zone and language are the same for every picture, and no test waits for an idle processor."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from typing import Any

import pytest
from textual._styles_cache import StylesCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.screen import Screen

from tests.tui.connections import Connection
from tests.tui.settling import drop_picture, pause, until_nothing_is_ready

_connected: set[str] = set()  # modules with a test of keys over a socket that is not slow


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test of a screen also runs with a socket between it and its run; only the first with keys is quick."""
    if not hasattr(metafunc.module, "Driven"):
        return
    name = metafunc.module.__name__
    is_quick = name not in _connected and ".press(" in inspect.getsource(metafunc.function)
    _connected.update([name] if is_quick else [])
    by_socket = pytest.param(True, id="over a socket", marks=() if is_quick else pytest.mark.slow)
    metafunc.fixturenames.append("connection")
    metafunc.parametrize("connection", [pytest.param(False, id="shared"), by_socket], indirect=True)


@pytest.fixture
def connection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """See `pytest_generate_tests`."""
    monkeypatch.setattr(Connection, "is_by_socket", request.param)


@pytest.fixture(autouse=True)
def fixed_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(scope="session", autouse=True)
def style_sheets_that_are_parsed_once() -> Iterator[None]:
    """Hundreds of apps have the same few, and parsing them is a sixth of opening one."""
    parse_rules = Stylesheet._parse_rules
    parsed: dict[object, list[RuleSet]] = {}

    def parse_once(sheet: Stylesheet, *words: Any, **more: Any) -> list[RuleSet]:
        key = (frozenset(sheet._variables.items()), words, *more.items())
        if key not in parsed:
            parsed[key] = parse_rules(sheet, *words, **more)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield


@pytest.fixture(autouse=True)
def lines_that_are_forgotten() -> Iterator[None]:
    """Textual remembers a color with each of the last 1024 widgets, and with it every line that they drew: half a
    million objects, which collecting garbage goes through again and again."""
    yield
    StylesCache.get_inner_outer.cache_clear()


@pytest.fixture(autouse=True)
def nothing_that_goes_away_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a busy machine takes from words to the user to the look at them."""
    monkeypatch.setattr("rl_tui.tui.panes.outcome.NOTICE_SECONDS", 1e6)
    monkeypatch.setattr("rl_tui.tui.panes.outcome.ANSWER_SECONDS", 1e6)


@pytest.fixture(autouse=True)
def watch_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """See tests/running/conftest.py."""
    monkeypatch.setattr("rl_tui.engine.running.watching.viewer.NICENESS", 0)


@pytest.fixture(autouse=True)
def pilot_that_does_not_doze(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual's pilot sleeps in steps of 20 ms until the process uses little processor time: slow, and on a busy
    machine wrong. What it waits for is over as soon as the event loop has nothing left to run."""
    monkeypatch.setattr("textual.pilot.wait_for_idle", until_nothing_is_ready)
    monkeypatch.setattr("textual.app.wait_for_idle", until_nothing_is_ready)
    monkeypatch.setattr(Pilot, "_wait_for_screen", until_nothing_is_ready)
    monkeypatch.setattr(Pilot, "pause", pause)


@pytest.fixture(autouse=True)
def pictures_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal Textual composes each of its pictures and then drops it. snapshots.screen_text renders what
    would be seen, where a test reads it."""
    monkeypatch.setattr(Screen, "_compositor_refresh", drop_picture)
