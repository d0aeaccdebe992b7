"""How a made-up policy comes to what it can: the few numbers from which every curve of the demo is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from rl_tui.tui.demo.script import Role

FIRST_ENTROPY = 1.6
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
