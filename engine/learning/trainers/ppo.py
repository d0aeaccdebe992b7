"""Proximal policy optimization (Schulman et al. 2017), with ML-Agents' defaults.

Shapes: N rows of a rollout, B rows of a mini-batch, D feature columns, A continuous dimensions, K branches, S streams.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
import torch

from engine import registry
from engine.errors import NonFiniteError
from engine.learning.buffers import Rollout, RolloutBuffer, flat_observations, minibatches
from engine.learning.generators import generator_state, load_generator
from engine.learning.hyperparameters import changeable, with_value
from engine.learning.networks.actor_critic import Layout, make_actor_critic
from engine.learning.networks.normalizer import Normalizer
from engine.learning.optimization import GradientStep
from engine.learning.policies import VectorPolicy
from engine.learning.returns import gae
from engine.learning.rewards.base import RewardSignal, RewardSignalKind
from engine.learning.schedules import MIN_BETA, MIN_EPSILON, MIN_LEARNING_RATE, scheduled
from engine.learning.surrogate import Batch, Coefficients, Loss, surrogate_loss
from engine.learning.trainers.base import Metrics, nothing
from engine.settings import BehaviorConfig, PPOSettings
from engine.specs import BehaviorSpec, Bool, Ending, Float32, Int64, State, Trajectories, Weights

Array: TypeAlias = Any  # numpy array on the CPU, torch tensor elsewhere
CHANGEABLE = (  # while it trains: nothing that shapes the network or the rollout
    "learning_rate",
    "beta",
    "epsilon",
    "lambd",
    "num_epoch",
    "value_coefficient",
    "target_kl",
)
TERMS = ("total", "policy", "value", "entropy", "divergence", "clipped")  # of a loss, that are told
NORMALIZED_ADVANTAGE_EPSILON = 1e-10  # ML-Agents; keeps a constant advantage finite


class PPOTrainer:
    """Owns networks, optimizer, normalizer, rollout and the generator that shuffles it."""

    is_on_policy = True

    def __init__(self, spec: BehaviorSpec, config: BehaviorConfig, seed: int, device: torch.device):
        assert isinstance(config.hyperparameters, PPOSettings)
        columns = sum(math.prod(observation.shape) for observation in spec.observations)
        self._spec = spec
        self._config = config
        self._hyper = config.hyperparameters
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._signals = reward_signals(config)
        self._network = make_actor_critic(self._layout(columns), self._random, device)
        self._step = GradientStep(self._network, self._hyper.adam_epsilon, self._hyper.max_grad_norm)
        self._normalizer = Normalizer(columns) if config.network_settings.normalize else None
        self._rollout = RolloutBuffer()
        self._num_updates = 0
        self.rows_per_update = self._hyper.buffer_size

    def _layout(self, columns: int) -> Layout:
        network = self._config.network_settings
        return Layout(
            inputs=columns,
            actions=self._spec.actions,
            num_streams=len(self._signals),
            hidden_units=network.hidden_units,
            num_layers=network.num_layers,
            activation=network.activation,
            is_shared=self._hyper.shared_critic,
        )

    @property
    def num_parameters(self) -> int:
        """How many numbers are trained."""
        return self._step.num_parameters

    @property
    def num_updates(self) -> int:
        """Updates since the beginning of training, over all resumes."""
        return self._num_updates

    def hyperparameters(self) -> dict[str, float]:
        """Those of CHANGEABLE that are in use, as the schedules start from them."""
        return changeable(self._hyper, CHANGEABLE)

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Use that value from the next update on. Raises ConfigError."""
        self._hyper = with_value(self._hyper, CHANGEABLE, name, value)

    def add(self, block: Trajectories) -> Metrics:
        """Keep a block for the next update; the mean reward of each stream over the episodes that ended in it."""
        _require_finite(block)
        if self._normalizer is not None:
            self._normalizer.update(flat_observations(block.observations))
        streams = [signal.evaluate(block) * np.float32(signal.strength) for signal in self._signals]
        self._rollout.add(block, np.stack(streams, axis=1))
        if not len(block.episode_returns):
            return {}
        mean_return = float(block.episode_returns.mean())
        return {f"Policy/{s.name.capitalize()} Reward": mean_return * s.strength for s in self._signals}

    def is_ready(self) -> bool:
        """Whether `buffer_size` rows are there."""
        return self._rollout.num_rows >= self._hyper.buffer_size

    def update(self, step: int, between: Callable[[], None] = nothing) -> Metrics:
        """`num_epoch` shuffled passes over everything added since the last update."""
        before = self._step.snapshot()
        learning_rate, weigh = self._learning_rate(step), self._coefficients(step)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is found and told below
            columns, estimates = self._prepare(self._rollout.take())
            by_minibatch = self._learn(columns, learning_rate, weigh, between)
            terms = {name: float(sum(term[name] for term in by_minibatch)) / len(by_minibatch) for name in TERMS}
        if not (math.isfinite(terms["total"]) and self._step.is_finite):
            self._step.restore(before)
            raise NonFiniteError(f"the loss is not finite at step {step}; the state before this update was kept")
        self._num_updates += 1
        return {
            "Losses/Policy Loss": abs(terms["policy"]),
            "Losses/Value Loss": terms["value"],
            "Policy/Entropy": terms["entropy"],
            "Policy/KL Divergence": terms["divergence"],
            "Policy/Clip Fraction": terms["clipped"],
            "Policy/Learning Rate": learning_rate,
            "Policy/Epsilon": weigh.epsilon,
            "Policy/Beta": weigh.beta,
            **estimates,
        }

    def _learning_rate(self, step: int) -> float:
        hyper = self._hyper
        schedule = hyper.learning_rate_schedule
        return scheduled(schedule, hyper.learning_rate, MIN_LEARNING_RATE, step, self._config.max_steps)

    def _coefficients(self, step: int) -> Coefficients:
        hyper, end = self._hyper, self._config.max_steps
        epsilon = scheduled(hyper.epsilon_schedule, hyper.epsilon, min(MIN_EPSILON, hyper.epsilon), step, end)
        return Coefficients(
            epsilon=epsilon,
            beta=scheduled(hyper.beta_schedule, hyper.beta, min(MIN_BETA, hyper.beta), step, end),
            value=hyper.value_coefficient,
            value_clip=epsilon if hyper.value_clip == "epsilon" else hyper.value_clip,
            joint_ratio=hyper.joint_ratio,
        )

    def _prepare(self, rollout: Rollout) -> tuple[dict[str, Array], Metrics]:
        """The columns that mini-batches are cut from, where the network computes, and mean value estimates."""
        place = self._network.place
        features = place(self._features(rollout.observations))
        gammas = np.array([signal.gamma for signal in self._signals], np.float32)
        values = self._network.values(features)
        next_values = self._network.values(place(self._features(rollout.next_observations)))
        next_values[self._is_worthless(rollout)] = 0
        advantages, returns = gae(rollout.rewards, values, next_values, rollout.lengths, gammas, self._hyper.lambd)
        advantage = advantages.mean(1)
        if self._hyper.normalize_advantage == "buffer":
            advantage = _normalized(advantage)
        old_log_probs = rollout.log_probs
        if self._hyper.joint_ratio:
            old_log_probs = old_log_probs.sum(1, keepdims=True)
        columns = {
            "continuous": rollout.continuous_actions,
            "chosen": _one_hot(rollout.discrete_actions, self._spec.actions.branches),
            "log_probs": old_log_probs,
            "values": values,
            "returns": returns,
            "advantage": advantage,
        }
        if rollout.action_mask is not None:
            columns["allowed"] = rollout.action_mask.astype(np.float32)
        means = values.mean(0).tolist()
        estimates = {
            f"Policy/{s.name.capitalize()} Value Estimate": v for s, v in zip(self._signals, means, strict=True)
        }
        return {"features": features} | {name: place(column) for name, column in columns.items()}, estimates

    def _is_worthless(self, rollout: Rollout) -> Bool:
        """bool[P, S]: pieces after which nothing is earned in a stream."""
        terminated: Bool = rollout.endings == Ending.TERMINATED
        counts_ends = np.array([not signal.ignores_dones for signal in self._signals], np.bool_)
        return np.logical_and(terminated[:, None], counts_ends[None, :])

    def _learn(
        self, columns: dict[str, Array], learning_rate: float, weigh: Coefficients, between: Callable[[], None]
    ) -> list[dict[str, Array]]:
        """The terms of every mini-batch of every pass; a pass is the last when it moved further than `target_kl`."""
        terms: list[dict[str, Array]] = []
        for _ in range(self._hyper.num_epoch):
            first = len(terms)
            for minibatch in minibatches(columns, self._hyper.batch_size, self._random):
                between()
                loss = self.loss(minibatch, weigh)
                gradient = self._network.backward(loss.head_gradient, loss.values_gradient, loss.log_sigma_gradient)
                self._step(gradient, learning_rate)
                terms.append({name: getattr(loss, name) for name in TERMS})
            target, passed = self._hyper.target_kl, terms[first:]
            if target is not None and sum(term["divergence"] for term in passed) > target * len(passed):
                break
        return terms

    def loss(self, minibatch: dict[str, Array], weigh: Coefficients) -> Loss:
        """The loss of these rows, and its gradient by what the networks gave for them."""
        head, values = self._network.forward(minibatch["features"])
        advantage = minibatch["advantage"]
        if self._hyper.normalize_advantage == "minibatch":
            advantage = _normalized(advantage)
        batch = Batch(
            continuous=minibatch["continuous"],
            chosen=minibatch["chosen"],
            allowed=minibatch.get("allowed"),
            log_probs=minibatch["log_probs"],
            advantage=advantage,
            returns=minibatch["returns"],
            values=minibatch["values"],
        )
        return surrogate_loss(head, values, self._network.log_sigma, batch, self._spec.actions, weigh)

    def _features(self, observations: Float32) -> Float32:
        return observations if self._normalizer is None else self._normalizer(observations)

    def make_policy(self, seed: int) -> VectorPolicy:
        """A new policy that acts with `weights()`."""
        network = self._config.network_settings
        policy = VectorPolicy(self._spec.actions, network.activation, network.deterministic, seed)
        policy.load(self.weights())
        return policy

    def weights(self) -> Weights:
        """See `VectorPolicy.load` for the names."""
        layout, parameters = self._network.layout, self._step.parameters()
        layers = [*layout.layers("body", parameters), *layout.layers("actor", parameters)]
        arrays: dict[str, Float32] = {}
        for index, (weight, bias) in enumerate(layers):
            arrays |= {f"layers.{index}.weight": weight, f"layers.{index}.bias": bias}
        if self._spec.actions.continuous:
            arrays["log_sigma"] = layout.views(parameters)["log_sigma"]
        if self._normalizer is not None:
            arrays |= {"normalizer.mean": self._normalizer.mean, "normalizer.scale": self._normalizer.scale}
        return Weights(self._num_updates, arrays)

    def state(self) -> State:
        """Networks, optimizer, normalizer, reward statistics, shuffling; not the rows that wait for an update."""
        parts = {"network": self._step.state(), "shuffling": generator_state(self._random)}
        if self._normalizer is not None:
            parts["normalizer"] = self._normalizer.state()
        parts |= {f"reward_{signal.name}": signal.state() for signal in self._signals}
        parts["trainer"] = State({}, {"num_updates": self._num_updates})
        return State.merge(parts)

    def load(self, state: State) -> None:
        """Go on from `state`, without the rows that wait for an update."""
        self._rollout = RolloutBuffer()
        self._step.load(state.part("network"))
        load_generator(self._random, state.part("shuffling"))
        if self._normalizer is not None:
            self._normalizer.load(state.part("normalizer"))
        for signal in self._signals:
            signal.load(state.part(f"reward_{signal.name}"))
        self._num_updates = int(state.part("trainer").values["num_updates"])  # type: ignore[arg-type]  # written by state()


def reward_signals(config: BehaviorConfig) -> list[RewardSignal]:
    """One signal per entry of `reward_signals`, in the file's order. Raises NotSupportedError for an unknown one."""
    signals = []
    for name, settings in config.reward_signals.items():
        kind = cast(type[RewardSignalKind], registry.load("reward_signals", name))
        signals.append(kind.make(settings, config))
    return signals


def _require_finite(block: Trajectories) -> None:
    if not np.isfinite(block.rewards).all():
        row = int(np.flatnonzero(~np.isfinite(block.rewards))[0])
        agent = int(np.repeat(block.agent_ids, block.lengths)[row])
        raise NonFiniteError(f"agent {agent} got the reward {block.rewards[row]}; the policy as it stands was kept")


def _one_hot(chosen: Int64, branches: tuple[int, ...]) -> Float32:
    """f32[N, sum of branches] of i64[N, K]: 1 in the column of each branch's choice."""
    columns = np.zeros((len(chosen), sum(branches)), np.float32)
    starts = np.cumsum([0, *branches[:-1]]) if branches else np.empty(0, np.int64)
    np.put_along_axis(columns, chosen + starts, 1.0, axis=1)
    return columns


def _normalized(advantage: Array) -> Array:
    centered = advantage - advantage.mean()
    deviation = (centered * centered).mean() ** 0.5  # of the population: torch's std() divides by one less
    return centered / (deviation + NORMALIZED_ADVANTAGE_EPSILON)
