"""Wrappers for Gymnasium environments that Gymnasium does not have."""

from __future__ import annotations

from typing import Any

import gymnasium

from rl_tui.engine.errors import ConfigError


class RepeatAction(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Each action is taken several times, like the decision period of ML-Agents.

    Rewards are summed; the observation and info are the last ones. A step then is that of a decision.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], times: Any) -> None:  # Any: as a file has it
        """times: steps of the environment for each action, from 1. An episode may end earlier. Raises ConfigError."""
        gymnasium.utils.RecordConstructorArgs.__init__(self, times=times)
        super().__init__(env)
        if type(times) is not int or times < 1:
            raise ConfigError(f"RepeatAction: times must be a whole number from 1, got {times!r}")
        self._times = times

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """As Gymnasium has it."""
        total = 0.0
        for _ in range(self._times):
            observation, reward, terminated, truncated, infos = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return observation, total, terminated, truncated, infos
