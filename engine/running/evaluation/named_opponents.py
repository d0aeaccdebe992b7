"""What `evaluation.opponent` may name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rl_tui.engine.config.diagnostics import closest
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.policy_paths import require_policy

OPPONENT: Final = "evaluation.opponent"
RANDOM, OLDEST = "random", "oldest"


def require_opponents(config: RunConfig) -> None:
    """The files that opponents of evaluations are read from are there. Raises ConfigError for the first that is not."""
    if config.checkpoint_settings.inference:
        return
    for name, behavior in config.behaviors.items():
        opponent = None if behavior.evaluation is None else behavior.evaluation.opponent
        if opponent is not None and opponent not in (RANDOM, OLDEST):
            _require(f"behaviors.{name}.{OPPONENT}", opponent, config.checkpoint_settings.results_dir)


def _require(key: str, opponent: str, results_dir: str) -> None:
    try:
        require_policy(Path(opponent), results_dir)
    except ConfigError as error:
        word = None if Path(opponent).exists() else closest(opponent, (RANDOM, OLDEST))
        hint = f" Did you mean {word}?" if word and "Did you mean" not in str(error) else ""
        raise ConfigError(f"{key}: {error}{hint}") from error
