"""A learner that a Python program holds in its hands."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from rl_tui.engine.api.behavior_learner import BehaviorLearner, Losses
from rl_tui.engine.api.environments import EnvironmentLike
from rl_tui.engine.api.plain_failures import plain_failures
from rl_tui.engine.api.plan import argument_of, plan_learner
from rl_tui.engine.api.policies import is_whole
from rl_tui.engine.api.settings import SettingsLike
from rl_tui.engine.api.usage import Usage
from rl_tui.engine.api.workbench import Workbench
from rl_tui.engine.config.naming import naming
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.logs import RunLogs
from rl_tui.engine.storage.run_folder import RunFolder


class Learner(BehaviorLearner):
    """Trains the behaviors of an environment in the caller's thread, as a run does, and saves them in a run's folder.

    Everything that a run does at intervals (summaries, checkpoints, exports, evaluations) happens here, too. A method
    that raises an RlTuiError because training failed has saved everything before. After Ctrl-C, or another exception
    from outside, the learner can be used further: an update that was interrupted is undone, and environments begin new
    episodes. Threads may use it in turn: a call during another thread's is an RlTuiError.

    Of one behavior, it has the methods of BehaviorLearner for it; of several, `behaviors` has these.
    """

    def __init__(
        self,
        settings: SettingsLike,
        env: EnvironmentLike | None,
        folder: str | os.PathLike[str],
        *,
        behavior: str | None = None,
        seed: int | None = None,
        num_envs: int | None = None,
        device: str | None = None,
        initialize_from: str | os.PathLike[str] | None = None,
    ):
        """What `folder` holds is restored: training continues from its newest checkpoint.

        settings: the path of a file, the name of a preset, a mapping, a BehaviorConfig or a RunConfig. env: an
        environment, its name, or a function that makes one and is called num_envs times; None for the one that the
        settings name. behavior: the only one to train. initialize_from: what a new folder begins with: the path of a
        checkpoint, of a run's folder or of a raw policy. The keywords win over the settings. Raises RlTuiError.
        """
        with plain_failures(), naming(argument_of):
            plan = plan_learner(settings, env, folder, behavior, seed, num_envs, device, initialize_from)
            self._bench = Workbench(plan)
        self._usage = Usage(self._bench)
        # One that is forgotten without being closed is like a process that was killed: its lock must not stay.
        runtime = self._bench.runtime
        weakref.finalize(self, _let_go, runtime.folder, runtime.logs, self._usage.pid).atexit = False

    def __repr__(self) -> str:
        each = "; ".join(f"{one.behavior} in {self.folder}, step {one.step:,}" for one in self.behaviors.values())
        updates = ", ".join(f"update {one.num_updates:,}" for one in self.behaviors.values())
        return f"<{'closed ' if self._usage.is_closed else ''}Learner of {each}, {updates}>"

    def __reduce_ex__(self, protocol: object) -> str:
        raise TypeError(
            "a Learner cannot be copied or pickled, since it has locked its folder; see save() and policy()"
        )

    def run(self, iterations: int = 1) -> Losses:
        """Make that many updates of each behavior, with the experience they need; the losses of the last one, by
        ML-Agents' tag; with several behaviors, by BEHAVIOR/tag.

        Fewer where max_steps is reached: everything is then saved. A behavior that has made its updates goes on
        learning while others have not.
        """
        if not is_whole(iterations) or iterations < 0:
            raise ConfigError(f"iterations: must be a whole number of at least 0, got {iterations!r}")
        with self._usage.turn:
            self._usage.require_usable(self._bench.behaviors.values())
            targets = {name: one.num_updates + iterations for name, one in self.behaviors.items()}
            with self._usage:
                while self._is_below(targets):
                    self._bench.advance()
        every = self.behaviors
        if len(every) == 1:
            return self.losses
        return {f"{name}/{tag}": loss for name, one in every.items() for tag, loss in one.losses.items()}

    def _is_below(self, targets: Mapping[str, int]) -> bool:
        learners = {name: self._bench.behaviors[name].learner for name in targets}
        return any(one.num_updates < targets[name] and not one.is_finished for name, one in learners.items())

    def close(self) -> None:
        """Save a checkpoint and the policies, and give back environments and folder. Harmless when called twice.

        An environment that the caller made is left as it is. Raises CheckpointError where the disk refused.
        """
        self._usage.close()

    def __enter__(self) -> Learner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def behaviors(self) -> Mapping[str, BehaviorLearner]:
        """Every behavior that has appeared, by name."""
        return {name: BehaviorLearner(self._bench, self._usage, name) for name in self._bench.behaviors}

    @property
    def behavior(self) -> str:
        """The name of what is trained. Raises ConfigError where that is more than one behavior."""
        names = list(self._bench.behaviors)
        if len(names) != 1:
            found = f"{', '.join(names[:-1])} and {names[-1]}" if names else "none yet"
            raise ConfigError(f"this Learner has several behaviors, {found}: use learner.behaviors[NAME]")
        return names[0]

    @property
    def folder(self) -> Path:
        """The run's folder, as an absolute path."""
        return self._bench.runtime.folder.path

    @property
    def is_finished(self) -> bool:
        """Whether every behavior has reached its max_steps."""
        return all(behavior.learner.is_finished for behavior in self._bench.behaviors.values())


def _let_go(folder: RunFolder, logs: RunLogs, pid: int) -> None:
    if os.getpid() == pid:  # in a fork the lock is still the parent's
        logs.close_files()
        folder.close()
