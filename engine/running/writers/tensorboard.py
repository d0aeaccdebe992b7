"""TensorBoard event files: one per behavior, with the tags of its summaries."""

from __future__ import annotations

import io
import itertools
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rl_tui.engine.config.writers import WriterSettings
from rl_tui.engine.running.writers.base import WriterContext
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    Envelope,
    Histogram,
    HyperparameterChanged,
    MetricsReported,
    NoteAdded,
    ProgressReported,
)
from rl_tui.engine.storage.block_file import BlockFile

RETURNS_TAG = "Environment/Cumulative Reward_hist"
HYPERPARAMETERS_TAG = "Hyperparameters/text_summary"
CHANGES_TAG, NOTES_TAG = "Hyperparameters/changes", "Notes"
HIDDEN_TAGS = frozenset({"Step", "Is Training"})  # statistics that ML-Agents does not write to TensorBoard either


class TensorBoardWriter:
    """Writes each summary to `events.out.tfevents...` in the folder of its behavior; x axis: environment steps.

    Used by one thread; starts none. Owns its files: a new one per behavior and process, which TensorBoard joins when a
    run is resumed. A summary is completely on disk when `write` returns. The first file imports tensorboard (0.2 s,
    without TensorFlow).
    """

    def __init__(self, settings: WriterSettings, context: WriterContext):
        self._context = context
        self._files: dict[str, _EventFile] = {}
        self._steps: dict[str, int] = {}  # of each behavior, for notes on the run
        self._failures: set[str] = set()

    def write(self, envelope: Envelope) -> None:
        """Write a summary, the hyperparameters, a change of one, or a note; every other event is ignored.

        What the disk refuses is lost, and logged once for each file.
        """
        self._record(envelope)
        for failure in {file.failed for file in self._files.values()} - {None} - self._failures:
            assert failure is not None
            self._failures.add(failure)
            self._context.log("error", failure)

    def _record(self, envelope: Envelope) -> None:
        match envelope.event:
            case MetricsReported() as event:
                metrics = {tag: value for tag, value in event.metrics.items() if tag not in HIDDEN_TAGS}
                self._file(event.behavior).write_summary(envelope.time, event.step, metrics, histograms_of(event))
            case HyperparameterChanged() as event:
                text = f"{event.name} {event.old:.6g} -> {event.new:.6g}"
                self._file(event.behavior).write_text(envelope.time, event.step, CHANGES_TAG, text)
            case NoteAdded() as event:
                for behavior in self._steps if event.behavior is None else (event.behavior,):
                    step = self._steps.get(behavior, 0)
                    self._file(behavior).write_text(envelope.time, step, NOTES_TAG, event.text)
            case BehaviorStarted() as event:
                self._steps[event.behavior] = event.step
                if event.step >= event.max_steps:
                    return  # it learns no more
                text = _as_text(self._context.settings_of(event.behavior), 0)
                self._file(event.behavior).write_text(envelope.time, 0, HYPERPARAMETERS_TAG, text)
            case ProgressReported() as event:
                self._steps[event.behavior] = event.step

    def close(self) -> None:
        """Close every file."""
        for file in self._files.values():
            file.close()

    def _file(self, behavior: str) -> _EventFile:
        if behavior not in self._files:
            self._files[behavior] = _EventFile(_new_path(self._context.folder_of(behavior)))
        return self._files[behavior]


class _EventFile:
    """One event file: records of length, checksum, protobuf and checksum, as tensorboard's RecordWriter writes them."""

    def __init__(self, path: Path):
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary = event_pb2.Event, summary_pb2
        self._tensor, self._shape, self._record_writer = TensorProto, TensorShapeProto, RecordWriter
        self._file = BlockFile(path, append=False)
        self._header = self._frame(self._event(wall_time=time.time(), file_version="brain.Event:2"))

    @property
    def failed(self) -> str | None:
        return self._file.failed

    def write_summary(
        self, now: float, step: int, metrics: Mapping[str, float], histograms: Mapping[str, Histogram]
    ) -> None:
        """Append one record with every scalar and every histogram, each by its tag."""
        values = [self._summary.Summary.Value(tag=tag, simple_value=value) for tag, value in metrics.items()]
        for tag, histogram in histograms.items():
            values.append(self._summary.Summary.Value(tag=tag, histo=self._histogram(histogram)))
        self._append(self._event(wall_time=now, step=step, summary=self._summary.Summary(value=values)))

    def write_text(self, now: float, step: int, tag: str, text: str) -> None:
        """Append one text for the text plug-in."""
        plugin = self._summary.SummaryMetadata.PluginData(plugin_name="text")
        tensor = self._tensor(dtype="DT_STRING", string_val=[text.encode("utf-8", "replace")])
        tensor.tensor_shape.CopyFrom(self._shape(dim=[self._shape.Dim(size=1)]))
        metadata = self._summary.SummaryMetadata(plugin_data=plugin)
        value = self._summary.Summary.Value(tag=tag, metadata=metadata, tensor=tensor)
        self._append(self._event(wall_time=now, step=step, summary=self._summary.Summary(value=[value])))

    def close(self) -> None:
        self._file.close()

    def _histogram(self, histogram: Histogram) -> Any:
        return self._summary.HistogramProto(
            min=histogram.minimum,
            max=histogram.maximum,
            num=histogram.count,
            sum=histogram.total,
            sum_squares=histogram.total_squares,
            bucket_limit=histogram.limits,
            bucket=histogram.counts,
        )

    def _append(self, event: Any) -> None:
        block = self._frame(event)
        self._file.write(block if self._file.is_open else self._header + block)

    def _frame(self, event: Any) -> bytes:
        buffer = io.BytesIO()
        self._record_writer(buffer).write(event.SerializeToString())
        return buffer.getvalue()


def histograms_of(event: MetricsReported) -> dict[str, Histogram]:
    """Every distribution of a summary by its tag, which is its metric's with `_hist`, as in ML-Agents."""
    returns = {} if event.returns is None else {RETURNS_TAG: event.returns}
    return returns | {f"{tag}_hist": histogram for tag, histogram in event.histograms.items()}


def _new_path(folder: Path) -> Path:
    """An unused name of tensorboard's form, even within the same second and process."""
    stem = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
    return next(path for number in itertools.count() if not (path := folder / f"{stem}.{number}").exists())


def _as_text(settings: Mapping[str, object], depth: int) -> str:
    """One `key: value` per line, nested ones indented by a tab."""
    lines = []
    for key, value in settings.items():
        nested = "\n" + _as_text(value, depth + 1) if isinstance(value, Mapping) else str(value)
        lines.append("\t" * depth + f"{key}:\t{nested}")
    return "\n".join(lines)
