"""Runs whose policies a person plays against, and the person, without a screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rl_tui.engine.config.loading import load_to_act
from rl_tui.engine.running.games.entrants import read_entrant, read_run
from rl_tui.engine.running.playing.games import Games
from rl_tui.engine.running.playing.seats import SeatRequest
from rl_tui.engine.running.playing.table import GameRequest
from rl_tui.engine.session.games import EMPTY, OWN, Board, GameTurn, Result
from rl_tui.engine.storage.archive import Archive
from tests.running.playing.by_hand import Person
from tests.running.runs import behavior, configuration, run_to_end

TICTACTOE, CONNECT_FOUR = "pettingzoo:classic/tictactoe_v3", "pettingzoo:classic/connect_four_v3"
TEAMS = {"Player?team=0": "player_1", "Player?team=1": "player_2"}
LINES = [
    *((row, row + 1, row + 2) for row in (0, 3, 6)), *((column, column + 3, column + 6) for column in (0, 1, 2)),
    (0, 4, 8), (2, 4, 6),
]  # fmt: skip


def trained(folder: Path, env: Any, names: Sequence[str] = ("Player",), **env_settings: Any) -> Path:
    """The folder of a run that has learned for a moment, with a checkpoint and an exported policy of each behavior.

    env: one, or one of each behavior.
    """
    config = configuration(folder, {name: behavior() for name in names}, env, env_settings=env_settings)
    run = run_to_end(config)
    assert run.launch.exit_code == 0, run.recent_events()
    return run.folder


def tictactoe_run(folder: Path) -> Path:
    """One policy has both seats, each of which is a team."""
    return trained(folder, TICTACTOE, behaviors=TEAMS)


class Opposed(Person[GameTurn]):
    """Plays the run's game. opponent: as it is typed; None for the run's own policy."""

    def __init__(
        self, run: Path, opponent: str | None = None, *, most_choices: int = 40, sampled: bool = False, at: str = "",
        seed: int = 1, **seat: Any,
    ) -> None:  # fmt: skip
        """at: like "@128". seat: of a SeatRequest. Raises RlTuiError for what is refused at once."""
        archive = Archive(run.parent)
        of_run = read_run(f"{run.name}{at}", archive)
        other = of_run if opponent is None else read_entrant(opponent, archive)
        request = GameRequest(of_run, other, SeatRequest(**seat), not sampled, seed, most_choices)
        self.games = Games(request, load_to_act(run / "configuration.yaml"))
        super().__init__(self.games, self.games.main, self.games.crashed)

    def play_first(self) -> GameTurn:
        """The end of a game in which the person always takes the first choice that is allowed."""
        assert self.turn is not None
        while not self.turn.is_over:
            self.act(self.turn.is_allowed.index(True))
        return self.turn

    def next(self) -> GameTurn:
        """The first turn of the next game."""
        turn = self.say(self.games.begin)
        assert turn is not None
        return turn


def board_of(turn: GameTurn) -> Board:
    assert turn.board is not None
    return turn.board


def counts(turn: GameTurn) -> tuple[int, int]:
    """How many fields are the person's, and how many the other's."""
    fields = [field for row in board_of(turn).fields for field in row]
    return fields.count(OWN), len(fields) - fields.count(OWN) - fields.count(EMPTY)


def result_of_tictactoe(turn: GameTurn) -> Result:
    """By the board alone."""
    fields = [field for row in board_of(turn).fields for field in row]
    lines = [[fields[at] for at in line] for line in LINES]
    winners = {line[0] for line in lines if line[0] != EMPTY and len(set(line)) == 1}
    return "drawn" if not winners else "won" if OWN in winners else "lost"
