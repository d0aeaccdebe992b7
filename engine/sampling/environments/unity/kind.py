"""The environments that "unity:PATH" names."""

from __future__ import annotations

from pathlib import Path

from rl_tui.engine.config.environment_name import EDITOR, UNITY
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.base import Environment, EnvironmentKind
from rl_tui.engine.sampling.environments.settings import UnitySettings
from rl_tui.engine.sampling.environments.unity.player_path import find_player


class UnityKind(EnvironmentKind[UnitySettings]):
    """Players, each started for one copy, or the Editor, which the user starts."""

    def make(self, name: str, behavior: str, copies: range, settings: UnitySettings) -> list[Environment]:
        """One environment for each copy. name: the path of a player, or "editor". Raises ConfigError."""
        from rl_tui.engine.sampling.environments.unity.environment import UnityEnvironment

        path = _player(name)
        return [UnityEnvironment(path, number, settings) for number in copies]

    def require(self, name: str) -> None:
        """There is an executable file at that path. Raises ConfigError."""
        _player(name)

    def to_draw(self, name: str, settings: UnitySettings, *, may_be_text: bool) -> UnitySettings:
        """Raises ConfigError: a player returns no frames."""
        raise ConfigError(f"{UNITY}:{name}: {settings.not_drawn}")


def _player(name: str) -> Path | None:
    """The executable; None for the Editor."""
    return None if f"{UNITY}:{name}" == EDITOR else find_player(name)
