"""The policy that a behavior learns from, read when its run starts."""

from __future__ import annotations

from pathlib import Path

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import CheckpointError, ConfigError, ExportError, NotSupportedError
from rl_tui.engine.running.imitated import TEACHER
from rl_tui.engine.running.policy_paths import require_policy
from rl_tui.engine.running.policy_sources import read_policy
from rl_tui.engine.specs import BehaviorSpec, Policy


def read_teacher(spec: BehaviorSpec, config: BehaviorConfig, seed: int) -> tuple[Policy, str] | None:
    """What it learns from, taking its likeliest actions where it can, and which one that is; None where it has no
    teacher.

    Raises ConfigError, naming the key, where it cannot be read, or acts for another behavior; NotSupportedError.
    """
    if config.hyperparameters.teacher_path is None:
        return None
    key, path = f"behaviors.{spec.name}.{TEACHER}", Path(config.hyperparameters.teacher_path)
    try:
        require_policy(path)
        source = read_policy(path, spec)
        policy = source.make("greedy", seed)
    except (CheckpointError, ConfigError, ExportError) as error:
        raise ConfigError(f"{key}: {error}") from error
    if policy.memory_size:
        raise NotSupportedError(f"{key}: {source.path} has a memory; a teacher with memory is not supported yet")
    return policy, str(source.path)
