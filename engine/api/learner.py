"""A learner that a Python program holds in its hands."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeAlias

from rl_tui.engine.api.environments import EnvironmentLike
from rl_tui.engine.api.experience_check import require_experience
from rl_tui.engine.api.plan import plan_learner
from rl_tui.engine.api.policies import ActingPolicy, is_whole, seed_or_random
from rl_tui.engine.api.settings import SettingsLike
from rl_tui.engine.api.turns import Turn
from rl_tui.engine.api.wording import of_learner, plain_failures, worded
from rl_tui.engine.api.workbench import Workbench
from rl_tui.engine.config.diagnostics import must_be_one_of
from rl_tui.engine.errors import CheckpointError, ConfigError, ExportError, HookError, RlTuiError
from rl_tui.engine.learning.given_weights import GivenWeights
from rl_tui.engine.learning.train_step import TrainStepHook
from rl_tui.engine.running.hooks import Hooks, MilestoneHook
from rl_tui.engine.running.hyperparameters import ranges
from rl_tui.engine.running.logs import RunLogs
from rl_tui.engine.session.messages import ExportPolicy, SaveCheckpoint
from rl_tui.engine.specs import Float32, Trajectories
from rl_tui.engine.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from torch import nn

    from rl_tui.engine.learning.optimization import AdamState

Losses: TypeAlias = Mapping[str, float]


class Learner:
    """Trains one behavior in the caller's thread, as a run with one behavior does, and saves it in a run's folder.

    Everything that a run does at intervals (summaries, checkpoints, exports, evaluations) happens here, too. A method
    that raises an RlTuiError because training failed has saved everything before. After Ctrl-C, or another exception
    from outside, the learner can be used further: an update that was interrupted is undone, and environments begin new
    episodes. Threads may use it in turn: a call during another thread's is an RlTuiError.
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
        settings name. initialize_from: what a new folder begins with: the path of a checkpoint, of a run's folder or of
        a raw policy. The keywords win over the settings. Raises RlTuiError.
        """
        with plain_failures(), worded(of_learner):
            plan = plan_learner(settings, env, folder, behavior, seed, num_envs, device, initialize_from)
            self._bench = Workbench(plan)
        self._learner = self._bench.behavior.learner
        self._pid = os.getpid()
        self._turn = Turn()
        self._is_closed = False
        self._is_busy = False  # training, from which only hooks call
        self._is_interrupted = False
        self._left_at = time.monotonic()
        # One that is forgotten without being closed is like a process that was killed: its lock must not stay.
        weakref.finalize(self, _let_go, self._bench.folder, self._bench.logs, self._pid).atexit = False

    def __repr__(self) -> str:
        place = f"{self.behavior} in {self.folder}, step {self.step:,}"
        return f"<{'closed ' if self._is_closed else ''}Learner of {place}, update {self.num_updates:,}>"

    def __reduce_ex__(self, protocol: object) -> str:
        raise TypeError(
            "a Learner cannot be copied or pickled, since it has locked its folder; see save() and policy()"
        )

    def run(self, iterations: int = 1) -> Losses:
        """Make that many updates, with the experience they need; the losses of the last one, by ML-Agents' tag.

        Fewer where max_steps is reached: everything is then saved.
        """
        if not is_whole(iterations) or iterations < 0:
            raise ConfigError(f"iterations: must be a whole number of at least 0, got {iterations!r}")
        with self._turn, _Training(self._begin, self._end):
            bench, learner = self._bench, self._learner
            target = learner.num_updates + iterations
            while learner.num_updates < target and not learner.is_finished:
                bench.learn(bench.collect())
        return dict(learner.metrics)

    def collect(self) -> Trajectories:
        """The next block of experience: about time_horizon steps of each agent, or fewer where an update is due."""
        with self._turn, _Training(self._begin, self._end):
            return self._bench.collect()

    def learn(self, experience: Trajectories) -> Losses | None:
        """Learn from a block of experience; the losses where that made an update, None where it needs more.

        Raises ConfigError for experience of another environment, or of a policy with another memory.
        """
        with self._turn:
            self._require_usable()
            self._require_own(experience)
            if self.is_finished:
                raise ConfigError(f"{self.behavior} has reached max_steps ({self.step}) and learns no more")
            with _Training(self._begin, self._end):
                before = self._learner.num_updates
                self._bench.learn(experience)
            return dict(self._learner.metrics) if self._learner.num_updates > before else None

    def loss(self, experience: Trajectories) -> Losses:
        """The losses of the current networks on this experience. Changes nothing, and draws no random numbers.

        Raises ConfigError as `learn` does.
        """
        with self._turn:
            self._require_usable()
            self._require_own(experience)
            return self._learner.loss(experience)

    def on_train_step(self, hook: TrainStepHook) -> None:
        """Call the hook after every gradient step from now on, with its mini-batch and losses.

        What it raises ends the update and comes out of `run`, with everything saved. Raises ConfigError for what is no
        function, and NotSupportedError for an installed trainer that calls no hooks.
        """
        with self._turn:
            self._require_usable()
            self._learner.add_hooks(Hooks(on_train_step=(hook,)))

    def every(self, interval: int, hook: MilestoneHook) -> None:
        """Call the hook whenever `step` reaches or crosses a multiple of the interval, counted over all restarts.

        What it raises comes out of `run`, with everything saved. Raises ConfigError for an impossible interval, and for
        what is no function.
        """
        with self._turn:
            self._require_usable()
            self._learner.add_hooks(Hooks(every=((interval, hook),)))

    def remove_hook(self, hook: TrainStepHook | MilestoneHook) -> None:
        """Call the hook no more, whatever it was added for. Raises ConfigError where it was not added."""
        with self._turn:
            self._require_usable()
            self._learner.remove_hook(hook)

    def policy(self, kind: Literal["greedy", "stochastic"] = "greedy", seed: int | None = None) -> ActingPolicy:
        """The policy as it is now, to act with; it does not change when training continues.

        kind: the likeliest actions, or sampled ones as in training, drawn by `seed`. Raises ConfigError.
        """
        with self._turn:
            self._require_usable()
            if kind not in ("greedy", "stochastic"):
                raise ConfigError(f"kind: {must_be_one_of(('greedy', 'stochastic'), kind)}")
            policy = self._bench.make_policy(kind == "greedy", seed_or_random(seed))
            values = self._learner.value_function()
            return ActingPolicy(policy, self._bench.spec, self.step, is_greedy=kind == "greedy", values=values)

    def weights(self) -> dict[str, Float32]:
        """A copy of the policy's parameters, and of its normalizer's, by their names in a raw policy file."""
        with self._turn:
            self._require_usable()
            return dict(self._learner.weights.newest().arrays)

    def load_weights(self, weights: GivenWeights) -> None:
        """Act and learn on with these, named as `weights` has them; critics and optimizer stay as they are.

        Raises ConfigError with a line for each that is missing, unknown or of another shape.
        """
        with self._turn:
            self._require_usable()
            if self._is_busy:
                raise RlTuiError("a hook cannot load weights: it is called while the learner learns")
            self._learner.load_weights(weights)
            self._bench.act_with_newest()

    @property
    def modules(self) -> Mapping[str, nn.Module]:
        """The networks by name, as torch modules that share memory with what trains, also where numpy computes.

        Raises NotSupportedError for an installed trainer that does not show them.
        """
        with self._turn:
            self._require_usable()
            return self._learner.trainer.modules()

    @property
    def optimizers(self) -> Mapping[str, AdamState]:
        """The optimizers' parameters and moments by name, as tensors that share memory with what trains.

        Raises NotSupportedError as `modules` does.
        """
        with self._turn:
            self._require_usable()
            return self._learner.trainer.optimizers()

    def save(self) -> Path:
        """Save a checkpoint now; its folder. Raises CheckpointError."""
        with self._turn:
            self._require_usable()
            is_ok, message = self._bench.carry_out(SaveCheckpoint())
            if not is_ok:
                raise CheckpointError(message)
            return Path(message)

    def export(self) -> dict[str, Path]:
        """Export the policy now; the file in policies/ of each kind. Raises ExportError."""
        with self._turn:
            self._require_usable()
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
        with self._turn:
            if self._is_busy:
                raise RlTuiError("a hook cannot close its learner: an exception ends training")
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
        """What `set_hyperparameter` can change, and its present values; those that must be whole are int."""
        values = self._learner.hyperparameters.values
        allowed = ranges(self._bench.plan.settings.hyperparameters, values)
        return {name: int(value) if allowed[name].is_whole else value for name, value in values.items()}

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Use that value from the next update on, also after a restart. Raises ConfigError."""
        with self._turn:
            self._require_usable()
            self._learner.hyperparameters.set(name, value, self.step)

    def _begin(self) -> None:
        """Training begins. After an interruption, environments begin new episodes."""
        if self._is_busy:
            raise RlTuiError("a hook cannot train: it is called while the learner learns")
        self._require_usable()
        self._bench.waiting_seconds += time.monotonic() - self._left_at
        if self._is_interrupted:
            self._bench.restart()
            self._is_interrupted = False
        self._is_busy = True

    def _end(self, error: BaseException | None) -> None:
        """Training has ended; what it raised is saved first. Raises what a hook raised."""
        try:
            if isinstance(error, HookError):
                raise self._bench.failed_hook(error) from None
            if isinstance(error, RlTuiError):
                self._bench.fail(error)
            elif error is not None:
                self._is_interrupted = True
        finally:
            self._left_at = time.monotonic()
            self._is_busy = False

    def _require_own(self, experience: Trajectories) -> None:
        require_experience(experience, self._bench.spec, self._bench.behavior.policy.memory_size)

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


class _Training:
    """Calls `begin` and `end`. Not a generator, through which a StopIteration of a hook would not pass."""

    def __init__(self, begin: Callable[[], None], end: Callable[[BaseException | None], None]):
        self._begin, self._end = begin, end

    def __enter__(self) -> None:
        self._begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(error)
