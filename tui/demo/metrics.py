"""What a summary of the demo holds: numbers like those of a real trainer, drawn from a policy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random

from rl_tui.engine.session.messages import Histogram
from rl_tui.tui.demo.policy import FIRST_ENTROPY, Policy
from rl_tui.tui.demo.script import REPLAY_STEPS, Role

BINS = 20


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
    if role.algorithm == "sac":
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
