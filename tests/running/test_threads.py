"""Threads: parking, stopping, the mailbox, and that none dies in silence."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from rl_tui.engine.running.threads import Control, Mailbox, UiPriority, spawn
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import WorkerFailed
from tests.deadline import DEADLINE_SECONDS


def until(condition: Callable[[], bool]) -> bool:
    """Whether it is true before the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    moment = threading.Event()
    while not condition() and time.monotonic() < deadline:
        moment.wait(0.001)
    return condition()


class Worker:
    """A thread that counts its turns and what it was asked to serve."""

    def __init__(self, control: Control) -> None:
        self.turns = self.served = 0
        self.control = control
        control.join()
        self.thread = spawn("worker", self.main, EventBus(), lambda _: None)

    def main(self) -> None:
        while self.control.safe_point(self.serve):
            self.turns += 1
        self.control.leave()

    def serve(self) -> None:
        self.served += 1


def test_parked_workers_serve_and_do_nothing_else() -> None:
    control = Control(UiPriority())
    workers = [Worker(control), Worker(control)]
    assert until(lambda: all(worker.turns for worker in workers))
    control.pause()
    assert until(lambda: control.is_parked)
    turns, served = [worker.turns for worker in workers], [worker.served for worker in workers]
    assert until(lambda: all(w.served > s + 1 for w, s in zip(workers, served, strict=True)))
    assert [worker.turns for worker in workers] == turns
    control.resume()
    assert not control.is_parked
    assert until(lambda: all(w.turns > t for w, t in zip(workers, turns, strict=True)))
    control.stop("checkpoint")
    for worker in workers:
        worker.thread.join(DEADLINE_SECONDS)
    assert not control.is_parked
    assert control.stop_mode == "checkpoint"


def test_nothing_is_parked_before_its_worker_has_come() -> None:
    control = Control(UiPriority())
    control.pause()
    assert not control.is_parked, "there is no worker"
    control.join()
    assert not control.is_parked, "a worker is on its way"
    control.leave()
    assert not control.is_parked


def test_pause_and_resume_in_quick_succession_never_call_a_working_thread_parked() -> None:
    control = Control(UiPriority())
    worker = Worker(control)
    for _ in range(200):
        control.pause()
        assert until(lambda: control.is_parked)
        turns = worker.turns
        assert control.is_parked
        assert worker.turns == turns
        control.resume()
    control.stop("now")
    worker.thread.join(DEADLINE_SECONDS)
    assert not worker.thread.is_alive()


@pytest.mark.parametrize("first", ["checkpoint", "now"])
def test_hastier_stop_wins_and_ends_what_is_parked(first: str) -> None:
    control = Control(UiPriority())
    worker = Worker(control)
    control.pause()
    assert until(lambda: control.is_parked)
    control.stop(first)  # type: ignore[arg-type]  # one of the two modes
    control.stop("now" if first == "checkpoint" else "checkpoint")
    worker.thread.join(DEADLINE_SECONDS)
    assert not worker.thread.is_alive()
    assert control.stop_mode == "now"


def test_newer_content_of_a_mailbox_replaces_the_older() -> None:
    mailbox: Mailbox[int] = Mailbox()
    assert mailbox.pop() is None
    mailbox.put(1)
    mailbox.put(2)
    assert (mailbox.pop(), mailbox.pop(0.001)) == (2, None)
    thread = spawn("late", lambda: mailbox.put(3), EventBus(), lambda _: None)
    assert mailbox.pop(DEADLINE_SECONDS) == 3
    thread.join(DEADLINE_SECONDS)


def test_thread_that_fails_is_reported_with_its_traceback() -> None:
    bus, failures = EventBus(), []
    mail = bus.subscribe()

    def broken() -> None:
        raise SystemExit("not even this ends in silence")

    thread = spawn("broken", broken, bus, failures.append)
    thread.join(DEADLINE_SECONDS)
    (envelope,) = mail.drain()
    assert isinstance(envelope.event, WorkerFailed)
    assert (envelope.event.worker, envelope.event.error) == ("broken", "SystemExit: not even this ends in silence")
    assert "in broken" in envelope.event.traceback
    assert isinstance(failures[0], SystemExit)
    assert (thread.name, thread.daemon) == ("broken", True)


def test_worker_stands_aside_as_long_as_it_was_asked_to() -> None:
    ui_priority = UiPriority()
    control = Control(ui_priority)
    ui_priority.request(0.2)
    start = time.monotonic()
    assert control.safe_point(lambda: None)
    assert time.monotonic() - start >= 0.19


def test_error_that_python_cannot_print_is_published_and_passed_on() -> None:
    bus, passed = EventBus(), list[BaseException]()
    mail = bus.subscribe()

    def main() -> None:
        raise SyntaxError(1, (2, "3", 4, 5))  # type: ignore[arg-type]

    spawn("worker", main, bus, passed.append).join(DEADLINE_SECONDS)
    [failed] = [envelope.event for envelope in mail.drain() if isinstance(envelope.event, WorkerFailed)]
    assert failed.error.startswith("SyntaxError: ")
    assert "in main" in failed.traceback
    assert [type(error) for error in passed] == [SyntaxError]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_error_that_cannot_be_published_is_passed_on_all_the_same() -> None:
    """Else a run whose collector has died would look as if it was done."""
    passed = list[BaseException]()

    def main() -> None:
        raise KeyError("step")

    spawn("worker", main, EventBus(clock=lambda: float("no time")), passed.append).join(DEADLINE_SECONDS)
    assert [type(error) for error in passed] == [KeyError]
