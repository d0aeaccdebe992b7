"""Publishes events to many bounded mailboxes, without ever waiting for a reader."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from rl_tui.engine.session.long_texts import with_short_texts
from rl_tui.engine.session.messages import (
    DELTAS,
    CommandAsked,
    CommandFinished,
    ControllerChanged,
    Envelope,
    Event,
    LogEmitted,
    LogLevel,
    RunStateChanged,
)

NEWS = (CommandAsked, CommandFinished, RunStateChanged, ControllerChanged)
MAILBOX_SIZE = 10_000  # about ten minutes of a busy run; a reader further behind has died


class Subscription:
    """One reader's mailbox. Any thread may read; one at a time.

    on_news: called by the publisher, while the bus waits, after what a reader wants at once has come.
    """

    on_news: Callable[[], None] | None = None

    def __init__(self, bus: EventBus, size: int):
        self._bus = bus
        self._size = size
        self._mail: deque[Envelope] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._num_deltas = 0
        self.dropped = 0

    def deliver(self, envelope: Envelope) -> None:
        """Keep the envelope. When full, a delta is dropped; anything else replaces all deltas, or the oldest event when
        there are none. `dropped` counts what was lost."""
        is_delta = isinstance(envelope.event, DELTAS)
        with self._changed:
            if len(self._mail) >= self._size:
                if is_delta:
                    self.dropped += 1
                    return
                self._make_room()
            self._mail.append(envelope)
            self._num_deltas += is_delta
            self._changed.notify()
        if self.on_news is not None and isinstance(envelope.event, NEWS):
            self.on_news()

    def drain(self, timeout: float = 0.0) -> list[Envelope]:
        """Remove and return everything, oldest first; waits at most `timeout` seconds for the first one."""
        with self._changed:
            if not self._mail and timeout > 0 and not self._closed:
                self._changed.wait(timeout)
            mail = list(self._mail)
            self._mail.clear()
            self._num_deltas = 0
            return mail

    @property
    def num_waiting(self) -> int:
        """How many envelopes were delivered and not read yet."""
        return len(self._mail)

    @property
    def is_closed(self) -> bool:
        """Whether no more envelopes will come; those already delivered can still be read."""
        return self._closed

    def close(self) -> None:
        """Leave the bus. What is in the mailbox stays readable."""
        self._bus.remove(self)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _make_room(self) -> None:
        if self._num_deltas == 0:
            self._mail.popleft()
            self.dropped += 1
            return
        # All at once: a search per event would make publishers wait while this reader is behind.
        self._mail = deque(envelope for envelope in self._mail if not isinstance(envelope.event, DELTAS))
        self.dropped += self._num_deltas
        self._num_deltas = 0


class EventBus:
    """Numbers and stamps events and copies them into every mailbox. Any thread may publish.

    clock: the time of an event published now. keep_whole: where texts are kept that are too long for
    an event, see `shorten`. epoch: see Envelope.
    """

    keep_whole: Callable[[str], str] | None = None
    epoch = 0

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._subscriptions: list[Subscription] = []
        self._number = 0
        self._closed = False

    def publish(self, event: Event) -> None:
        """Deliver to every subscription, with long texts shortened; all see the same order."""
        event = with_short_texts(event, self.keep_whole)
        with self._lock:
            self._number += 1
            self._deliver(Envelope(self._number, self._clock(), event, self.epoch))

    def deliver(self, envelope: Envelope) -> None:
        """Deliver what was published elsewhere as it is, with its position and time."""
        with self._lock:
            self._deliver(envelope)

    def _deliver(self, envelope: Envelope) -> None:
        for subscription in self._subscriptions:
            subscription.deliver(envelope)

    def has_published(self, envelope: Envelope) -> bool:
        """Whether an event of the run's log is of this process, or of a later one."""
        return 0 < self.epoch <= envelope.epoch

    def log(self, level: LogLevel, source: str, message: str) -> None:
        """Publish a LogEmitted."""
        self.publish(LogEmitted(level, source, message))

    def subscribe(self, size: int = MAILBOX_SIZE) -> Subscription:
        """A mailbox that receives everything published from now on; a closed one once the bus is closed."""
        subscription = Subscription(self, size)
        with self._lock:
            closed = self._closed
            if not closed:
                self._subscriptions.append(subscription)
        if closed:
            subscription.close()
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """Stop delivering to `subscription`. Harmless when called twice."""
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

    def close(self) -> None:
        """Close every mailbox: readers read what is left and end."""
        with self._lock:
            self._closed = True
            subscriptions = list(self._subscriptions)
        for subscription in subscriptions:
            subscription.close()
