"""What may be written to a slow line, and which lines are slow, on lines that are calculated."""

from __future__ import annotations

import random

import pytest

from rl_tui.tui.terminal.flow import AHEAD_SECONDS, FIRST_BYTES, LEAST_BYTES, LOST_SECONDS, PART_SECONDS, Flow

STEP = 0.005


class CalculatedLine:
    """Carries so many bytes a second and delays them, and their answers, by so many seconds."""

    def __init__(self, rate: float, delay: float) -> None:
        self.rate, self.delay = rate, delay
        self.flow, self.now = Flow(), 100.0
        self.most_under_way = 0.0
        self.has_been_slow = False
        self._free_at, self._answers, self._waiting = self.now, [], 0
        self._write(150)
        self.wait(2)

    def draw(self, num_bytes: int) -> None:
        """So many bytes more are to be written."""
        self._waiting += num_bytes
        self._write_parts()

    def wait(self, seconds: float) -> None:
        """Time passes."""
        end = self.now + seconds
        while self.now < end:
            self.now += STEP
            while self._answers and self._answers[0] <= self.now:
                self.flow.answered(self._answers.pop(0))
            self._write_parts()
            self.has_been_slow |= self.flow.is_slow

    def _write_parts(self) -> None:
        while self._waiting and (room := self.flow.room(self.now)) != 0:
            self._write(self._waiting if room is None else min(room, self._waiting))

    def _write(self, num_bytes: int) -> None:
        self._waiting = max(0, self._waiting - num_bytes)
        self._free_at = max(self._free_at, self.now) + num_bytes / self.rate
        self._answers.append(self._free_at + 2 * self.delay)
        self.flow.sent(num_bytes, self.now)
        self.most_under_way = max(self.most_under_way, self.rate * (self._free_at - self.now))


def use(line: CalculatedLine, seed: int) -> None:
    """Small pictures, and now and then one of a whole screen."""
    chance = random.Random(seed)
    for _ in range(40):
        line.draw(chance.choice((60, 150, 400, 900, 4000, 10_000)))
        line.wait(chance.choice((0.05, 0.3, 1.0, 4.0)))


@pytest.mark.parametrize("delay", [0.001, 0.05, 0.2, 0.4])
@pytest.mark.parametrize("rate", [1000.0, 2000.0, 4000.0])
def test_little_is_under_way_on_a_slow_line_and_it_is_called_slow(rate: float, delay: float) -> None:
    line = CalculatedLine(rate, delay)
    line.draw(4000)
    line.wait(10)
    assert line.flow.is_slow
    line.most_under_way = 0.0
    use(line, seed=1)
    line.wait(10)
    assert line.flow.is_slow
    assert line.most_under_way <= rate * (2 * delay + AHEAD_SECONDS + PART_SECONDS) + LEAST_BYTES


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("delay", [0.0005, 0.01, 0.1, 0.2, 0.4])
@pytest.mark.parametrize("rate", [2e4, 1e5, 1e6, 1e8])
def test_a_fast_line_is_never_called_slow(rate: float, delay: float, seed: int) -> None:
    line = CalculatedLine(rate, delay)
    use(line, seed)
    assert not line.has_been_slow


@pytest.mark.parametrize("delay", [0.0005, 0.2])
def test_a_fast_line_soon_takes_a_whole_screen_at_once(delay: float) -> None:
    line = CalculatedLine(1e6, delay)
    for _ in range(4):
        line.draw(10_000)
        line.wait(2)
    assert (line.flow.room(line.now) or 0) >= 10_000


def test_a_line_may_be_slow_for_a_while() -> None:
    line = CalculatedLine(1e6, 0.05)
    use(line, seed=2)
    line.rate = 2000.0
    line.draw(10_000)
    line.wait(20)
    use(line, seed=3)
    line.wait(20)
    assert line.flow.is_slow
    line.rate = 1e6
    use(line, seed=4)
    assert not line.flow.is_slow


def test_what_a_busy_machine_delays_is_not_a_slow_line() -> None:
    """Answers to a few bytes that come late now and then."""
    chance, flow, now = random.Random(1), Flow(), 0.0
    for _ in range(300):
        flow.sent(chance.choice((60, 200, 450)), now)
        now += chance.choice((0.002, 0.3, 0.8))
        flow.answered(now)
        assert not flow.is_slow
        now += 0.25


def test_until_a_terminal_answers_there_is_no_limit_and_then_all_counts_that_is_on_its_way() -> None:
    flow = Flow()
    flow.sent(150, 0.0)
    flow.sent(FIRST_BYTES, 0.5)
    assert flow.room(1.0) is None
    flow.answered(1.1)
    assert flow.room(1.2) == 0
    flow.answered(1.3)
    assert (flow.room(1.4) or 0) >= LEAST_BYTES


def test_until_the_line_is_measured_a_little_is_under_way() -> None:
    flow = Flow()
    flow.sent(150, 0.0)
    flow.answered(0.4)
    written = 0
    while room := flow.room(1.0):
        flow.sent(room, 1.0)
        written += room
    assert written == FIRST_BYTES


def test_an_answer_that_was_lost_does_not_stop_the_screen() -> None:
    flow = Flow()
    flow.sent(150, 0.0)
    flow.answered(0.1)
    for _ in range(4):
        flow.sent(512, 1.0)
    assert flow.room(5.0) == 0
    assert flow.room(1.0 + LOST_SECONDS + 0.1) is None
    flow.answered(30.0)  # late, after all
    assert flow.room(30.0) is None
