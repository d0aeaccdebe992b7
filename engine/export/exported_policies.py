"""The exported policies of a run, found by what they do."""

from __future__ import annotations

from pathlib import Path

from rl_tui.engine.config.behavior import ExportedKind
from rl_tui.engine.config.diagnostics import must_be_one_of, one_of
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.export.policy_files import PolicyFile, read_policy_file
from rl_tui.engine.storage.behavior_folder import EXPORTED_KINDS, BehaviorFolder, file_name, hashed_name
from rl_tui.engine.storage.file_names import POLICIES


def find_policy(
    path: Path, kind: ExportedKind | None, behavior: str | None, is_greedy: bool | None, seed: int
) -> PolicyFile:
    """The policy in a file, or the newest one of that kind and behavior in a run's folder.

    is_greedy, seed: see `read_policy_file`. Raises ConfigError, ExportError.
    """
    if kind is not None and kind not in EXPORTED_KINDS:
        raise ConfigError(f"kind: {must_be_one_of(EXPORTED_KINDS, kind)}")
    if path.is_dir():
        path, is_greedy = _newest(_behavior_folder(path, behavior), kind, is_greedy)
        kind = None
    elif not path.exists():
        raise ConfigError(f"{path}: no such file or folder")
    found = read_policy_file(path, is_greedy, seed)
    _require(path, found, kind, behavior)
    return found


def _require(path: Path, found: PolicyFile, kind: ExportedKind | None, behavior: str | None) -> None:
    """The file is what the caller says. Raises ConfigError."""
    if kind is not None and found.kind != kind:
        raise ConfigError(f"kind: must be {found.kind}, which {path} is, got {kind}")
    if behavior is not None and found.spec.name != behavior:
        raise ConfigError(f"behavior: must be {found.spec.name}, of which {path} is, got {behavior}")


def _behavior_folder(run: Path, behavior: str | None) -> BehaviorFolder:
    """The folder of the requested behavior, or of the only one."""
    if behavior is not None:
        for name in (hashed_name(behavior), file_name(behavior)):  # the first where another differs only in case
            folder = BehaviorFolder(behavior, run.absolute() / name)
            if folder.path.is_dir():
                return folder
    folders = [BehaviorFolder(entry.name, entry) for entry in sorted(run.iterdir()) if entry.is_dir()]
    names = [each.name for each in folders if (each.path / POLICIES).is_dir() or each.final_export.is_file()]
    if not names:
        raise ConfigError(
            f"{run}: no behavior in it has an exported policy. A run and a Learner export theirs with each checkpoint"
        )
    if behavior is not None:
        raise ConfigError(f"behavior: {must_be_one_of(names, behavior)}")
    if len(names) > 1:
        raise ConfigError(f"behavior: must be given, {one_of(names)}")
    return BehaviorFolder(names[0], run / names[0])


def _newest(folder: BehaviorFolder, kind: ExportedKind | None, greedy: bool | None) -> tuple[Path, bool | None]:
    """The newest policy that acts so, and how it is to act. Raises ConfigError, naming the kinds that there are."""
    wanted = kind or "greedy"
    if found := folder.policies(wanted):
        return found[max(found)], greedy
    if wanted == "raw" or not folder.final_export.is_file():
        others = [other for other in EXPORTED_KINDS if folder.policies(other)]
        hint = f". Export it with export_policies: [{wanted}]"
        text = f"{folder.path / POLICIES} has no {wanted} policy; it has {', '.join(others) or 'none'}"
        raise ConfigError(f"kind: {text}{hint}")
    if kind is not None and greedy not in (None, kind == "greedy"):
        raise ConfigError(f"greedy: must be {kind == 'greedy'} with the kind {kind}, got {greedy}")
    return folder.final_export, wanted == "greedy" if greedy is None else greedy
