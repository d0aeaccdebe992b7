"""Whether an ONNX graph acts as the policy that it was made from.

Shapes: B rows, A continuous dimensions, K branches, C choices of one branch, M mask columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from engine.errors import ExportError
from engine.learning.networks import exported as names
from engine.learning.networks.distributions import ACTION_LIMIT
from engine.learning.networks.exported import ExportedPolicy, input_names, output_names
from engine.learning.policies import VectorPolicy
from engine.running.onnx_graph import Outputs
from engine.specs import ActionSpec, BehaviorSpec, Bool, DecisionSteps, Float32, Int64, Observations, Weights

TOLERANCE = 1e-5  # of the largest number met on the way, or of 1: float32 keeps seven digits of it, not of the result
BATCH_SIZES = (1, 2, 7)
NUM_ROWS = 60
LARGE = 1e4  # times a standard normal: far beyond what a normalizer clips
NUM_SAMPLES = 2048  # a probability that is wrong by a tenth shows
SEED = 20

Run: TypeAlias = Callable[[Mapping[str, Float32]], Outputs]  # every output by name, of every input by name


@dataclass(frozen=True, slots=True)
class Situation:
    """B agents: what they see, and the mask bool[B, M], None without discrete actions."""

    observations: Observations
    allowed: Bool | None

    @property
    def num_rows(self) -> int:
        """B."""
        return len(self.observations[0])

    def slice(self, start: int, stop: int) -> Situation:
        """Some of the agents."""
        allowed = None if self.allowed is None else self.allowed[start:stop]
        return Situation(tuple(observation[start:stop] for observation in self.observations), allowed)

    def inputs(self) -> list[Float32]:
        """In the order of `input_names`."""
        return [*self.observations, *([] if self.allowed is None else [self.allowed.astype(np.float32)])]

    def tensors(self) -> list[Tensor]:
        """As `ExportedPolicy` takes them."""
        return [torch.tensor(array) for array in self.inputs()]

    def decisions(self) -> DecisionSteps:
        """As a policy takes them."""
        zeros = np.zeros(self.num_rows, np.float32)
        return DecisionSteps(np.arange(self.num_rows), self.observations, zeros, self.allowed)


@torch.no_grad()
@np.errstate(over="ignore", invalid="ignore")  # what overflows becomes a difference
def check(run: Run, weights: Weights, policy: ExportedPolicy) -> float:
    """Return the largest difference from `VectorPolicy`, in units of the largest number in the network or of 1.

    Raises ExportError when a difference exceeds TOLERANCE, a choice that is not among the likeliest is called
    deterministic, a constant is wrong, or samples are not distributed as they should be.
    """
    random = np.random.Generator(np.random.PCG64(SEED))
    difference = _check_deterministic(run, _mixed(policy.spec, weights, random), weights, policy)
    _check_samples(run, _many(policy.spec, weights, random), policy)
    return difference


def _mixed(spec: BehaviorSpec, weights: Weights, random: np.random.Generator) -> Situation:
    """Zeros, ordinary, familiar and large numbers in turn; of four rows each, all, some or none is allowed."""
    noise = random.standard_normal((NUM_ROWS, _columns(spec)), dtype=np.float32)
    kinds = np.zeros_like(noise), noise, _familiar(noise, weights), noise * np.float32(LARGE)
    features = np.choose(np.arange(NUM_ROWS)[:, None] % 4, kinds)
    some = random.random((NUM_ROWS, spec.actions.mask_size)) < 0.5
    allowed = np.choose(np.arange(NUM_ROWS)[:, None] // 4 % 3, (np.ones_like(some), some, np.zeros_like(some)))
    return Situation(_split(features, spec), allowed if spec.actions.branches else None)


def _many(spec: BehaviorSpec, weights: Weights, random: np.random.Generator) -> Situation:
    """Enough different rows to see a distribution; every agent has at least one choice in every branch."""
    features = _familiar(random.standard_normal((NUM_SAMPLES, _columns(spec)), dtype=np.float32), weights)
    allowed = random.random((NUM_SAMPLES, spec.actions.mask_size)) < 0.7
    for start in np.cumsum((0, *spec.actions.branches[:-1])):
        allowed[:, start : start + 1] = True
    return Situation(_split(features, spec), allowed if spec.actions.branches else None)


def _columns(spec: BehaviorSpec) -> int:
    return sum(int(np.prod(observation.shape)) for observation in spec.observations)


def _familiar(noise: Float32, weights: Weights) -> Float32:
    """Spread as the observations were: otherwise a normalizer clips nearly everything."""
    if "normalizer.mean" not in weights.arrays:
        return noise
    return weights.arrays["normalizer.mean"] + noise / weights.arrays["normalizer.scale"]


def _split(features: Float32, spec: BehaviorSpec) -> Observations:
    ends = np.cumsum([int(np.prod(observation.shape)) for observation in spec.observations])[:-1]
    parts = np.split(features, ends, axis=1)
    return tuple(
        np.ascontiguousarray(part).reshape(len(part), *observation.shape)
        for part, observation in zip(parts, spec.observations, strict=True)
    )


def _outputs(run: Run, situation: Situation, policy: ExportedPolicy) -> Outputs:
    """What the graph says, once its names, types, shapes and constants are right."""
    outputs = run(dict(zip(input_names(policy.spec), situation.inputs(), strict=True)))
    _check_contract(outputs, policy.spec.actions, situation.num_rows)
    return outputs


def _check_contract(outputs: Outputs, actions: ActionSpec, rows: int) -> None:
    """Names, types and shapes, and the constants, which are the same for every input."""
    constants = {
        names.VERSION_OUTPUT: np.array([names.VERSION_NUMBER], np.float32),
        names.MEMORY_OUTPUT: np.zeros(1, np.float32),
        names.CONTINUOUS_SHAPE_OUTPUT: np.array([actions.continuous], np.float32),
        names.DISCRETE_SHAPE_OUTPUT: np.array([actions.branches], np.float32),
    }
    continuous, discrete = f"float32[{rows}, {actions.continuous}]", f"int64[{rows}, {len(actions.branches)}]"
    if list(outputs) != output_names(actions):
        raise ExportError(f"the graph's outputs are {', '.join(outputs)} instead of {', '.join(output_names(actions))}")
    for name, output in outputs.items():
        if name in constants:
            found, expected = f"{output.dtype}{output.tolist()}", f"float32{constants[name].tolist()}"
        else:
            is_discrete = name in {names.DISCRETE_OUTPUT, names.DETERMINISTIC_DISCRETE_OUTPUT}
            found, expected = f"{output.dtype}{list(output.shape)}", discrete if is_discrete else continuous
        if found != expected:
            raise ExportError(f"the graph's {name} is {found} instead of {expected}")


def _check_deterministic(run: Run, situation: Situation, weights: Weights, policy: ExportedPolicy) -> float:
    """The largest difference, at every batch size."""
    reference = VectorPolicy(policy.spec.actions, policy.activation, is_deterministic=True, seed=0)
    reference.load(weights)
    chosen = reference.act(situation.decisions()).actions
    unit = torch.cat(policy.values(*situation.tensors()), 1).abs().amax(1, keepdim=True).clamp(min=1.0)
    _, branches = policy.distributions(*situation.tensors())
    differences = [_lags(branches, chosen.discrete)]
    for size in BATCH_SIZES:
        starts = range(0, situation.num_rows, size)
        outputs = [_outputs(run, situation.slice(start, start + size), policy) for start in starts]
        if policy.spec.actions.continuous:
            found = np.concatenate([output[names.DETERMINISTIC_CONTINUOUS_OUTPUT] for output in outputs])
            differences.append(torch.tensor(found - chosen.continuous).abs())
        if branches:
            choices = np.concatenate([output[names.DETERMINISTIC_DISCRETE_OUTPUT] for output in outputs])
            differences.append(_lags(branches, choices))
    largest = float((torch.cat(differences, 1) / unit).max())
    if not largest <= TOLERANCE:  # also when it is not a number
        raise ExportError(f"the graph's deterministic actions differ by {largest:.3g} from the policy's")
    return largest


def _lags(branches: Sequence[Tensor], choices: Int64) -> Tensor:
    """f32[B, K]: how far the logit of each choice i64[B, K] is below the largest of its branch."""
    lags = [torch.empty(len(choices), 0)]
    for logits, choice in zip(branches, torch.tensor(choices).unbind(1), strict=True):
        _check_range(choice, logits)
        lags.append(logits.amax(1, keepdim=True) - logits.gather(1, choice.unsqueeze(1)))
    return torch.cat(lags, 1)


def _check_range(choice: Tensor, logits: Tensor) -> None:
    """Every choice i64[B] is one of those that f32[B, C] has logits for."""
    if not bool(((choice >= 0) & (choice < logits.shape[1])).all()):
        raise ExportError(f"the graph chooses beyond a branch's {logits.shape[1]} choices")


def _check_samples(run: Run, situation: Situation, policy: ExportedPolicy) -> None:
    """What is sampled stays in its range and comes as often as the policy's distribution says."""
    outputs = _outputs(run, situation, policy)
    mean, branches = policy.distributions(*situation.tensors())
    if mean is not None:
        _check_gaussian(torch.tensor(outputs[names.CONTINUOUS_OUTPUT]), mean, policy.get_buffer("log_sigma").exp())
    for branch, logits in enumerate(branches):
        choice = torch.tensor(outputs[names.DISCRETE_OUTPUT][:, branch])
        _check_range(choice, logits)
        hits, probabilities = functional.one_hot(choice, logits.shape[1]).bool(), logits.softmax(1)
        if bool((hits & (probabilities == 0)).any()):
            raise ExportError(f"the graph samples forbidden choices of branch {branch}")
        _check_frequencies(hits, probabilities, probabilities)


def _check_gaussian(actions: Tensor, mean: Tensor, sigma: Tensor) -> None:
    """Actions f32[B, A] of mean f32[B, A] and sigma f32[A] lie below three places as often as they should.

    The places are between the limits, where clipping changes no frequency, and are blurred by the rounding of float32.
    """
    if not bool((actions.abs() <= 1).all()):
        raise ExportError("the graph's sampled continuous actions leave [-1, 1]")
    blur = TOLERANCE * mean.abs().clamp(min=1.0)
    for offset in (-1.0, 0.0, 1.0):
        place = (mean + offset * sigma).clamp(-0.999 * ACTION_LIMIT, 0.999 * ACTION_LIMIT)
        low, high = (torch.special.ndtr((place + side - mean) / sigma) for side in (-blur, blur))
        _check_frequencies(actions <= place / ACTION_LIMIT, low, high)


def _check_frequencies(hits: Tensor, low: Tensor, high: Tensor) -> None:
    """In every column, the number of hits bool[B, C] is near what the probabilities f32[B, C] let expect.

    Eight standard deviations and twenty: by Bernstein's inequality a right graph fails once in 10^12 times.
    """
    found = hits.sum(0)
    slack = 20 + 8 * (high * (1 - high)).double().clamp(min=0).sum(0).sqrt()
    if not bool(((found >= low.double().sum(0) - slack) & (found <= high.double().sum(0) + slack)).all()):
        raise ExportError("the graph's samples do not come as often as the policy's")
