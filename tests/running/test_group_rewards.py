"""What a group earns is paid to each of its members, as ML-Agents does for trainers of single agents."""

from __future__ import annotations

from pathlib import Path

from rl_tui.engine.session.messages import EpisodesFinished, LogEmitted
from tests.running.runs import behavior, configuration, run_to_end


def test_returns_include_what_the_group_earned_and_the_log_says_so_once(tmp_path: Path) -> None:
    """Two agents, whose episodes of 4 and 6 steps pay each of them 1 and their group 10 a step."""
    world, settings = "tests.running.environments:Uneven", {"env_kwargs": {"lengths": [4, 6], "group_reward": 10}}
    run = run_to_end(configuration(tmp_path, {"Walker": behavior()}, world, env_settings=settings))
    assert run.launch.exit_code == 0, run.recent_events()
    episodes = run.of(EpisodesFinished)
    assert min(event.min_return for event in episodes) == 4 * 11
    assert max(event.max_return for event in episodes) == 6 * 11
    notes = [event for event in run.of(LogEmitted) if "groups" in event.message]
    assert [(event.level, event.source) for event in notes] == [("info", "Walker")]
