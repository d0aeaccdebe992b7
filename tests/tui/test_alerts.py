"""What must be noticed is: once, in bounded numbers, never over a dialog, and it steers no terminal."""

from __future__ import annotations

import pytest

from rl_tui.engine.session.messages import (
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointSaved,
    Envelope,
    Event,
    LogEmitted,
    ProgressReported,
    RunStateChanged,
    WarningRaised,
)
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.drawing.painting import toast_regions
from rl_tui.tui.screens.alerts import TOAST_SECONDS, Alert, alert_for
from rl_tui.tui.terminal.sequences import notice_sequence
from rl_tui.tui.textual_private import Toast
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.snapshots import settled_text

WARNING = WarningRaised("entropy", "Walker", "entropy 0.003 since 1.2M: the policy may have collapsed", "raise beta")
HOSTILE = "[red]x[/] \x1b]0;gone\x07\x1b[2J$(id) \u202eevil"


@pytest.mark.parametrize(
    ("event", "news"),
    [
        (WARNING, Alert("Walker", f"{WARNING.message}; raise beta", "warning")),
        (
            WarningRaised("disk", "", "disk full in 40m", "free some"),
            Alert("run", "disk full in 40m; free some", "warning"),
        ),
        (
            BehaviorStateChanged("Walker", "failed", "Losses/Value Loss is nan"),
            Alert("Walker failed", "Losses/Value Loss is nan; its last checkpoint is of step 150k", "error", True),
        ),
        (
            BehaviorStateChanged("Walker", "failed", "the loss is nan", can_roll_back=True),
            Alert(
                "Walker failed; R rolls it back to step 150k",
                "the loss is nan; its last checkpoint is of step 150k",
                "error",
                True,
            ),
        ),
        (
            BehaviorStateChanged("Ant", "failed", "no such environment"),
            Alert("Ant failed", "no such environment; it has no checkpoint", "error", True),
        ),
        (
            CheckpointFailed("Walker", 5000, "interval", "disk full"),
            Alert("Walker", "step 5.00k is not saved: disk full; earlier checkpoints are untouched", "error"),
        ),
        (
            LogEmitted("error", "writer sqlite", "write raised OSError: disk full. It is left out; the run continues"),
            Alert("writer sqlite", "write raised OSError: disk full. It is left out; the run continues", "error"),
        ),
        (LogEmitted("warning", "Walker", "slow"), None),
        (RunStateChanged("failed", "worker died", 3), Alert("Run failed", "worker died", "error", True)),
        (ProgressReported("Walker", 1, 1, 1.0, 1), None),
        (BehaviorStateChanged("Walker", "paused"), None),
        (RunStateChanged("stopping"), None),
    ],
)
def test_news_say_who_what_and_what_is_left(event: Event, news: Alert | None) -> None:
    view = scenes.healthy(1).view()
    if isinstance(event, BehaviorStateChanged):
        view.apply(Envelope(view.last_number + 1, view.now, event))
    assert alert_for(event, view) == news


def test_a_finished_run_names_its_best_checkpoints() -> None:
    news = alert_for(RunStateChanged("finished"), scenes.healthy(2).view())
    assert news is not None
    assert news.text.startswith("best checkpoint: Walker 412.0")
    assert ", Crawler -" in news.text
    assert alert_for(RunStateChanged("finished"), scenes.empty().view()) == Alert(
        "Run finished", "", "information", True
    )


@pytest.mark.parametrize(
    ("environment", "sequence"),
    [
        ({}, "\x1b]777;notify;rl-tui;Walker failed, nan\x1b\\"),
        ({"TERM_PROGRAM": "iTerm.app"}, "\x1b]9;Walker failed, nan\x1b\\"),
        ({"LC_TERMINAL": "iTerm2"}, "\x1b]9;Walker failed, nan\x1b\\"),
        ({"TMUX": "/tmp/x"}, "\x1bPtmux;\x1b\x1b]777;notify;rl-tui;Walker failed, nan\x1b\x1b\\\x1b\\"),
        ({"TERM": "linux"}, ""),
    ],
)
def test_a_notice_has_the_form_of_the_terminal(environment: dict[str, str], sequence: str) -> None:
    assert notice_sequence("Walker failed; nan", environment) == sequence


def test_a_notice_steers_no_terminal() -> None:
    text = notice_sequence(HOSTILE + ";1;2" + "x" * 9000, {})
    inner = text.removeprefix("\x1b]777;notify;rl-tui;").removesuffix("\x1b\\")
    assert "\x1b" not in inner
    assert "\x07" not in inner
    assert ";" not in inner
    assert len(inner) <= 200


async def test_a_warning_and_an_error_in_the_log_are_toasts_once() -> None:
    view, session = scenes.healthy(1).view(), FakeSession()
    app = TrainerApp(session, view, clock=lambda: view.now)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        app.tick()
        session.bus.publish(WARNING)
        session.bus.log("error", "writer sqlite", "write raised OSError: disk full")
        app.tick()
        text = " ".join((await settled_text(pilot)).split())
        assert "the policy may have" in text
        assert "write raised OSError" in text
        app.tick()
        app.tick()
        await pilot.pause()
        assert len(app.screen.query(Toast)) == 2


@pytest.mark.parametrize(
    ("decided", "words"),
    [
        (
            CheckpointSaved("Walker", 163_000, "results/w/163000", "error", None, False, 9, 0.1),
            "its last checkpoint is of step 163k",
        ),
        (CheckpointFailed("Walker", 163_000, "error", "disk full"), "its last checkpoint is of step 150k"),
        (RunStateChanged("failed", "nan", 5), "its last checkpoint is of step 150k"),
        (None, "its last checkpoint is of step 150k, and a newer one is being saved"),
    ],
)
async def test_failed_behavior_names_the_newest_checkpoint_on_disk_once_that_is_known(
    decided: Event | None, words: str
) -> None:
    view, session = scenes.healthy(1).view(), FakeSession()
    app = TrainerApp(session, view, clock=lambda: view.now)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        app.tick()
        session.bus.publish(BehaviorStateChanged("Walker", "failed", "nan"))
        app.tick()
        await pilot.pause()
        assert not app.screen.query(Toast)
        if decided is None:
            app._alerts.show(1e9)  # much later
        else:
            session.bus.publish(decided)
            app.tick()
        await pilot.pause()
        assert f"nan; {words}" in [toast._notification.message for toast in app.screen.query(Toast)]


async def test_ten_at_once_are_as_many_as_have_room_and_a_number() -> None:
    view, session = scenes.healthy(1).view(), FakeSession()
    app = TrainerApp(session, view, clock=lambda: view.now)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        app.tick()
        for index in range(9):
            session.bus.publish(WarningRaised(f"kind {index}", "Walker", f"number {index}", "wait"))
        session.bus.publish(CheckpointFailed("Walker", 5000, "interval", "disk full"))
        app.tick()
        text = await settled_text(pilot)
        assert "and 8 more: w shows them" in text
        assert "is not saved" in text  # the worst comes first
        assert len(app.screen.query(Toast)) == 3
        session.bus.publish(WarningRaised("late", "Walker", "another one", "wait"))
        app.tick()
        await pilot.pause()
        assert len(app.screen.query(Toast)) == 3
        app._alerts.show(1e9)  # much later
        await pilot.pause()
        assert any("another one" in toast._notification.message for toast in app.screen.query(Toast))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_toasts_leave_the_keys_and_what_was_said_in_sight(size: tuple[int, int]) -> None:
    view, session = scenes.healthy(1).view(), FakeSession()
    app = TrainerApp(session, view, clock=lambda: view.now)
    async with app.run_test(size=size, notifications=True) as pilot:
        app.tick()
        before = (await settled_text(pilot)).splitlines()
        for index in range(10):
            session.bus.publish(WarningRaised(f"{index}", "Walker", WARNING.message * 3, WARNING.advice))
        app.tick()
        after = (await settled_text(pilot)).splitlines()
        assert after[-2:] == before[-2:]
        assert "more: w shows them" in "\n".join(after), "\n".join(after)
        assert after[1][: size[0] // 3] == before[1][: size[0] // 3]


READ = "StateLine OutcomeLine KeysLine LogPane BehaviorsPane BehaviorPage BehaviorLog CheckpointsPane SummaryPane"


@pytest.mark.parametrize("opened", ["", "detail", "chart"])
@pytest.mark.parametrize("size", [(60, 15), (80, 24), (100, 24), (120, 40), (200, 60)])
async def test_toasts_cover_no_more_than_a_chart(size: tuple[int, int], opened: str) -> None:
    async with Driven(scenes.healthy(12).view(), size, opened=opened, notifications=True) as driven:
        await driven.publish(*(WarningRaised(f"{number}", "Walker", "too long " * 9, "wait") for number in range(9)))
        toasts = toast_regions(driven.screen)
        assert toasts
        assert "more: w shows them" in await driven.text()
        for widget, (region, _) in driven.screen._compositor.visible_widgets.items():
            is_read = type(widget).__name__ in READ.split()
            assert not is_read or not any(region.overlaps(toast) for toast in toasts), (widget, toasts)


@pytest.mark.parametrize("opened", ["log", "checkpoints", "hyperparameters", "warnings"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_toasts_leave_the_newest_and_the_selected_line_of_a_list_in_sight(
    size: tuple[int, int], opened: str
) -> None:
    async with Driven(scenes.eventful().view(), size, opened=opened, notifications=True) as driven:
        for keys in ([], ["end"], ["home", "down"]):
            await driven.press(*keys) if keys else None
            await driven.publish(WARNING)
            pane = driven.screen.list_pane
            assert pane is not None
            top = pane.content_region.y
            kept = [top, *(top + row for row in pane.cursor_rows())]
            assert len(kept) >= 2
            assert not [y for y in kept for toast in toast_regions(driven.screen) if toast.y <= y < toast.bottom]
            assert all(toast.bottom <= size[1] - 2 for toast in toast_regions(driven.screen))


def line_with(words: str, text: str) -> str:
    """The part of the line between the dialog's walls."""
    return next(line for line in text.splitlines() if words in line)[8:70]


def without_state_line(text: str) -> str:
    return text.partition("\n")[2]


async def test_toasts_wait_until_a_dialog_is_gone() -> None:
    view, session = scenes.healthy(1).view(), FakeSession()
    app = TrainerApp(session, view, clock=lambda: view.now)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        app.tick()
        await pilot.press("q")
        dialog = await settled_text(pilot)
        session.bus.publish(WARNING)
        app.tick()
        assert without_state_line(await settled_text(pilot)) == without_state_line(dialog)
        assert not app._notifications  # its time would run out below the dialog
        await pilot.press("escape")
        app.tick()
        assert "raise beta" in " ".join((await settled_text(pilot)).split())
        await pilot.press("q")
        text = await settled_text(pilot)
        for words in ("checkpoint and stop", "stop now", " stay "):
            assert line_with(words, text) == line_with(words, dialog)


async def test_names_in_toasts_are_not_markup() -> None:
    view, session = scenes.healthy(1).view(), FakeSession()
    app = TrainerApp(session, view, clock=lambda: view.now)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        app.tick()
        session.bus.publish(WarningRaised("x", HOSTILE, HOSTILE, "wait"))
        app.tick()
        text = await settled_text(pilot)
        assert "[red]x[/] $(id) evil" in text
        assert "\x1b" not in text


def test_toasts_go_away_by_themselves() -> None:
    assert 5 <= TOAST_SECONDS <= 10
