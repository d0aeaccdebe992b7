"""The names of an exported policy's inputs and outputs: for Unity, those of ML-Agents' format 3."""

from __future__ import annotations

from typing import Literal, TypeAlias

from rl_tui.engine.specs import BehaviorSpec

GraphKind: TypeAlias = Literal["unity", "stochastic", "greedy"]

VERSION_NUMBER = 3.0  # of ML-Agents' model format since its release 2.0
MASK_INPUT = "action_masks"
MEMORY_INPUT = "recurrent_in"
VERSION = "version_number"
MEMORY_SIZE = "memory_size"
CONTINUOUS = "continuous_actions"
CONTINUOUS_SHAPE = "continuous_action_output_shape"
DETERMINISTIC_CONTINUOUS = "deterministic_continuous_actions"
DISCRETE = "discrete_actions"
DISCRETE_SHAPE = "discrete_action_output_shape"
DETERMINISTIC_DISCRETE = "deterministic_discrete_actions"
MEMORY = "recurrent_out"
CONSTANTS = (VERSION, MEMORY_SIZE, CONTINUOUS_SHAPE, DISCRETE_SHAPE)


def input_names(spec: BehaviorSpec, memory_size: int) -> list[str]:
    """obs_0, obs_1, ... in the order of the observations, then the mask for branches and the memory, if any."""
    names = [f"obs_{index}" for index in range(len(spec.observations))]
    if spec.actions.branches:
        names.append(MASK_INPUT)
    if memory_size:
        names.append(MEMORY_INPUT)
    return names


def output_names(spec: BehaviorSpec, memory_size: int, kind: GraphKind) -> dict[str, str]:
    """The outputs of a graph of that kind in order, each with its name in the graph for Unity, which has all outputs.

    stochastic: sampled actions and the memory. greedy: the most likely actions, under the names of the sampled ones.
    """
    names: dict[str, str] = {}
    if kind == "unity":
        names |= {VERSION: VERSION, MEMORY_SIZE: MEMORY_SIZE}
    if spec.actions.continuous:
        names |= _group(kind, CONTINUOUS, CONTINUOUS_SHAPE, DETERMINISTIC_CONTINUOUS)
    if spec.actions.branches:
        names |= _group(kind, DISCRETE, DISCRETE_SHAPE, DETERMINISTIC_DISCRETE)
    if memory_size:
        names[MEMORY] = MEMORY
    return names


def _group(kind: GraphKind, sampled: str, shape: str, deterministic: str) -> dict[str, str]:
    match kind:
        case "unity":
            return {sampled: sampled, shape: shape, deterministic: deterministic}
        case "stochastic":
            return {sampled: sampled}
        case "greedy":
            return {sampled: deterministic}
