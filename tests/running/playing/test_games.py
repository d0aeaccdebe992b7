"""Games against the policies of runs: whole games, seats, hints, and what cannot be played."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.config.behavior import SelfPlaySettings
from rl_tui.engine.errors import CheckpointError, ConfigError, NotSupportedError
from rl_tui.engine.running.playing.game import Game
from rl_tui.engine.session.games import EMPTY, OTHER, OWN, Board, Tally
from tests.running.playing.opposed import (
    CONNECT_FOUR,
    TICTACTOE,
    Opposed,
    board_of,
    counts,
    result_of_tictactoe,
    tictactoe_run,
    trained,
)
from tests.running.runs import behavior, configuration, run_to_end

pytest.importorskip("pettingzoo")
ODD = "tests.running.playing.odd"


@pytest.fixture(scope="module")
def tictactoe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tictactoe_run(tmp_path_factory.mktemp("tictactoe"))


@pytest.fixture(scope="module")
def duel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("duel"), f"{ODD}:Duel", ["Duel"])


def files_of(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def test_games_go_on_with_changed_seats_until_the_person_leaves_and_the_run_is_only_read(tictactoe: Path) -> None:
    before = files_of(tictactoe)
    with Opposed(tictactoe) as person:
        turn = person.turn
        results = []
        for number in (1, 2, 3):
            assert turn is not None
            seat = 1 + (number - 1) % 2
            assert (turn.seat.number, turn.seat.count, turn.seat.team) == (seat, 2, seat - 1)
            assert (turn.scene.episode, turn.scene.step, turn.is_over) == (number, 0, False)
            assert counts(turn) == (0, seat - 1), "who is first has moved, and the policy at once"
            while not turn.is_over:
                own, other = counts(turn)
                turn = person.act(turn.is_allowed.index(True))
                assert turn is not None
                assert counts(turn)[0] == own + 1
                assert turn.is_over or counts(turn)[1] == other + 1
            assert turn.result == result_of_tictactoe(turn)
            assert turn.scene.reward == {"won": 1, "drawn": 0, "lost": -1}[turn.result]
            assert not any(turn.is_allowed)
            results.append(turn.result)
            assert turn.tally == Tally(*(results.count(result) for result in ("won", "drawn", "lost")))
            assert turn.tallies[seat - 1] == sum((Tally.of(each) for each in results[seat - 1 :: 2]), Tally())
            turn = person.next()
    assert person.games.error is None
    assert person.games.table is not None
    tally = f"{results.count('won')} won, {results.count('drawn')} drawn, {results.count('lost')} lost"
    assert person.games.table.summary == f"3 games against run at step 512: {tally}"
    assert files_of(tictactoe) == before


def test_last_move_is_on_the_board_and_the_others_newest_is_known(tictactoe: Path) -> None:
    with Opposed(tictactoe, "random", number=1) as person:
        turn = person.act(4)
        assert turn is not None
        (answer,) = turn.answers
        board = board_of(turn)
        assert board.newest == {(1, 1), divmod(answer, 3)}
        assert board.fields[1][1] == OWN
        assert board.fields[answer // 3][answer % 3] == OTHER
        end = person.play_first()
        assert end.answers == () or counts(end)[0] == counts(end)[1]
        assert end.scene.pixels is not None
        picture = end.scene.pixels.rgb
        turn = person.next()
        assert turn.scene.pixels is not None
        assert turn.scene.pixels.rgb != picture, "the end was drawn, until the next game began"


def test_what_is_not_allowed_changes_nothing(tictactoe: Path) -> None:
    with Opposed(tictactoe) as person:
        turn = person.act(4)
        assert turn is not None
        again = person.act(4)
        assert again is not None
        assert (again.board, again.scene.step) == (turn.board, 1)


def test_game_that_is_left_does_not_count_and_keeps_its_seat(tictactoe: Path) -> None:
    with Opposed(tictactoe) as person:
        person.act(0)
        turn = person.next()
        assert (turn.scene.episode, turn.seat.number, turn.tally, counts(turn)) == (2, 1, Tally(), (0, 0))


def test_hint_is_what_the_policy_does_in_that_place(tictactoe: Path) -> None:
    with Opposed(tictactoe) as person:
        turn = person.say(person.games.advise)
        assert turn is not None
        assert turn.advice is not None
        assert sum(turn.advice.chances) == pytest.approx(1, abs=1e-3)
        assert turn.advice.choice == int(np.argmax(turn.advice.chances))
        first = turn.advice.choice
        turn = person.act(3)
        assert turn is not None
        assert turn.advice is None
        turn = person.say(person.games.advise)
        assert turn is not None
        assert turn.advice is not None
        taken = {3, *turn.answers}
        assert turn.advice.choice == int(np.argmax(turn.advice.chances)) != 4, "nor any other place in the middle"
        assert [chance == 0 for chance in turn.advice.chances] == [index in taken for index in range(9)]
        person.play_first()
        assert person.next().answers == (first,), "the same policy begins the same way"


def test_exported_file_plays_as_its_checkpoint_does_and_has_no_chances(tictactoe: Path) -> None:
    ends = []
    for opponent in (None, str(tictactoe / "Player.onnx"), "run@512", "run@best"):
        with Opposed(tictactoe, opponent) as person:
            end = person.play_first()
            ends.append(board_of(end).fields)
            assert end.opponent == ("Player.onnx" if opponent and "onnx" in opponent else "run at step 512")
            assert end.opponent_way == "most likely"
    assert len(set(ends)) == 1


def test_sampled_and_random_games_follow_their_seed(tictactoe: Path) -> None:
    def ends(opponent: str | None, seed: int) -> list[Board]:
        with Opposed(tictactoe, opponent, sampled=True, seed=seed) as person:
            boards = [board_of(person.play_first())]
            person.next()
            return [*boards, board_of(person.play_first())]

    for opponent in (None, "random"):
        assert ends(opponent, 5) == ends(opponent, 5)
        assert ends(opponent, 5) != ends(opponent, 6)


@pytest.mark.parametrize(("seat", "expected"), [({"team": 1}, 2), ({"number": 2}, 2), ({"number": 1}, 1)])
def test_requested_seat_is_kept(seat: dict[str, int], expected: int, tictactoe: Path) -> None:
    with Opposed(tictactoe, "random", **seat) as person:
        for _ in range(2):
            assert person.turn is not None
            assert (person.turn.seat.number, person.turn.seat.is_fixed) == (expected, True)
            assert counts(person.turn) == (0, expected - 1)
            person.play_first()
            person.next()


def test_agents_that_were_random_in_the_run_are_played_too_and_a_column_fills_from_below(tmp_path: Path) -> None:
    run = trained(tmp_path, CONNECT_FOUR, random_agents="player_1")
    with Opposed(run) as person:
        turn = person.turn
        assert turn is not None
        assert (turn.seat.count, turn.opponent) == (2, "run at step 512")
        assert board_of(turn).by_column
        assert board_of(turn).fields == ((EMPTY,) * 7,) * 6
        turn = person.act(3)
        assert turn is not None
        assert board_of(turn).fields[5][3] == OWN
        while not turn.is_over and turn.is_allowed[3]:
            turn = person.act(3)
            assert turn is not None
        column = [row[3] for row in board_of(turn).fields]
        assert EMPTY not in column or turn.is_over
        person.play_first()
        turn = person.next()
        assert (turn.seat.number, counts(turn)) == (2, (0, 1))


def test_all_act_at_once_and_the_choice_is_that_of_the_persons_agent(duel: Path) -> None:
    with Opposed(duel, "random", seed=3) as person:
        results = []
        for _ in range(6):
            turn = person.turn
            assert turn is not None
            assert (turn.board, turn.answers, turn.seat.count) == (None, (), 2), "what others choose may be hidden"
            assert turn.scene.text == "time 0"
            person.act(0, 1)
            assert person.turn is not None
            assert person.turn.scene.seen[1].values == (1.0,)
            turn = person.act(2)
            assert turn is not None
            assert turn.is_over
            assert turn.scene.step == 3
            results.append(turn.result)
            person.next()
        assert set(results) == {"won", "drawn"}, "nothing is larger than 2"


def test_policy_with_a_choice_plays_the_other_team(duel: Path) -> None:
    with Opposed(duel) as person:
        first = person.act(2, 2, 2)
        person.next()
        second = person.act(2, 2, 2)
        assert first is not None
        assert second is not None
        assert (first.seat.team, second.seat.team) == (0, 1)
        assert first.result == second.result, "one policy, which sees the same in both seats"


def test_only_agents_with_a_choice_are_played_by_the_person(tmp_path: Path) -> None:
    run = trained(tmp_path, f"{ODD}:Duel", ["Duel", "Steering"], env_kwargs={"steers": True})
    with Opposed(run) as person:
        for _ in range(2):
            assert person.turn is not None
            assert (person.turn.seat.behavior, person.turn.seat.count) == ("Duel", 1)
            assert person.turn.opponent == "run at step 512"
            person.play_first()
            person.next()
    with Opposed(run, behavior="Steering") as person:
        assert person.turn is None
    with pytest.raises(NotSupportedError, match=r"must have actions that are one choice among several .* got 1 number"):
        raise person.games.error or AssertionError


def test_alone_there_is_a_return_and_no_opponent(tmp_path: Path) -> None:
    run = trained(tmp_path, "toy:one-step")
    with Opposed(run) as person:
        turn = person.act(0)
        assert turn is not None
        assert (turn.opponent, turn.result, turn.is_over, turn.scene.returns) == ("", None, True, (turn.scene.reward,))
        turn = person.next()
        assert (turn.seat.is_fixed, turn.scene.episode) == (True, 2)
    assert person.games.table is not None
    assert person.games.table.summary == f"1 game, mean return {turn.scene.returns[0]:.6g}"


def test_environment_that_fails_is_made_again_for_another_game(tmp_path: Path, duel: Path) -> None:
    run = tmp_path / "results/run"
    shutil.copytree(duel, run)
    path = run / "configuration.yaml"
    path.write_text(path.read_text().replace("env_kwargs: {}", "env_kwargs: {fails_at: 5}"))
    with Opposed(run, "random") as person:
        person.act(2, 2, 2)
        person.next()
        person.act(2)
        turn = person.act(2)
        assert turn is not None
        assert turn.scene.state == "failed"
        assert "step raised ValueError: broken" in turn.scene.reason
        assert person.games.failure is not None
        turn = person.next()
        assert (turn.scene.state, turn.scene.episode, person.games.failure) == ("playing", 3, None)
        assert len(turn.scene.returns) == 1
        assert person.act(2, 2, 2) is not None


def test_run_that_trains_further_is_played_as_it_was_when_the_play_began(tictactoe: Path, tmp_path: Path) -> None:
    run = tmp_path / "results/run"
    shutil.copytree(tictactoe, run)
    with Opposed(run) as person:
        shutil.rmtree(run / "Player")
        person.play_first()
        person.next()
        assert person.play_first().opponent == "run at step 512"


def test_lessons_and_parameters_of_the_run_hold(tmp_path: Path) -> None:
    config = configuration(tmp_path, {"Player": behavior()}, "toy:line", environment_parameters={"length": 1.0})
    assert run_to_end(config).launch.exit_code == 0
    with Opposed(tmp_path / "results/run") as person:
        turn = person.act(2)
        assert turn is not None
        assert (turn.is_over, turn.scene.step) == (True, 1)


def test_of_several_environments_that_of_the_behavior_is_played(tmp_path: Path) -> None:
    run = trained(tmp_path, {"One": "toy:one-step", "Catch": "toy:catch"}, ["One", "Catch"])
    with Opposed(run, behavior="Catch") as person:
        assert person.turn is not None
        assert person.turn.seat.behavior == "Catch"
    with pytest.raises(ConfigError, match=r"^--behavior: must be given: Catch or One$"):
        Opposed(run)


def test_person_who_waits_for_others_may_begin_another_game(tmp_path: Path) -> None:
    run = trained(tmp_path, f"{ODD}:Late", ["Late"])
    with Opposed(run, "random") as person:
        assert person.turn is not None
        assert person.turn.seat.number == 1
        person.games.act(1)
        person.games.begin()
        turn = person.until(lambda turn: turn.scene.episode == 2)
        assert turn is not None
        assert (turn.tally, turn.seat.number) == (Tally(), 1)


RESULTS: dict[str, tuple[Callable[[], SelfPlaySettings | None], str]] = {
    "last reward": (lambda: None, "lost"),
    "return": (lambda: SelfPlaySettings(game_result="return"), "won"),
    "margin": (lambda: SelfPlaySettings(draw_margin=0.5), "drawn"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_result_is_decided_as_in_self_play(name: str) -> None:
    make, expected = RESULTS[name]
    game = Game(1)
    game.reward, game.total = -0.5, 2.0
    assert game.result(make()) == expected


def refused(person: Opposed) -> BaseException:
    assert person.until(lambda turn: True) is None
    person.finish()
    assert person.games.error is not None
    return person.games.error


def test_seats_that_the_game_does_not_have_are_refused(tictactoe: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--team: must be 0 or 1, got 2\. --seat says"):
        raise refused(Opposed(tictactoe, team=2))
    with pytest.raises(ConfigError, match=r"^--seat: must be from 1 to 2, got 3$"):
        raise refused(Opposed(tictactoe, number=3))
    with pytest.raises(ConfigError, match=r"^--behavior: must be Player, got \"Plaer\"\. Did you mean Player\?"):
        raise refused(Opposed(tictactoe, behavior="Plaer"))
    with pytest.raises(NotSupportedError, match=r"must have at most 8 choices .* got 9"):
        raise refused(Opposed(tictactoe, most_choices=8))
    alone = trained(tmp_path, "toy:one-step")
    with pytest.raises(ConfigError, match=r"^--team: this game has no teams"):
        raise refused(Opposed(alone, team=0))


def test_policies_that_are_missing_or_of_another_game_are_refused(tictactoe: Path, duel: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"^run@7: no checkpoint at step 7; Player has 512$"):
        raise refused(Opposed(tictactoe, at="@7"))
    with pytest.raises(ConfigError, match=r"^run@last: what follows @ must be newest, best or a step, got \"last\""):
        Opposed(tictactoe, at="@last")
    with pytest.raises(ConfigError, match=r"^other: no such run"):
        Opposed(tictactoe, "other")
    with pytest.raises(ConfigError, match=r"^no.onnx: no such file"):
        Opposed(tictactoe, "no.onnx")
    of_another = str(duel)
    misfit = r"none of its policies can play Player: .*Duel-\d+: was trained with observations time \[1\]"
    with pytest.raises(ConfigError, match=misfit):
        raise refused(Opposed(tictactoe, of_another))
    with pytest.raises(ConfigError, match=r"Duel.onnx: acts by other observations: obs_0 \[1\] and obs_1"):
        raise refused(Opposed(tictactoe, str(duel / "Duel.onnx")))
    empty = tmp_path / "results/run"
    shutil.copytree(tictactoe, empty)
    shutil.rmtree(empty / "Player/checkpoints")
    with pytest.raises(CheckpointError, match=r"^run: this run has no checkpoint"):
        Opposed(empty)


def test_unity_players_and_runs_without_an_environment_are_refused_at_once(tictactoe: Path, tmp_path: Path) -> None:
    run = tmp_path / "results/run"
    shutil.copytree(tictactoe, run)
    path = run / "configuration.yaml"
    text = path.read_text()
    for env, error, words in (
        ("unity:builds/Game", NotSupportedError, "a Unity player cannot be played here: it does not draw"),
        ("demonstrations:a.demo", ConfigError, "has no agent to play"),
    ):
        path.write_text(text.replace(TICTACTOE, env))
        with pytest.raises(error, match=f"^{env}: {words}"):
            Opposed(run)
