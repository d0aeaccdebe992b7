"""From the head of an actor to actions, in numpy: acting is for a handful of agents, where a call costs most.

Shapes: N agents, A continuous dimensions, K branches, H head columns (see `networks.actor`).
"""

from __future__ import annotations

import numpy as np

from rl_tui.engine.learning.distributions import (
    ACTION_LIMIT,
    EPSILON,
    FORBIDDEN,
    LOG_SQRT_TWO_PI,
    MAX_LOG_SIGMA,
    MIN_LOG_SIGMA,
)
from rl_tui.engine.learning.generators import generator_state, load_generator
from rl_tui.engine.specs import Actions, ActionSpec, Bool, Choice, Float32, Int64, State


class ActionSampler:
    """Draws actions from heads with a generator of its own.

    is_squashed: as `Actor` has it. Then actions are tanh of what is drawn, and training learns from them as they are;
    otherwise what is drawn is clipped to +-3 and divided by 3 for the environment only.
    """

    def __init__(self, actions: ActionSpec, is_squashed: bool, is_deterministic: bool, seed: int):
        self._actions = actions
        self._is_squashed = is_squashed
        self._is_deterministic = is_deterministic
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._sigma: Float32 = np.empty(0, np.float32)
        self._precision: Float32 = self._sigma
        self._log_scale: Float32 = self._sigma

    def load(self, log_sigma: Float32 | None) -> None:
        """Use this spread f32[A] from now on; None where heads hold it."""
        if log_sigma is not None:
            self._sigma = np.exp(log_sigma)
            self._precision = np.reciprocal(2 * self._sigma * self._sigma + np.float32(EPSILON))
            self._log_scale = np.log(self._sigma + np.float32(EPSILON)) + np.float32(LOG_SQRT_TWO_PI)

    def choose(self, head: Float32, allowed: Bool | None, memories: Float32 | None = None) -> Choice:
        """One action for every row of head f32[N, H]; memories are passed on."""
        size = self._actions.continuous
        columns = 2 * size if self._is_squashed else size
        continuous, bounded, log_probs = self._continuous(head[:, :columns])
        if not self._actions.branches:
            discrete = np.empty((len(head), 0), np.int64)
        elif not size:
            discrete, log_probs = self._discrete(head, allowed)
        else:
            discrete, discrete_log_probs = self._discrete(head[:, columns:], allowed)
            log_probs = np.concatenate([log_probs, discrete_log_probs], axis=1)
        return Choice(Actions(bounded, discrete), continuous, log_probs, memories)

    def _continuous(self, head: Float32) -> tuple[Float32, Float32, Float32]:
        """What training learns from, what the environment gets, log-probabilities: f32[N, A] each."""
        if not head.shape[1]:
            return head, head, head
        if self._is_squashed:
            return self._squashed(head)
        if self._is_deterministic:
            noise = np.zeros_like(head)
        else:
            noise = self._random.standard_normal(head.shape, dtype=np.float32)
            noise *= self._sigma
        drawn = head + noise
        bounded = np.clip(drawn, -ACTION_LIMIT, ACTION_LIMIT) / np.float32(ACTION_LIMIT)
        return drawn, bounded, -(noise * noise) * self._precision - self._log_scale

    def _squashed(self, head: Float32) -> tuple[Float32, Float32, Float32]:
        mean, log_sigma = np.split(head, 2, axis=1)
        log_sigma = np.clip(log_sigma, MIN_LOG_SIGMA, MAX_LOG_SIGMA)
        if self._is_deterministic:
            noise = np.zeros_like(mean)
        else:
            noise = self._random.standard_normal(mean.shape, dtype=np.float32)
        drawn = mean + noise * np.exp(log_sigma)
        squashed = np.tanh(drawn)
        # ln(1 - tanh(u)^2) = 2 (ln 2 - u - softplus(-2u)), which keeps its digits where tanh is 1
        slope = 2 * (np.float32(np.log(2)) - drawn - np.logaddexp(np.float32(0), -2 * drawn))
        log_probs = -0.5 * noise * noise - log_sigma - np.float32(LOG_SQRT_TWO_PI) - slope
        return squashed, squashed, log_probs

    def _discrete(self, logits: Float32, allowed: Bool | None) -> tuple[Int64, Float32]:
        if allowed is not None:
            logits = np.where(allowed, logits, np.float32(-FORBIDDEN))
        if len(self._actions.branches) == 1:
            chosen, log_prob = self._branch(logits)
            return chosen[:, None], log_prob[:, None]
        ends = np.cumsum(self._actions.branches)[:-1]
        branches = [self._branch(choices) for choices in np.split(logits, ends, axis=1)]
        return np.stack([chosen for chosen, _ in branches], 1), np.stack([log_prob for _, log_prob in branches], 1)

    def _branch(self, logits: Float32) -> tuple[Int64, Float32]:
        """Chosen i64[N] and log-probability f32[N] of logits f32[N, C], by the inverse of the cumulated probability."""
        weights = np.exp(logits - logits.max(1, keepdims=True))
        cumulated = weights.cumsum(1)
        total = cumulated[:, -1:]
        if self._is_deterministic:
            chosen = logits.argmax(1)
        else:  # in float64 random() * total stays below total, so that a choice without weight is never drawn
            chosen = (cumulated <= self._random.random(total.shape) * total).sum(1)
        picked = weights[np.arange(len(logits)), chosen]
        return chosen, np.log(picked / total[:, 0] + np.float32(EPSILON))

    def state(self) -> State:
        """Its random generator."""
        return generator_state(self._random)

    def load_state(self, state: State) -> None:
        """Draw on from `state`."""
        load_generator(self._random, state)
