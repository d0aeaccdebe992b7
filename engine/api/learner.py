"""A learner that a Python program holds in its hands."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from rl_tui.engine.api.environments import EnvironmentLike
from rl_tui.engine.api.plan import plan_learner
from rl_tui.engine.api.settings import SettingsLike
from rl_tui.engine.api.workbench import Workbench
from rl_tui.engine.errors import CheckpointError, ConfigError, ExportError, RlTuiError
from rl_tui.engine.learning.trainer import Metrics
from rl_tui.engine.running.logs import RunLogs
from rl_tui.engine.session.messages import ExportPolicy, SaveCheckpoint
from rl_tui.engine.specs import Trajectories
from rl_tui.engine.storage.run_folder import RunFolder

Losses: TypeAlias = Mapping[str, float]


class Learner:
    """Trains one behavior in the caller's thread, as a run with one behavior does, and saves it in a run's folder.

    Everything that a run does at intervals (summaries, checkpoints, exports, evaluations) happens here, too. A method
    that raises an RlTuiError because training failed has saved everything before. After Ctrl-C, or another exception
    from outside, the learner can be used further: an update that was interrupted is undone, and environments begin new
    episodes.
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
    ):
        """What `folder` holds is restored: training continues from its newest checkpoint.

        settings: the path of a file, the name of a preset, a mapping, a BehaviorConfig or a RunConfig. env: an
        environment, its name, or a function that makes one and is called num_envs times; None for the one that the
        settings name. The keywords win over the settings. Raises RlTuiError.
        """
        self._bench = Workbench(plan_learner(settings, env, folder, behavior, seed, num_envs, device))
        self._learner = self._bench.behavior.learner
        self._pid = os.getpid()
        self._is_closed = False
        self._is_interrupted = False
        self._left_at = time.monotonic()
        # One that is forgotten without being closed is like a process that was killed: its lock must not stay.
        weakref.finalize(self, _let_go, self._bench.folder, self._bench.logs, self._pid).atexit = False

    def run(self, iterations: int = 1) -> Losses:
        """Make that many updates, with the experience they need; the losses of the last one, by ML-Agents' tag.

        Fewer where max_steps is reached: everything is then saved.
        """
        with self._working():
            if iterations < 0:
                raise ConfigError(f"iterations: must be at least 0, got {iterations}")
            bench, learner = self._bench, self._learner
            target = learner.num_updates + iterations
            while learner.num_updates < target and not learner.is_finished:
                bench.learn(bench.collect())
        return dict(learner.metrics)

    def collect(self) -> Trajectories:
        """The next block of experience: what an update still lacks, at most 2,048 steps or one summary_freq."""
        with self._working():
            return self._bench.collect()

    def learn(self, experience: Trajectories) -> Losses | None:
        """Learn from a block of experience; the losses where that made an update, None where it needs more."""
        with self._working():
            if self._learner.is_finished:
                raise ConfigError(f"{self.behavior} has reached max_steps ({self.step}) and learns no more")
            before = self._learner.num_updates
            self._bench.learn(experience)
        return dict(self._learner.metrics) if self._learner.num_updates > before else None

    def loss(self, experience: Trajectories) -> Losses:
        """The losses of the current networks on this experience. Changes nothing, and draws no random numbers."""
        with self._working():
            losses: Metrics = self._learner.loss(experience)
        return losses

    def save(self) -> Path:
        """Save a checkpoint now; its folder. Raises CheckpointError."""
        with self._working():
            is_ok, message = self._bench.carry_out(SaveCheckpoint())
        if not is_ok:
            raise CheckpointError(message)
        return Path(message)

    def export(self) -> dict[str, Path]:
        """Export the policy now; the file in policies/ of each kind. Raises ExportError."""
        with self._working():
            is_ok, message = self._bench.carry_out(ExportPolicy())
        if not is_ok:
            raise ExportError(message)
        folder, kinds = self._bench.files.folder, self._bench.plan.settings.export_policies
        return {kind: folder.policy(self.step, kind) for kind in kinds}

    def close(self) -> None:
        """Save a checkpoint and the policies, and give back environments and folder. Harmless when called twice.

        An environment that the caller made is left as it is. Raises CheckpointError where the disk refused.
        """
        if self._is_closed or self._pid != os.getpid():
            return
        self._is_closed = True
        self._bench.close()

    def __enter__(self) -> Learner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def behavior(self) -> str:
        """The name of what is trained."""
        return self._learner.behavior

    @property
    def folder(self) -> Path:
        """The run's folder, as an absolute path."""
        return self._bench.folder.path

    @property
    def resumed_from(self) -> Path | None:
        """The checkpoint that was restored at the start; None where training began from scratch."""
        return self._bench.resumed_from

    @property
    def step(self) -> int:
        """Steps of agents that were learned from, over all restarts."""
        return self._learner.step

    @property
    def num_updates(self) -> int:
        """Iterations since the beginning of training, over all restarts."""
        return self._learner.num_updates

    @property
    def mean_return(self) -> float | None:
        """Over the newest hundred episodes of training; None before the first has ended."""
        return self._learner.mean_return

    @property
    def is_finished(self) -> bool:
        """Whether max_steps is reached."""
        return self._learner.is_finished

    @property
    def hyperparameters(self) -> Mapping[str, float]:
        """What `set_hyperparameter` can change, and its present values."""
        return dict(self._learner.hyperparameters.values)

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Use that value from the next update on, also after a restart. Raises ConfigError."""
        with self._working():
            self._learner.hyperparameters.set(name, value, self.step)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """What training raises is saved first; after anything else, environments begin new episodes."""
        self._require_usable()
        bench = self._bench
        bench.waiting_seconds += time.monotonic() - self._left_at
        if self._is_interrupted:
            bench.restart()
            self._is_interrupted = False
        try:
            yield
        except ConfigError:
            raise
        except RlTuiError as error:
            bench.fail(error)
            raise
        except BaseException:
            self._is_interrupted = True
            raise
        finally:
            self._left_at = time.monotonic()

    def _require_usable(self) -> None:
        if self._pid != os.getpid():
            raise RlTuiError("a Learner belongs to the process that made it, and cannot be used in a fork of that")
        if self._is_closed:
            raise RlTuiError(f"{self.folder}: this Learner is closed; a new one continues from its last checkpoint")
        if self._learner.failure is not None:
            text = f"training has failed, and a new Learner continues from the last checkpoint: {self._learner.failure}"
            raise RlTuiError(text) from self._learner.failure


def _let_go(folder: RunFolder, logs: RunLogs, pid: int) -> None:
    if os.getpid() == pid:  # in a fork the lock is still the parent's
        logs.close_files()
        folder.close()
