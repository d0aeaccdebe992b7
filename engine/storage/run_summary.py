"""The summary of one run, from the start and the end of its events.

Reads a bounded part of each file, and tolerates torn lines, other programs' files and a folder that disappears
meanwhile. Lines are read as plain JSON: the event classes take longer to import than fifty runs to list.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rl_tui.engine.process.files import open_regular
from rl_tui.engine.session.states import REPORTED_ENDS
from rl_tui.engine.session.summaries import BehaviorSummary, RunSummary
from rl_tui.engine.storage.file_names import CONFIGURATION, EVENTS, INFERENCE, LOCK, RUN_LOGS, TRAINING_STATUS
from rl_tui.engine.storage.ownership import writing_process
from rl_tui.engine.storage.summary_fold import SummaryFold, saved_of, whole

if TYPE_CHECKING:
    from rl_tui.engine.session.states import SummaryState

HEAD_BYTES = 1 << 14  # contains the start of every behavior
TAIL_BYTES = 1 << 14  # a second of a busy run with many behaviors, a quarter of an hour of a paused one
LONG_TAIL_BYTES = 1 << 18  # read when TAIL_BYTES contain too few episodes
STATUS_BYTES = 1 << 20
RUN_FILES = frozenset({CONFIGURATION, EVENTS, LOCK})
_IDLE = tuple(  # irrelevant here
    f'"event": "{kind}"' for kind in ("TimeSplit", "DevicesSampled", "RanksReported", "WorkersSampled")
)


def summarize(folder: Path) -> RunSummary | None:
    """The summary of the run in that folder; None when there is no run or no folder."""
    try:
        if not RUN_FILES & set(os.listdir(folder)):
            return None
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            return None
        return _summary(folder, SummaryFold(), None, f"cannot be read ({error.strerror})")
    process = writing_process(folder)  # first, so that a run that ends meanwhile does not appear interrupted
    fold = SummaryFold()
    notes = filter(None, (_read_events(folder / EVENTS, fold), _read_status(folder / RUN_LOGS / TRAINING_STATUS, fold)))
    return _summary(folder, fold, process, "; ".join(notes))


def _read_events(path: Path, fold: SummaryFold) -> str:
    """Apply the file's events, and return what is wrong with it."""
    try:
        descriptor = open_regular(path, follows_links=True)
        try:
            _read_ends(descriptor, fold)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        played = path.with_name(INFERENCE).is_file()
        return f"no {EVENTS}: inference only, see {INFERENCE}" if played else f"no {EVENTS}"
    except OSError as error:
        return f"{EVENTS}: {error.strerror}"
    return "" if fold.last_at is not None else f"{EVENTS} holds no events"


def _read_ends(descriptor: int, fold: SummaryFold) -> None:
    """Apply the whole lines at both ends of the file; of a short file, all lines."""
    size = os.fstat(descriptor).st_size
    if size <= HEAD_BYTES + TAIL_BYTES:
        _apply_tail(_lines(os.pread(descriptor, size, 0)), fold)
        return
    head = _lines(os.pread(descriptor, HEAD_BYTES, 0))[:-1]
    _apply_all([line for line in head if "Started" in line], fold)
    for length in (TAIL_BYTES, LONG_TAIL_BYTES):
        fold.skip()
        start = max(0, size - length)
        _apply_tail(_lines(os.pread(descriptor, length, start))[1 if start else 0 :], fold)
        if fold.has_recent_episodes:
            return


def _apply_tail(lines: list[str], fold: SummaryFold) -> None:
    """Apply lines up to the end of a file."""
    *others, torn, last = ["", "", *lines]
    _apply_all([line for line in others if not any(kind in line for kind in _IDLE)], fold)
    _apply_all([torn, last], fold)  # of any kind: they have the time of the newest event


def _apply_all(lines: Iterable[str], fold: SummaryFold) -> None:
    for line in lines:
        with suppress(ValueError, RecursionError):  # torn, or not an event
            fold.apply(json.loads(line))


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").split("\n")


def _read_status(path: Path, fold: SummaryFold) -> str:
    """Apply the checkpoints of training_status.json, and return what is wrong with it."""
    try:
        descriptor = open_regular(path, follows_links=True)
    except OSError as error:  # a new run has none yet
        return "" if error.errno in {errno.ENOENT, errno.ENOTDIR} else f"{TRAINING_STATUS}: {error.strerror}"
    try:
        body = json.loads(os.pread(descriptor, STATUS_BYTES, 0))
        for name, status in body.items():
            if "max_steps" in status:  # of the newest process, whose start may not have been read
                fold.behavior(name).max_steps = whole(status["max_steps"]) or 0
            if "checkpoints" in status:  # all on disk, also those whose events were not read
                fold.behavior(name).checkpoints = {
                    f"{at}": saved_of(
                        whole(entry["steps"]) or 0, entry["reward"], entry.get("lessons"), entry.get("held_out_loss")
                    )
                    for at, entry in enumerate(status["checkpoints"])
                }
    except OSError as error:
        return f"{TRAINING_STATUS}: {error.strerror}"
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return f"{TRAINING_STATUS} is not a training status"
    finally:
        os.close(descriptor)
    return ""


def _summary(folder: Path, fold: SummaryFold, process: str | None, note: str) -> RunSummary:
    elapsed = None
    if fold.last_at is not None and fold.process_started_at is not None:
        elapsed = max(0.0, fold.last_at - fold.process_started_at)
    state = _state(fold, process is not None and not _is_inference(folder))
    return RunSummary(
        run_id=folder.name,
        path=str(folder),
        state=state,
        is_alive=process is not None,
        started_at=fold.first_at,
        last_event_at=fold.last_at,
        elapsed_seconds=elapsed,
        behaviors=tuple(
            BehaviorSummary(
                name=name,
                algorithm=behavior.algorithm,
                step=behavior.newest_step,
                max_steps=behavior.max_steps,
                best_return=behavior.best_return,
                last_return=behavior.last_return,
                environment=behavior.environment,
                best_loss=behavior.best_loss,
                rating=behavior.rating,
            )
            for name, behavior in fold.behaviors.items()
        ),
        exit_code=fold.exit_code if state in REPORTED_ENDS else None,
        note=note,
        process=process or "",
        seed=fold.seed,
    )


def _is_inference(folder: Path) -> bool:
    """Whether the newest events are of a process that only ran inference."""
    try:
        return (folder / INFERENCE).stat().st_mtime_ns >= (folder / EVENTS).stat().st_mtime_ns
    except OSError:
        return False


def _state(fold: SummaryFold, is_alive: bool) -> SummaryState:
    if fold.last_at is None:
        return "starting" if is_alive else "unknown"
    if is_alive and fold.state is None:  # its event is in the part that was not read
        return "training" if fold.has_progress else "paused"
    if is_alive or fold.state in REPORTED_ENDS:
        return cast("SummaryState", fold.state)
    return "interrupted"
