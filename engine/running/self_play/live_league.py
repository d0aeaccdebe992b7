"""The league of a behavior in a run: what its two threads have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rl_tui.engine.config.behavior import SelfPlaySettings
from rl_tui.engine.learning.self_play.league import League
from rl_tui.engine.learning.self_play.rotation import TeamRotation
from rl_tui.engine.specs import Policy, State, Weights

LONGEST_GAME = 10_000  # actions of an agent; in games that never end, another opponent could not take over


def longest_game(settings: SelfPlaySettings) -> int:
    """Actions after which an agent's policy may change in the middle of its episode."""
    return max(10 * settings.swap_steps, LONGEST_GAME)


class LiveLeague:
    """The collector's thread changes the league, and publishes its state; the learner's thread saves what was
    published, and asks for an earlier state.

    rotation: shared by all behaviors of an environment. oldest: the weights of the oldest snapshot, None before the
    first one. make_policy: called with the number of an opponent, which no
    other one of this behavior has. rating: of the policy that learns, as it was published last.
    """

    def __init__(
        self, settings: SelfPlaySettings, rotation: TeamRotation, seed: int, make_policy: Callable[[int], Policy]
    ) -> None:
        self.settings = settings
        self.league = League(settings, seed)
        self.rotation = rotation
        self.make_policy = make_policy
        self.rating = settings.initial_elo
        self.oldest: Weights | None = None
        self._published = State()
        self._restored: State | None = None

    def state(self) -> State:
        """What a checkpoint keeps. Any thread."""
        return self._published if self._restored is None else self._restored

    def restore(self, state: State) -> None:
        """Go on as it was then, once the collector's thread has noticed. Nothing is restored from a checkpoint without
        a league."""
        if state.values:
            self._restored = state

    def publish(self) -> None:
        """The league has changed."""
        self._published = State.merge({"league": self.league.state(), "rotation": self.rotation.state()})
        self.rating, self.oldest = self.league.rating, self.league.snapshots[0].weights

    def take_restored(self, *, is_alone: bool) -> bool:
        """Load what was restored; whether there was anything. is_alone: no other behavior shares the rotation, which
        else never goes back."""
        state = self._restored
        if state is None:
            return False
        self.league.load(state.part("league"))
        rotation = state.part("rotation")
        if is_alone or rotation.number("num_changes", absent=0) > self.rotation.num_changes:
            self.rotation.load(rotation)
        self._restored = None
        self.publish()
        return True


@dataclass(frozen=True, slots=True)
class Leagues:
    """Those of the behaviors that play each other in an environment, which grow when one appears. Any thread reads."""

    rotation: TeamRotation = field(default_factory=TeamRotation)
    of: dict[str, LiveLeague] = field(default_factory=dict)

    def oldest(self, behavior: str) -> Weights | None:
        """The oldest snapshot of a behavior; None without any."""
        return self.of[behavior].oldest if behavior in self.of else None
