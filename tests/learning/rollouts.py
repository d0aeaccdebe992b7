"""Blocks of experience for tests: random ones of any shape, and ones that a policy acted out."""

from __future__ import annotations

import itertools

import numpy as np

from rl_tui.engine.sampling.assembly import Assembly
from rl_tui.engine.specs import (
    ActionSpec,
    BehaviorSpec,
    DecisionSteps,
    Ending,
    Observations,
    ObservationSpec,
    Policy,
    TerminalSteps,
    Trajectories,
)

SPEC = BehaviorSpec("Walker", (ObservationSpec("speed", (3,)), ObservationSpec("place", (4,))), ActionSpec(2, (3, 2)))


def decisions(
    random: np.random.Generator, count: int, spec: BehaviorSpec = SPEC, masked: bool = False
) -> DecisionSteps:
    """Agents with random observations; every branch of a mask allows something."""
    mask = None
    if masked:
        mask = random.random((count, spec.actions.mask_size)) < 0.5
        for start, size in zip(np.cumsum([0, *spec.actions.branches]), spec.actions.branches, strict=False):
            mask[np.arange(count), start + random.integers(0, size, count)] = True
    return DecisionSteps(np.arange(count), observed(random, count, spec), np.zeros(count, np.float32), mask)


def observed(random: np.random.Generator, count: int, spec: BehaviorSpec = SPEC) -> Observations:
    """Random numbers of every observation's shape and dtype."""
    return tuple(
        random.integers(0, 256, (count, *o.shape), np.uint8)
        if o.dtype == "uint8"
        else random.standard_normal((count, *o.shape)).astype(np.float32)
        for o in spec.observations
    )


def acted(
    policy: Policy,
    random: np.random.Generator,
    lengths: list[int],
    spec: BehaviorSpec = SPEC,
    masked: bool = False,
    ending: Ending | None = None,
) -> Trajectories:
    """Segments of these lengths, one per agent: `policy` acted on random observations for random rewards.

    Each continues what the agent did before, if anything.
    """
    seen = decisions(random, sum(lengths), spec, masked)
    choice = policy.act(seen)
    endings = random.integers(0, len(Ending), len(lengths)) if ending is None else np.full(len(lengths), ending)
    episodes = int((endings != Ending.CUT).sum())
    return Trajectories(
        observations=seen.observations,
        continuous_actions=choice.continuous,
        discrete_actions=choice.actions.discrete,
        log_probs=choice.log_probs,
        action_mask=seen.action_mask,
        rewards=random.standard_normal(sum(lengths)).astype(np.float32),
        lengths=np.array(lengths),
        begins=np.zeros(len(lengths), np.bool_),
        endings=endings.astype(np.int8),
        next_observations=decisions(random, len(lengths), spec).observations,
        agent_ids=np.arange(len(lengths)),
        episode_returns=random.standard_normal(episodes).astype(np.float32),
        episode_lengths=random.integers(1, 9, episodes),
        policy_version=policy.version,
    )


class Simulation:
    """Agents with random observations, rewards and endings: every way an episode can continue."""

    def __init__(self, policy: Policy, spec: BehaviorSpec, num_agents: int, horizon: int, seed: int = 0):
        self._policy, self._spec, self._num_agents = policy, spec, num_agents
        self._random = np.random.default_rng(seed)
        self._assembly = Assembly(spec, horizon, policy.memory_size)

    def run(self, num_steps: int, end: float = 0.1) -> Trajectories:
        """The trajectories of this many more steps of each agent; each step ends an episode with that probability."""
        for _ in range(num_steps):
            seen = decisions(self._random, self._num_agents, self._spec)
            ended = np.flatnonzero(self._random.random(self._num_agents) < end)
            if len(ended):
                rewards = self._random.standard_normal(len(ended)).astype(np.float32)
                truncated = self._random.random(len(ended)) < 0.5
                final = observed(self._random, len(ended), self._spec)
                self._assembly.end(TerminalSteps(ended, final, rewards, truncated))
            seen.rewards[:] = self._random.standard_normal(self._num_agents)
            seen.rewards[ended] = 0
            self._assembly.observe(seen)
            self._assembly.act(seen, self._policy.act(seen, self._assembly.memories(seen)))
        return self._assembly.drain()


def rewarded(segments: list[tuple[int, list[float], Ending]]) -> Trajectories:
    """Only rewards: (agent, rewards, ending) for each segment. An agent's first one continues what there was before."""
    rows, count = sum(len(rewards) for _, rewards, _ in segments), len(segments)
    follows_end = [a == b and ending != Ending.CUT for (a, _, ending), (b, _, _) in itertools.pairwise(segments)]
    return Trajectories(
        observations=(np.zeros((rows, 1), np.float32),),
        continuous_actions=np.zeros((rows, 0), np.float32),
        discrete_actions=np.zeros((rows, 1), np.int64),
        log_probs=np.zeros((rows, 1), np.float32),
        action_mask=None,
        rewards=np.concatenate([np.array(rewards, np.float32) for _, rewards, _ in segments]),
        lengths=np.array([len(rewards) for _, rewards, _ in segments]),
        begins=np.array([False, *follows_end]),
        endings=np.array([ending for _, _, ending in segments], np.int8),
        next_observations=(np.zeros((count, 1), np.float32),),
        agent_ids=np.array([agent for agent, _, _ in segments]),
        episode_returns=np.empty(0, np.float32),
        episode_lengths=np.empty(0, np.int64),
        policy_version=0,
    )
