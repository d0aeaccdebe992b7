"""Checks that an ONNX graph acts like the policy that it was exported from.

Shapes: B rows, A continuous dimensions, K branches, C choices of one branch, M memory columns.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_tui.engine.errors import ExportError
from rl_tui.engine.export import graph_names as names
from rl_tui.engine.export.exported_policy import ExportedPolicy
from rl_tui.engine.export.onnx_graph import Outputs
from rl_tui.engine.export.random_inputs import KINDS, AgentInputs, InputGenerator
from rl_tui.engine.export.sample_check import continuous_counts, discrete_counts, require_expected, require_in_range
from rl_tui.engine.specs import Float32, Int64, Policy, Weights

TOLERANCE = 1e-5  # in units of `_units`
ROUNDING = 3e-7  # an ordinary float32 error: a few units of the last digit of numbers near 1
BATCH_SIZES = (1, 2, 7)
NUM_STEPS = 6  # of the episode with which a memory is checked
SEED = 20

GraphFunction: TypeAlias = Callable[[Mapping[str, Float32]], Outputs]  # every output by name, of every input by name


@torch.no_grad()
@np.errstate(over="ignore", invalid="ignore")  # an overflow shows as a difference
def check_graph(graph: GraphFunction, weights: Weights, policy: ExportedPolicy, reference: Policy) -> float:
    """Return the largest difference from `reference`, which acts greedily with these weights, in units of 1.

    Where float32 itself changes the policy by more than ROUNDING, the unit grows in proportion. Raises ExportError when
    a difference exceeds TOLERANCE, a deterministic choice is not one of the most likely, a constant is wrong, an output
    is not finite for zero inputs, or samples have the wrong distribution.
    """
    generator = InputGenerator(policy.spec, policy.module.layout, weights, np.random.Generator(np.random.PCG64(SEED)))
    _check_zero(graph, generator.zero(), policy)
    episode = [generator.mixed() for _ in range(NUM_STEPS if policy.memory_size else 1)]
    units = _units(policy, episode)
    difference = _check_episode(graph, episode, units, policy, reference)
    _check_samples(graph, generator, TOLERANCE * float(units[0]), policy)
    return difference


def _check_zero(graph: GraphFunction, zero: AgentInputs, policy: ExportedPolicy) -> None:
    for name, output in _outputs(graph, zero, np.zeros((1, policy.memory_size), np.float32), policy).items():
        if not np.isfinite(output).all():
            raise ExportError(f"the graph's {name} must be finite when every input is zero, got {output.tolist()}")


def _outputs(graph: GraphFunction, inputs: AgentInputs, memories: Float32, policy: ExportedPolicy) -> Outputs:
    """The graph's outputs by their names in the graph for Unity. Raises unless names, types and shapes are correct."""
    outputs = graph(inputs.arrays(memories))
    if list(outputs) != list(policy.output_names):
        raise ExportError(f"the graph's outputs must be {', '.join(policy.output_names)}, got {', '.join(outputs)}")
    for name, source in policy.output_names.items():
        found, expected = _expected(source, outputs[name], inputs.num_rows, policy)
        if found != expected:
            raise ExportError(f"the graph's {name} must be {expected}, got {found}")
    return {source: outputs[name] for name, source in policy.output_names.items()}


def _expected(source: str, output: NDArray[Any], rows: int, policy: ExportedPolicy) -> tuple[str, str]:
    """The output's type and value, if it is a constant, or its type and shape; and the expected ones."""
    actions = policy.spec.actions
    if source in names.CONSTANTS:
        return f"{output.dtype}{output.tolist()}", f"float32{policy.constant(source).tolist()}"
    shapes = {
        names.MEMORY: f"float32[{rows}, 1, {policy.memory_size}]",
        names.DISCRETE: f"int64[{rows}, {len(actions.branches)}]",
        names.DETERMINISTIC_DISCRETE: f"int64[{rows}, {len(actions.branches)}]",
    }
    return f"{output.dtype}{list(output.shape)}", shapes.get(source, f"float32[{rows}, {actions.continuous}]")


def _units(policy: ExportedPolicy, episode: Sequence[AgentInputs]) -> Tensor:
    """f32[B]: 1, or the float32 error of the policy itself in units of ROUNDING, the worst among rows of that size.

    This allows the unavoidable error of a deep network, a long sum or a memory that amplifies its inputs.
    """
    exact = copy.deepcopy(policy).double()
    memories = torch.zeros(episode[0].num_rows, policy.memory_size)
    exact_memories = memories.double()
    errors = torch.zeros(len(memories), dtype=torch.float64)
    for inputs in episode:
        mean, _, branches, memories = policy.distribution(*inputs.tensors(memories))
        exact_mean, _, exact_branches, exact_memories = exact.distribution(*inputs.tensors(exact_memories))
        found = torch.cat([mean, *branches, memories], 1)
        off = found - torch.cat([exact_mean, *exact_branches, exact_memories], 1)
        errors = torch.maximum(errors, off.abs().amax(1))
    is_large = torch.arange(len(errors)) % KINDS == KINDS - 1
    worst = torch.where(is_large, errors[is_large].max(), errors[~is_large].max())
    if not bool(worst.isfinite().all()):
        raise ExportError("the policy's float32 outputs must be finite for large observations")
    return (worst / ROUNDING).clamp(min=1.0).float()


def _check_episode(
    graph: GraphFunction, episode: Sequence[AgentInputs], units: Tensor, policy: ExportedPolicy, reference: Policy
) -> float:
    """The largest difference over the steps of an episode, each side with its own memories."""
    memories = np.zeros((len(units), policy.memory_size), np.float32)
    graph_memories, exported_memories = memories, torch.from_numpy(memories)
    differences = [torch.zeros(len(units), 1)]
    for inputs in episode:
        choice = reference.act(inputs.decisions(), memories)
        outputs = _in_batches(graph, inputs, graph_memories, policy)
        _, _, branches, exported_memories = policy.distribution(*inputs.tensors(exported_memories))
        differences.append(_lags(branches, choice.actions.discrete))
        if names.DETERMINISTIC_DISCRETE in outputs:
            differences.append(_lags(branches, outputs[names.DETERMINISTIC_DISCRETE]))
        if names.DETERMINISTIC_CONTINUOUS in outputs:
            found = outputs[names.DETERMINISTIC_CONTINUOUS]
            differences.append(torch.from_numpy(found - choice.actions.continuous).abs())
        if choice.memories is not None:
            memories, graph_memories = choice.memories, outputs[names.MEMORY][:, 0]
            differences.append(torch.from_numpy(graph_memories - memories).abs())
    largest = float((torch.cat(differences, 1).amax(1) / units).max())
    if not largest <= TOLERANCE:  # also when it is NaN
        raise ExportError(f"the graph's deterministic actions or memories differ by {largest:.3g} from the policy's")
    return largest


def _in_batches(graph: GraphFunction, inputs: AgentInputs, memories: Float32, policy: ExportedPolicy) -> Outputs:
    """The graph's outputs for each agent, computed in small batches."""
    starts = itertools.accumulate(BATCH_SIZES * inputs.num_rows, initial=0)
    batches = [
        _outputs(graph, inputs.slice(start, stop), memories[start:stop], policy)
        for start, stop in itertools.pairwise(starts)
        if start < inputs.num_rows
    ]
    per_agent = [source for source in policy.output_names.values() if source not in names.CONSTANTS]
    return {source: np.concatenate([batch[source] for batch in batches]) for source in per_agent}


def _lags(branches: Sequence[Tensor], choices: Int64) -> Tensor:
    """f32[B, K]: how far the logit of each choice i64[B, K] is below the largest of its branch."""
    lags = [torch.empty(len(choices), 0)]
    for logits, choice in zip(branches, torch.from_numpy(choices).unbind(1), strict=True):
        require_in_range(choice, logits)
        lags.append(logits.amax(1, keepdim=True) - logits.gather(1, choice.unsqueeze(1)))
    return torch.cat(lags, 1)


def _check_samples(graph: GraphFunction, generator: InputGenerator, blur: float, policy: ExportedPolicy) -> None:
    """Raise ExportError unless samples stay in their range and follow the policy's distribution."""
    inputs = generator.familiar()
    memories = generator.memories(inputs.num_rows, policy.memory_size)
    mean, sigma, branches, _ = policy.distribution(*inputs.tensors(torch.from_numpy(memories)))
    batches = []
    for _ in range(generator.num_draws(inputs.num_rows)):
        outputs = _outputs(graph, inputs, memories, policy)
        counts = []
        if names.CONTINUOUS in outputs:
            counts += continuous_counts(torch.from_numpy(outputs[names.CONTINUOUS]), mean, sigma, blur, policy)
        if names.DISCRETE in outputs:
            counts += discrete_counts(torch.from_numpy(outputs[names.DISCRETE]), branches)
        batches.append(counts)
    require_expected(batches)
