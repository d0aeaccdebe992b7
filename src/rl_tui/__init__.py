"""Trains game and robot agents: from a YAML file in a terminal, or from Python, as docs/python.md describes.

Every name below is imported when it is first used, so that `import rl_tui` imports nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rl_tui.engine.api.arena import arena
    from rl_tui.engine.api.attached_run import attach
    from rl_tui.engine.api.behavior_learner import BehaviorLearner
    from rl_tui.engine.api.learner import Learner
    from rl_tui.engine.api.policies import ActingPolicy, EvaluatedAction, load_policy
    from rl_tui.engine.api.recordings import events
    from rl_tui.engine.api.run_handle import RunHandle, SentCommand
    from rl_tui.engine.api.runs import RunResult, start, train
    from rl_tui.engine.errors import (
        AttachError,
        CheckpointError,
        CommandError,
        ConfigError,
        EnvironmentFailure,
        ExportError,
        HookError,
        NonFiniteError,
        NotSupportedError,
        PluginError,
        RlTuiError,
        RunBusyError,
    )
    from rl_tui.engine.learning.loss_inputs import LossInputs
    from rl_tui.engine.learning.on_policy.rollout import RolloutMinibatch
    from rl_tui.engine.learning.replay.buffer import Minibatch
    from rl_tui.engine.learning.train_step import TrainStep
    from rl_tui.engine.learning.transitions import Transitions
    from rl_tui.engine.running.arena.request import ArenaResult
    from rl_tui.engine.running.hooks import Milestone
    from rl_tui.engine.session import messages
    from rl_tui.engine.specs import Trajectories

__all__ = [
    "ActingPolicy",
    "ArenaResult",
    "AttachError",
    "BehaviorLearner",
    "CheckpointError",
    "CommandError",
    "ConfigError",
    "EnvironmentFailure",
    "EvaluatedAction",
    "ExportError",
    "HookError",
    "Learner",
    "LossInputs",
    "Milestone",
    "Minibatch",
    "NonFiniteError",
    "NotSupportedError",
    "PluginError",
    "RlTuiError",
    "RolloutMinibatch",
    "RunBusyError",
    "RunHandle",
    "RunResult",
    "SentCommand",
    "TrainStep",
    "Trajectories",
    "Transitions",
    "arena",
    "attach",
    "events",
    "load_policy",
    "messages",
    "start",
    "train",
]

_HOMES = dict.fromkeys(__all__, "errors") | {  # by public name: its module in rl_tui.engine
    "ActingPolicy": "api.policies",
    "ArenaResult": "running.arena.request",
    "BehaviorLearner": "api.behavior_learner",
    "EvaluatedAction": "api.policies",
    "Learner": "api.learner",
    "LossInputs": "learning.loss_inputs",
    "Milestone": "running.hooks",
    "Minibatch": "learning.replay.buffer",
    "RolloutMinibatch": "learning.on_policy.rollout",
    "RunHandle": "api.run_handle",
    "RunResult": "api.runs",
    "SentCommand": "api.run_handle",
    "TrainStep": "learning.train_step",
    "Trajectories": "specs",
    "Transitions": "learning.transitions",
    "arena": "api.arena",
    "attach": "api.attached_run",
    "events": "api.recordings",
    "load_policy": "api.policies",
    "messages": "session.messages",  # a module itself
    "start": "api.runs",
    "train": "api.runs",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(f"rl_tui.engine.{_HOMES[name]}")
    found = globals()[name] = home if name == "messages" else getattr(home, name)
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
