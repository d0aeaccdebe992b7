"""The kinds of environments that are built in. Their arguments are checked where they are made."""

from typing import ClassVar

from rl_tui.engine.config.environments import OpenArguments


class GymnasiumSettings(OpenArguments):
    """Registered environments of Gymnasium, as gymnasium:ID or gymnasium:MODULE:ID."""

    implementation: ClassVar = "rl_tui.engine.sampling.environments.gymnasium:GymnasiumEnvironment"
    has_one_behavior: ClassVar = True
    pattern: ClassVar = "ID"

    @classmethod
    def runs_user_code(cls, name: str) -> bool:
        """Only where a module registers the id."""
        return ":" in name


class ToySettings(OpenArguments):
    """Small tasks, to try settings in seconds or minutes."""

    implementation: ClassVar = "rl_tui.engine.sampling.environments.toys.factory:ToyEnvironment"
    has_one_behavior: ClassVar = True

    @classmethod
    def runs_user_code(cls, name: str) -> bool:
        """Never."""
        return False


class PettingZooSettings(OpenArguments):
    """Environments of PettingZoo."""


class UnitySettings(OpenArguments):
    """Players built with Unity."""
