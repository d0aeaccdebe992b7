"""Trains game and robot agents: from a YAML file in a terminal, or from Python, as docs/python.md describes.

Every name below is imported when it is first used, so that `import rl_tui` imports nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rl_tui.engine.api.recordings import events
    from rl_tui.engine.api.run_handle import RunHandle, SentCommand
    from rl_tui.engine.api.runs import RunResult, start, train
    from rl_tui.engine.errors import (
        CheckpointError,
        CommandError,
        ConfigError,
        EnvironmentFailure,
        ExportError,
        NonFiniteError,
        NotSupportedError,
        PluginError,
        RlTuiError,
        RunBusyError,
    )

__all__ = [
    "CheckpointError",
    "CommandError",
    "ConfigError",
    "EnvironmentFailure",
    "ExportError",
    "NonFiniteError",
    "NotSupportedError",
    "PluginError",
    "RlTuiError",
    "RunBusyError",
    "RunHandle",
    "RunResult",
    "SentCommand",
    "events",
    "start",
    "train",
]

_HOMES = dict.fromkeys(__all__, "errors") | {  # by public name: its module in rl_tui.engine
    "RunHandle": "api.run_handle",
    "RunResult": "api.runs",
    "SentCommand": "api.run_handle",
    "events": "api.recordings",
    "start": "api.runs",
    "train": "api.runs",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"rl_tui.engine.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
