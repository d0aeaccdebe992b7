"""The files of one behavior in a run's folder."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.storage.file_names import (
    CHECKPOINTS,
    CONFIGURATION,
    EVENTS,
    LOCK,
    POLICIES,
    REPLAY_BUFFER,
    RUN_LOGS,
)

if TYPE_CHECKING:  # its import takes longer than to list fifty runs
    from rl_tui.engine.config.behavior import ExportedKind

PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # leaves room for "-<step>.onnx" in 255 bytes
# https://learn.microsoft.com/windows/win32/fileio/naming-a-file: also with any extension
WINDOWS_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
EXPORTED_KINDS: tuple[ExportedKind, ...] = ("stochastic", "greedy", "raw")
SLUG_LENGTH = 40


def file_name(behavior: str) -> str:
    """The behavior's name where every file system accepts it, otherwise `hashed_name`."""
    own = (CONFIGURATION, EVENTS, RUN_LOGS, LOCK)
    if (
        PLAIN_NAME.fullmatch(behavior)
        and not behavior.endswith(".")  # Windows drops it
        and not behavior.lower().endswith(".onnx")  # "A.onnx" is the exported policy of A
        and not WINDOWS_DEVICE.fullmatch(behavior)
        and behavior.lower() not in own
    ):
        return behavior
    return hashed_name(behavior)


def hashed_name(behavior: str) -> str:
    """A slug of the name, "-" and 8 hex digits of its sha256."""
    slug = re.sub(r"[^A-Za-z0-9]+", "-", behavior)[:SLUG_LENGTH].strip("-") or "behavior"
    digest = hashlib.sha256(behavior.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug}-{digest}"


@dataclass(frozen=True, slots=True)
class BehaviorFolder:
    """Paths of one behavior's files: TensorBoard's event files in `path` itself, the rest below it."""

    name: str
    path: Path

    @property
    def checkpoints(self) -> Path:
        """The folder of the behavior's CheckpointStore."""
        return self.path / CHECKPOINTS

    @property
    def replay_buffer(self) -> Path:
        """The newest saved replay buffer."""
        return self.path / REPLAY_BUFFER

    def export(self, step: int) -> Path:
        """The policy exported at that step."""
        return self.path / f"{self.path.name}-{step}.onnx"

    def policy(self, step: int, kind: ExportedKind) -> Path:
        """The export of that kind at that step, in addition to the one for Unity."""
        extension = "safetensors" if kind == "raw" else "onnx"
        return self.path / POLICIES / f"{self.path.name}-{step}-{kind}.{extension}"

    def policies(self, kind: ExportedKind) -> dict[int, Path]:
        """Every exported policy of that kind, by step."""
        example = self.policy(0, kind)
        start, _, end = example.name.rpartition("-0-")
        name = re.compile(f"{re.escape(start)}-([0-9]{{1,18}})-{re.escape(end)}")
        paths = example.parent.iterdir() if example.parent.is_dir() else ()
        return {int(match[1]): path for path in paths if (match := name.fullmatch(path.name))}

    def exports(self, step: int) -> tuple[Path, ...]:
        """Every file that an export at that step may have written."""
        return (self.export(step), *(self.policy(step, kind) for kind in EXPORTED_KINDS))

    @property
    def final_export(self) -> Path:
        """The newest exported policy, in the run's own folder."""
        return self.path.parent / f"{self.path.name}.onnx"
