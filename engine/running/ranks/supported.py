"""What a run on several ranks must be like, as far as its configuration says."""

from __future__ import annotations

from rl_tui.engine.config.environment_name import EDITOR
from rl_tui.engine.config.environments import has_agents
from rl_tui.engine.config.naming import name_of, switched_on
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.errors import ConfigError, NotSupportedError
from rl_tui.engine.session.text import counted


def require_supported(config: RunConfig, size: int) -> None:
    """So many ranks can train this. Raises ConfigError for too few environments, NotSupportedError for what is not
    supported yet."""
    if size == 1:
        return
    settings = config.env_settings
    refused = []
    if not isinstance(settings.environment, str):
        refused.append("env_settings.env: an environment for each behavior")
    if config.checkpoint_settings.inference:
        refused.append(switched_on("checkpoint_settings.inference"))
    if refused:
        raise NotSupportedError("\n".join(f"{each} is not supported on several ranks yet" for each in refused))
    if settings.environment == EDITOR:
        raise ConfigError(f"env_settings.env: an Editor, of which there is one, has one rank, not {size}")
    if _shares_environments(config) and settings.num_envs < size:
        raise ConfigError(
            f"{name_of('env_settings.num_envs')}: must be at least {size}, one for each of {size} ranks, got"
            f" {counted(settings.num_envs, 'environment')}; or start fewer ranks"
        )


def parts_of(config: RunConfig, size: int) -> list[int]:
    """How much of the experience each of so many ranks collects, beside the others: as many as it has environments."""
    num_envs = config.env_settings.num_envs if _shares_environments(config) else size
    return [part_of(num_envs, rank, size)[1] for rank in range(size)]


def _shares_environments(config: RunConfig) -> bool:
    """Whether each rank has some of the copies of one environment."""
    name = config.env_settings.environment
    return isinstance(name, str) and has_agents(name)


def part_of(number: int, rank: int, size: int) -> tuple[int, int]:
    """Of so many in a row, the first that this rank has, and how many: as evenly as it goes, the first ranks having
    one more."""
    least, more = divmod(number, size)
    return rank * least + min(rank, more), least + (rank < more)
