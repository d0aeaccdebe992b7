"""`rl_tui.arena`: what the command does, from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import rl_tui
from rl_tui.engine.running.arena.arena import play_arena
from rl_tui.engine.running.arena.request import ArenaRequest
from tests.running.runs import behavior, configuration, run_to_end

DUEL = "tests.running.games.duel:Duel"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("duel")
    return run_to_end(configuration(folder, {"Fighter": behavior()}, DUEL)).folder


def test_call_plays_as_the_command_does(run: Path) -> None:
    played = rl_tui.arena(run, games=8, seed=3, num_envs=2)
    assert isinstance(played, rl_tui.ArenaResult)
    overrides = {"env_settings.num_envs": 2}
    request = ArenaRequest(entrants=[str(run)], results_dir=run.parent, games=8, seed=3, overrides=overrides)
    assert played == play_arena(request)
    again = rl_tui.arena("run", "random", results_dir=run.parent, games=8, seed=3, num_envs=2)
    assert again.records == played.records
    greedy = rl_tui.arena(run, games=8, seed=3, greedy=True, env_kwargs={"edge": 100})
    assert [record.won for record in greedy.records.values()] == [4]
    drawn = rl_tui.arena(run, games=8, set={"behaviors.Fighter.self_play.draw_margin": 2})
    assert [record.drawn for record in drawn.records.values()] == [8]


@pytest.mark.parametrize(
    ("words", "given", "text"),
    [
        ((), {}, "entrants: must be at least one run, checkpoint or ONNX file, got none"),
        (("run",), {"games": 0}, "games: must be a whole number of at least 1, got 0"),
        (("run",), {"seed": -1}, "seed: must be a whole number from 0 to 4294967295, got -1"),
        (("run",), {"num_envs": 1.5}, "num_envs: must be a whole number of at least 1, got 1.5"),
        (("run@5",), {}, "run@5: no checkpoint at step 5; Fighter has "),
        (("run",), {"with_random": False}, "run: a game needs two: name another one, or random"),
        (("run/Fighter.onnx",), {}, "env: must be given where no run is among those that play"),
    ],
)
def test_what_cannot_be_played_is_named(
    run: Path, words: tuple[str, ...], given: dict[str, object], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run.parent)
    with pytest.raises(rl_tui.RlTuiError) as raised:
        rl_tui.arena(*words, results_dir=".", **given)
    assert str(raised.value).startswith(text)
