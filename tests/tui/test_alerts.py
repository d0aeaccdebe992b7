"""What must be noticed is: once, in bounded numbers, never over a dialog, and it steers no terminal."""

from __future__ import annotations

import re

import pytest

from rl_tui.engine.session.messages import (
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointSaved,
    CommandFinished,
    Envelope,
    EnvironmentRestarting,
    Event,
    LogEmitted,
    ProgressReported,
    RunStateChanged,
    WarningRaised,
)
from rl_tui.tui.panes import outcome
from rl_tui.tui.screens.alerts import alert_for
from rl_tui.tui.state.alert import Alert
from rl_tui.tui.terminal.sequences import notice_sequence
from tests.tui import scenes
from tests.tui.driver import Driven

NOTICE_SECONDS_AS_SHIPPED = outcome.NOTICE_SECONDS  # before conftest.py has it stay
LATER = 1e9
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
            Alert("Walker", "step 5000 not saved: disk full", "error"),
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
        view.apply(Envelope(view.position[1] + 1, view.now, event))
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


def alert_of(text: str) -> str:
    """The line above the keys."""
    return text.splitlines()[-2]


async def test_the_worst_is_shown_first_then_the_others_each_for_its_time_and_once() -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40)) as screen:
        text = await screen.publish(WARNING)
        assert alert_of(text).startswith(
            " ! Walker  entropy 0.003 since 1.2M: the policy may have collapsed; raise beta"
        )
        error = LogEmitted("error", "writer sqlite", "write raised OSError: disk full")
        assert alert_of(await screen.publish(error)).startswith(" ✗ writer sqlite  write raised OSError: disk full")
        other = WarningRaised("disk", "", "disk full in 40m", "free some")
        assert "writer sqlite" in alert_of(await screen.publish(other)), "it has its time"
        screen.app._alerts.show(LATER)
        assert alert_of(await screen.text()).startswith(" ! run  disk full in 40m; free some")
        shown = screen.app.status.alert
        screen.app._alerts.show(2 * LATER)
        assert screen.app.status.alert is shown, "nothing waits any more"


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
    async with Driven(scenes.healthy(1).view(), (120, 40)) as screen:
        await screen.publish(BehaviorStateChanged("Walker", "failed", "nan"))
        assert screen.app.status.alert is None
        if decided is None:
            screen.app._alerts.show(LATER)
        else:
            await screen.publish(decided)
        shown = screen.app.status.alert
        assert shown is not None
        waiting = [shown.alert, *screen.app._alerts._waiting]
        assert f"nan; {words}" in [alert.text for alert in waiting]


async def test_of_ten_at_once_the_worst_is_shown_and_the_others_are_counted() -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40)) as screen:
        several = [WarningRaised(f"kind {index}", "Walker", f"number {index}", "wait") for index in range(9)]
        text = await screen.publish(*several, CheckpointFailed("Walker", 5000, "interval", "disk full"))
        assert re.search(r"^ ✗ Walker  step 5000 not saved: disk full .* w 9 more$", alert_of(text).rstrip())
        for at, words in enumerate(["number 0; wait", "number 1; wait", "number 1; wait"], start=1):
            screen.app._alerts.show(at * LATER)
            assert words in alert_of(await screen.text()), "those that waited for long are old news"


@pytest.mark.parametrize("opened", ["", "detail", "chart", "hyperparameters", "log", "checkpoints", "runs", "warnings"])
@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 60)])
async def test_an_alert_changes_nothing_but_the_line_above_the_keys(size: tuple[int, int], opened: str) -> None:
    async with Driven(scenes.eventful().view(), size, opened=opened) as screen:
        before = (await screen.text()).splitlines()
        screen.app._alerts._note(Alert("Walker", WARNING.message * 4, "warning"))
        after = (await screen.text()).splitlines()
        assert [row for row, (old, new) in enumerate(zip(before, after, strict=True)) if old != new] == [size[1] - 2]
        assert after[-2].startswith(" ! Walker  entropy")
        assert after[-2].rstrip().endswith(" w more")


async def test_the_answer_to_a_key_comes_before_alerts_which_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    error = LogEmitted("error", "writer sqlite", "write raised OSError: disk full")
    async with Driven(scenes.healthy(1).view(), (120, 40)) as screen:
        assert "raise beta" in alert_of(await screen.publish(WARNING))
        assert alert_of(await screen.press("c")).startswith(" ✓ checkpoint Walker: done")
        assert alert_of(await screen.publish(error)).startswith(" ✓ checkpoint Walker: done")
        monkeypatch.setattr("rl_tui.tui.panes.outcome.ANSWER_SECONDS", 0.0)
        assert "disk full" in alert_of(await screen.text())


async def test_the_line_is_empty_again_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40)) as screen:
        place = alert_of(await screen.text())
        for lines in (await screen.publish(WARNING), await screen.press("c"), await screen.press("T")):
            assert alert_of(lines) != place
            with monkeypatch.context() as later:
                later.setattr("rl_tui.tui.panes.outcome.NOTICE_SECONDS", 0.0)
                assert alert_of(await screen.text()) == place


async def test_a_command_without_an_answer_is_shown_until_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40), answers=False) as screen:
        await screen.press("c")
        monkeypatch.setattr("rl_tui.tui.panes.outcome.NOTICE_SECONDS", 0.0)
        assert "◌ checkpoint Walker: requested" in alert_of(await screen.text())


def without_state_line(text: str) -> str:
    return text.partition("\n")[2]


async def test_alerts_wait_until_a_dialog_is_gone() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        dialog = await screen.press("q")
        assert without_state_line(await screen.publish(WARNING)) == without_state_line(dialog)
        assert screen.app.status.alert is None, "its time would run out below the dialog"
        assert "the policy may" in alert_of(await screen.press("escape"))


async def test_alerts_wait_while_a_filter_is_typed_in_their_line() -> None:
    async with Driven(scenes.healthy(1).view(), opened="log") as screen:
        await screen.press("slash")
        await screen.publish(WARNING)
        assert screen.app.status.alert is None
        assert "the policy may" in alert_of(await screen.press("escape"))


async def test_names_in_alerts_are_not_markup() -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40)) as screen:
        text = await screen.publish(WarningRaised("x", HOSTILE, HOSTILE, "wait"))
        assert "[red]x[/] $(id) evil" in alert_of(text)
        assert "\x1b" not in text


def test_alerts_and_reports_go_away_by_themselves() -> None:
    assert NOTICE_SECONDS_AS_SHIPPED == 10


def joined(text: str) -> str:
    """The words of the rows, without frames and the blanks of wrapping."""
    return "".join(re.sub(r"[│╭╮╰╯─]", "", text).split())


LONG = "no space left on device while the checkpoint of this step was written, " * 3 + "and that is all"


@pytest.mark.parametrize(
    "event",
    [
        WarningRaised("disk", "Walker", LONG, "free some space"),
        BehaviorStateChanged("Walker", "failed", LONG),
        CheckpointFailed("Walker", 5000, "interval", LONG),
        LogEmitted("error", "writer sqlite", LONG),
        EnvironmentRestarting("gymnasium:X", 3, ("Walker",), LONG, "", 1),
        RunStateChanged("failed", LONG, 3),
        CommandFinished("", False, LONG),
    ],
    ids=lambda event: type(event).__name__,
)
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_line_that_is_cut_names_the_key_to_all_of_its_text(size: tuple[int, int], event: Event) -> None:
    async with Driven(scenes.healthy(1).view(), size, answers=False) as screen:
        if isinstance(event, CommandFinished):
            await screen.press("c")
            event = CommandFinished(screen.session.commands[0].id, False, LONG)
        text = await screen.publish(event)
        if isinstance(event, BehaviorStateChanged):
            screen.app._alerts.show(LATER)
            text = await screen.text()
        assert re.search(r"… +w more$", alert_of(text).rstrip())
        assert joined(LONG) in joined(await screen.press("w"))


async def test_a_run_that_ended_well_names_the_key_to_its_checkpoints() -> None:
    async with Driven(scenes.healthy(5).view(), (80, 24)) as screen:
        line = alert_of(await screen.publish(RunStateChanged("finished", "max_steps reached by all"))).rstrip()
        assert re.search(r"^ Run finished  best checkpoint: .*… +k more$", line)
