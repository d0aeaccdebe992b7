"""The policies of all entrants, each made once for each behavior."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.arena.request import Source
from rl_tui.engine.running.evaluation.saved_policy import Way
from rl_tui.engine.running.games.entrants import RANDOM, Entrant
from rl_tui.engine.running.games.playing import PolicyFor
from rl_tui.engine.running.policy_sources import PolicySource
from rl_tui.engine.running.run_setup import derived_seed
from rl_tui.engine.sampling.environments.base import NoteLevel
from rl_tui.engine.specs import BehaviorSpec, Policy


class Cast:
    """Reads what entrants act with, when a behavior is first met: a run that trains removes checkpoints."""

    def __init__(
        self,
        entrants: Sequence[Entrant],
        way: Way,
        seed: int,
        behaviors: Callable[[], Sequence[str]],
        on_note: Callable[[NoteLevel, str], None],
    ) -> None:
        """behaviors: names all in the environment, which may get more."""
        self._entrants, self._way, self._seed = entrants, way, seed
        self._behaviors, self._on_note = behaviors, on_note
        self._found: dict[tuple[int, str], tuple[PolicySource, Policy]] = {}  # by entrant and behavior

    def read(self, specs: Iterable[BehaviorSpec]) -> None:
        """The policies of all entrants for these behaviors. Raises RlTuiError, naming the entrant."""
        for spec in specs:
            for place in range(len(self._entrants)):
                self._policy_for(place, spec)

    def policy_for(self, place: int) -> PolicyFor:
        """The policies of one entrant, by behavior."""
        return partial(self._policy_for, place)

    @property
    def sources(self) -> tuple[Mapping[str, Source], ...]:
        """What each entrant was read from, by behavior; empty for random play."""
        return tuple(self._sources_of(place) for place in range(len(self._entrants)))

    def _sources_of(self, place: int) -> Mapping[str, Source]:
        if self._entrants[place].kind == RANDOM:
            return {}
        found = {name: source for (of, name), (source, _) in self._found.items() if of == place}
        return {name: Source(source.path, source.step) for name, source in found.items()}

    def _policy_for(self, place: int, spec: BehaviorSpec) -> Policy:
        if (place, spec.name) not in self._found:
            entrant, behaviors = self._entrants[place], self._behaviors()
            if entrant.kind in ("exported", "checkpoint") and len(behaviors) > 1:
                several = f"and the environment has several: {', '.join(behaviors)}. Name a run"
                raise ConfigError(f"{entrant.name}: it acts for one behavior, {several}")
            source = entrant.read(spec)
            for line in source.warnings:
                self._on_note("warning", line)
            if entrant.kind != RANDOM and source.only not in (None, self._way):
                has = "has sampled actions alone" if source.only == "sampled" else "never samples its actions"
                self._on_note("warning", f"{entrant.name}: this file {has}, and so plays that way")
            self._found[place, spec.name] = source, source.make(self._way, derived_seed(self._seed, place))
        return self._found[place, spec.name][1]
