"""What the presets of self-play learn: `python -m tests.benchmarks.self_play_learning [--only GAME] [--seeds 1,2,3]`.

tictactoe: games of the greedy policy against a perfect player, 300 from each seat; lines that it loses are printed.
connect_four: against random play, against the policy of half the training and against the oldest snapshot of the window
at its end, 400 games each; the first two moves are drawn, or greedy policies would play a single game. pong: points
against the paddle that follows the ball. pong_without_self_play: the same for a policy that learns both sides at once,
and for one that learns against random play, each as many steps. The policy acts greedily.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

import rl_tui
from rl_tui.engine.config.behavior import SelfPlaySettings
from rl_tui.engine.learning.self_play.league import League
from rl_tui.engine.running.checkpoint_policy import policy_of_checkpoint
from rl_tui.engine.sampling.environments.toys.pong import Pong
from rl_tui.engine.specs import Policy
from rl_tui.engine.storage.checkpoint_format import read
from rl_tui.engine.storage.checkpoints import CheckpointStore
from tests.benchmarks.tables import table, verdict
from tests.learning.games.matches import Results, play, play_both_seats
from tests.learning.games.players import PerfectPlayer, PolicyPlayer, RandomPlayer
from tests.learning.games.rows import CONNECT_FOUR, FIRST, SECOND, TIC_TAC_TOE

GAMES, POINTS = 400, 1000
PONG = "ppo/SelfPlayPong"
LARGEST_WINDOW = 1000  # larger than that of any preset, so that no snapshot is left out
Row = tuple[str, str, str, str]


def main() -> None:
    """Train and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(LEARNED), action="append")
    parser.add_argument("--seeds", default="1,2,3")
    arguments = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only or sorted(LEARNED):
            for seed in map(int, arguments.seeds.split(",")):
                start = time.monotonic()
                found = list(LEARNED[name](Path(folder), seed))
                minutes = (time.monotonic() - start) / 60
                whose = f"{name}, seed {seed}, {minutes:.1f} min"
                rows += [(f"{whose}: {what}", share, mark, word) for what, share, mark, word in found]
                print(table(("game", "found", "mark", ""), rows), flush=True)


class Trained:
    """A run of a preset, which has ended."""

    def __init__(
        self, preset: str, folder: Path, seed: int, others: Mapping[str, object] | None = None, **changes: object
    ) -> None:
        """changes: settings of the behavior; others: of other sections, by dotted path."""
        run_id = f"{preset.rpartition('/')[2]}-{seed}-{len(changes) + len(others or ())}"
        behavior = BEHAVIORS[preset]
        changed = {f"behaviors.{behavior}.{key}": value for key, value in changes.items()}
        settings = {f"behaviors.{behavior}.keep_checkpoints": 0, **changed, **(others or {})}
        self.path = rl_tui.train(
            preset, run_id=run_id, results_dir=str(folder), seed=seed, set=settings, quiet=True
        ).path
        self._behavior = behavior
        self.checkpoints = CheckpointStore(self.path / behavior / "checkpoints", behavior, 0).list()

    def policy(self, place: int = -1) -> Policy:
        """The greedy policy of one of the checkpoints."""
        state, checkpoint = read(self.checkpoints[place].path)
        assert checkpoint.spec is not None
        return policy_of_checkpoint(self.path / "configuration.yaml", checkpoint.spec, state, checkpoint, 0, True)

    def oldest(self) -> Policy:
        """That of the oldest snapshot of the window in the last checkpoint."""
        league = League(SelfPlaySettings(window=LARGEST_WINDOW), 0)
        league.load(read(self.checkpoints[-1].path)[0].part("self_play").part("league"))
        policy = self.policy()
        policy.load(league.snapshots[0].weights)
        return policy


BEHAVIORS = {"ppo/TicTacToe": "TicTacToe", "ppo/ConnectFourSelfPlay": "ConnectFour", PONG: "Pong"}


def tictactoe(folder: Path, seed: int) -> Iterator[Row]:
    """From each seat at least 95 % draws."""
    player = PolicyPlayer(TIC_TAC_TOE, Trained("ppo/TicTacToe", folder, seed).policy())
    for seat in (FIRST, SECOND):
        results = play(TIC_TAC_TOE, player, PerfectPlayer(TIC_TAC_TOE, seed), 300, seat=seat)
        if results.lost:
            print(results)
        yield _row(f"draws, perfect player, seat {seat}", results.drawn / results.num_games, 0.95)


def connect_four(folder: Path, seed: int) -> Iterator[Row]:
    """Shares of games won, a draw counting half."""
    run = Trained("ppo/ConnectFourSelfPlay", folder, seed)
    player, half = PolicyPlayer(CONNECT_FOUR, run.policy()), run.policy(len(run.checkpoints) // 2 - 1)
    yield _row("against random play", _score(player, RandomPlayer(CONNECT_FOUR, seed)), 0.95)
    yield _row("against half the training", _score(player, PolicyPlayer(CONNECT_FOUR, half)), 0.70)
    yield _row("against the window's oldest", _score(player, PolicyPlayer(CONNECT_FOUR, run.oldest())), 0.75)


def _score(player: PolicyPlayer, opponent: RandomPlayer | PolicyPlayer) -> float:
    results: Results = play_both_seats(CONNECT_FOUR, player, opponent, GAMES, opening=2)
    return results.score


def pong(folder: Path, seed: int) -> Iterator[Row]:
    """The share of points against the paddle that follows the ball."""
    yield _row("points, tracking paddle", _points(Trained(PONG, folder, seed).policy()), 0.90)


def pong_without_self_play(folder: Path, seed: int) -> Iterator[Row]:
    """The same without opponents that learn, and with both sides learning at once."""
    of_random = Trained(PONG, folder, seed, {"env_settings.env_kwargs.opponent": "random"}, self_play=None)
    share = _points(of_random.policy())
    yield "points, learned against random play", f"{100 * share:.1f} %", "below 50 %", verdict(share < 0.5)
    share = _points(Trained(PONG, folder, seed, self_play=None).policy())
    yield "points, both sides learn at once", f"{100 * share:.1f} %", "", ""


def _points(policy: Policy) -> float:
    """Of that many games to one point, all at once; those without a winner count half."""
    environment = Pong("Pong", POINTS, opponent="tracking")
    steps = environment.reset(0)["Pong"]
    results: dict[int, float] = {}
    while len(results) < POINTS:
        actions = policy.act(steps.decisions).actions
        steps = environment.step({"Pong": actions})["Pong"]
        if steps.terminals is not None:
            for agent, reward in zip(steps.terminals.agent_ids.tolist(), steps.terminals.rewards.tolist(), strict=True):
                results.setdefault(agent, (np.sign(reward) + 1) / 2)
    return float(np.mean(list(results.values())))


def _row(what: str, share: float, mark: float) -> Row:
    return what, f"{100 * share:.1f} %", f"{100 * mark:.0f} %", verdict(share >= mark)


LEARNED: dict[str, Callable[[Path, int], Iterator[Row]]] = {
    "tictactoe": tictactoe,
    "connect_four": connect_four,
    "pong": pong,
    "pong_without_self_play": pong_without_self_play,
}

if __name__ == "__main__":
    main()
