"""Trains game and robot agents: from a YAML file in a terminal, or from Python, as docs/python.md describes.

Every name below is imported when it is first used, so that `import rl_tui` imports nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rl_tui.engine.api.learner import Learner
    from rl_tui.engine.errors import (
        CheckpointError,
        ConfigError,
        EnvironmentFailure,
        ExportError,
        NonFiniteError,
        NotSupportedError,
        PluginError,
        RlTuiError,
        RunBusyError,
    )
    from rl_tui.engine.learning.train_step import TrainStep
    from rl_tui.engine.specs import Trajectories

__all__ = [
    "CheckpointError",
    "ConfigError",
    "EnvironmentFailure",
    "ExportError",
    "Learner",
    "NonFiniteError",
    "NotSupportedError",
    "PluginError",
    "RlTuiError",
    "RunBusyError",
    "TrainStep",
    "Trajectories",
]

_HOMES = {  # by public name: its module in rl_tui.engine; of others, errors
    "Learner": "api.learner",
    "TrainStep": "learning.train_step",
    "Trajectories": "specs",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"rl_tui.engine.{_HOMES.get(name, 'errors')}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
