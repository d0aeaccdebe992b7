"""What a writer of statistics is made with, and what it must be able to do. docs/plugins.md has an example."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rl_tui.engine.session.messages import Envelope, LogLevel


@dataclass(frozen=True, slots=True)
class WriterContext:
    """The run that a writer records. It is made anew when the run is resumed.

    folder: the run's, where it may keep files of its own; configuration: the effective one, with every default written
    out, in plain values; started_at: Unix seconds, of this process; resumed: whether the folder has the files of the
    same run's earlier processes (otherwise, what is there is of a run that this one replaces); folder_of: the folder of
    a behavior, which it creates; log: shows a message to the user, in the log and in events.jsonl.
    """

    run_id: str
    folder: Path
    started_at: float
    resumed: bool
    configuration: Mapping[str, Any]
    folder_of: Callable[[str], Path]
    log: Callable[[LogLevel, str], None]

    def settings_of(self, behavior: str) -> Mapping[str, Any]:
        """The settings of a behavior: its own, or the file's default_settings."""
        settings: Mapping[str, Any] = (
            self.configuration["behaviors"].get(behavior) or self.configuration["default_settings"] or {}
        )
        return settings


class Writer(Protocol):
    """Records what a run reports. Its class is called with its settings and a WriterContext, in the thread that then
    calls it, once the run trains; it first gets the events from before.

    Whatever it raises, it is reported to the user once and left out; the run goes on. A writer that is slow delays no
    other part of the run; it loses events when it falls 10,000 of them behind. A run with --inference has none.
    """

    def write(self, envelope: Envelope) -> None:
        """Record one event, whose number and time are the envelope's; called in the order of the numbers.

        It gets all events of engine/session/messages.py, of which these matter most: MetricsReported, a summary with
        every metric; EvaluationReported; HyperparameterChanged, BehaviorRolledBack and LessonChanged; NoteAdded;
        CheckpointSaved and PolicyExported; WarningRaised; BehaviorStarted and RunStateChanged, with the run's end.
        ProgressReported, TimeSplit, EpisodesFinished, DevicesSampled and WorkersSampled come several times a second.
        """

    def close(self) -> None:
        """Write what is left. Called once, after the last event, or after `write` has raised.

        The end of the run waits twenty seconds for it.
        """
