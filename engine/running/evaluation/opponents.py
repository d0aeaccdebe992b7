"""Who plays against a policy that is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from rl_tui.engine.errors import CheckpointError, ConfigError, ExportError
from rl_tui.engine.learning.policy_copies import MakePolicy
from rl_tui.engine.running.evaluation.saved_policy import Way
from rl_tui.engine.running.policy_sources import PolicySource, read_policy
from rl_tui.engine.running.watching.policy import LatestPolicy
from rl_tui.engine.sampling.random_policy import RandomPolicy
from rl_tui.engine.specs import BehaviorSpec, Policy, Weights

Trained = Mapping[str, tuple[MakePolicy, LatestPolicy]]  # by behavior


class NotTrainedYet(Exception):
    """The behavior of this name has appeared here first."""


class Opponent(Protocol):
    """Plays all teams but one. Used in the thread of one learner."""

    def policy_for(self, spec: BehaviorSpec) -> Policy:
        """Its policy for a behavior, which draws as it did in the evaluation before. Raises RlTuiError."""


class RandomOpponent:
    """Takes any allowed action."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def policy_for(self, spec: BehaviorSpec) -> Policy:
        """See Opponent."""
        return RandomPolicy(spec, self._seed)


class SavedOpponent:
    """Acts by an exported file, a checkpoint, or the newest ones of a run, as they were when it was made."""

    def __init__(self, path: Path, way: Way, seed: int) -> None:
        self._path, self._way, self._seed = path.absolute(), way, seed
        self._read: dict[str, PolicySource] = {}  # by behavior

    def read(self, spec: BehaviorSpec) -> PolicySource:
        """What it acts by. Raises ConfigError where it cannot be read, or acts for another behavior."""
        if spec.name not in self._read:
            try:
                self._read[spec.name] = read_policy(self._path, spec)
            except (CheckpointError, ExportError) as error:
                raise ConfigError(str(error)) from error
        return self._read[spec.name]

    def policy_for(self, spec: BehaviorSpec) -> Policy:
        """See Opponent."""
        return self.read(spec).make(self._way, self._seed)


class OldestOpponent:
    """Acts by the oldest snapshot of the window of self-play, and until there is one by the policy that training began
    with.

    oldest: the weights of a behavior's. initial: those of the behavior that is evaluated; others act by their newest
    until they have a snapshot. trained: all behaviors in training; it may grow.
    """

    def __init__(
        self,
        behavior: str,
        oldest: Callable[[str], Weights | None],
        initial: Weights,
        trained: Trained,
        *,
        is_greedy: bool,
    ) -> None:
        self._behavior, self._oldest, self._initial = behavior, oldest, initial
        self._trained, self._is_greedy = trained, is_greedy

    def policy_for(self, spec: BehaviorSpec) -> Policy:
        """See Opponent. Raises NotTrainedYet."""
        if spec.name not in self._trained:
            raise NotTrainedYet(spec.name)
        make, latest = self._trained[spec.name]
        policy, weights = make(self._is_greedy), self._oldest(spec.name)
        if weights is None:
            weights = self._initial if spec.name == self._behavior else latest.snapshot.weights
        policy.load(weights)
        return policy
