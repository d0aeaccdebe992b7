"""The bus: one order for all readers, bounded mailboxes, no publisher that waits."""

import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import LogEmitted, ProgressReported
from tests.deadline import DEADLINE_SECONDS


def log(text: object) -> LogEmitted:
    return LogEmitted("info", "test", str(text))


def progress(step: int) -> ProgressReported:
    return ProgressReported("B", step, step, 0.0, 0)


def test_every_subscriber_sees_the_same_events_in_the_same_order():
    bus = EventBus()
    one, two = bus.subscribe(), bus.subscribe()
    for step in range(100):
        bus.publish(progress(step))
    mail = one.drain()
    assert mail == two.drain()
    assert [envelope.number for envelope in mail] == list(range(1, 101))
    assert [envelope.event.step for envelope in mail] == list(range(100))
    assert one.drain() == []


def test_numbers_have_no_gaps_when_many_threads_publish():
    bus = EventBus()
    subscription = bus.subscribe()
    publishers = [
        threading.Thread(target=lambda name=name: [bus.publish(log(f"{name} {i}")) for i in range(500)])
        for name in range(4)
    ]
    for publisher in publishers:
        publisher.start()
    for publisher in publishers:
        publisher.join(DEADLINE_SECONDS)
    mail = subscription.drain()
    assert [envelope.number for envelope in mail] == list(range(1, 2001))
    for name in range(4):
        own = [e.event.message for e in mail if e.event.message.startswith(f"{name} ")]
        assert own == [f"{name} {i}" for i in range(500)]


def test_a_late_subscriber_sees_what_is_published_from_then_on():
    bus = EventBus()
    bus.publish(log("before"))
    subscription = bus.subscribe()
    bus.publish(log("after"))
    assert [(e.number, e.event.message) for e in subscription.drain()] == [(2, "after")]


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 8))
def test_a_full_mailbox_drops_deltas_first(deltas, size):
    bus = EventBus()
    subscription = bus.subscribe(size)
    for number, is_delta in enumerate(deltas, start=1):
        bus.publish(progress(number) if is_delta else log(number))
    mail = subscription.drain()
    numbers = [envelope.number for envelope in mail]
    assert numbers == sorted(numbers)
    assert len(mail) <= size
    assert len(mail) + subscription.dropped == len(deltas)
    events = [number for number, is_delta in enumerate(deltas, start=1) if not is_delta]
    kept = [envelope.number for envelope in mail if isinstance(envelope.event, LogEmitted)]
    assert kept == events[-size:]  # an event is lost only to newer events


def test_deltas_fit_again_after_the_mailbox_was_emptied():
    bus = EventBus()
    subscription = bus.subscribe(2)
    for step in range(5):
        bus.publish(progress(step))
    assert [e.event.step for e in subscription.drain()] == [0, 1]
    bus.publish(progress(5))
    assert [e.event.step for e in subscription.drain()] == [5]
    assert subscription.dropped == 3


def test_publishing_to_a_reader_that_never_reads_stays_fast():
    bus = EventBus()
    subscription = bus.subscribe(1000)
    longest = 0.0
    for number in range(20_000):
        began = time.perf_counter()
        bus.publish(progress(number) if number % 2 else log(number))
        longest = max(longest, time.perf_counter() - began)
    assert longest < 60.0  # never waits for a reader; what remains are other processes on the same core
    assert len(subscription.drain()) <= 1000


def test_a_waiting_reader_wakes_when_mail_comes():
    bus = EventBus()
    subscription = bus.subscribe()
    publisher = threading.Timer(0.05, lambda: bus.publish(log("here")))
    publisher.start()
    began = time.monotonic()
    mail = subscription.drain(timeout=DEADLINE_SECONDS)
    publisher.join(DEADLINE_SECONDS)
    assert [envelope.event.message for envelope in mail] == ["here"]
    assert time.monotonic() - began < DEADLINE_SECONDS / 2


def test_waiting_ends_at_its_timeout():
    assert EventBus().subscribe().drain(timeout=0.01) == []


def test_closing_the_bus_wakes_readers_and_leaves_their_mail():
    bus = EventBus()
    waiting, full = bus.subscribe(), bus.subscribe()
    bus.publish(log("last"))
    waiting.drain()
    closer = threading.Timer(0.05, bus.close)
    closer.start()
    assert waiting.drain(timeout=DEADLINE_SECONDS) == []
    closer.join(DEADLINE_SECONDS)
    assert waiting.is_closed
    assert full.is_closed
    assert [envelope.event.message for envelope in full.drain(timeout=DEADLINE_SECONDS)] == ["last"]
    bus.publish(log("too late"))
    assert full.drain() == []


def test_subscribing_to_a_closed_bus_gives_a_closed_mailbox():
    bus = EventBus()
    bus.close()
    assert bus.subscribe().is_closed


def test_leaving_twice_does_no_harm():
    bus = EventBus()
    subscription, other = bus.subscribe(), bus.subscribe()
    subscription.close()
    subscription.close()
    bus.publish(log("for the other"))
    assert subscription.drain() == []
    assert len(other.drain()) == 1
