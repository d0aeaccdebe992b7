"""run_logs/training_status.json: the list of checkpoints in ML-Agents' format, for the tools that read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rl_tui.engine.process.files import open_regular
from rl_tui.engine.specs import Json
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from rl_tui.engine.storage.checkpoint_format import Checkpoint
from rl_tui.engine.storage.disk import DISK, Disk, write_atomically
from rl_tui.engine.version import VERSION

STATS_FORMAT_VERSION = "0.3.0"  # of ML-Agents 1.1.0


@dataclass(frozen=True, slots=True)
class CheckpointEntry:
    """One checkpoint. file_path: the exported policy. auxillary_file_paths: what training resumes from.

    lessons, held_out_loss: those of the Checkpoint; these keys, which ML-Agents does not have, are in the file where
    there are any.
    """

    steps: int
    file_path: str
    reward: float | None
    creation_time: float
    auxillary_file_paths: tuple[str, ...]  # ML-Agents' spelling
    lessons: Mapping[str, int] = field(default_factory=dict)
    held_out_loss: float | None = None


@dataclass(frozen=True, slots=True)
class BehaviorStatus:
    """The checkpoints on disk, oldest first, and the final one once the behavior has ended.

    max_steps: None in ML-Agents' files, which have no such key.
    """

    checkpoints: tuple[CheckpointEntry, ...]
    final_checkpoint: CheckpointEntry | None = None
    max_steps: int | None = None


@dataclass(frozen=True, slots=True)
class TrainingStatus:
    """The content of the file. warning: why it may be incomplete or unusable, or empty."""

    behaviors: Mapping[str, BehaviorStatus]
    warning: str = ""


def status_of(
    folder: BehaviorFolder, checkpoints: tuple[Checkpoint, ...], has_ended: bool, max_steps: int | None = None
) -> BehaviorStatus:
    """The status of a behavior with those checkpoints, oldest first."""
    entries = tuple(_entry(checkpoint, folder.export(checkpoint.step)) for checkpoint in checkpoints)
    final = _entry(checkpoints[-1], folder.final_export) if has_ended and checkpoints else None
    return BehaviorStatus(entries, final, max_steps)


def write_training_status(
    path: Path,
    behaviors: Mapping[str, BehaviorStatus],
    torch_version: str,
    lessons: Mapping[str, int] | None = None,
    disk: Disk = DISK,
) -> None:
    """Replace the file atomically. Raises OSError; the file is then unchanged.

    lessons: by environment parameter, from 0.
    """
    body: dict[str, Json] = {name: _behavior_to_json(status) for name, status in behaviors.items()}
    for parameter, lesson in (lessons or {}).items():
        body[parameter] = {**_entries(body.get(parameter)), "lesson_num": lesson}
    body["metadata"] = {
        "stats_format_version": STATS_FORMAT_VERSION,
        "rl_tui_version": VERSION,
        "torch_version": torch_version,
    }
    write_atomically(path, json.dumps(body, indent=4).encode(), disk)


def read_training_status(path: Path, torch_version: str) -> TrainingStatus:
    """The file's content; an empty one with a warning when it is missing or broken, since nothing depends on it.

    A file of another version or of ML-Agents itself is read with a warning.
    """
    try:
        with open(path, "rb", opener=open_regular) as file:
            body = json.loads(file.read())
        behaviors = {name: _parse_behavior(entry) for name, entry in body.items() if "checkpoints" in entry}
        return TrainingStatus(behaviors, _version_warning(path, body.get("metadata", {}), torch_version))
    except OSError as error:
        return TrainingStatus({}, f"{path}: cannot be read ({error.strerror}); the list of checkpoints starts over")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return TrainingStatus({}, f"{path}: not a training status ({error}); the list of checkpoints starts over")


def _entries(body: Json) -> dict[str, Json]:
    return body if isinstance(body, dict) else {}


def _entry(checkpoint: Checkpoint, export: Path) -> CheckpointEntry:
    paths = (str(checkpoint.path),)
    known = checkpoint.lessons, checkpoint.held_out_loss
    return CheckpointEntry(checkpoint.step, str(export), checkpoint.mean_return, checkpoint.created_at, paths, *known)


def _entry_to_json(entry: CheckpointEntry) -> dict[str, Json]:
    known = {"lessons": bool(entry.lessons), "held_out_loss": entry.held_out_loss is not None}
    return {name: value for name, value in asdict(entry).items() if known.get(name, True)}


def _behavior_to_json(status: BehaviorStatus) -> dict[str, Json]:
    body: dict[str, Json] = {"checkpoints": [_entry_to_json(entry) for entry in status.checkpoints]}
    if status.final_checkpoint is not None:
        body["final_checkpoint"] = _entry_to_json(status.final_checkpoint)
    if status.max_steps is not None:
        body["max_steps"] = status.max_steps
    return body


def _parse_behavior(body: Mapping[str, object]) -> BehaviorStatus:
    checkpoints, final = body["checkpoints"], body.get("final_checkpoint")
    if not isinstance(checkpoints, list):
        raise TypeError("checkpoints must be a list")
    max_steps = body.get("max_steps")
    if not isinstance(max_steps, int | None):
        raise TypeError("max_steps must be an integer")
    entries = tuple(map(_parse_entry, checkpoints))
    return BehaviorStatus(entries, None if final is None else _parse_entry(final), max_steps)


def _parse_entry(body: object) -> CheckpointEntry:
    match body:
        case {
            "steps": int(steps),
            "file_path": str(file_path),
            "reward": float() | int() | None as reward,
            "creation_time": float() | int() as creation_time,
            "auxillary_file_paths": list(paths),
            **others,
        }:
            lessons = others.get("lessons", {})
            if not isinstance(lessons, dict):
                raise TypeError("lessons must be a mapping")
            loss = others.get("held_out_loss")
            if not isinstance(loss, float | int | None):
                raise TypeError("held_out_loss must be a number")
            return CheckpointEntry(steps, file_path, reward, creation_time, tuple(map(str, paths)), lessons, loss)
        case _:
            raise ValueError("a checkpoint's entry is incomplete")


def _version_warning(path: Path, metadata: Mapping[str, object], torch_version: str) -> str:
    own = {"stats_format_version": STATS_FORMAT_VERSION, "rl_tui_version": VERSION, "torch_version": torch_version}
    other = [f"{key} {metadata.get(key)}, now {value}" for key, value in own.items() if metadata.get(key) != value]
    return f"{path}: written by another version ({'; '.join(other)})" if other else ""
