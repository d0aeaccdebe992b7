"""`rl-tui arena`: what trained runs play against each other, from their files alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.arena.arena import play_arena
from rl_tui.engine.running.arena.request import ArenaRequest, ArenaResult, Progress
from rl_tui.engine.running.arena.rounds import rounds_of
from rl_tui.engine.running.arena.standings import standings
from rl_tui.engine.running.games.rules import Record
from rl_tui.engine.running.games.seats import Seat
from rl_tui.engine.running.policy_sources import read_policy
from rl_tui.engine.session.messages import CheckpointSaved
from rl_tui.engine.specs import BehaviorSpec, DecisionSteps
from rl_tui.tui.cli import main
from rl_tui.tui.command_line import arena as command
from tests.running.games.duel import CHOICES, SEEN
from tests.running.runs import behavior, configuration, run_to_end
from tests.unity_player.executable import make_player

DUEL = "tests.running.games.duel:Duel"
FIGHTER = BehaviorSpec("Fighter", SEEN, CHOICES)
ASYMMETRIC = {"teams": ["Giant?team=0", "Dwarf?team=1"]}


def finished(
    folder: Path, *, names: tuple[str, ...] = ("Fighter",), run_id: str = "run", env: str = DUEL, seed: int = 2,
    env_settings: dict[str, Any] | None = None, **settings: Any
) -> Path:  # fmt: skip
    """The folder of a run with several checkpoints of each behavior."""
    own = {"checkpoint_interval": 64, "keep_checkpoints": 20, "hyperparameters__learning_rate": 0.002} | settings
    changes = {"env_settings": {"seed": seed} | (env_settings or {}), "checkpoint_settings": {"run_id": run_id}}
    run = run_to_end(configuration(folder, {name: behavior(**own) for name in names}, env, **changes))
    assert run.launch.exit_code == 0, run.recent_events()
    assert len(run.of(CheckpointSaved)) > len(names)
    return run.folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("duel"), env_settings={"env_kwargs": {"edge": 0.5}})


def steps_of(run: Path, name: str = "Fighter") -> list[int]:
    return sorted(int(path.name.removeprefix(f"{name}-")) for path in (run / name / "checkpoints").iterdir())


def arena(run: Path, *entrants: str, **changes: Any) -> ArenaResult:
    return play_arena(ArenaRequest(entrants=entrants or ("run",), results_dir=run.parent, **changes))


def choices(checkpoint: Path) -> int:
    """What a greedy policy's choices of a game of two steps add up to."""
    policy = read_policy(checkpoint, FIGHTER).make("greedy", 1)
    states = np.array([[1, 0], [0.5, 0]], np.float32)
    actions = policy.act(DecisionSteps(np.arange(2), (states,), np.zeros(2, np.float32))).actions
    return int(actions.discrete.sum())


def test_greedy_policies_win_as_their_choices_add_up(run: Path) -> None:
    first, last = steps_of(run)[0], steps_of(run)[-1]
    weak, strong = (choices(run / f"Fighter/checkpoints/Fighter-{step}") for step in (first, last))
    assert weak < strong, "the run has learned something"
    played = arena(run, f"run@{first}", "run", way="greedy", with_random=False, games=12)
    assert played.records == {(0, 1): Record(lost=12)}, "half a point for the first team decides nothing"
    assert [one.entrant for one in played.standings.table] == ["run", f"run@{first}"]
    assert played.repeated == ()  # three games in a seat may be alike by chance
    assert arena(run, f"run@{first}", "run", way="greedy", with_random=False, games=20).repeated == ((0, 1),)


def test_each_pair_plays_as_often_in_every_seat(run: Path) -> None:
    """The same policy on both sides: the first team is half a point ahead, and that cancels."""
    played = arena(run, "run", f"run@{steps_of(run)[-1]}", way="greedy", with_random=False, games=12)
    assert played.records == {(0, 1): Record(won=6, lost=6)}
    assert [one.rating for one in played.standings.table] == pytest.approx([1200, 1200])


def test_rounds_share_games_among_sides_and_seats() -> None:
    seats = [Seat("A", 0), Seat("A", 1), Seat("A", 4)]
    rounds = list(rounds_of(3, seats, 7))
    assert [(one.own, one.other, one.seat.team, one.num_games) for one in rounds[:6]] == [
        (0, 1, 0, 2), (0, 1, 1, 1), (0, 1, 4, 1), (1, 0, 0, 1), (1, 0, 1, 1), (1, 0, 4, 1),
    ]  # fmt: skip
    assert [sum(one.num_games for one in rounds if {one.own, one.other} == {*pair}) for pair in ("01", "02", "12")] == [
        0
    ] * 3
    pairs = [{one.own, one.other} for one in rounds for _ in range(one.num_games)]
    assert [pairs.count(pair) for pair in ({0, 1}, {0, 2}, {1, 2})] == [7, 7, 7]
    assert len(list(rounds_of(2, seats[:2], 2))) == 2, "of two games, one in each seat"
    assert [one.seat.team for one in rounds_of(2, seats[:2], 2)] == [0, 1]


def test_trained_policy_is_above_random_play_by_the_games_that_are_listed(run: Path) -> None:
    seen: list[Progress] = []
    request = ArenaRequest(entrants=["run"], results_dir=run.parent, games=60, way="greedy")
    played = play_arena(request, seen.append)
    best, last = played.standings.table
    assert (best.entrant, last.entrant, last.rating) == ("run", "random", 0)
    assert best.record == played.records[0, 1] == last.record.reversed
    assert best.record.counted == 60
    assert best.low > 0, "the interval has no doubt"
    assert (best.low + best.high) / 2 == pytest.approx(best.rating)
    assert (seen[-1].done, seen[-1].total) == (60, 60)
    assert {(one.own, one.other) for one in seen} == {("run", "random"), ("random", "run")}
    assert [one.done for one in seen] == sorted(one.done for one in seen)
    assert played.sources[0]["Fighter"].step == steps_of(run)[-1]
    assert played.sources[1] == {}


def test_same_seed_plays_the_same_games(run: Path) -> None:
    first, again, other = (arena(run, games=40, seed=seed) for seed in (5, 5, 6))
    assert first == again
    assert first.records != other.records


def test_file_plays_as_its_checkpoint_does(run: Path) -> None:
    step = steps_of(run)[-1]
    checkpoint, file = (
        str(run / place) for place in (f"Fighter/checkpoints/Fighter-{step}", f"Fighter/Fighter-{step}.onnx")
    )
    for entrant in (checkpoint, file):
        played = arena(run, entrant, "run@best", way="greedy", games=8, overrides={"env_settings.env": DUEL})
        assert played.sources[0]["Fighter"].step == step
        assert played.sources[0]["Fighter"].path == Path(entrant)
    only = arena(run, file, games=8, way="greedy", behavior="Fighter", overrides={"env_settings.env": DUEL})
    assert only.records[0, 1].counted == 8


@pytest.mark.parametrize(
    "changes",
    [
        {"env_settings": {"env_kwargs": {"size": 3, "lengths": [3, 5]}}},
        {"env_settings": {"env_kwargs": {"lengths": [2, 3], "is_reborn": True}}},
        {"network_settings__memory": {"memory_size": 8, "sequence_length": 4}},
    ],
    ids=["groups", "several areas", "memory"],
)
def test_groups_areas_and_memories_are_played(tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = finished(tmp_path, **changes)
    played = arena(folder, "run", f"run@{steps_of(folder)[0]}", games=20)
    assert [record.counted for record in played.records.values()] == [20, 20, 20]


def test_behaviors_of_an_asymmetric_game_play_together(tmp_path: Path) -> None:
    folder = finished(tmp_path, names=("Giant", "Dwarf"), env_settings={"env_kwargs": ASYMMETRIC})
    own, other = steps_of(folder, "Giant"), steps_of(folder, "Dwarf")
    played = arena(folder, f"run@{own[0]}", "run", games=20)
    assert [(seat.behavior, seat.team) for seat in played.seats] == [("Giant", 0), ("Dwarf", 1)]
    assert {name: source.step for name, source in played.sources[1].items()} == {"Giant": own[-1], "Dwarf": other[-1]}
    assert played.sources[0]["Giant"].step == own[0]
    assert played.sources[0]["Dwarf"].step == max((step for step in other if step <= own[0]), default=other[0])
    assert all(record.counted == 20 for record in played.records.values())
    checkpoint = folder / f"Giant/checkpoints/Giant-{own[0]}"
    with pytest.raises(ConfigError, match="it acts for one behavior, and the environment has several: Giant, Dwarf"):
        arena(folder, "run", str(checkpoint))


def test_first_checkpoint_plays_where_a_behavior_has_none_that_early(tmp_path: Path) -> None:
    folder, notes = finished(tmp_path, names=("Giant", "Dwarf"), env_settings={"env_kwargs": ASYMMETRIC}), list[str]()
    early, *_, last = steps_of(folder, "Giant")
    for step in steps_of(folder, "Dwarf")[:-1]:
        shutil.rmtree(folder / f"Dwarf/checkpoints/Dwarf-{step}")
    request = ArenaRequest(entrants=("run", f"run@{early}"), results_dir=folder.parent, games=2)
    played = play_arena(request, on_note=lambda _, text: notes.append(text))
    only = steps_of(folder, "Dwarf")[0]
    found = [{name: source.step for name, source in each.items()} for each in played.sources[:2]]
    assert found == [{"Giant": last, "Dwarf": only}, {"Giant": early, "Dwarf": only}]
    assert notes == [f"run@{early}: Dwarf has no checkpoint that early; its first one, at step {only}, plays"]


def test_runs_that_call_their_only_behavior_otherwise_play_each_other(run: Path, tmp_path: Path) -> None:
    finished(
        tmp_path,
        names=("Boxer",),
        run_id="other",
        env_settings={"env_kwargs": {"teams": ["Boxer?team=0", "Boxer?team=1"]}},
    )
    shutil.copytree(run, tmp_path / "results/run")
    played = arena(tmp_path / "results/run", "other", "run", games=8)
    assert [*played.sources[0]] == [*played.sources[1]] == ["Boxer"]


def test_rules_are_those_of_the_run_or_set_by_a_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = finished(tmp_path, env_settings={"env_kwargs": {"is_cut": True}})
    words = ["arena", "run", "--results-dir", str(folder.parent), "--games", "8", "--json"]
    assert arena(folder, games=8).records == {(0, 1): Record(ignored=8)}
    assert main(words[:-1]) == 0
    assert "8 games ended by a limit of steps and do not count" in capsys.readouterr().out
    assert main([*words, "--set", "behaviors.Fighter.self_play.interrupted_games=draw"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)["pairs"]
    assert (pair["drawn"], pair["ignored"]) == (8, 0)
    path = folder / "configuration.yaml"
    settings = yaml.safe_load(path.read_text())
    settings["behaviors"]["Fighter"]["self_play"] = {"interrupted_games": "draw"}
    path.write_text(yaml.safe_dump(settings, sort_keys=False))
    assert arena(folder, games=8).records == {(0, 1): Record(drawn=8)}
    assert main([*words, "--set", "behaviors.Fighter.self_play.interrupted_games=win"]) == 2
    error = capsys.readouterr().err
    assert "--set behaviors.Fighter.self_play.interrupted_games" in error
    assert error.count("\n") == 1


def test_several_runs_play_in_the_environment_of_the_first_one(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "results/run")
    finished(tmp_path, run_id="other", seed=3)
    played = arena(tmp_path / "results/run", "run", "other", way="greedy", with_random=False, games=12)
    assert played.env == DUEL
    record = played.records[0, 1]
    assert record.counted == 12
    assert record.drawn == 0, "the first run's first team is half a point ahead, so that no game is drawn"


def test_standings_are_in_order_with_the_lead_of_each() -> None:
    found = standings(["a", "b", "random"], {(0, 1): Record(2, 0, 8), (0, 2): Record(6, 1, 3), (1, 2): Record(8, 1, 1)})
    assert [one.entrant for one in found.table] == ["b", "a", "random"]
    assert [one.record for one in found.table] == [Record(16, 1, 3), Record(8, 1, 11), Record(4, 2, 14)]
    leads = [one.lead.points for one in found.table if one.lead is not None]
    assert leads == pytest.approx([found.table[0].rating - found.table[1].rating, found.table[1].rating])
    assert not found.has_prior


def test_command_prints_ratings_and_the_games_of_each_pair(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = f"run@{steps_of(run)[0]}"
    words = ["arena", "run", first, "--results-dir", str(run.parent), "--games", "24"]
    assert main(words) == 0
    out, error = capsys.readouterr()
    assert not error
    played = arena(run, "run", first, games=24)
    head, _, columns, *rows = out.splitlines()
    assert head == f"{DUEL}, team 0 (Fighter) and team 1 (Fighter): 24 games of each pair, sampled, seed 1"
    assert columns == "#  entrant  step  rating  95 % interval  games  won  drawn  lost  ahead of the next".replace(
        "entrant", f"{'entrant':{len(first)}}"
    )
    for row, one in zip(rows, played.standings.table, strict=False):
        cells = row.split()
        assert cells[1] == one.entrant
        assert cells[3] == f"{one.rating:.0f}"
        assert " ".join(map(str, (one.record.counted, one.record.won, one.record.drawn, one.record.lost))) in " ".join(
            cells
        )
    record = played.records[0, 2]
    assert f"{record.won}/{record.drawn}/{record.lost}" in out
    assert f"{record.lost}/{record.drawn}/{record.won}" in out
    assert "random has 0" in out


def test_command_prints_one_json_object(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["arena", "run", "--results-dir", str(run.parent), "--games", "8", "--seed", "3", "--json", "--progress"])
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert found["teams"] == [{"team": 0, "behavior": "Fighter"}, {"team": 1, "behavior": "Fighter"}]
    assert (found["games_per_pair"], found["seed"], found["actions"], found["anchor"]) == (8, 3, "sampled", "random")
    (pair,) = found["pairs"]
    assert (pair["first"], pair["second"], pair["won"] + pair["drawn"] + pair["lost"]) == ("run", "random", 8)
    best, last = found["entrants"]
    assert best["rating"] >= last["rating"]
    assert best["lead"]["points"] == pytest.approx(best["rating"] - last["rating"])
    assert last["lead"] is None
    by_name = {one["name"]: one["sources"] for one in found["entrants"]}
    step = steps_of(run)[-1]
    assert by_name == {
        "run": {"Fighter": {"path": str(run / f"Fighter/checkpoints/Fighter-{step}"), "step": step}}, "random": {},
    }  # fmt: skip


def test_progress_is_printed_beside_the_result(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "PROGRESS_SECONDS", 0.0)
    assert (
        main(["arena", "run", "--results-dir", str(run.parent), "--games", "4", "--progress", "--num-envs", "1"]) == 0
    )
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"{done} of 4 games, run against random" for done in (1, 2)] + [
        f"{done} of 4 games, random against run" for done in (3, 4)
    ]


def test_greedy_games_that_repeat_are_said(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = f"run@{steps_of(run)[0]}"
    words = ["arena", "run", first, "--no-random", "--results-dir", str(run.parent), "--games", "20", "--deterministic"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert f"run and {first}: all games in a seat went alike" in out
    assert "Results alone do not limit every rating" in out
    assert "the mean is 1200" in out


@pytest.mark.parametrize(
    ("words", "exit_code", "reason"),
    [
        (["ruin"], 2, "Did you mean run?"),
        (["run@last"], 2, 'run@last: what follows @ must be newest, best or a step, got "last"'),
        (["run@7"], 7, "run@7: no checkpoint at step 7; Fighter has "),
        (["run", "run"], 2, "run: must be named once, got it 2 times"),
        (["run", "--no-random"], 2, "run: a game needs two"),
        (["run", "none.onnx"], 2, "none.onnx: no such file"),
        (["run", "--env", "toy:line"], 2, "the environment has only one team, of "),
        (["run", "--env-kwargs", '{"teams": ["Fighter?team=0"]}'], 2, "the environment has only one team"),
        (["run", "--env", "nowhere:Nothing"], 2, "nowhere"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(
    run: Path, words: list[str], exit_code: int, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["arena", *words, "--results-dir", str(run.parent)]) == exit_code
    out, error = capsys.readouterr()
    assert not out
    assert reason in error
    assert error.count("\n") == 1


def test_runs_of_different_games_are_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(run, tmp_path / "results/run")
    finished(tmp_path, names=("Walker",), run_id="walker", env="toy:line")
    words = ["arena", "run", "walker", "--results-dir", str(tmp_path / "results")]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error == f"walker: has learned in toy:line, and run in {DUEL}. With --env, all play in one that is named\n"
    assert main([*words, "--env", DUEL, "--games", "4"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("walker: ")
    assert "was trained with observations " in error
    assert error.count("\n") == 1


def test_file_without_a_run_needs_an_environment(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(run / f"Fighter/Fighter-{steps_of(run)[-1]}.onnx")
    assert main(["arena", file]) == 2
    assert capsys.readouterr().err.startswith("--env: must be given where no run is among those that play")
    assert main(["arena", file, "--env", DUEL, "--games", "8"]) == 0


def test_copies_of_the_environment_and_its_arguments_are_set_by_flags(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["arena", "run", "--results-dir", str(run.parent), "--games", "8", "--num-envs", "3", "--json"]
    assert main([*words, "--env-kwargs", '{"edge": 100}']) == 0
    (pair,) = json.loads(capsys.readouterr().out)["pairs"]
    assert (pair["won"], pair["lost"]) == (4, 4), "the first team always wins"


def test_players_of_tic_tac_toe_take_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pettingzoo.classic")
    teams = {"Player?team=0": "player_1", "Player?team=1": "player_2"}
    env = {"behaviors": teams}
    folder = finished(tmp_path, names=("Player",), env="pettingzoo:classic/tictactoe_v3", env_settings=env)
    played = arena(folder, "run", f"run@{steps_of(folder, 'Player')[0]}", games=24)
    for record in played.records.values():
        assert record.counted == 24
        assert min(record.won, record.lost) > 0


@pytest.mark.slow
def test_teams_of_unity_players_play_and_one_that_crashes_is_started_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    player = make_player(tmp_path, "--task", "teams")
    settings = {"num_envs": 1, "act_in": "main"}
    folder = finished(tmp_path, names=("Striker",), env=f"unity:{player}", env_settings=settings)
    trouble = ["--trouble", "kill@60", "--trouble-once", str(tmp_path / "once")]
    doomed = make_player(tmp_path, "--task", "teams", *trouble, name="doomed")
    words = ["arena", "run", f"run@{steps_of(folder, 'Striker')[0]}", "--results-dir", str(folder.parent)]
    assert main([*words, "--env", str(doomed), "--no-graphics", "--games", "8", "--no-random", "--json"]) == 0
    out, error = capsys.readouterr()
    assert "killed by SIGKILL" in error
    (pair,) = json.loads(out)["pairs"]
    assert pair["won"] + pair["drawn"] + pair["lost"] + pair["ignored"] == 8
