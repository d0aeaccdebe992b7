"""Self-play learns a game that it must play well from both seats, from a fixed seed, in a whole run."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rl_tui.engine.running.policy_sources import read_policy
from rl_tui.engine.session.messages import LeagueReported
from tests.learning.games.boards import Boards
from tests.learning.games.matches import play
from tests.learning.games.players import PerfectPlayer, PolicyPlayer
from tests.learning.games.rows import FIRST, SECOND, TIC_TAC_TOE
from tests.running.runs import configuration, run_to_end

CONFIGS = Path(__file__).parents[3] / "config"
MOVES, GAMES = 200_000, 300


@pytest.mark.slow
@pytest.mark.learning
def test_tic_tac_toe_is_played_to_a_draw_against_a_perfect_player(tmp_path: Path) -> None:
    """By the preset's settings, in less than half of its moves. Where all opponents are the first snapshot, or one seat
    alone learns, the second player draws half of its games."""
    preset = yaml.safe_load((CONFIGS / "ppo/TicTacToe.yaml").read_text())
    settings = preset["behaviors"]["TicTacToe"]
    env = {"env": "tests.learning.games.boards:Boards", "num_envs": 1}
    config = configuration(tmp_path, {"Player": settings | {"max_steps": MOVES}}, env_settings=env)
    run = run_to_end(config)
    assert run.launch.exit_code == 0, run.recent_events()
    assert run.of(LeagueReported)[-1].rating > 1200
    spec = next(iter(Boards().specs.values()))
    player = PolicyPlayer(TIC_TAC_TOE, read_policy(run.folder, spec).make("greedy", 0))
    for seat, least in ((FIRST, 0.95), (SECOND, 0.75)):
        results = play(TIC_TAC_TOE, player, PerfectPlayer(TIC_TAC_TOE, 1), GAMES, seat=seat)
        assert results.drawn >= least * GAMES, results
