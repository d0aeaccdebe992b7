"""Games that a person plays against policies, in the environment of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.running.lessons.restoring import make_lessons
from rl_tui.engine.running.playing.exchange import WAIT_SECONDS, Exchange
from rl_tui.engine.running.playing.game import Game
from rl_tui.engine.running.playing.playable import environment_to_play, with_all_players
from rl_tui.engine.running.playing.stage import Stage
from rl_tui.engine.running.playing.table import GameRequest, Table
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.games import Advice, GameTurn, Result
from rl_tui.engine.specs import BehaviorSpec, Steps
from rl_tui.engine.storage.run_folder import RunFolder


class Games(Exchange[GameTurn]):
    """Implements GamePlaying. `main` runs in the thread `play`, and owns an environment in a process of its own.

    error: why the play has ended by itself. failure: of the environment, unless another one was begun since. table:
    who plays; None before the environment was started.
    """

    def __init__(self, request: GameRequest, config: RunConfig) -> None:
        """config: of the run. Raises RlTuiError for an environment that no person can play here."""
        super().__init__()
        self.error: BaseException | None = None
        self.failure: RlTuiError | None = None
        self.table: Table | None = None
        source = environment_to_play(config, request.seat.behavior, request.seed)
        self._source, self._has_random_agents = with_all_players(source), bool(source.adaptation.random_agents)
        self._request, self._config = request, config
        self._stage = Stage(self._source.showing_ends(), config.env_settings.timeout_wait, self)
        self._newest: GameTurn | None = None
        self._num_games = 0

    def begin(self) -> None:
        """See GamePlaying."""
        self.say("begin")

    def advise(self) -> None:
        """See GamePlaying."""
        self.say("advise")

    def crashed(self, error: BaseException) -> None:
        """An internal error has ended the play."""
        self.error = error
        self.end()

    def main(self) -> None:
        """Play until the end."""
        try:
            self._stage.play(self._play_in, self._wait_after)
        except RlTuiError as error:
            self.error = error
        self.end()

    def _play_in(self, pool: ProcessPool) -> None:
        """One game after the other, until the end or until the environment fails. Raises RlTuiError."""
        lessons = make_lessons(self._config, self._request.seed, EventBus(), self._run)
        if lessons.has_any:
            pool.set_parameters(lessons.values)
        pool.start(lambda: self.is_finished)
        if self.table is None:
            random = self._has_random_agents
            self.table = Table(self._source.env, pool, self._request, has_random_agents=random)
        while not self.is_finished:
            self._play_game(pool, self.table)

    @property
    def _run(self) -> RunFolder:
        path = self._request.run.path
        return RunFolder(path.parent, path.name)

    def _play_game(self, pool: ProcessPool, table: Table) -> None:
        """Until the person has another one, or none any more."""
        self.is_busy = True
        pool.reset(self._request.seed + self._num_games)
        self._num_games += 1
        table.begin()
        game = Game(self._num_games)
        while not self.is_finished:
            for instance, behaviors in pool.receive(WAIT_SECONDS):
                if not self._take_turn(pool, instance, behaviors, table, game):
                    return

    def _take_turn(
        self, pool: ProcessPool, instance: int, behaviors: Mapping[str, Steps], table: Table, game: Game
    ) -> bool:
        """All agents act that wait; returns whether the game goes on."""
        table.others.require(pool.specs)
        table.seats.see(behaviors)
        person, choice = table.seats.agent, None
        if person is not None:
            game.see(behaviors.get(person[0]), person[1], pool.specs[person[0]])
        if game.is_over:
            self._end_game(pool, table, game)
            return False
        if game.waiting is not None:
            table.adviser.see(game.waiting)
            choice = self._ask(pool, table, game)
            if choice is None:
                return False
            game.act(choice)
        elif "begin" in list(self.commands_by_now()):
            if person is None:  # its seat may never act in this game
                table.seats.swap()
            return False
        chosen, answers = table.others.act(behaviors, person, choice)
        game.note_answers(answers)
        self.is_busy = True
        pool.send(instance, chosen)
        return True

    def _ask(self, pool: ProcessPool, table: Table, game: Game) -> int | None:
        """What the person chooses; None for another game, or the end."""
        spec = pool.specs[table.seats.seat.behavior]
        advice: Advice | None = None
        self._stage.draw(pool)
        self._show(spec, table, game, advice)
        for command in self.commands_until_end():
            match command:
                case int():
                    if game.is_allowed(spec)[command]:
                        return command
                case "begin":
                    return None
                case "advise":
                    advice = table.adviser.advice()
                case "draw":
                    self._stage.draw(pool)
            self._show(spec, table, game, advice)
        return None

    def _end_game(self, pool: ProcessPool, table: Table, game: Game) -> None:
        """Show how it ended until the person wants another one, in the next seat."""
        behavior = table.seats.seat.behavior
        table.end(self._result(table, game, behavior), game.total, game.num_steps)
        self._stage.draw(pool)
        self._show(pool.specs[behavior], table, game, None)
        for command in self.commands_until_end():
            if command == "begin":
                table.seats.swap()
                return
            if command == "draw":
                self._stage.draw(pool)
                self._show(pool.specs[behavior], table, game, None)

    def _result(self, table: Table, game: Game, behavior: str) -> Result | None:
        settings = self._config.behaviors.get(behavior) or self._config.default_settings
        return game.result(None if settings is None else settings.self_play) if table.has_opponents else None

    def _wait_after(self, error: RlTuiError) -> None:
        """Show why the environment failed until the person wants another game, or the end."""
        assert self._newest is not None
        self.failure, turn = error, self._newest
        scene = replace(turn.scene, state="failed", reason=str(error))
        self.show(replace(turn, scene=scene, is_allowed=(False,) * len(turn.choices), advice=None))
        for command in self.commands_until_end():
            if command == "begin":
                self.is_busy, self.failure = True, None  # until there is a new environment
                return

    def _show(self, spec: BehaviorSpec, table: Table, game: Game, advice: Advice | None) -> None:
        behavior = table.seats.seat.behavior
        scene = replace(game.scene(behavior), returns=tuple(table.returns), lengths=tuple(table.lengths))
        self._newest = GameTurn(
            scene=self._stage.drawn_in(scene, "playing", ""),
            choices=spec.choice_names or ("",) * spec.actions.mask_size,
            is_allowed=game.is_allowed(spec),
            seat=table.seats.seat,
            opponent=table.opponent,
            opponent_way=table.opponent_way,
            answers=tuple(game.answers) if game.board is not None else (),
            is_over=game.is_over,
            result=self._result(table, game, behavior) if game.is_over else None,
            tallies=tuple(table.tallies),
            board=game.board,
            advice=advice,
        )
        self.show(self._newest)
