"""Actions drawn from the head of an actor, in numpy: for a handful of agents the calls cost most.

Shapes: N agents, A continuous dimensions, K branches, H head columns (see networks/actor.py).
"""

from __future__ import annotations

import numpy as np

from rl_tui.engine.learning.acting.copy_generators import CopyGenerators
from rl_tui.engine.learning.acting.distributions import (
    MAX_LOG_SIGMA,
    MIN_LOG_SIGMA,
    before_bounds,
    bounded,
    choice_log_probs_to_act,
    choose_to_act,
    gaussian_log_probs_to_act,
    gaussian_scale,
    mask_logits_to_act,
    squashed_log_probs_to_act,
)
from rl_tui.engine.learning.random_generators import generator_state, load_generator
from rl_tui.engine.specs import Actions, ActionSpec, Bool, Choice, Float32, Int64, Json, State

_COPIES = "copies"
LARGEST_SQUASHED = np.nextafter(np.float32(1), np.float32(0))  # what rounding has made 1, which no finite sample is


class ActionSampler:
    """Draws actions from heads with a generator of its own.

    is_squashed: as in `Actor`. Then actions are tanh of the samples, for training too; otherwise samples are clipped
    to +-3 and divided by 3, but for the environment only.
    """

    def __init__(self, actions: ActionSpec, is_squashed: bool, is_deterministic: bool, seed: int):
        self.actions = actions
        self.is_squashed = is_squashed
        self._is_deterministic = is_deterministic
        self._seed = seed
        self._random: np.random.Generator | CopyGenerators = np.random.Generator(np.random.PCG64(seed))
        self._states: dict[str, Json] = {}  # of the generators of copies, where it was divided among workers
        self._sigma: Float32 = np.empty(0, np.float32)
        self._precision: Float32 = self._sigma
        self._log_scale: Float32 = self._sigma

    def divide(self, copies: range, num_instances: int, num_restarts: int, states: dict[str, Json]) -> None:
        """From now on draw for each agent from a generator of its copy, see CopyGenerators."""
        self._random = CopyGenerators(self._seed, copies, num_instances, num_restarts, states)

    def to_json(self, copies: range, num_restarts: int) -> dict[str, Json]:
        """What it is made of, and the states of the generators of these copies, unless they begin again."""
        goes_on = [str(copy) for copy in copies if str(copy) in self._states and not num_restarts]
        return {
            "continuous": self.actions.continuous,
            "branches": list(self.actions.branches),
            "is_squashed": self.is_squashed,
            "is_deterministic": self._is_deterministic,
            "seed": self._seed,
            "states": {copy: self._states[copy] for copy in goes_on},
        }

    def select(self, agent_ids: Int64) -> None:
        """`choose` is called for these agents next, i64[N]."""
        if isinstance(self._random, CopyGenerators):
            self._random.select(agent_ids)

    def load(self, log_sigma: Float32 | None) -> None:
        """Use this spread f32[A] from now on; None if it is part of the head."""
        if log_sigma is not None:
            self._sigma = np.exp(log_sigma)
            self._precision, self._log_scale = gaussian_scale(np, self._sigma)

    def choose(self, head: Float32, allowed: Bool | None, memories: Float32 | None = None) -> Choice:
        """One action for every row of head f32[N, H]; memories are passed through."""
        size = self.actions.continuous
        columns = 2 * size if self.is_squashed else size
        continuous, bounded, log_probs = self._continuous(head[:, :columns])
        if not self.actions.branches:
            discrete = np.empty((len(head), 0), np.int64)
        elif not size:
            discrete, log_probs = self._discrete(head, allowed)
        else:
            discrete, discrete_log_probs = self._discrete(head[:, columns:], allowed)
            log_probs = np.concatenate([log_probs, discrete_log_probs], axis=1)
        return Choice(Actions(bounded, discrete), continuous, log_probs, memories)

    def before_bounds(self, bounded: Float32) -> Float32:
        """f32[N, A]: see `before_bounds` in distributions.py."""
        return before_bounds(bounded, self.is_squashed)

    def log_probs(self, head: Float32, allowed: Bool | None, continuous: Float32, discrete: Int64) -> Float32:
        """f32[N, A + K] of given actions. continuous: as `Choice.continuous` has them."""
        size = self.actions.continuous
        columns = 2 * size if self.is_squashed else size
        logits = head[:, columns:]
        if allowed is not None:
            logits = mask_logits_to_act(logits, allowed)
        ends = np.cumsum(self.actions.branches)[:-1]
        branches = np.split(logits, ends, axis=1) if self.actions.branches else []
        of_branches = [choice_log_probs_to_act(of, discrete[:, index]) for index, of in enumerate(branches)]
        found = [self._log_density(head[:, :columns], continuous), *(column[:, None] for column in of_branches)]
        return np.concatenate(found, axis=1)

    def _log_density(self, head: Float32, continuous: Float32) -> Float32:
        if not head.shape[1]:
            return head
        if not self.is_squashed:
            return gaussian_log_probs_to_act(continuous - head, self._precision, self._log_scale)
        mean, log_sigma = np.split(head, 2, axis=1)
        log_sigma = np.clip(log_sigma, MIN_LOG_SIGMA, MAX_LOG_SIGMA)
        drawn: Float32 = np.arctanh(np.clip(continuous, -LARGEST_SQUASHED, LARGEST_SQUASHED))
        density: Float32 = squashed_log_probs_to_act((drawn - mean) / np.exp(log_sigma), log_sigma, drawn)
        return density

    def _continuous(self, head: Float32) -> tuple[Float32, Float32, Float32]:
        """Actions for training, actions for the environment, log-probabilities: f32[N, A] each."""
        if not head.shape[1]:
            return head, head, head
        if self.is_squashed:
            return self._squashed(head)
        if self._is_deterministic:
            noise = np.zeros_like(head)
        else:
            noise = self._random.standard_normal(head.shape, dtype=np.float32)
            noise *= self._sigma
        drawn = head + noise
        return drawn, bounded(drawn), gaussian_log_probs_to_act(noise, self._precision, self._log_scale)

    def _squashed(self, head: Float32) -> tuple[Float32, Float32, Float32]:
        mean, log_sigma = np.split(head, 2, axis=1)
        log_sigma = np.clip(log_sigma, MIN_LOG_SIGMA, MAX_LOG_SIGMA)
        if self._is_deterministic:
            noise = np.zeros_like(mean)
        else:
            noise = self._random.standard_normal(mean.shape, dtype=np.float32)
        drawn = mean + noise * np.exp(log_sigma)
        squashed = np.tanh(drawn)
        return squashed, squashed, squashed_log_probs_to_act(noise, log_sigma, drawn)

    def _discrete(self, logits: Float32, allowed: Bool | None) -> tuple[Int64, Float32]:
        if allowed is not None:
            logits = mask_logits_to_act(logits, allowed)
        random = None if self._is_deterministic else self._random
        if len(self.actions.branches) == 1:
            chosen, log_prob = choose_to_act(logits, random)
            return chosen[:, None], log_prob[:, None]
        ends = np.cumsum(self.actions.branches)[:-1]
        branches = [choose_to_act(choices, random) for choices in np.split(logits, ends, axis=1)]
        return np.stack([chosen for chosen, _ in branches], 1), np.stack([log_prob for _, log_prob in branches], 1)

    def state(self) -> State:
        """The state of its random generator, and of those of the copies that act in workers."""
        if isinstance(self._random, CopyGenerators):
            return State({}, {_COPIES: self._random.states()})
        state = generator_state(self._random)
        return State({}, {**state.values, _COPIES: dict(self._states)}) if self._states else state

    def load_state(self, state: State) -> None:
        """Restore the random generator. States of copies are those that a later `divide` begins with."""
        values = dict(state.values)
        copies = values.pop(_COPIES, {})
        assert isinstance(copies, dict)
        self._states |= copies
        if values and not isinstance(self._random, CopyGenerators):
            load_generator(self._random, State({}, values))
