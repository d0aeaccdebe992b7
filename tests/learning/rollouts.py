"""Blocks of experience for tests: random ones of any shape, and ones that a policy acted out."""

from __future__ import annotations

import numpy as np

from engine.specs import (
    ActionSpec,
    BehaviorSpec,
    DecisionSteps,
    Ending,
    ObservationSpec,
    Policy,
    Trajectories,
)

SPEC = BehaviorSpec("Walker", (ObservationSpec("speed", (3,)), ObservationSpec("map", (2, 2))), ActionSpec(2, (3, 2)))


def decisions(
    random: np.random.Generator, count: int, spec: BehaviorSpec = SPEC, masked: bool = False
) -> DecisionSteps:
    """Agents that see random numbers; every branch of a mask allows something."""
    mask = None
    if masked:
        mask = random.random((count, spec.actions.mask_size)) < 0.5
        for start, size in zip(np.cumsum([0, *spec.actions.branches]), spec.actions.branches, strict=False):
            mask[np.arange(count), start + random.integers(0, size, count)] = True
    observations = tuple(random.standard_normal((count, *o.shape)).astype(np.float32) for o in spec.observations)
    return DecisionSteps(np.arange(count), observations, np.zeros(count, np.float32), mask)


def acted(
    policy: Policy,
    random: np.random.Generator,
    lengths: list[int],
    spec: BehaviorSpec = SPEC,
    masked: bool = False,
    ending: Ending | None = None,
) -> Trajectories:
    """Pieces of these lengths, an agent for each, in which `policy` acted on random observations for random rewards."""
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
        endings=endings.astype(np.int8),
        next_observations=decisions(random, len(lengths), spec).observations,
        agent_ids=np.arange(len(lengths)),
        episode_returns=random.standard_normal(episodes).astype(np.float32),
        episode_lengths=random.integers(1, 9, episodes),
        policy_version=policy.version,
    )


def rewarded(pieces: list[tuple[int, list[float], Ending]]) -> Trajectories:
    """Only rewards: (agent, rewards, ending) for each piece."""
    rows, count = sum(len(rewards) for _, rewards, _ in pieces), len(pieces)
    return Trajectories(
        observations=(np.zeros((rows, 1), np.float32),),
        continuous_actions=np.zeros((rows, 0), np.float32),
        discrete_actions=np.zeros((rows, 1), np.int64),
        log_probs=np.zeros((rows, 1), np.float32),
        action_mask=None,
        rewards=np.concatenate([np.array(rewards, np.float32) for _, rewards, _ in pieces]),
        lengths=np.array([len(rewards) for _, rewards, _ in pieces]),
        endings=np.array([ending for _, _, ending in pieces], np.int8),
        next_observations=(np.zeros((count, 1), np.float32),),
        agent_ids=np.array([agent for agent, _, _ in pieces]),
        episode_returns=np.empty(0, np.float32),
        episode_lengths=np.empty(0, np.int64),
        policy_version=0,
    )
