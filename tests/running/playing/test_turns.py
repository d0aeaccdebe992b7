"""Environments that wait for a person: what is kept of the play, and what cannot be played."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.demonstrations.opening import open_demonstrations
from rl_tui.engine.errors import ConfigError, DemonstrationError, NotSupportedError
from rl_tui.engine.running.playing.episodes import PlayedEpisodes
from rl_tui.engine.running.playing.playable import require_kind
from rl_tui.engine.specs import TERMINATED, TRUNCATED, Ending
from tests.running.playing.by_hand import ByHand

LAKE, DOWN, RIGHT = "gymnasium:FrozenLake-v1", 1, 2
WAY = (DOWN, DOWN, RIGHT, RIGHT, DOWN, RIGHT)
ODD = "tests.running.playing.odd"


def test_complete_episodes_are_in_the_file_and_the_one_under_way_is_not(tmp_path: Path) -> None:
    path = tmp_path / "lake.demo"
    with ByHand(LAKE, path, is_slippery=False) as person:
        assert person.turn is not None
        assert person.turn.choices == ("left", "down", "right", "up")
        turn = person.act(*WAY)
        assert turn is not None
        assert (turn.scene.returns, turn.scene.lengths, turn.num_steps) == ((1.0,), (6,), 6)
        assert (turn.scene.episode, turn.scene.step, turn.scene.total) == (2, 0, 0.0)
        turn = person.act(RIGHT, RIGHT)
        assert turn is not None
        assert (turn.scene.episode, turn.scene.step, turn.scene.discrete) == (2, 2, (RIGHT,))
        assert not path.exists(), "it appears once it is complete"
    assert (person.turns.num_episodes, person.turns.num_steps, person.turns.mean_return) == (1, 6, 1.0)
    opened = open_demonstrations(path)
    assert opened.spec.name == "FrozenLake"
    assert opened.steps.episode_returns.tolist() == [1.0]
    steps = opened.transitions(np.arange(6))
    assert steps.discrete_actions.ravel().tolist() == list(WAY)
    assert steps.observations[0].argmax(axis=1).tolist() == [0, 4, 8, 9, 10, 14]
    assert steps.next_observations[0].argmax(axis=1).tolist() == [4, 8, 9, 10, 14, 15]
    assert steps.endings.tolist() == [Ending.CUT] * 5 + [TERMINATED]


def test_an_episode_is_discarded_or_dropped_and_another_one_takes_its_number(tmp_path: Path) -> None:
    with ByHand(LAKE, tmp_path / "lake.demo", is_slippery=False) as person:
        person.act(RIGHT, RIGHT)
        turn = person.say(person.turns.discard)
        assert turn is not None
        assert (turn.scene.episode, turn.scene.step, turn.scene.seen[0].values[0]) == (1, 0, 1.0)
        person.act(*WAY)
        person.act(RIGHT, DOWN)  # into a hole
        turn = person.say(person.turns.drop_last)
        assert turn is not None
        assert (turn.scene.episode, turn.scene.returns) == (2, (1.0,))
        turn = person.act(DOWN, RIGHT)  # into a hole again
        assert turn is not None
        assert turn.scene.returns == (1.0, 0.0)
    opened = open_demonstrations(tmp_path / "lake.demo")
    assert opened.steps.episode_lengths.tolist() == [6, 2]
    assert opened.transitions(np.arange(8)).discrete_actions.ravel().tolist() == [*WAY, DOWN, RIGHT]


def test_without_a_complete_episode_there_is_no_file(tmp_path: Path) -> None:
    with ByHand(LAKE, tmp_path / "lake.demo", is_slippery=False) as person:
        person.say(person.turns.drop_last)
        person.act(*WAY)
        person.say(person.turns.drop_last)
        person.act(RIGHT)
    assert (person.turns.num_episodes, person.turns.error) == (0, None)
    assert list(tmp_path.iterdir()) == []


def test_the_play_ends_by_itself_after_so_many_episodes(tmp_path: Path) -> None:
    with ByHand("toy:catch", tmp_path / "catch.demo", 2) as person:
        assert person.act(*[1] * 22) is None
    assert open_demonstrations(tmp_path / "catch.demo").steps.episode_lengths.tolist() == [11, 11]


def test_the_same_seed_begins_the_same_episodes(tmp_path: Path) -> None:
    seen = []
    for name in ("first", "second"):
        with ByHand("gymnasium:CartPole-v1", tmp_path / f"{name}.demo") as person:
            first = person.turn
            second = person.say(person.turns.discard)
            assert first is not None
            assert second is not None
            seen.append((first.scene.seen, second.scene.seen))
    assert seen[0] == seen[1]
    assert seen[0][0] != seen[0][1]


def test_what_the_environment_does_not_allow_is_not_done_and_masks_are_kept(tmp_path: Path) -> None:
    with ByHand("toy:one-step", tmp_path / "one.demo", masked=True) as person:
        assert person.turn is not None
        assert sorted(person.turn.is_allowed) == [False, True, True]
        forbidden = person.turn.is_allowed.index(False)
        person.act(forbidden)
        assert person.turn.scene.returns == ()
        person.act(2 - forbidden)
        assert person.turn.scene.returns == (1.0,)
    mask = open_demonstrations(tmp_path / "one.demo").transitions(np.arange(1)).action_mask
    assert mask is not None
    assert mask[0].tolist().index(False) == forbidden


def test_a_time_limit_truncates(tmp_path: Path) -> None:
    with ByHand("gymnasium:MountainCar-v0", tmp_path / "car.demo", 1, max_episode_steps=3) as person:
        assert person.turn is not None
        assert person.turn.choices == ("push left", "no push", "push right")
        person.act(0, 0, 0)
    steps = open_demonstrations(tmp_path / "car.demo").transitions(np.arange(3))
    assert steps.endings.tolist()[-1] == TRUNCATED


def test_picture_is_text_or_pixels_that_fit_or_there_is_a_reason(tmp_path: Path) -> None:
    with ByHand(LAKE, tmp_path / "a.demo") as person:
        assert person.turn is not None
        assert "FHFH" in person.turn.scene.text
    for env, more in (("toy:rooms", {}), (LAKE, {"render_mode": "rgb_array"})):
        with ByHand(env, tmp_path / "b.demo", **more) as person:
            turn = person.say(lambda: person.turns.resize((40, 30)))
            assert turn is not None
            assert turn.scene.pixels is not None
            assert max(turn.scene.pixels.width / 40, turn.scene.pixels.height / 30) == 1
    with ByHand("toy:line", tmp_path / "c.demo") as person:
        assert person.turn is not None
        assert "render" in person.turn.scene.undrawn
    with ByHand(f"{ODD}:Undrawn", tmp_path / "d.demo") as person:
        assert person.turn is not None
        assert "no display" in person.turn.scene.undrawn
        person.act(0)
        assert person.turns.error is None


def test_after_a_failure_complete_episodes_are_kept_and_the_play_may_go_on(tmp_path: Path) -> None:
    with ByHand(f"{ODD}:Breaking", tmp_path / "a.demo") as person:
        person.act(0, 0, 0, 0)
        turn = person.act(0)
        assert turn is not None
        assert (turn.scene.state, turn.scene.step, len(turn.scene.returns)) == ("failed", 0, 1)
        assert "step raised ValueError: broken" in turn.scene.reason
        assert person.turns.failure is not None
        assert "odd.py" in person.turns.failure.detail
        turn = person.say(person.turns.discard)
        assert turn is not None
        assert person.turns.failure is None
        assert (turn.scene.state, turn.scene.episode) == ("playing", 2)
        person.act(2, 2, 2, 2)
        turn = person.act(0)
        assert turn is not None
        assert turn.scene.state == "failed"
        turn = person.say(person.turns.drop_last)
        assert turn is not None
        assert len(turn.scene.returns) == 1
    assert person.turns.error is None, "the person has seen it"
    assert open_demonstrations(tmp_path / "a.demo").steps.episode_lengths.tolist() == [4]


def test_agent_that_comes_later_is_waited_for_and_one_that_leaves_takes_its_episode_along(tmp_path: Path) -> None:
    with ByHand(f"{ODD}:Passing", tmp_path / "a.demo") as person:
        assert person.turn is not None
        assert (person.turn.scene.episode, person.turn.scene.step) == (1, 0)
        turn = person.act(1, 1)
        assert turn is not None
        assert turn.scene.step == 2
        turn = person.act(1)
        assert turn is not None
        assert (turn.scene.episode, turn.scene.step, turn.scene.total) == (1, 0, 0.0)
        turn = person.act(1)
        assert turn is not None
        assert turn.scene.step == 1
    assert person.turns.num_episodes == 0


def test_second_agent_that_comes_later_ends_the_play(tmp_path: Path) -> None:
    with ByHand(f"{ODD}:Passing", tmp_path / "a.demo", doubles=True) as person:
        assert person.act(1, 1, 1) is None
    with pytest.raises(NotSupportedError, match=r"behavior A: must have one agent to be played by a person, got 2"):
        raise person.turns.error or AssertionError


def test_internal_error_ends_the_play_and_keeps_what_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ByHand("toy:one-step", tmp_path / "a.demo") as person:
        person.act(0)
        monkeypatch.setattr(PlayedEpisodes, "is_waiting", property(lambda _: 1 / 0))
        assert person.act(0) is None
    assert isinstance(person.turns.error, ZeroDivisionError)
    assert person.turns.num_episodes == 2
    assert open_demonstrations(tmp_path / "a.demo").steps.episode_lengths.tolist() == [1, 1]


REFUSED = {
    "gymnasium:Pendulum-v1": r"must have actions that are one choice among several .* got 1 number",
    "toy:line?hybrid": r"got 1 number and 1 choice at once",
    f"{ODD}:Several?2,3": r"got 2 choices at once",
    f"{ODD}:Several?10": r"must have at most 9 choices .* got 10",
    f"{ODD}:Pair": r"must have one agent .* got 2",
    f"{ODD}:Two": r"must have one behavior .* got A, B",
    "pettingzoo:mpe2.simple_spread_v3": r"must have one agent .* got 3",
}


@pytest.mark.parametrize("env", REFUSED)
def test_what_no_person_can_play_is_refused_by_name(env: str, tmp_path: Path) -> None:
    name, _, argument = env.partition("?")
    kwargs = (
        {}
        if not argument
        else {"actions": argument}
        if name == "toy:line"
        else {"sizes": list(map(int, argument.split(",")))}
    )
    person = ByHand(name, tmp_path / "a.demo", **kwargs)
    assert person.until(lambda turn: True) is None
    assert isinstance(person.turns.error, NotSupportedError | ConfigError)
    with pytest.raises(type(person.turns.error), match=REFUSED[env]):
        raise person.turns.error
    assert str(person.turns.error).startswith(name)
    assert list(tmp_path.iterdir()) == []


def test_kinds_without_an_environment_here_are_refused_before_anything_is_made() -> None:
    with pytest.raises(NotSupportedError, match=r"^unity:3DBall: a Unity player cannot be played here"):
        require_kind("unity:3DBall", has_wrappers=False)
    with pytest.raises(ConfigError, match=r"^demonstrations:a.demo: has no agent to play"):
        require_kind("demonstrations:a.demo", has_wrappers=False)
    with pytest.raises(ConfigError, match=r"^--wrappers: toy:line takes none"):
        require_kind("toy:line", has_wrappers=True)
    require_kind("gymnasium:CartPole-v1", has_wrappers=True)
    require_kind("my.world:Maze", has_wrappers=True)


def test_environment_that_cannot_be_made_ends_the_play_with_its_reason(tmp_path: Path) -> None:
    person = ByHand("gymnasium:CartPool-v1", tmp_path / "a.demo")
    assert person.until(lambda turn: True) is None
    with pytest.raises(ConfigError, match=r"Did you mean gymnasium:CartPole-v1\?"):
        raise person.turns.error or AssertionError


def test_a_disk_that_refuses_ends_the_play_and_keeps_what_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rl_tui.engine.demonstrations.file_writer import DemonstrationWriter

    with ByHand("toy:one-step", tmp_path / "a.demo") as person:
        person.act(0, 0)
        record = DemonstrationWriter._record

        def refuse(writer: DemonstrationWriter, episode: object, step: int) -> bytes:
            if step:
                raise OSError(28, "No space left on device")
            return record(writer, episode, step)  # type: ignore[arg-type]

        monkeypatch.setattr(DemonstrationWriter, "_record", refuse)
        assert person.act(0) is None
    assert isinstance(person.turns.error, DemonstrationError)
    assert "No space left on device" in str(person.turns.error)
    assert open_demonstrations(tmp_path / "a.demo").steps.episode_lengths.tolist() == [1, 1]
    assert person.turns.num_episodes == 2
