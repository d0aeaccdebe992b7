"""Who learns and who plays against whom, in one environment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rl_tui.engine.learning.self_play.elo import scores_of
from rl_tui.engine.learning.self_play.league import League, Result, Snapshot, Standing
from rl_tui.engine.learning.self_play.rotation import TeamRotation
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.collection import Collection
from rl_tui.engine.running.games.seats import only_one_team, teams_in_words, teams_of
from rl_tui.engine.running.ranks.messages import LeagueMove
from rl_tui.engine.running.self_play.live_league import LiveLeague
from rl_tui.engine.running.triggers import Trigger
from rl_tui.engine.sampling.team_policies import NumberedPolicy
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import LeagueReported, LeagueSnapshot
from rl_tui.engine.specs import BehaviorSpec, Game, Trajectories, Weights

REPORT_SECONDS = 1.0
DESERTED_STEPS = 10_000  # of opponents, in which no agent of the team that learns has acted
LONELY_STEPS = 10_000  # of a team that is the only one
KEPT_NUMBERS = 1000  # opponents whose last games may not have ended


@dataclass(slots=True)
class _Player:
    """A behavior that plays itself. sampled, learned: steps of its agents that were counted. number: of its newest
    opponent."""

    behavior: Behavior
    live: LiveLeague
    teams: tuple[int, ...] = ()
    sampled: int = 0
    learned: int = 0
    number: int = 0

    @property
    def name(self) -> str:
        return self.behavior.spec.name

    @property
    def league(self) -> League:
        return self.live.league

    def newest(self) -> Weights:
        """The weights of the policy that learns, which nothing writes to."""
        return self.behavior.learner.weights.latest.snapshot.weights


class Matchmaking:
    """Used in the collector's thread: `begin` for each collection, then `add_games` for each block, and `follow` before
    agents act. Does nothing where no behavior plays itself."""

    def __init__(self, environment: str, bus: EventBus) -> None:
        self._environment = environment
        self._bus = bus
        self._players: dict[str, _Player] = {}
        self._num_met = 0  # behaviors, with those that do not play
        self._specs: Mapping[str, BehaviorSpec] = {}  # of the pool, when their teams were looked at last
        self._standings: dict[tuple[str, int], Standing | None] = {}  # by behavior and number of an opponent
        self._deserted = 0  # steps of opponents since an agent of the team that learns has acted
        self._is_lonely = False  # and a warning has said so
        self._report = Trigger(REPORT_SECONDS, by_clock=True)
        self._decides = True
        self._is_one_of_several = False  # ranks
        self._announce: Callable[[LeagueMove], None] = lambda _: None
        self._may_decide: Callable[[], bool] = lambda: True

    def share(self, announce: Callable[[LeagueMove], None] | None, may_decide: Callable[[], bool]) -> None:
        """Be one of several ranks. announce: called with what is decided here, None where another rank decides.
        may_decide: whether this is the moment."""
        self._is_one_of_several, self._decides, self._may_decide = True, announce is not None, may_decide
        self._announce = announce or (lambda _: None)

    def add_of_ranks(self, behavior: str, games: Sequence[Game], opponent_steps: int) -> None:
        """Rate games of other ranks, and count the steps of opponents of all."""
        player = self._players.get(behavior)
        if player is not None:
            player.league.opponent_steps += opponent_steps
            for game in games:
                self._rate(player, game)
            self._publish()

    def carry_out(self, running: Collection, move: LeagueMove) -> None:
        """Do what was decided on rank 0."""
        if len(running.behaviors) > self._num_met:
            self._admit(running)
        player = self._players[move.behavior]
        self._rotation.load(move.rotation)
        if move.snapshot is not None:
            player.league.save(move.snapshot, player.newest())
        if move.opponents is not None:
            player.number = move.number
            player.league.play(move.opponents, self._learning, player.newest)
            self._assign(running, player)
        self._publish()
        self.report()

    def begin(self, running: Collection) -> None:
        """Play in this collection, whose agents begin new episodes."""
        self._num_met, self._players, self._specs = 0, {}, {}
        self._admit(running)
        for player in self._players.values():
            self._assign(running, player)
        self._publish()

    def add_games(self, behavior: str, block: Trajectories) -> None:
        """Rate the games in a block of experience."""
        player = self._players.get(behavior)
        if player is None:
            return
        self._notice_teams(player, block)
        if self._decides and block.policy_version >= player.behavior.learner.weights.first_version:
            for game in block.games:
                self._rate(player, game)
        self._publish()
        if block.games:
            self._report.fire(time.monotonic(), lambda _: self.report())

    def follow(self, running: Collection) -> None:
        """Carry out what is due: turns, snapshots, opponents."""
        if len(running.behaviors) > self._num_met:
            self._admit(running)
        if not self._players:
            return
        if self._specs is not running.pool.specs:
            self._meet_teams(running)
        if not self._decides:
            for player in self._players.values():
                self._restore(running, player)
        elif self._may_decide():
            self._decide(running)

    def _decide(self, running: Collection) -> None:
        self._warn_if_lonely()
        has_changed, learning = self._pass_on_turn(), self._learning
        for player in self._players.values():
            has_changed |= self._advance(running, player)
        if running.is_remote and self._learning != learning:  # else a round begins in which some, or all, do not learn
            for player in self._players.values():
                self._swap(running, player)
        if has_changed:
            self._publish()
            self.report()

    def report(self, *, is_over: bool = False) -> None:
        """Publish every league. is_over: no opponent plays any more."""
        for player in self._players.values():
            self._bus.publish(self._report_of(player, is_over))

    @property
    def _rotation(self) -> TeamRotation:
        """Of all players of the environment."""
        return next(iter(self._players.values())).live.rotation

    @property
    def _learning(self) -> int:
        learning = self._rotation.learning
        assert learning is not None, "teams were added"
        return learning

    def _admit(self, running: Collection) -> None:
        """Behaviors that have appeared since the last call."""
        self._num_met = len(running.behaviors)
        for name, behavior in running.behaviors.items():
            if behavior.league is not None and name not in self._players:
                player = self._players[name] = _Player(behavior, behavior.league)
                player.live.take_restored(is_alone=False)
                player.league.begin(player.newest(), behavior.learner.step)
        if self._players:
            self._meet_teams(running)

    def _meet_teams(self, running: Collection) -> None:
        """Let all teams that have appeared since the last call take part."""
        self._specs = running.pool.specs
        known = self._rotation.teams
        for player in self._players.values():
            player.teams = tuple(sorted({*player.teams, *teams_of(self._specs[player.name])}))
            self._rotation.add(player.teams)
        for player in self._players.values():
            if player.league.meet(player.teams, self._learning, player.newest()):
                self._assign(running, player)
        if known and (late := sorted(self._rotation.teams - known)):
            text = f"{teams_in_words(late)} {'have' if late[1:] else 'has'} appeared, and will learn in turn"
            self._bus.log("info", self._environment, text)

    def _notice_teams(self, player: _Player, block: Trajectories) -> None:
        """Teams that have appeared where agents act in workers."""
        if block.team_ids is not None and (late := set(np.unique(block.team_ids).tolist()).difference(player.teams)):
            player.teams = (*player.teams, *sorted(late))
            self._specs = {}

    def _advance(self, running: Collection, player: _Player) -> bool:
        """Whether anything has changed."""
        self._count(running, player)
        league, step = player.league, player.behavior.learner.step
        if self._restore(running, player):
            return True
        has_turn = league.is_change_due(step)
        if has_turn:
            self._change_turn()
        has_saved = league.save_if_due(step, player.newest)
        has_swapped = self._swap(running, player, step if has_saved else None)
        return has_turn or has_saved or has_swapped

    def _restore(self, running: Collection, player: _Player) -> bool:
        """Go on as a checkpoint has it; whether there was one."""
        if not player.live.take_restored(is_alone=len(self._players) == 1):
            return False
        player.league.meet(player.teams, self._learning, player.newest())
        self._assign(running, player)
        return True

    def _swap(self, running: Collection, player: _Player, snapshot: int | None = None) -> bool:
        """Draw other opponents where it is time; whether that was done. snapshot: the step of one that was taken."""
        number, league = player.number, player.league
        has_swapped = league.swap_if_due(player.teams, self._learning, player.newest)
        if has_swapped:
            self._assign(running, player)
        if has_swapped or snapshot is not None:
            opponents = league.drawn if has_swapped else None
            self._announce(LeagueMove(player.name, self._rotation.state(), snapshot, opponents, number))
        return has_swapped

    def _count(self, running: Collection, player: _Player) -> None:
        """Count the steps of opponents, and how long the team that learns has had no agent."""
        sampled = running.collector.num_sampled[player.name]
        learned = running.collector.num_learned(player.name)
        of_opponents = sampled - player.sampled - (learned - player.learned)
        self._deserted = self._deserted + of_opponents if learned == player.learned else 0
        if not self._is_one_of_several:
            player.league.opponent_steps += of_opponents
        player.sampled, player.learned = sampled, learned

    def _warn_if_lonely(self) -> None:
        if self._is_lonely or len(self._rotation.teams) > 1:
            return
        if sum(player.learned for player in self._players.values()) > LONELY_STEPS:
            self._is_lonely = True
            text = f"self_play: {self._environment} has {only_one_team(self._players)}"
            self._bus.log("warning", self._environment, text)

    def _pass_on_turn(self) -> bool:
        """Let the next team learn where this one cannot; whether that was done."""
        learning = self._learning
        learners = [player for player in self._players.values() if learning in player.teams]
        others = [player for player in self._players.values() if not player.behavior.learner.is_over]
        if others and all(player.behavior.learner.is_over for player in learners):
            self._change_turn()
            return True
        if self._deserted > DESERTED_STEPS and len(self._rotation.teams) > 1:
            self._deserted = 0
            text = (
                f"team {learning}, whose turn it is to learn, has had no agent for {DESERTED_STEPS:,} steps of others"
            )
            self._bus.log("warning", self._environment, f"{text}: the next team learns")
            self._change_turn()
            return True
        return False

    def _change_turn(self) -> None:
        self._rotation.change()
        steps = ", ".join(
            f"{player.name} is at step {player.behavior.learner.step:,}" for player in self._players.values()
        )
        self._bus.log("info", self._environment, f"team {self._learning} learns from here ({steps})")

    def _assign(self, running: Collection, player: _Player) -> None:
        """Let every team of a behavior act by its opponent, from its next games on; one that learns has none."""
        for team in player.teams:
            opponent = player.league.opponents.get(team)
            if opponent is None or team == self._learning:
                running.collector.assign(player.name, team, None)
                continue
            player.number += 1
            policy = player.live.make_policy(player.number)
            policy.load(opponent.weights)
            self._standings[player.name, player.number] = opponent.standing
            self._standings.pop((player.name, player.number - KEPT_NUMBERS), None)
            running.collector.assign(player.name, team, NumberedPolicy(player.number, policy, opponent.weights))

    def _rate(self, player: _Player, game: Game) -> None:
        scores = scores_of(game, player.live.settings)
        if scores is None:
            return
        standings = [self._standings.get((side.behavior, side.policy)) for side in game.opponents]
        player.league.rate([Result(*each) for each in zip(standings, scores, strict=True)])

    def _publish(self) -> None:
        for player in self._players.values():
            player.live.publish()

    def _report_of(self, player: _Player, is_over: bool) -> LeagueReported:
        league = player.league
        playing = set() if is_over else {opponent.snapshot for opponent in league.opponents.values()}
        return LeagueReported(
            behavior=player.name,
            step=player.behavior.learner.step,
            rating=league.rating,
            learning_team=self._learning,
            is_learning=(is_learning := self._learning in player.teams),
            next_team_change=league.next_change if is_learning and len(self._rotation.teams) > 1 else None,
            teams=player.teams,
            num_games=league.num_games,
            snapshots=tuple(_described(each, each in playing) for each in league.snapshots),
        )


def _described(snapshot: Snapshot, is_playing: bool) -> LeagueSnapshot:
    standing = snapshot.standing
    games = standing.won, standing.drawn, standing.lost
    return LeagueSnapshot(snapshot.step, standing.rating, *games, is_playing)
