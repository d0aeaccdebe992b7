"""A run whose terminal is gone, in the middle of a picture, loses nothing, and another terminal shows all of it."""

from __future__ import annotations

import copy
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import quantiles

import psutil
import pytest

from rl_tui.engine.remote.client import RemoteSession, attach_to
from rl_tui.engine.session.environment_view import EnvironmentView
from rl_tui.engine.session.messages import BehaviorStarted, ProgressReported, RunStateChanged
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.event_log import read_events
from tests.deadline import wait_until
from tests.end_to_end.program import COMMAND, events_of, run, terminal, wait_for_summary
from tests.end_to_end.test_screen import CARTPOLE, ENDLESS, SLOW
from tests.end_to_end.test_tmux import Tmux
from tests.pseudo_terminal import PseudoTerminal

KINDS = ("terminal", "leader", "window")
UNREAD_SECONDS = 60.0
MOST_GROWTH = 8 << 20  # bytes of memory, of a run whose curves fill meanwhile


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cartpole.yaml").write_text(CARTPOLE)
    (tmp_path / "slow.py").write_text(SLOW)
    return tmp_path


@contextmanager
def lost(kind: str, folder: Path, run_id: str, after: float) -> Iterator[Path]:
    """The folder of a run that has trained for a while before its terminal was lost. after: seconds of that.

    kind: the terminal is closed; or the shell in it is killed, which leads its session; or its window in tmux.
    """
    results = folder / "results" / run_id
    words = [*COMMAND, "cartpole.yaml", *ENDLESS, "--run-id", run_id]
    if kind == "window":
        with Tmux(folder) as tmux:
            tmux.run(" ".join(f"'{word}'" for word in words), 120, 40)
            tmux.wait_for("TRAINING")
            wait_for_summary(results)
            time.sleep(after)
            tmux.kill_window()
            yield results
        return
    command = ["sh", "-c", '"$@"; true', "sh", *words] if kind == "leader" else words
    with PseudoTerminal(command, folder=folder, variables={"LANG": "C.UTF-8"}) as screen:
        screen.wait_for("TRAINING")
        wait_for_summary(results)
        screen.watch(after)
        if kind == "leader":
            os.kill(screen.process.pid, signal.SIGKILL)
        screen.hang_up()
        yield results


def facts(view: RunView) -> RunView:
    """All that a log has of the view: figures that are thinned there are left out."""
    plain = copy.deepcopy(view)
    for behavior in plain.behaviors.values():
        behavior.step = behavior.sampled = behavior.learned = behavior.num_updates = 0
        behavior.steps_per_second = behavior.reported_steps_per_second = 0.0
        behavior.silent_since, behavior.waits_for, behavior.time_split = None, "environment", None
    if plain.unseen_since is not None:
        plain.unseen_since = replace(plain.unseen_since, steps={})
    plain.notes = [replace(note, steps={}) for note in plain.notes]
    plain.now, plain.position, plain.devices, plain.device_histories = 0.0, (0, 0), None, {}
    plain.parameters, plain.environments = {}, dict[str, EnvironmentView]()
    return plain


def logged(results: Path, position: tuple[int, int]) -> RunView:
    """The fold of the log up to that position, once all of that is there."""
    view = RunView()

    def is_there() -> bool:
        envelopes = list(read_events(results / "events.jsonl"))
        return any((envelope.epoch, envelope.number) > position for envelope in envelopes)

    wait_until(is_there)
    for envelope in read_events(results / "events.jsonl"):
        if (envelope.epoch, envelope.number) <= position:
            view.apply(envelope)
    return view


def attach(results: Path) -> tuple[RemoteSession, float]:
    """A session that does not read any further, and the seconds until it had its first picture."""
    begin = time.monotonic()
    session = attach_to(results)
    seconds = time.monotonic() - begin
    while not session.whole.is_set():
        session.read()
    return session, seconds


@pytest.mark.parametrize(
    "times", [1, pytest.param(6, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.faults)]
)
def test_run_outlives_its_terminal_however_that_ends_and_is_shown_whole(folder: Path, times: int) -> None:
    luck, seconds = random.Random(7), []
    for number in range(times):
        kind, run_id = KINDS[number % len(KINDS)], f"run-{number}"
        with lost(kind, folder, run_id, luck.uniform(0.0, 0.5)) as results:
            summaries = wait_for_summary(results)
            wait_for_summary(results, summaries + 3)
            session, took = attach(results)
            seconds.append(took)
            view = session.live.view
            assert repr(facts(view)) == repr(facts(logged(results, view.position))), kind
            session.close()
            assert run("ctl", str(results), "stop", folder=folder)[0] == 0
            wait_until(lambda at=results: events_of(at)[-1] == RunStateChanged("stopped", "everything is saved", 0))
        events = events_of(results)
        assert len([event for event in events if isinstance(event, BehaviorStarted)]) == 1, "it began a second time"
        steps = [event.sampled for event in events if isinstance(event, ProgressReported)]
        assert steps == sorted(steps)
    if times > 1:
        p95 = quantiles(seconds, n=20)[-1]
        print(f"\n{times} terminals lost ({', '.join(KINDS)}): every run went on; attaching took {p95:.2f} s (p95)")
        assert p95 < 1.0


@pytest.mark.faults
def test_terminal_that_nothing_reads_costs_the_run_neither_speed_nor_memory(folder: Path) -> None:
    def steps_in(results: Path, seconds: float) -> int:
        before = num_sampled(results)
        time.sleep(seconds)
        return num_sampled(results) - before

    with terminal("cartpole.yaml", *ENDLESS, "--no-ui", "--run-id", "plain", folder=folder) as plain:
        wait_for_summary(folder / "results/plain")
        expected = steps_in(folder / "results/plain", UNREAD_SECONDS / 2) * 2
        plain.process.send_signal(signal.SIGTERM)
        plain.wait()
    with terminal("cartpole.yaml", *ENDLESS, folder=folder) as screen:
        screen.wait_for("TRAINING")
        screen.watch(5.0)
        trainer = psutil.Process(screen.process.pid).children()[0]
        before = trainer.memory_info().rss
        num_steps = steps_in(folder / "results/cartpole", UNREAD_SECONDS)
        grown = trainer.memory_info().rss - before
        seconds = screen.wait_for(r"up 1m\d\d")
        screen.press("q")
        screen.wait_for("leave it running")
        screen.press("s")
        assert screen.wait() == 0
    print(f"\nunread for {UNREAD_SECONDS:.0f} s: {num_steps / expected:.2f} x the steps of --no-ui, memory +{grown:,}")
    assert num_steps > 0.9 * expected
    assert grown < MOST_GROWTH
    assert seconds < 1.0


def num_sampled(results: Path) -> int:
    """Steps so far, as the log has them."""
    return max(event.sampled for event in events_of(results) if isinstance(event, ProgressReported))


@pytest.mark.faults
def test_attached_screen_says_within_a_second_that_the_process_is_gone(folder: Path) -> None:
    waited = []
    for number in range(10):
        words = [*COMMAND, "cartpole.yaml", *ENDLESS, "--no-ui", "--run-id", f"run-{number}"]
        with subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_for_summary(folder / f"results/run-{number}")
            with terminal("attach", f"run-{number}", folder=folder) as screen:
                screen.wait_for("TRAINING")
                process.kill()
                waited.append(screen.wait_for("INTERRUPTED"))
                screen.press("q")
                assert screen.wait() == 0
                assert b"resume with: rl-tui" in screen.raw
    print(f"\nkilled while a screen was attached: said after {max(waited):.2f} s at most, of {len(waited)}")
    assert max(waited) < 1.0
