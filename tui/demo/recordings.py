"""The recorded runs that come with rl-tui, as a folder of runs that train now or did not long ago.

They are event logs like those of `rl-tui CONFIG`, but of simulated training, which has in minutes what else takes hours
and GPUs. Later versions can read them, as they can read those of a user's own runs.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.session.codec import decode
from rl_tui.engine.session.log_position import LogPosition
from rl_tui.engine.session.messages import Envelope
from rl_tui.engine.session.reading import in_chunks
from rl_tui.engine.session.states import ENDS
from rl_tui.engine.session.summaries import BehaviorSummary, Removal, RunSummary
from rl_tui.engine.session.view import RunView
from rl_tui.tui.runs.seeking import Snapshot

FOLDER = Path(__file__).parent / "recorded"
SHOWN = "demo"  # the run that is played
NAMES = (SHOWN, "crawler-entropy", "all-three")  # newest first
BEGINS_AT = 1_795_000_000.0  # in the recordings; the past of the demo ends there, and this is now when it starts
NO_FOLDER = "the demo's runs are recordings that came with rl-tui, without checkpoints"


class Recordings:
    """A folder of runs as Context.runs has it. now: when the demo was started. clock: up to when the run that is played
    has come; of that run there is no more."""

    def __init__(self, now: float, clock: Callable[[], float]) -> None:
        self._later = now - BEGINS_AT
        self._clock = clock

    def past(self) -> Snapshot:
        """The run that is played as it is when the demo starts."""
        start = Snapshot()
        for envelope in self.follow(SHOWN, LogPosition()):
            if envelope.time > BEGINS_AT + self._later:
                break
            start.timeline.advance(envelope)
            start.view.apply(envelope)
            start.place.num_lines += 1
        return start

    def follow(self, name: str, position: LogPosition) -> Iterator[Envelope]:
        """The events of one run from that place on. Raises ConfigError when there is none of that name."""
        if name not in NAMES:
            raise ConfigError(f"{name}: the demo has no run of that name")
        with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in islice(lines, position.num_lines, None):
                envelope = decode(line)
                yield replace(envelope, time=envelope.time + self._later)

    def runs(self) -> list[RunSummary]:
        """All of them, newest first."""
        return [self._summary(name) for name in NAMES]

    def events(self, name: str) -> Iterator[Envelope]:
        """The events of one run until now. Raises ConfigError when there is none of that name."""
        for envelope in self.follow(name, LogPosition()):
            if envelope.time > self._clock():
                break
            yield envelope

    def configuration(self, name: str) -> str:
        """The effective configuration. Raises ConfigError when there is no run of that name."""
        if name not in NAMES:
            raise ConfigError(f"{name}: the demo has no run of that name")
        return (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")

    def preview_removal(self, name: str) -> Removal:
        """Raises ConfigError."""
        raise ConfigError(NO_FOLDER)

    def remove(self, name: str) -> None:
        """Raises ConfigError."""
        raise ConfigError(NO_FOLDER)

    def resume_command(self, name: str) -> tuple[str, ...]:
        """Raises ConfigError."""
        raise ConfigError(NO_FOLDER)

    def evaluate_command(self, name: str) -> tuple[str, ...]:
        """Raises ConfigError."""
        raise ConfigError(NO_FOLDER)

    def _summary(self, name: str) -> RunSummary:
        view = RunView()
        for envelope in in_chunks(self.events(name)):
            view.apply(envelope)
        behaviors = tuple(
            BehaviorSummary(
                name=each.name,
                algorithm=each.algorithm,
                step=each.step,
                max_steps=each.max_steps,
                best_return=each.best_return,
                last_return=each.mean_return,
                rating=each.rating,
            )
            for each in view.behaviors.values()
        )
        began = view.started_at or view.now
        is_alive = view.state not in ENDS
        return RunSummary(
            name, name, view.state, is_alive, began, view.now, view.now - began, behaviors, view.exit_code, ""
        )
