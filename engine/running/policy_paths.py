"""Paths of saved policies, looked at before a run starts: torch is not imported for that."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.storage.file_names import MANIFEST

ONNX: Final = ".onnx"


def require_policy(path: Path, results_dir: str = "") -> None:
    """There is something at the path that might be a policy. results_dir: where runs are. Raises ConfigError."""
    from rl_tui.engine.storage.checkpoints import trained_behaviors  # imports safetensors, which only a teacher needs

    is_checkpoint = (path / MANIFEST).is_file() or (path.is_dir() and bool(trained_behaviors(path)))
    if is_checkpoint or (path.suffix == ONNX and path.is_file()):
        return
    must = "must be the folder of a run, a checkpoint in it, or an ONNX file"
    if not path.exists():
        run = Path(results_dir) / path
        hint = f" Did you mean {run}?" if run.is_dir() else ""
        raise ConfigError(f"{path}: there is no such file or folder; it {must}.{hint}")
    raise ConfigError(f"{path}: {must}, got {'a folder without checkpoints' if path.is_dir() else 'another file'}")
