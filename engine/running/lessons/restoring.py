"""The lessons that a run begins with: those of its checkpoints, or the first ones."""

from __future__ import annotations

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.specs import State
from rl_tui.engine.storage.checkpoint_format import LESSONS, Checkpoint, read_values
from rl_tui.engine.storage.checkpoints import CheckpointStore, trained_behaviors
from rl_tui.engine.storage.run_folder import RunFolder


def make_lessons(config: RunConfig, seed: int, bus: EventBus, resumed: RunFolder | None) -> Lessons:
    """The lessons of a run. resumed: its folder, where it continues.

    Known before there are environments, which are given the values before their first episode.
    """
    lessons = Lessons(config.environment_parameters, seed, bus, advances=not config.checkpoint_settings.inference)
    if resumed is None or not lessons.has_any:
        return lessons
    saved = _saved(resumed)
    if saved:
        newest = max(saved, key=lambda one: one[1].created_at)
        lessons.restore(newest[1].behavior, newest[0])
    for state, checkpoint in saved:  # one that was rolled back decides on its own lessons, not what came later
        lessons.restore(checkpoint.behavior, state, only_own=True)
    for name, number in lessons.numbers.items():
        if number:
            bus.log("info", "run", f"{name}: continues at lesson {number + 1}")
    return lessons


def _saved(folder: RunFolder) -> list[tuple[State, Checkpoint]]:
    """What the checkpoint that each behavior resumes from says about lessons."""
    found = []
    for name in trained_behaviors(folder.path):
        newest = CheckpointStore(folder.behavior(name).checkpoints, name, 0).newest_valid().path
        if newest is not None:
            state, checkpoint = read_values(newest)
            found.append((state.part(LESSONS), checkpoint))
    return found
