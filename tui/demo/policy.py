"""A made-up policy: the few numbers from which every curve of the demo is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from rl_tui.engine.session.messages import Histogram
from rl_tui.tui.demo.script import REPLAY_STEPS, Role

FIRST_ENTROPY = 1.6
BINS = 20  # of the returns of a summary
EXPLORES = 0.3  # entropy below which a policy begins to forget
ENOUGH_TARGET, NO_TARGET = -20.0, -68.0  # of soft actor-critic's entropy; the script begins a sixth of the way up


@dataclass(slots=True)
class Policy:
    """skill: 0 knows nothing, 1 is perfect; mood: the slow ups and downs around it, of deviation 1."""

    skill: float = 0.0
    entropy: float = FIRST_ENTROPY
    mood: float = 0.0

    def practice(self, role: Role, values: Mapping[str, float], share: float, chance: Random) -> None:
        """Learn for that share of the role's max_steps with these hyperparameters."""
        pace = values["learning_rate"] / role.hyperparameters["learning_rate"]
        bold = max(0.0, pace - 3)  # beyond three times what suits it, it learns nonsense
        explores = min(1.0, self.entropy / EXPLORES)
        ceiling = explores / (1 + bold)
        speed = 3.2 * math.sqrt(min(pace, 3.0)) if ceiling > self.skill else 4.0 * (1 + bold)
        self.skill = approach(self.skill, ceiling, speed * share)
        self.entropy = approach(self.entropy, self._settled_entropy(role, values), 15 * share)
        kept = math.exp(-60 * share)
        self.mood = self.mood * kept + chance.gauss(0, math.sqrt(1 - kept * kept))

    def _settled_entropy(self, role: Role, values: Mapping[str, float]) -> float:
        """Where it goes if nothing changes."""
        if role.fate == "collapses":
            share = (values["target_entropy"] - NO_TARGET) / (ENOUGH_TARGET - NO_TARGET)
            return FIRST_ENTROPY * max(0.0, min(1.0, share)) ** 3
        weight = math.sqrt(values.get("beta", 1.0) / role.hyperparameters.get("beta", 1.0))
        return FIRST_ENTROPY * min(1.5, (1.0 - 0.7 * self.skill) * weight)

    def expected_return(self, role: Role) -> float:
        """The mean return of many episodes."""
        first, best = role.returns
        return first + (best - first) * max(0.0, min(1.0, self.skill + 0.02 * self.mood))


def approach(value: float, target: float, share: float) -> float:
    """`value`, gone the way of an exponential towards `target`."""
    return target + (value - target) * math.exp(-share)


def spread(role: Role, policy: Policy) -> float:
    """How far single returns lie from their mean."""
    first, best = role.returns
    return abs(best - first) * (0.03 + 0.16 * policy.skill * (1 - policy.skill))


def summary(role: Role, policy: Policy, values: Mapping[str, float], share: float, chance: Random) -> dict[str, float]:
    """Metrics by ML-Agents' tags. share: of max_steps that are behind it."""
    pace = values["learning_rate"] / role.hyperparameters["learning_rate"]
    mean = policy.expected_return(role)
    metrics = {
        "Environment/Cumulative Reward": mean + chance.gauss(0, spread(role, policy) / 4),
        "Environment/Episode Length": episode_steps(role, policy, chance),
        "Losses/Policy Loss": abs(chance.gauss(0.021, 0.002)) * pace,
        "Losses/Value Loss": (0.2 + 2.4 * math.exp(-5 * share)) * chance.uniform(0.85, 1.15) * math.sqrt(pace),
    }
    value = 0.8 * mean + chance.gauss(0, spread(role, policy) / 8)
    entropy = policy.entropy * chance.uniform(0.985, 1.015)
    if role.trainer.has_replay:
        metrics |= {
            "Losses/Q1 Loss": metrics["Losses/Value Loss"] * chance.uniform(1.9, 2.1),
            "Losses/Q2 Loss": metrics["Losses/Value Loss"] * chance.uniform(1.9, 2.1),
            "Policy/Continuous Entropy Coeff": 0.2 * (entropy / FIRST_ENTROPY) ** 2.4,
            "Policy/Entropy": 40.0 * entropy - 54.0,  # of twenty actions together
            "Policy/Extrinsic Value": value,
            "Policy/Learning Rate": values["learning_rate"],
            "Policy/Replay Steps": float(min(round(share * role.max_steps), REPLAY_STEPS)),
        }
    else:
        metrics |= {
            "Policy/Entropy": entropy,
            "Policy/Extrinsic Value Estimate": value,
            "Policy/Learning Rate": values["learning_rate"] * max(0.0, 1 - share),
            "Policy/KL Divergence": 0.012 * pace * chance.uniform(0.8, 1.25),
            "Policy/Clip Fraction": min(0.9, 0.11 * pace * chance.uniform(0.8, 1.2)),
            "Policy/Epsilon": values["epsilon"] * max(0.5, 1 - share),
            "Policy/Beta": values["beta"] * max(0.01, 1 - share),
        }
    return metrics


def episode_steps(role: Role, policy: Policy, chance: Random) -> float:
    """Mean length of some episodes: they grow or shrink as the policy learns."""
    learned = 0.25 + 0.75 * policy.skill
    return max(1.0, role.episode_steps * learned * chance.uniform(0.97, 1.03))


def histogram(mean: float, deviation: float, count: int) -> Histogram:
    """`count` returns, normally distributed."""
    low, width = mean - 3 * deviation, 6 * deviation / BINS
    limits = tuple(low + width * (number + 1) for number in range(BINS))
    density = [math.exp(-0.5 * ((limit - width / 2 - mean) / deviation) ** 2) for limit in limits]
    counts = tuple(float(round(count * each / sum(density))) for each in density)
    squares = count * (mean * mean + deviation * deviation)
    return Histogram(low, low + width * BINS, count, count * mean, squares, limits, counts)
