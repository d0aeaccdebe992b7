"""Experience with the shapes of a behavior, without an environment: to find out how long learning from it takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rl_tui.engine.sampling.assembly import Assembly
from rl_tui.engine.sampling.random_policy import RandomPolicy
from rl_tui.engine.specs import BehaviorSpec, DecisionSteps, Observations, TerminalSteps, Trajectories

SEED = 0


def random_decisions(spec: BehaviorSpec, num_agents: int, random: np.random.Generator) -> DecisionSteps:
    """So many agents that wait for an action, each without a group."""
    observations = _observations(spec, num_agents, random)
    return DecisionSteps(np.arange(num_agents), observations, np.zeros(num_agents, np.float32))


def random_experience(spec: BehaviorSpec, num_rows: int, num_steps: int, memory_size: int) -> Trajectories:
    """At least so many rows, in episodes of `num_steps` steps. memory_size: of the policy that acts."""
    random, policy = np.random.Generator(np.random.PCG64(SEED)), RandomPolicy(spec, SEED)
    num_agents = -(-num_rows // num_steps)
    assembly = Assembly(spec, num_steps, memory_size)
    memories = np.zeros((num_agents, memory_size), np.float32) if memory_size else None
    for _ in range(num_steps):
        waiting = random_decisions(spec, num_agents, random)
        assembly.observe(waiting)
        assembly.act(waiting, replace(policy.act(waiting), memories=memories))
    rewards, is_truncated = random.standard_normal(num_agents).astype(np.float32), np.zeros(num_agents, np.bool_)
    assembly.end(TerminalSteps(np.arange(num_agents), _observations(spec, num_agents, random), rewards, is_truncated))
    return assembly.drain()


def _observations(spec: BehaviorSpec, count: int, random: np.random.Generator) -> Observations:
    return tuple(
        random.integers(0, 256, (count, *each.shape), np.uint8)
        if each.dtype == "uint8"
        else random.standard_normal((count, *each.shape), np.float32)
        for each in spec.observations
    )
