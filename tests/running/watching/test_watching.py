"""Watching the newest policy play: the run is not affected, whatever happens."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from rl_tui.engine.running.watching.service import NEVER, NOT_YET, WatchService
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    LogEmitted,
    MetricsReported,
    Pause,
    ProgressReported,
    Resume,
    RunStateChanged,
    Stop,
)
from rl_tui.engine.session.watching import Scene
from tests.running.runs import (
    DEADLINE_SECONDS,
    ENDLESS,
    LiveRun,
    behavior,
    configuration,
    equal,
    live,
    run_to_end,
    tensors_of,
)

ENVIRONMENTS = "tests.running.watching.environments"
SIZE = (30, 40)


@contextmanager
def watched(
    folder: Path, env: str, *commands: Any, name: str = "B", settings: Any = None, **changes: Any
) -> Iterator[tuple[LiveRun, WatchService]]:
    """A run whose policy plays. It is watched from the moment at which there is something to watch.

    With Pause it trains no further, and costs nothing beside.
    """
    behaviors = {name: behavior(**({"max_steps": ENDLESS} | (settings or {})))}
    with live(configuration(folder, behaviors, env, **changes), *commands) as run:
        watching = run.launch.watching
        run.wait_for(RunStateChanged, lambda event: event.state == "training")
        assert watching.begin(name, SIZE) == ""
        try:
            yield run, watching
        finally:
            watching.end()


def until(watching: WatchService, when: Callable[[Scene], bool]) -> Scene:
    """The first scene of which that is true."""
    deadline, last = time.monotonic() + DEADLINE_SECONDS, None
    while time.monotonic() < deadline:
        scene = watching.pop_scene()
        if scene is not None and when(scene):
            return scene
        last = scene or last
        time.sleep(0.01)
    raise AssertionError(last)


def misbehaving(failing: str, how: str = "raises") -> dict[str, Any]:
    return {"env_kwargs": {"trainer": os.getpid(), "failing": failing, "how": how}, "timeout_wait": 60}


def test_cart_pole_is_watched_as_pixels_with_its_figures(tmp_path: Path) -> None:
    with watched(tmp_path, "gymnasium:CartPole-v1") as (run, watching):
        scene = until(watching, lambda scene: scene.pixels is not None and scene.step > 0)
        assert scene.pixels is not None
        assert (scene.pixels.width, scene.pixels.height) == (30, 20), "600 by 400, as large as there is room"
        assert len(scene.pixels.rgb) == 3 * 30 * 20
        assert scene.pixels.rgb[:3] == b"\xff\xff\xff", "the sky is white"
        assert scene.total == scene.step, "CartPole gives 1 for each step"
        assert len(scene.discrete) == 1
        assert [seen.shape for seen in scene.seen] == [(4,)]
        first = until(watching, lambda scene: bool(scene.returns))
        assert first.returns == tuple(map(float, first.lengths))
        assert first.episode > len(first.returns)
        watching.resize((8, 80))
        small = until(watching, lambda scene: scene.pixels is not None and scene.pixels.width == 8)
        assert small.pixels is not None
        assert small.pixels.height == 5
        step = run.wait_for(ProgressReported).step
        until(watching, lambda scene: (scene.policy_step or 0) > step)


def test_text_environment_is_watched_as_text(tmp_path: Path) -> None:
    with watched(tmp_path, "gymnasium:FrozenLake-v1", Pause()) as (_, watching):
        scene = until(watching, lambda scene: scene.state == "playing" and bool(scene.text))
        assert scene.pixels is None
        assert "FHFH" in scene.text
        assert scene.hz == 4, "as the environment means it"


def test_what_has_no_picture_says_so_and_is_played_all_the_same(tmp_path: Path) -> None:
    with watched(tmp_path, "toy:line", Pause()) as (_, watching):
        scene = until(watching, lambda scene: bool(scene.returns))
        assert scene.undrawn == "the environment has no method `render`"
        assert scene.seen
    other = tmp_path / "other"
    with watched(other, f"{ENVIRONMENTS}:windowless", Pause()) as (_, watching):
        scene = until(watching, lambda scene: bool(scene.returns))
        assert scene.undrawn == "it has no render mode that gives pixels or text"
        assert set(scene.returns) == {4.0}


def test_play_is_paused_stepped_restarted_and_switched_to_sampled_actions(tmp_path: Path) -> None:
    with watched(tmp_path, f"{ENVIRONMENTS}:Drawn", Pause()) as (_, watching):
        watching.send("pause")
        held = until(watching, lambda scene: scene.state == "paused")
        assert held.is_greedy
        watching.send("step")
        stepped = until(watching, lambda scene: (scene.episode, scene.step) != (held.episode, held.step))
        assert stepped.state == "paused"
        assert (stepped.step - held.step) % 4 == 1, "an episode has four steps"
        watching.send("drawn")
        until(watching, lambda scene: not scene.is_greedy)
        watching.send("restart")
        restarted = until(watching, lambda scene: scene.episode > stepped.episode and scene.step == 0)
        assert restarted.state == "paused"
        assert len(restarted.returns) < restarted.episode - 1 or stepped.step == 0, (
            "what was not played to its end counts nothing"
        )
        watching.send("resume")
        until(watching, lambda scene: scene.state == "playing" and scene.episode > restarted.episode)


def test_run_learns_bit_for_bit_what_it_learns_unwatched(tmp_path: Path) -> None:
    settings = behavior(summary_freq=128)
    alone = run_to_end(configuration(tmp_path / "alone", {"B": settings}, f"{ENVIRONMENTS}:Drawn"))
    with watched(tmp_path, f"{ENVIRONMENTS}:Drawn", Pause(), settings={"max_steps": 512, "summary_freq": 128}) as (
        run,
        watching,
    ):
        until(watching, lambda scene: len(scene.returns) > 1)  # also while training is paused
        run.send(Resume())
        run.wait()
        assert run.of(MetricsReported)
        last = until(watching, lambda scene: (scene.policy_step or 0) >= 512)
        assert last.state == "playing", "the policy is still there once the run is over"
    ours, theirs = (numbers(each) for each in (run, alone))
    assert ours == theirs
    assert equal(*(tensors_of(newest(each)) for each in (run, alone)))


def numbers(run: LiveRun) -> list[tuple[int, float | None, dict[str, float]]]:
    """All that the summaries say, but for what a clock has measured."""
    return [
        (e.step, e.mean_return, {tag: value for tag, value in e.metrics.items() if not tag.startswith("Time/")})
        for e in run.of(MetricsReported)
    ]


def newest(run: LiveRun) -> Path:
    return max((run.folder / "B" / "checkpoints").iterdir())


def test_environment_that_raises_ends_watching_alone_and_can_be_restarted(tmp_path: Path) -> None:
    changes = {"env_settings": misbehaving("step")}
    with watched(tmp_path, f"{ENVIRONMENTS}:Drawn", **changes) as (run, watching):
        failed = until(watching, lambda scene: scene.state == "failed")
        assert "step raised ValueError: the wheels came off" in failed.reason
        reported = run.wait_for(
            LogEmitted, lambda event: event.level == "warning" and "watching failed" in event.message
        )
        assert "training continues" in reported.message
        run.wait_for(LogEmitted, lambda event: "whole traceback of" in event.message)
        assert "self._fail_in" in (run.folder / "run_logs" / "output.log").read_text()
        watching.send("restart")
        until(watching, lambda scene: scene.state != "failed")
        run.wait_for(MetricsReported, after=len(run.mail))


def test_picture_that_cannot_be_drawn_costs_the_picture_alone(tmp_path: Path) -> None:
    changes = {"env_settings": misbehaving("render")}
    with watched(tmp_path, f"{ENVIRONMENTS}:Drawn", Pause(), **changes) as (run, watching):
        scene = until(watching, lambda scene: bool(scene.returns))
        assert "render raised ValueError: the wheels came off" in scene.undrawn
        run.wait_for(LogEmitted, lambda event: "continues without pictures" in event.message)


@pytest.mark.parametrize("failing", ["step", "render"])
def test_environment_that_hangs_blocks_no_other_thread(tmp_path: Path, failing: str) -> None:
    changes = {"env_settings": misbehaving(failing, "hangs")}
    others = psutil.Process().children(recursive=True)  # of earlier tests
    with watched(tmp_path, f"{ENVIRONMENTS}:Drawn", **changes) as (run, watching):
        log, deadline = run.folder / "run_logs" / "watch-0.log", time.monotonic() + DEADLINE_SECONDS
        while not (log.exists() and "hanging" in log.read_text()):
            assert time.monotonic() < deadline
            watching.pop_scene()  # otherwise no picture is drawn
            time.sleep(0.01)
        children = [child for child in psutil.Process().children(recursive=True) if child not in others]
        assert children
        watching.end()
        run.launch.send(Stop("now"))
        run.wait()
        psutil.wait_procs(children, DEADLINE_SECONDS)
        assert not [child for child in children if child.is_running()]


def test_environment_that_hangs_beyond_its_deadline_is_reported(tmp_path: Path) -> None:
    changes = {"env_settings": misbehaving("step", "hangs") | {"timeout_wait": 1}}
    with watched(tmp_path, f"{ENVIRONMENTS}:Drawn", Pause(), **changes) as (_, watching):
        assert "step" in until(watching, lambda scene: scene.state == "failed").reason


def test_policy_with_a_memory_plays(tmp_path: Path) -> None:
    memory = {"network_settings__memory": {"memory_size": 8, "sequence_length": 8}}
    with watched(tmp_path, "toy:memory", Pause(), settings=memory) as (_, watching):
        until(watching, lambda scene: len(scene.returns) > 1)


def test_behaviors_of_one_environment_are_watched_one_at_a_time(tmp_path: Path) -> None:
    config = configuration(
        tmp_path, {name: behavior(max_steps=ENDLESS) for name in ("Quick", "Slow")}, f"{ENVIRONMENTS}:Talking"
    )
    with live(config, Pause()) as run:
        watching = run.launch.watching
        run.wait_for(RunStateChanged, lambda event: event.state == "training")
        for name in ("Quick", "Slow"):
            assert watching.begin(name, SIZE) == ""
            scene = until(watching, lambda scene: bool(scene.returns))
            assert scene.behavior == name
            assert scene.text.startswith("step ")
        watching.end()


def test_behavior_that_appears_is_watched_from_then_on(tmp_path: Path) -> None:
    """It appears at the 60th step in training, and at the third where it is watched."""
    env = "tests.running.growing:EarlierElsewhere"
    behaviors = {name: behavior(max_steps=ENDLESS) for name in ("Left", "Right")}
    config = configuration(tmp_path, behaviors, env, env_settings={"env_kwargs": {"trainer": os.getpid()}})
    with live(config, Pause()) as run:
        watching = run.launch.watching
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        assert watching.begin("Right", SIZE) == "Right has not appeared in its environment yet"
        assert watching.begin("Left", SIZE) == ""
        failed = until(watching, lambda scene: scene.state == "failed")
        assert failed.reason == "behavior Right has appeared, and has no policy yet"
        run.send(Resume())
        run.wait_for(MetricsReported, lambda event: event.behavior == "Right")
        assert watching.begin("Right", SIZE) == ""
        assert until(watching, lambda scene: bool(scene.returns)).returns[0] == 3
        watching.end()


def test_there_is_nothing_to_watch_before_the_start_and_after_a_run_that_had_none() -> None:
    watching = WatchService(EventBus())
    assert watching.why_not("B") == watching.begin("B", SIZE) == NOT_YET
    watching.training_ended()
    assert watching.why_not("B") == watching.begin("B", SIZE) == NEVER
    assert watching.pop_scene() is None
    watching.send("pause")
    watching.end()
