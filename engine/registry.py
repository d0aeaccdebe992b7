"""The table of plug-ins: the class of each kind and name, and where it is defined."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points

from rl_tui.engine.errors import NotSupportedError

BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "trainers": {
        "ppo": "rl_tui.engine.learning.ppo.trainer:PPOTrainer",
        "sac": "rl_tui.engine.learning.sac.trainer:SACTrainer",
    },
    "hyperparameters": {  # `poca` has only these so far
        "ppo": "rl_tui.engine.learning.ppo.settings:PPOSettings",
        "sac": "rl_tui.engine.learning.sac.settings:SACSettings",
        "poca": "rl_tui.engine.learning.poca.settings:POCASettings",
    },
    "environments": {
        "gymnasium": "rl_tui.engine.sampling.environments.gymnasium:GymnasiumEnvironment",
        "toy": "rl_tui.engine.sampling.environments.toys.factory:ToyEnvironment",
    },
    "pools": {
        "serial": "rl_tui.engine.sampling.pools.serial:SerialPool",
        "process": "rl_tui.engine.sampling.pools.process:ProcessPool",
    },
    "reward_signals": {"extrinsic": "rl_tui.engine.learning.rewards.extrinsic:ExtrinsicReward"},
    "writers": {
        "console": "rl_tui.engine.running.writers.console:ConsoleWriter",
        "jsonl": "rl_tui.engine.storage.event_log:JsonLinesWriter",
        "tensorboard": "rl_tui.engine.running.writers.tensorboard:TensorBoardWriter",
    },
}


def names(kind: str) -> list[str]:
    """Every name of that kind: those built in, then those installed (entry points of the group `rl_tui.<kind>`)."""
    installed = sorted(entry_points(group=f"rl_tui.{kind}").names)
    return list(dict.fromkeys([*BUILT_IN[kind], *installed]))


def has(kind: str, name: str) -> bool:
    """Whether there is one of that name; installed packages are searched only where none is built in."""
    return name in BUILT_IN[kind] or name in names(kind)


def load(kind: str, name: str) -> type:
    """The class. An installed plug-in cannot replace a built-in one. Raises NotSupportedError for an unknown name."""
    if name in BUILT_IN[kind]:
        module, _, attribute = BUILT_IN[kind][name].partition(":")
        found: type = getattr(importlib.import_module(module), attribute)
        return found
    for point in entry_points(group=f"rl_tui.{kind}", name=name):
        return point.load()  # type: ignore[no-any-return]  # the class that the plug-in registered
    raise NotSupportedError(f"{kind}: {name} is not supported yet; there are {', '.join(names(kind))}")
