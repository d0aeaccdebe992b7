#!/usr/bin/env python3
"""Pictures of games that a person plays against a policy.

    python -m screenshots.make_game_screenshots [--out FOLDER]

Trains both games for a minute, and plays some moves of each. Needs what make_screenshots needs, and PettingZoo.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from rl_tui.engine.config.loading import load_to_act, parse_config
from rl_tui.engine.running.games.entrants import read_run
from rl_tui.engine.running.launch import Launch
from rl_tui.engine.running.playing.games import Games
from rl_tui.engine.running.playing.seats import SeatRequest
from rl_tui.engine.running.playing.table import GameRequest
from rl_tui.engine.running.threads import spawn
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.storage.archive import Archive
from rl_tui.engine.storage.file_names import CONFIGURATION
from rl_tui.tui.drawing.themes import DEFAULT
from rl_tui.tui.keys.game_keys import GAME_KEYS, MOST_CHOICES
from rl_tui.tui.play_app import PlayApp
from rl_tui.tui.screens.game import GameScreen
from screenshots.make_screenshots import SIZES, name_of, paint

ANSWER_SECONDS = 0.05  # between looks for the answer to a key
RESIZED_SECONDS = 1.0
TRAINING = """\
behaviors:
  {name}:
    trainer_type: ppo
    hyperparameters: {{batch_size: 256, buffer_size: 2048, num_epoch: 4, learning_rate: 1.0e-3, beta: 0.01}}
    network_settings: {{hidden_units: 128, num_layers: 2}}
    time_horizon: 64
    max_steps: {steps}
    summary_freq: 10000
env_settings: {{env: "pettingzoo:classic/{env}", behaviors: {agents}, num_envs: 16, seed: 1}}
checkpoint_settings: {{run_id: {name}, results_dir: {results}}}
"""


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """agents: of each team. keys: of the person."""

    env: str
    agents: Sequence[str]
    steps: int
    keys: Sequence[str]


GAMES = {
    "TicTacToe": PlayedGame("tictactoe_v3", ("player_1", "player_2"), 100_000, ("1", "2", "h")),
    "ConnectFour": PlayedGame("connect_four_v3", ("player_0", "player_1"), 60_000, ("4", "4", "3", "5", "h")),
}


def trained(name: str, game: PlayedGame, results: str) -> Path:
    """The folder of a run whose one policy has both seats."""
    agents = {f"{name}?team={team}": agent for team, agent in enumerate(game.agents)}
    text = TRAINING.format(name=name, env=game.env, steps=game.steps, agents=agents, results=results)
    launch = Launch(EventBus())
    launch.start(parse_config(text.encode(), "game.yaml"))
    while not launch.wait(0.5):
        pass
    return Path(results) / name


async def paint_game(folder: Path, name: str, game: PlayedGame) -> None:
    """After some moves, at every size."""
    with TemporaryDirectory(prefix="rl-tui-pictures-") as results:
        path = trained(name, game, results)
        run = read_run(str(path), Archive(Path(results)))
        request = GameRequest(run, run, SeatRequest(), True, 1, MOST_CHOICES)
        games = Games(request, load_to_act(path / CONFIGURATION))
        thread = spawn("play", games.main, EventBus(), games.crashed)
        app = PlayApp(games, partial(GameScreen, games, name), GAME_KEYS, nothing_to_save="", theme=DEFAULT)
        async with app.run_test(size=SIZES[0]) as pilot:
            for key in ("", *game.keys):
                if key:
                    await pilot.press(key)
                await pilot.pause(RESIZED_SECONDS)
                while games.is_busy or not games.is_begun:
                    await pilot.pause(ANSWER_SECONDS)
            for size in SIZES:
                await pilot.resize_terminal(*size)
                await pilot.pause(RESIZED_SECONDS)
                picture = folder / f"game-{name}-{name_of(size)}.png"
                paint([list(strip) for strip in app.screen._compositor.render_strips()], size, picture)
                print(picture)
        games.finish()
        thread.join()


def main() -> None:
    """Paint every game."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    os.environ.update(LC_ALL="C.UTF-8", TERM="xterm-256color", COLORTERM="truecolor")
    for name, game in GAMES.items():
        asyncio.run(paint_game(arguments.out.absolute(), name, game))


if __name__ == "__main__":
    main()
