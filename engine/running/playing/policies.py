"""The policies of one entrant, of which a person plays against some, and is advised by others."""

from __future__ import annotations

from rl_tui.engine.running.games.entrants import RANDOM, Entrant
from rl_tui.engine.running.policy_sources import PolicyMisfitError, PolicySource
from rl_tui.engine.specs import BehaviorSpec, Policy


class EntrantPolicies:
    """Used by one thread. Policies are read once: a run that trains removes checkpoints.

    seed: of what they sample. others_are_random: the run had agents that acted at random, and behaviors that none of
    its policies fits act so, too.
    """

    def __init__(self, entrant: Entrant, seed: int, *, others_are_random: bool = False) -> None:
        self._entrant, self._seed, self._others_are_random = entrant, seed, others_are_random
        self._sources: dict[str, PolicySource] = {}  # by behavior of the environment

    def make(self, spec: BehaviorSpec, *, is_greedy: bool) -> Policy:
        """One for these agents, whose behavior the run may name otherwise. Raises RlTuiError where none fits."""
        if spec.name not in self._sources:
            self._sources[spec.name] = self._read(spec)
        return self._sources[spec.name].make("greedy" if is_greedy else "sampled", self._seed)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is probably wrong with those that were read."""
        return tuple(line for source in self._sources.values() for line in source.warnings)

    def in_words(self, spec: BehaviorSpec) -> str:
        """Who acts for these agents: "walker at step 50,000"."""
        source = self._sources.get(spec.name)
        if source is None or source.path.name == RANDOM:
            return RANDOM
        if self._entrant.kind != "run":
            return source.path.name
        return f"{self._entrant.path.name} at step {source.step:,}"

    def _read(self, spec: BehaviorSpec) -> PolicySource:
        try:
            return self._entrant.read(spec)
        except PolicyMisfitError:
            if not self._others_are_random:
                raise
            return Entrant(RANDOM, RANDOM).read(spec)
