"""events.jsonl: a run's events as JSON lines, from which it can be replayed. docs/events.md describes the lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from rl_tui.engine.process.files import open_regular
from rl_tui.engine.session.codec import decode, encode
from rl_tui.engine.session.log_position import LogPosition
from rl_tui.engine.session.messages import (
    DELTAS,
    DevicesSampled,
    Envelope,
    EpisodesFinished,
    Event,
    LeagueReported,
    ParametersReported,
    ProgressReported,
    RanksReported,
    StepsAwaited,
    TimeSplit,
    WorkersSampled,
)
from rl_tui.engine.storage.block_file import BlockFile

# A day of one busy behavior then takes about 15 MB of these instead of 150 MB.
DELTA_SECONDS: dict[type, float] = {
    ProgressReported: 2.0,
    StepsAwaited: 2.0,
    LeagueReported: 10.0,
    ParametersReported: 10.0,
    TimeSplit: 10.0,
    DevicesSampled: 10.0,
    RanksReported: 10.0,
    WorkersSampled: 10.0,
}
_TAIL_BYTES = 1 << 16  # the end of a file is searched for its last newline in blocks of this size


class JsonLinesWriter:
    """Writes every event as one line. Used by one thread. Owns the file at `path`.

    Deltas are thinned to one per kind and behavior, or environment, every DELTA_SECONDS; the newest skipped one is
    written before the next event that is not EpisodesFinished, and at the end, so that a view folded from the file
    agrees with the live one wherever something happened. Except for such deltas, lines are in the order of their
    numbers.
    `append` continues the file of a resumed run, after removing a torn last line; otherwise the file is emptied.
    """

    def __init__(self, path: Path, append: bool):
        self.path = path
        self._append = append
        self._file = BlockFile(path, append=append)
        self._lines: list[str] = []
        self._written_at: dict[tuple[type, str], float] = {}
        self._held: dict[tuple[type, str], Envelope] = {}

    @property
    def failed(self) -> str | None:
        """Why lines were lost, if the disk refused some; else None."""
        return self._file.failed

    def write(self, envelope: Envelope) -> None:
        """Buffer one event; `flush` writes it."""
        if isinstance(envelope.event, DELTAS):
            key = type(envelope.event), _subject(envelope.event)
            if envelope.time - self._written_at.get(key, -DELTA_SECONDS[key[0]]) < DELTA_SECONDS[key[0]]:
                self._held[key] = envelope
                return
            self._held.pop(key, None)
            self._written_at[key] = envelope.time
        elif not isinstance(envelope.event, EpisodesFinished):
            self._release()
        self._lines.append(encode(envelope))

    def flush(self) -> None:
        """Write every buffered line, whole for every reader."""
        if not self._lines:
            return
        if self._append and not self._file.is_open:
            _cut_torn_line(self.path)
        self._file.write("".join(line + "\n" for line in self._lines).encode("ascii"))
        self._lines.clear()

    def close(self) -> None:
        """Write the skipped deltas and close the file."""
        self._release()
        self.flush()
        self._file.close()

    def _release(self) -> None:
        for envelope in sorted(self._held.values(), key=lambda held: held.number):
            self._lines.append(encode(envelope))
        self._held.clear()


def _subject(event: Event) -> str:
    """What a delta is about: a newer one of its kind replaces it."""
    return event.first_behavior if isinstance(event, WorkersSampled) else getattr(event, "behavior", "")


def read_events(path: Path) -> Iterator[Envelope]:
    """The events of a file, oldest first, without a torn last line. Raises as `follow_events` does."""
    for envelope in follow_events(path):
        if envelope is None:
            return
        yield envelope


def follow_events(path: Path, position: LogPosition | None = None) -> Iterator[Envelope | None]:
    """The events of a file that may still grow, oldest first; None whenever it has no further whole line yet.

    The iterator never ends: after None it can be advanced again later. A resumed run starts its event numbers again, in
    another epoch. Raises ValueError, naming file and line, on a line that is not an event; OSError when the file cannot
    be read.

    position: where to start; always just after the event yielded last, so that another reader can start there.
    """
    at = LogPosition() if position is None else position
    with open(path, "rb", opener=partial(open_regular, follows_links=True)) as file:
        file.seek(at.num_bytes)
        for line in _whole_lines(file):
            if line is None:
                yield None
                continue
            try:
                envelope = decode(line.decode("utf-8", "replace"))
            except ValueError as error:
                raise ValueError(f"{path}:{at.num_lines + 1}: {error}") from error
            at.num_bytes, at.num_lines = at.num_bytes + len(line), at.num_lines + 1
            yield _in_its_epoch(envelope, at)


def last_epoch(path: Path) -> int:
    """That of the newest event of a file; 0 without any. Events of earlier versions are counted, which takes longer.

    Raises as `follow_events` does.
    """
    if not path.exists():
        return 0
    with open(path, "rb", opener=partial(open_regular, follows_links=True)) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        *_, newest, _ = [b"", *file.read().split(b"\n")]  # the last one is torn, or empty
    try:
        epoch = decode(newest.decode("utf-8", "replace")).epoch
    except ValueError:
        epoch = 0
    return epoch or max((envelope.epoch for envelope in read_events(path)), default=0)


def _in_its_epoch(envelope: Envelope, at: LogPosition) -> Envelope:
    """The event with the epoch that it was written with, or else with that of its process, counted from 1."""
    is_delta, number = isinstance(envelope.event, DELTAS), envelope.number
    if envelope.epoch:
        at.epoch, at.last = envelope.epoch, 0
    elif number <= at.last and (not is_delta or number == 1):
        at.epoch, at.last = at.epoch + 1, 0
    if not is_delta:
        at.last = number  # of the newest event of this process that cannot have been held back
    return envelope if envelope.epoch else replace(envelope, epoch=at.epoch)


def _whole_lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Lines; None as long as the next one has no end."""
    line = b""
    while True:
        line += file.readline()
        if line.endswith(b"\n"):
            yield line
            line = b""
        else:
            yield None


def _cut_torn_line(path: Path) -> None:
    """Cut the file after its last newline: the rest was being written when its process died."""
    try:
        with open(path, "r+b", opener=open_regular) as file:
            end = file.seek(0, os.SEEK_END)
            while end > 0:
                start = max(0, end - _TAIL_BYTES)
                file.seek(start)
                newline = file.read(end - start).rfind(b"\n")
                if newline >= 0:
                    end = start + newline + 1
                    break
                end = start
            file.truncate(end)
    except OSError:
        return  # there is no such file, or writing the first block will report the error
