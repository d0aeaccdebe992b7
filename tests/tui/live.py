"""A screen on a real terminal over a made-up run: for tests of bytes, signals and keys.

live.py [--behaviors N] [--log FILE] [--report FILE] [--stop-seconds S] [--happening WHAT] [--broken WHAT]
        [--preferences FOLDER] [--hangup WHAT] [--no-bell] [--no-title] [--noise]

What is to happen, or to break, does so at the signal SIGVTALRM: its sender has seen the screen of a run that trains.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from textual import events

sys.path.insert(0, str(Path(__file__).parents[2]))

from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointSaved,
    Command,
    CommandAsked,
    CommandFinished,
    DevicesSampled,
    EpisodesFinished,
    Hint,
    MetricsReported,
    ProgressReported,
    RunStarted,
    RunStateChanged,
    Stop,
    TimeSplit,
    WarningRaised,
    WorkerFailed,
)
from rl_tui.engine.session.watching import Unwatchable
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.drawing import pacing
from rl_tui.tui.drawing.lines import Line
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.state_line import StateLine
from rl_tui.tui.screens import alerts
from rl_tui.tui.screens import base as screens
from rl_tui.tui.screens.overview import OverviewScreen
from rl_tui.tui.state.preferences import Preferences
from rl_tui.tui.terminal import painter
from rl_tui.tui.terminal.streams import redirect_output
from tests.deadline import DEADLINE_SECONDS

GIB = 1024**3
SIGNALED = threading.Event()


class LiveSession:
    """A run of `number` behaviors, with events ten times a second from a thread of its own until it is stopped."""

    def __init__(self, number: int, stop_seconds: float, happening: str) -> None:
        """happening: what happens once it is signaled, "" for nothing."""
        self._happening = happening
        self.bus = EventBus()
        self.live = LiveView(self.subscribe())
        self.watching = Unwatchable("nothing is learned")
        self.commands: list[Command] = []
        self._names = [f"Walker{index}" for index in range(number)]
        self._stop_seconds = stop_seconds
        self._stop, self._now = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """The run continues in its thread."""
        self._thread.start()

    def join(self) -> None:
        """The run is over, and was stopped if it outlived the screen."""
        self._stop.set()
        self._thread.join(DEADLINE_SECONDS)

    def send(self, command: Command | Hint) -> None:
        """Keep it; a stop ends the run."""
        if isinstance(command, Hint):
            return
        self.commands.append(command)
        self.bus.publish(CommandAsked(command.id, type(command).__name__, None))
        if isinstance(command, Stop):
            self._stop.set()
            if command.mode == "now":
                self._now.set()
        else:
            self.bus.publish(CommandFinished(command.id, True, "results/live/Walker0-000001234.onnx"))

    def subscribe(self) -> Subscription:
        """A mailbox."""
        return self.bus.subscribe()

    def _run(self) -> None:
        publish, chance, began = self.bus.publish, random.Random(1), time.time()
        publish(RunStarted("live", "results/live", 1, "cpu", False, {}))
        for name in self._names:
            publish(BehaviorStarted(name, "ppo", "gymnasium:Walker2d-v5", 0, 1_000_000, 8, 9347, True))
            publish(BehaviorStateChanged(name, "training"))
        beat, has_happened = 1, False
        self._report(beat, time.time() - began, chance)  # from now on leaving may lose steps
        publish(RunStateChanged("training"))
        while not self._stop.wait(0.1):
            beat += 1
            if SIGNALED.is_set() and not has_happened:
                has_happened = True
                if not self._happen():
                    break
            self._report(beat, time.time() - began, chance)
        if self._happening == "pause":
            self._stop.wait()
        if self._happening != "crash":
            self._save_and_end()

    def _report(self, beat: int, seconds: float, chance: random.Random) -> None:
        publish = self.bus.publish
        for name in self._names:
            step = beat * 1200
            reward = 400 * (1 - math.exp(-beat / 300)) + chance.gauss(0, 30)
            publish(ProgressReported(name, step, step + 900, 11_800 + chance.uniform(-300, 300), beat // 3))
            publish(EpisodesFinished(name, step, 6, reward, reward - 50, reward + 50, 200 + reward))
            if beat % 10 == 0:
                publish(TimeSplit(name, 0.6 * beat, 0.14 * beat, 0.2 * beat, 0.0, 0.06 * beat))
            if beat % 20 == 0:
                metrics = {tag: chance.random() for tag in ("Policy/Entropy", "Losses/Policy Loss")}
                publish(MetricsReported(name, step, seconds, metrics, reward, 3.0, None, True))
        if beat % 10 == 0:
            used = 8 * GIB + int(chance.random() * GIB)
            publish(
                DevicesSampled((), "no NVIDIA driver", 50 + 20 * chance.random(), 16, used, 64 * GIB, GIB, GIB, GIB)
            )

    def _save_and_end(self) -> None:
        publish = self.bus.publish
        self._now.wait(self._stop_seconds)
        for name in self._names:
            publish(CheckpointSaved(name, 1, f"results/live/{name}", "interrupted", 1.0, False, 9, 0.1))
        publish(RunStateChanged("finished", exit_code=0))

    def _happen(self) -> bool:
        """Whether the run continues afterwards."""
        match self._happening:
            case "warning":
                self.bus.publish(
                    WarningRaised("entropy", "Walker0", "entropy 0.003: it may have collapsed", "raise beta")
                )
            case "failure":
                self.bus.publish(
                    BehaviorStateChanged("Walker0", "failed", "\x1b]0;gone\x07the policy loss is nan; really")
                )
            case "crash":
                self.bus.publish(WorkerFailed("learner Walker0", "IndexError: 7", "Traceback ..."))
                self.bus.publish(RunStateChanged("failed", "learner Walker0: IndexError: 7", exit_code=1))
                return False
            case "pause":
                for name in self._names:
                    self.bus.publish(BehaviorStateChanged(name, "paused"))
                self.bus.publish(RunStateChanged("paused"))
                return False
        return self._happening != "end"


class BrokenPane(StateLine):
    """A state line that fails in the middle of the run."""

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Fails from the signal on."""
        if SIGNALED.is_set():
            raise ZeroDivisionError("a pane is broken")
        return super().lines(frame, width, height)


def break_app(app: TrainerApp, what: str) -> None:
    """Something of it fails in the middle of the run."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError(f"a {what} is broken")

    async def fail_later() -> None:
        fail()

    def break_once_signaled() -> None:
        if not SIGNALED.is_set():
            app.set_timer(0.1, break_once_signaled)
            return
        match what:
            case "timer":
                app.set_timer(0.1, fail)
            case "message":
                app.overview.post_message(events.Click(None, 0, 0, 0, 0, 1, *[False] * 3))
            case "worker":
                app.run_worker(fail_later())
            case "callback":
                app.call_later(fail)

    OverviewScreen.action_all_behaviors = fail  # type: ignore[method-assign]  # only pressed where that is what fails
    OverviewScreen.on_click = fail  # type: ignore[attr-defined]  # likewise
    app._on_shown = break_once_signaled


def main() -> None:
    """Show it; afterwards print how the user left and what was asked of the run, as one JSON line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--behaviors", type=int, default=3)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--stop-seconds", type=float, default=0.3)
    parser.add_argument("--happening", default="", choices=["", "end", "pause", "warning", "failure", "crash"])
    parser.add_argument(
        "--broken", default="", choices=["", "pane", "timer", "action", "message", "worker", "callback"]
    )
    parser.add_argument("--preferences", type=Path, help="folder of what is remembered")
    parser.add_argument("--no-bell", action="store_true")
    parser.add_argument("--no-title", action="store_true")
    parser.add_argument("--saving-seconds", type=float, default=0.2, help="before a failure is shown")
    parser.add_argument("--slow-seconds", type=float, default=0.5, help="how long a link counts as slow")
    parser.add_argument("--hold-seconds", type=float, default=0.25, help="for which a new screen may be held back")
    parser.add_argument("--noise", action="store_true", help="write to descriptors 1 and 2 from beside the screen")
    parser.add_argument("--hangup", choices=["ignored", "blocked"], help="the disposition of SIGHUP")
    arguments = parser.parse_args()
    if arguments.hangup == "ignored":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    elif arguments.hangup == "blocked":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    signal.signal(signal.SIGVTALRM, lambda *_: SIGNALED.set())
    alerts.SAVING_SECONDS = arguments.saving_seconds
    painter.HOLD_SECONDS = arguments.hold_seconds
    pacing.SLOW_SECONDS = arguments.slow_seconds
    session = LiveSession(arguments.behaviors, arguments.stop_seconds, arguments.happening)
    if arguments.broken == "pane":
        screens.StateLine = BrokenPane  # type: ignore[misc]  # where screens take it from
    with tempfile.NamedTemporaryFile() as unread, redirect_output(arguments.log or Path(unread.name)):
        app = TrainerApp(
            session,
            "live.yaml",
            bell=not arguments.no_bell,
            title=not arguments.no_title,
            preferences=Preferences(arguments.preferences) if arguments.preferences else None,
        )
        session.start()
        if arguments.broken:
            break_app(app, arguments.broken)
        if arguments.noise:
            threading.Timer(0.5, lambda: [os.write(fd, b"GARBAGE FROM A LIBRARY\n" * 5) for fd in (1, 2)]).start()
        exit_reason = app.show(mouse=True)
    commands = [*session.commands]
    session.join()
    report = {
        "exit_reason": exit_reason,
        "failure": app.failure,
        "commands": [f"{type(c).__name__}:{getattr(c, 'mode', '')}:{getattr(c, 'exit_code', '')}" for c in commands],
        "thread_count": threading.active_count(),
    }
    if arguments.report:
        arguments.report.write_text(json.dumps(report))
    if exit_reason not in ("hangup", "lost"):
        print(json.dumps(report))


if __name__ == "__main__":
    main()
