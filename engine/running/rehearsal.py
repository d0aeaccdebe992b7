"""Makes what a run would make of installed packages, and gives it back, so that a failure is reported before a run."""

from __future__ import annotations

import torch

from rl_tui.engine.config.environment_name import is_of_unity
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.learning.trainer import make_trainer
from rl_tui.engine.running.call_timeout import busy_seconds, call_with_timeout
from rl_tui.engine.running.environments import make_pool_apart, named_environments, settings_of
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.worker_process import START_SECONDS
from rl_tui.engine.specs import BehaviorSpec


def require_makable(config: RunConfig) -> None:
    """One copy of each environment can be made, and on the CPU the trainers, policies and states of its behaviors.

    Unity players are left out, and with them their behaviors. Raises RlTuiError as the run would.
    """
    for environment in named_environments(config):
        if not is_of_unity(environment.source.env):
            _require_makable(config, environment.source)


def _require_makable(config: RunConfig, source: EnvironmentSource) -> None:
    pool = make_pool_apart(source, source.make, 1, START_SECONDS)
    try:
        call_with_timeout(START_SECONDS, pool, pool.start)
        for spec in pool.specs.values():
            _require_trainer(config, spec)
    finally:
        if busy_seconds(pool) == 0:  # otherwise it hangs, and its thread was left behind
            pool.close()


def _require_trainer(config: RunConfig, spec: BehaviorSpec) -> None:
    settings = settings_of(config, spec.name)
    trainer = make_trainer(spec, settings, 0, torch.device("cpu"))
    trainer.make_policy(0)
    trainer.policy_maker(0)
