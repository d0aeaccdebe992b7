"""What a recorder keeps of the steps that it sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rl_tui.engine.demonstrations.episode_recorder import EpisodeRecorder
from rl_tui.engine.demonstrations.opening import open_demonstrations
from rl_tui.engine.specs import (
    TERMINATED,
    TRUNCATED,
    Actions,
    ActionSpec,
    BehaviorSpec,
    DecisionSteps,
    ObservationSpec,
    Steps,
    TerminalSteps,
)

SPEC = BehaviorSpec("Walker", (ObservationSpec("place", (1,)),), ActionSpec(1, (3,)))
SEEN = np.zeros((2, 1), np.float32)  # one array for all steps, as environments may have it


def waiting(place: float, reward: float, group_reward: float = 0.0) -> DecisionSteps:
    """Agents 4 and 9."""
    SEEN[:] = [[place], [-place]]
    rewards, of_groups = np.array([reward, -reward], np.float32), np.full(2, group_reward, np.float32)
    mask = np.array([[True, True, False], [True, False, True]])
    return DecisionSteps(np.array([4, 9]), (SEEN,), rewards, mask, group_rewards=of_groups)


def actions(number: float, choice: int) -> Actions:
    return Actions(np.array([[number], [-number]], np.float32), np.array([[choice], [0]]))


def test_rewards_masks_and_ends_are_those_of_the_agent(tmp_path: Path) -> None:
    with EpisodeRecorder(tmp_path / "a.demo", lambda: SPEC) as recorder:
        recorder.see(Steps(waiting(1, 99)))  # what was earned before the first action is of no step
        recorder.act(waiting(1, 99), actions(0.25, 1))
        recorder.see(None)
        recorder.see(Steps(waiting(2, 0.5, group_reward=2)))
        recorder.act(waiting(2, 0.5), actions(0.5, 0))
        ended = TerminalSteps(
            np.array([9, 4]),
            (np.array([[-7.0], [7.0]], np.float32),),
            np.array([-3, 3], np.float32),
            np.array([False, True]),
            group_rewards=np.ones(2, np.float32),
        )
        recorder.count(4)
        recorder.count(9)
        recorder.see(Steps(waiting(8, 50), ended))
    opened = open_demonstrations(tmp_path / "a.demo", SPEC)
    steps = opened.transitions(np.arange(4))
    assert opened.episodes.tolist() == [[0, 2], [2, 4]]
    assert steps.observations[0].ravel().tolist() == [-1, -2, 1, 2]
    assert steps.next_observations[0].ravel().tolist() == [-2, -7, 2, 7]
    assert opened.steps.rewards.tolist() == [1.5, -2, 2.5, 4]
    assert steps.endings.tolist() == [0, TERMINATED, 0, TRUNCATED]
    assert steps.continuous_actions.ravel().tolist() == [-0.25, -0.5, 0.25, 0.5]
    assert steps.discrete_actions.ravel().tolist() == [0, 0, 1, 0]
    assert steps.action_mask is not None
    assert steps.action_mask.tolist() == [[True, False, True]] * 2 + [[True, True, False]] * 2


def test_episodes_that_do_not_count_or_are_lost_are_not_written(tmp_path: Path) -> None:
    with EpisodeRecorder(tmp_path / "a.demo", lambda: SPEC) as recorder:
        recorder.see(Steps(waiting(1, 0)))
        recorder.act(waiting(1, 0), actions(0.25, 1))
        recorder.abandon(np.array([4]))
        ended = TerminalSteps(np.array([9]), (SEEN[1:],), np.zeros(1, np.float32), np.array([False]))
        recorder.see(Steps(waiting(2, 0), ended))
    assert list(tmp_path.iterdir()) == []
