"""What the trackers of experiments (W&B, MLflow) have in common: what they record of an event, and under which id."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from rl_tui.engine.process.files import open_regular
from rl_tui.engine.running.writers.base import WriterContext
from rl_tui.engine.running.writers.tensorboard import HIDDEN_TAGS
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    CheckpointSaved,
    Event,
    HyperparameterChanged,
    LessonChanged,
    MetricsReported,
    NoteAdded,
    WarningRaised,
)
from rl_tui.engine.session.sentences import sentence_of
from rl_tui.engine.storage.file_names import RUN_LOGS

PROJECT = "rl-tui"  # where neither the settings nor the tracker's own environment variable names one
IN_WORDS = CheckpointSaved | HyperparameterChanged | NoteAdded | BehaviorRolledBack | LessonChanged | WarningRaised
LONGEST_TEXT = 4900  # characters; MLflow's servers refuse more than 5000


class Numbers(NamedTuple):
    """Numbers of a behavior at a step, by name."""

    behavior: str
    step: int
    values: Mapping[str, float]


def numbers_of(event: Event) -> Numbers | None:
    """The metrics of a summary, or the new value of a hyperparameter."""
    match event:
        case MetricsReported():
            shown = {tag: value for tag, value in event.metrics.items() if tag not in HIDDEN_TAGS}
            return Numbers(event.behavior, event.step, shown)
        case HyperparameterChanged():
            return Numbers(event.behavior, event.step, {f"Hyperparameters/{event.name}": event.new})
    return None


def text_of(event: Event) -> str:
    """One line about what happened to the run; empty for most events."""
    if not isinstance(event, IN_WORDS):
        return ""
    said = sentence_of(event)
    return " ".join(said.line.split()) if said else ""


def with_line(text: str, line: str) -> str:
    """The text with one more line; its first lines are dropped where it would be too long."""
    lines = [*text.splitlines(), f"- {line}"]
    while len(lines) > 1 and sum(map(len, lines)) + len(lines) > LONGEST_TEXT:
        del lines[0]
    return "\n".join(lines)[:LONGEST_TEXT]


def earlier_id(context: WriterContext, tracker: str) -> str | None:
    """The id under which an earlier process recorded the same run in the tracker."""
    path = _id_file(context, tracker)
    if not (context.resumed and path.exists()):
        return None
    with open(path, encoding="utf-8", opener=open_regular) as file:
        return file.read().strip()


def keep_id(context: WriterContext, tracker: str, run_id: str) -> None:
    """`earlier_id` of the next process is this one."""
    path = _id_file(context, tracker)
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", encoding="utf-8", opener=open_regular) as file:
        file.write(f"{run_id}\n")


def _id_file(context: WriterContext, tracker: str) -> Path:
    return context.folder / RUN_LOGS / f"{tracker}_run_id"
