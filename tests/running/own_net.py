"""A trainer with a network and policies of its own, as a package has it: REINFORCE (Williams 1992), one linear layer.

Shapes: N rows, D numbers observed, C choices of the one branch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.hyperparameters import Hyperparameters
from rl_tui.engine.config.types import Positive, PositiveWhole
from rl_tui.engine.learning.policy_module import PolicyModule, PolicyOutputs
from rl_tui.engine.learning.random_generators import generator_state, load_generator
from rl_tui.engine.learning.trainer import Metrics, Samples, Trainer, always
from rl_tui.engine.specs import (
    Actions,
    BehaviorSpec,
    Choice,
    DecisionSteps,
    Float32,
    Observations,
    Policy,
    State,
    Trajectories,
    Weights,
)


class OwnSettings(Hyperparameters):
    """REINFORCE with one linear layer."""

    implementation: ClassVar = "own_net:OwnTrainer"
    changeable: ClassVar = ("learning_rate",)

    learning_rate: Positive = 0.1
    buffer_size: PositiveWhole = 64


def seen(observations: Observations) -> Float32:
    """f32[N, D + 1], with a one for the bias."""
    return np.concatenate([*observations, np.ones((len(observations[0]), 1), np.float32)], 1)


class OwnPolicy:
    """Acts by a table f32[C, D + 1]."""

    memory_size = 0

    def __init__(self, seed: int, is_greedy: bool):
        self.version = -1
        self._random = np.random.default_rng(seed)
        self._is_greedy = is_greedy
        self._table = np.empty((0, 0), np.float32)

    def load(self, weights: Weights) -> None:
        """The table."""
        self._table, self.version = weights.arrays["table"], weights.version

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """See Policy."""
        logits = seen(decisions.observations) @ self._table.T
        if decisions.action_mask is not None:
            logits = np.where(decisions.action_mask, logits, np.float32(-1e8))
        log_probs = logits - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True))
        log_probs -= logits.max(1, keepdims=True)
        noise = 0 if self._is_greedy else self._random.gumbel(size=logits.shape)
        chosen = (log_probs + noise).argmax(1)[:, None]
        nothing = np.zeros((len(logits), 0), np.float32)
        return Choice(Actions(nothing, chosen), nothing, np.take_along_axis(log_probs, chosen, 1))

    def state(self) -> State:
        """Of the generator."""
        return generator_state(self._random)

    def load_state(self, state: State) -> None:
        """Back."""
        load_generator(self._random, state)


class OwnModule(PolicyModule):
    """The same for exports."""

    def __init__(self, spec: BehaviorSpec, table: Float32):
        super().__init__(spec)
        self.table = nn.Parameter(torch.zeros(table.shape))

    def load(self, weights: Weights) -> None:
        """The table."""
        self.table.data = torch.tensor(weights.arrays["table"])

    def forward(self, observations: Sequence[Tensor], memories: Tensor) -> PolicyOutputs:
        """See PolicyModule."""
        logits = torch.cat(list(observations), 1) @ self.table[:, :-1].T + self.table[:, -1]
        return PolicyOutputs(logits[:, :0], logits[:, :0], logits, memories)


class OwnTrainer(Trainer):
    """Trains the table."""

    is_on_policy = True

    def __init__(self, spec: BehaviorSpec, config: BehaviorConfig, seed: int, device: torch.device):
        assert isinstance(config.hyperparameters, OwnSettings)
        width = sum(observation.shape[0] for observation in spec.observations)
        self._spec, self._hyper = spec, config.hyperparameters
        self._table = np.random.default_rng(seed).normal(0, 0.1, (spec.actions.branches[0], width + 1))
        self._blocks: list[Trajectories] = []
        self.rows_per_update, self.time_horizon = self._hyper.buffer_size, config.time_horizon
        self.num_parameters, self.num_updates = self._table.size, 0

    def hyperparameters(self) -> Mapping[str, float]:
        """See Trainer."""
        return self._hyper.changeable_values()

    def set_hyperparameter(self, name: str, value: float) -> None:
        """See Trainer."""
        self._hyper = self._hyper.with_value(name, value)

    def add(self, block: Trajectories) -> Samples:
        """See Trainer."""
        self._blocks.append(block)
        return {}

    def is_ready(self) -> bool:
        """See Trainer."""
        return sum(block.num_rows for block in self._blocks) >= self._hyper.buffer_size

    def update(self, step: int, should_continue: Callable[[], bool] = always) -> Metrics:
        """One step along the gradient."""
        losses = []
        for block in self._blocks:
            losses.append(self._loss(block)[0])
            self._table -= self._hyper.learning_rate * self._loss(block)[1]
        self._blocks, self.num_updates = [], self.num_updates + 1
        return {"Losses/Policy Loss": float(np.mean(losses))}

    def loss(self, block: Trajectories) -> Metrics:
        """See Trainer."""
        return {"Losses/Policy Loss": self._loss(block)[0]}

    def _loss(self, block: Trajectories) -> tuple[float, np.ndarray[Any, Any]]:
        """The loss, and its gradient f64[C, D + 1]."""
        table = torch.tensor(self._table, requires_grad=True)
        log_probs = (torch.tensor(seen(block.observations), dtype=torch.float64) @ table.T).log_softmax(1)
        taken = log_probs.gather(1, torch.tensor(block.discrete_actions))[:, 0]
        loss = -(taken * torch.tensor(block.rewards - block.rewards.mean())).mean()
        (gradient,) = torch.autograd.grad(loss, table)
        return loss.item(), gradient.numpy()

    def make_policy(self, seed: int, is_greedy: bool = False) -> Policy:
        """See Trainer."""
        policy = OwnPolicy(seed, is_greedy)
        policy.load(self.weights())
        return policy

    def policy_module(self) -> PolicyModule:
        """See Trainer."""
        return OwnModule(self._spec, self._table.astype(np.float32))

    def weights(self) -> Weights:
        """The table."""
        return Weights(self.num_updates, {"table": self._table.astype(np.float32)})

    def state(self) -> State:
        """The table, and how often it was changed."""
        return State({"table": self._table.copy()}, {"num_updates": self.num_updates})

    def load(self, state: State) -> None:
        """See Trainer."""
        self._blocks = []
        self._table = np.array(state.tensors["table"], np.float64)
        self.num_updates = int(state.number("num_updates"))
