"""One behavior of a learner that a Python program holds in its hands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from rl_tui.engine.api.policies import ActingPolicy, seed_or_random
from rl_tui.engine.api.usage import Usage
from rl_tui.engine.api.workbench import Workbench
from rl_tui.engine.config.diagnostics import must_be_one_of
from rl_tui.engine.errors import CheckpointError, ConfigError, ExportError, RlTuiError
from rl_tui.engine.learning.experience_check import require_experience
from rl_tui.engine.learning.given_weights import GivenWeights
from rl_tui.engine.learning.loss_inputs import CustomLoss
from rl_tui.engine.learning.train_step import TrainStepHook
from rl_tui.engine.running import learner as running
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.environments import settings_of
from rl_tui.engine.running.hooks import Hooks, MilestoneHook
from rl_tui.engine.running.hyperparameters import ranges
from rl_tui.engine.session.messages import ExportPolicy, SaveCheckpoint
from rl_tui.engine.specs import Float32, Trajectories

if TYPE_CHECKING:
    from torch import nn

    from rl_tui.engine.learning.optimization import AdamState

Losses: TypeAlias = Mapping[str, float]


class BehaviorLearner:
    """Learns from experience of one behavior; `learner.behaviors` has one for each. Used as its Learner is."""

    def __init__(self, bench: Workbench, usage: Usage, behavior: str):
        self._bench, self._usage, self._name = bench, usage, behavior

    def __repr__(self) -> str:
        return f"<{self.behavior}, step {self.step:,}, update {self.num_updates:,}>"

    def collect(self) -> Trajectories:
        """The next block of experience: about time_horizon steps of each agent, or fewer where an update is due.

        Blocks of other behaviors that come meanwhile are kept for their `collect`.
        """
        with self._usage.turn:
            self._require_usable()
            with self._usage:
                return self._bench.collect(self.behavior)[1]

    def learn(self, experience: Trajectories) -> Losses | None:
        """Learn from a block of experience; the losses where that made an update, None where it needs more.

        Raises ConfigError for experience of another environment, or of a policy with another memory.
        """
        with self._usage.turn:
            self._require_own(experience)
            if self._learner.is_finished:
                raise ConfigError(f"{self.behavior} has reached max_steps ({self.step}) and learns no more")
            before = self._learner.num_updates
            with self._usage:
                self._bench.learn(self.behavior, experience)
            return dict(self._learner.metrics) if self._learner.num_updates > before else None

    def loss(self, experience: Trajectories) -> Losses:
        """The losses of the current networks on this experience. Changes nothing, and draws no random numbers.

        Raises ConfigError as `learn` does.
        """
        with self._usage.turn:
            self._require_own(experience)
            return self._learner.loss(experience)

    def on_train_step(self, hook: TrainStepHook) -> None:
        """Call the hook after every gradient step from now on, with its mini-batch and losses.

        What it raises ends the update and comes out of `run`, with everything saved. Raises ConfigError for what is no
        function, and NotSupportedError for an installed trainer that calls no hooks.
        """
        with self._usage.turn:
            self._require_usable()
            self._learner.add_hooks(Hooks(on_train_step=(hook,)))

    def every(self, interval: int, hook: MilestoneHook) -> None:
        """Call the hook whenever `step` reaches or crosses a multiple of the interval, counted over all restarts.

        What it raises comes out of `run`, with everything saved. Raises ConfigError for an impossible interval, and for
        what is no function.
        """
        with self._usage.turn:
            self._require_usable()
            self._learner.add_hooks(Hooks(every=((interval, hook),)))

    def on_loss(self, loss: CustomLoss) -> None:
        """Add this loss, a torch scalar, to that of every mini-batch from now on; autograd differentiates it.

        `LossInputs` has what it may be computed from; parameters of `modules` count, too. What it raises ends the
        update and comes out of `run`, with everything saved. Raises ConfigError for what is no function, and
        NotSupportedError for a trainer that takes no other loss: SAC has several, of networks that share none.
        """
        with self._usage.turn:
            self._require_usable()
            self._learner.add_loss(loss)

    def remove_hook(self, hook: TrainStepHook | MilestoneHook | CustomLoss) -> None:
        """Call the hook no more, whatever it was added for. Raises ConfigError where it was not added."""
        with self._usage.turn:
            self._require_usable()
            self._learner.remove_hook(hook)

    def policy(self, kind: Literal["greedy", "stochastic"] = "greedy", seed: int | None = None) -> ActingPolicy:
        """The policy as it is now, to act with; it does not change when training continues.

        kind: the likeliest actions, or sampled ones as in training, drawn by `seed`. Raises ConfigError.
        """
        with self._usage.turn:
            self._require_usable()
            if kind not in ("greedy", "stochastic"):
                raise ConfigError(f"kind: {must_be_one_of(('greedy', 'stochastic'), kind)}")
            policy = self._learner.make_policy(kind == "greedy", seed_or_random(seed))
            values = self._learner.trainer.value_function()
            return ActingPolicy(policy, self._own.spec, self.step, is_greedy=kind == "greedy", values=values)

    def weights(self) -> dict[str, Float32]:
        """A copy of the policy's parameters, and of its normalizer's, by their names in a raw policy file."""
        with self._usage.turn:
            self._require_usable()
            return dict(self._learner.weights.newest().arrays)

    def load_weights(self, weights: GivenWeights) -> None:
        """Act and learn on with these, named as `weights` has them; critics and optimizer stay as they are.

        Raises ConfigError with a line for each that is missing, unknown or of another shape.
        """
        with self._usage.turn:
            self._require_usable()
            if self._usage.is_busy:
                raise RlTuiError("a hook cannot load weights: it is called while the learner learns")
            self._learner.load_weights(weights)

    @property
    def modules(self) -> Mapping[str, nn.Module]:
        """The networks by name, as torch modules that share memory with what trains, also where numpy computes.

        Raises NotSupportedError for an installed trainer that does not show them.
        """
        with self._usage.turn:
            self._require_usable()
            return self._learner.trainer.modules()

    @property
    def optimizers(self) -> Mapping[str, AdamState]:
        """The optimizers' parameters and moments by name, as tensors that share memory with what trains.

        Raises NotSupportedError as `modules` does.
        """
        with self._usage.turn:
            self._require_usable()
            return self._learner.trainer.optimizers()

    def save(self) -> Path:
        """Save a checkpoint now; its folder. Raises CheckpointError."""
        with self._usage.turn:
            self._require_usable()
            is_ok, message = self._bench.carry_out(self.behavior, SaveCheckpoint())
            if not is_ok:
                raise CheckpointError(message)
            return Path(message)

    def export(self) -> dict[str, Path]:
        """Export the policy now; the file in policies/ of each kind. Raises ExportError."""
        with self._usage.turn:
            self._require_usable()
            is_ok, message = self._bench.carry_out(self.behavior, ExportPolicy())
            if not is_ok:
                raise ExportError(message)
            folder = self._bench.runtime.files[self.behavior].folder
            kinds = settings_of(self._bench.runtime.config, self.behavior).export_policies
            return {kind: folder.policy(self.step, kind) for kind in kinds}

    @property
    def behavior(self) -> str:
        """The name of what is trained."""
        return self._name

    @property
    def resumed_from(self) -> Path | None:
        """The checkpoint that was restored at the start; None where training began from scratch."""
        return self._bench.runtime.resumed_from.get(self.behavior)

    @property
    def step(self) -> int:
        """Steps of agents that were learned from, over all restarts."""
        return self._learner.step

    @property
    def num_updates(self) -> int:
        """Iterations since the beginning of training, over all restarts."""
        return self._learner.num_updates

    @property
    def losses(self) -> Losses:
        """Of the newest update, by ML-Agents' tag; none before the first one of this process."""
        return dict(self._learner.metrics)

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
        allowed = ranges(settings_of(self._bench.runtime.config, self.behavior), values)
        return {name: int(value) if allowed[name].is_whole else value for name, value in values.items()}

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Use that value from the next update on, also after a restart. Raises ConfigError."""
        with self._usage.turn:
            self._require_usable()
            self._learner.hyperparameters.set(name, value, self.step)

    @property
    def _own(self) -> Behavior:
        return self._bench.behaviors[self.behavior]

    @property
    def _learner(self) -> running.Learner:
        return self._own.learner

    def _require_own(self, experience: Trajectories) -> None:
        self._require_usable()
        require_experience(experience, self._own.spec, self._own.policy.memory_size)

    def _require_usable(self) -> None:
        self._usage.require_usable([self._own])
