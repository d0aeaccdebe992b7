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
            try:
                find_opponent(opponent, config.checkpoint_settings.results_dir)
            except ConfigError as error:
                raise ConfigError(f"behaviors.{name}.{OPPONENT}: {error}") from error


def find_opponent(opponent: str, results_dir: str, working_directory: Path = Path()) -> Path:
    """The policy that it names: a file or folder, or else the run of that id. Raises ConfigError."""
    path, run = working_directory / opponent, working_directory / results_dir / opponent
    found = run if run.is_dir() and not path.exists() else path
    if not found.exists():
        word = closest(opponent, (RANDOM, OLDEST))
        hint = f" Did you mean {word}?" if word else ""
        must = f"must be {RANDOM}, {OLDEST}, a run of {results_dir}, or the path of a run, a checkpoint or an ONNX file"
        raise ConfigError(f"{opponent}: there is no such file or folder; it {must}.{hint}")
    require_policy(found)
    return found
