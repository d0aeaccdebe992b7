"""The interface of a training algorithm."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, get_type_hints

import numpy as np
import torch
from torch import nn

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import CheckpointError, NonFiniteError, NotSupportedError, PluginError
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.given_weights import GivenWeights
from rl_tui.engine.learning.installed_plugin import checked
from rl_tui.engine.learning.loss_inputs import CustomLoss
from rl_tui.engine.learning.optimization import AdamState
from rl_tui.engine.learning.policy_copies import MakePolicy, PolicyCopies
from rl_tui.engine.learning.policy_module import PolicyModule
from rl_tui.engine.learning.sync import ONE_RANK, Sync
from rl_tui.engine.learning.train_step import TrainStepHook
from rl_tui.engine.learning.value_function import Values, no_values
from rl_tui.engine.specs import BehaviorSpec, Policy, State, Trajectories, Weights

Metrics: TypeAlias = Mapping[str, float]  # by ML-Agents' tag
Samples: TypeAlias = Mapping[str, Sequence[float]]  # the same, each number counting as much as any other


def always() -> bool:
    """The default `should_continue`: an update is never ended early."""
    return True


def require_finite(block: Trajectories) -> None:
    """Raise NonFiniteError naming the agent if a reward is not a finite number."""
    rewards = block.total_rewards
    if not np.isfinite(rewards).all():
        row = int(np.flatnonzero(~np.isfinite(rewards))[0])
        agent = int(np.repeat(block.agent_ids, block.lengths)[row])
        raise NonFiniteError(f"agent {agent} got the reward {rewards[row]}; the policy was not changed")


class Trainer(Protocol):
    """Trains one behavior. Used by one thread; knows no thread, file, clock or event.

    `make_trainer` makes it with the behavior's spec and configuration, a seed and a device, and a `Sync` where several
    ranks learn together, whose updates then do. A class that derives from
    this one has defaults for what a trainer without a replay buffer has no use for.
    """

    is_on_policy: bool  # experience must come from the newest policy, unless the user allows otherwise
    rows_per_update: int  # an update is due after at least this many rows
    time_horizon: int  # the longest segment, in steps
    num_parameters: int  # how many numbers are trained
    num_updates: int  # since the beginning of training, over all resumes
    cuts_at_update: bool = False  # all segments of an update end where it begins, so that no group mate's is unfinished
    held_out_loss: float | None = None  # of the newest update, on what it does not learn from; the less, the better
    replay_bytes: int = 0  # memory of the replay buffer when it is full; 0 without one

    @abstractmethod
    def hyperparameters(self) -> Mapping[str, float]:
        """Values that `set_hyperparameter` may change, by their names in the configuration.

        Of a scheduled value it is the one that the schedule starts from.
        """

    @abstractmethod
    def set_hyperparameter(self, name: str, value: float) -> None:
        """Use that value from the next update on. It is not part of `state()`: the caller has to save it.

        Raises ConfigError for an unknown name, or a value that a configuration file could not have.
        """

    @abstractmethod
    def add(self, block: Trajectories) -> Samples:
        """Add experience; returns samples of metrics. Raises NonFiniteError naming what is not finite."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether `update` has enough to learn from."""

    @abstractmethod
    def update(self, step: int, should_continue: Callable[[], bool] = always) -> Metrics:
        """Learn from what was added, with schedules read at `step`; returns metrics.

        should_continue: called with each mini-batch, where other threads may use the interpreter. When it returns
        False, that mini-batch is the last of the update, which ends with what it has learned.

        Raises NonFiniteError after restoring the state before the update.
        """

    @abstractmethod
    def loss(self, block: Trajectories) -> Metrics:
        """The losses of the current networks on this experience. Changes nothing and draws nothing."""

    @abstractmethod
    def make_policy(self, seed: int, is_greedy: bool = False) -> Policy:
        """A new policy that acts with `weights()`, drawing from its own generator.

        is_greedy: it takes the likeliest actions instead of drawing them.
        """

    def act_on(self, device: torch.device) -> None:
        """Have the policies that `make_policy` makes from now on compute there. Without this method they compute where
        the trainer chooses."""

    def policy_maker(self, seed: int) -> MakePolicy:
        """Makes policies like those of `make_policy` in any thread, whatever this trainer does meanwhile.

        They draw by `seed`, and act once weights are loaded into them, on the CPU. Never called in an update.
        """
        return PolicyCopies(self.make_policy, seed)

    def policy_module(self) -> PolicyModule:
        """The policy as a torch module, for exports. Called before training begins.

        Raises NotSupportedError where a policy cannot be exported.
        """
        raise NotSupportedError(f"{type(self).__name__} has no policy_module()")

    def value_function(self) -> Values:
        """What the critic expects with the parameters that it has now; `no_values` where none can say."""
        return no_values(f"{type(self).__name__} has no critic that estimates values of observations")

    @abstractmethod
    def weights(self) -> Weights:
        """A copy of the policy's parameters."""

    def modules(self) -> Mapping[str, nn.Module]:
        """What it trains, by name, sharing memory with what trains. Raises NotSupportedError."""
        raise NotSupportedError(f"{type(self).__name__} does not show its modules")

    def optimizers(self) -> Mapping[str, AdamState]:
        """The same of its optimizers."""
        raise NotSupportedError(f"{type(self).__name__} does not show its optimizers")

    def load_weights(self, arrays: GivenWeights, num_rows: int = 0) -> None:
        """Let the policy continue with these parameters, named as in `weights`; nothing else of the trainer changes.

        num_rows: on how many rows the numbers of a normalizer are based, where that is known. Raises ConfigError with
        a line for everything that is missing, unknown or of another shape; NotSupportedError where it cannot.
        """
        raise NotSupportedError(f"{type(self).__name__} cannot load weights")

    @abstractmethod
    def state(self) -> State:
        """A copy of everything that `load` needs to continue as if training had never stopped.

        Its arrays have the same names and shapes from the beginning.
        """

    @abstractmethod
    def load(self, state: State) -> None:
        """Restore `state`, which the caller has checked against `state()`.

        Drops rows that wait for an update, and whatever the replay buffer holds that is newer than `state`.
        """

    def use_demonstrations(self, demonstrations: Mapping[str, Demonstrations]) -> None:
        """Learn from these, by their paths in the settings. Called once, before the first update.

        Raises NotSupportedError where it cannot do what the settings ask for.
        """

    def use_teacher(self, teacher: Policy) -> None:
        """Learn to act as this policy does, which has no memory. Called once, before any experience is added, where the
        settings have a `teacher_path`."""
        raise NotSupportedError(f"{type(self).__name__} does not learn from a teacher")

    def on_train_step(self, hook: TrainStepHook) -> None:
        """Call the hook after every gradient step from now on; what it raises ends the update.

        Raises NotSupportedError where the trainer calls no hooks.
        """
        raise NotSupportedError(f"{type(self).__name__} calls no hooks after its train steps")

    def on_loss(self, loss: CustomLoss) -> None:
        """Add this loss to that of every mini-batch from now on, differentiated by autograd.

        Raises NotSupportedError where the trainer takes none.
        """
        raise NotSupportedError(f"on_loss: {type(self).__name__} takes no custom loss, PPO does")

    def remove_loss(self, loss: CustomLoss) -> None:
        """Add it no more."""
        raise NotSupportedError(f"on_loss: {type(self).__name__} takes no custom loss, PPO does")

    def replay(self) -> State | None:
        """A copy of the replay buffer, None if there is none or `save_replay_buffer` is off."""
        return None

    def load_replay(self, replay: State) -> None:
        """Restore a replay buffer. Raises CheckpointError, and changes nothing, when it does not fit."""
        raise CheckpointError("this trainer learns from new experience only and has no replay buffer")


def require_trainer(name: str) -> type:
    """The class that `trainer_type` names, with all methods that it must define.

    Raises PluginError naming the class and everything that it lacks, NotSupportedError.
    """
    kind = registry.implementation("trainers", name)
    methods = {*abstract_methods(Trainer), *abstract_methods(kind)}  # of what it derives from, too
    _require(kind, [f"{method}()" for method in sorted(methods) if _is_missing(getattr(kind, method, None))])
    return kind


def abstract_methods(kind: type) -> frozenset[str]:
    """The methods that a class leaves to those that derive from it."""
    found: frozenset[str] = getattr(kind, "__abstractmethods__", frozenset())
    return found


def make_trainer(
    spec: BehaviorSpec, config: BehaviorConfig, seed: int, device: torch.device, sync: Sync = ONE_RANK
) -> Trainer:
    """The trainer that `trainer_type` names. sync: with which ranks it learns, all of which have the same
    configuration and seed, and change the same hyperparameters between the same updates.

    Raises PluginError as `require_trainer` does, and for a constructor that fails, NotSupportedError, ConfigError,
    MemoryError.
    """
    kind = require_trainer(config.trainer_type)
    default = Trainer.use_demonstrations
    if config.behavioral_cloning is not None and getattr(kind, "use_demonstrations", default) is default:
        raise NotSupportedError(f"behavioral_cloning: {kind.__qualname__} does not learn from demonstrations")
    with registry.blaming("trainers", config.trainer_type, "its constructor"):
        if sync.size == 1:
            trainer: Trainer = kind(spec, config, seed, device)
        else:
            _require_ranks(kind, config.trainer_type)
            trainer = kind(spec, config, seed, device, sync)
    attributes = get_type_hints(Trainer)
    with registry.blaming("trainers", config.trainer_type, "an attribute"):
        _require(kind, [name for name in attributes if not hasattr(trainer, name)])
    counts = [name for name, of in attributes.items() if of is int]
    return checked("trainers", config.trainer_type, trainer, Trainer, counts)


def _require_ranks(kind: type, name: str) -> None:
    """Raise NotSupportedError for a trainer that can only learn alone."""
    if "sync" not in inspect.signature(kind).parameters:
        whose = registry.title("trainers", name)
        raise NotSupportedError(f"{whose}: cannot learn on several ranks, {kind.__qualname__} takes no sync")


def _is_missing(method: object) -> bool:
    return not callable(method) or getattr(method, "__isabstractmethod__", False)


def _require(kind: type, missing: list[str]) -> None:
    if missing:
        raise PluginError(f"trainers: {kind.__module__}.{kind.__qualname__} must have {', '.join(missing)}")
