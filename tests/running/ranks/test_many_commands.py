"""Commands at random moments, several at once, come at the same update on all ranks, and never a deadlock."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rl_tui.engine.session.messages import (
    CheckpointSaved,
    Command,
    CommandFinished,
    EvaluationReported,
    ExportPolicy,
    Pause,
    Resume,
    RollBack,
    RunStateChanged,
    SaveCheckpoint,
    SetHyperparameter,
    SetLesson,
    Stop,
)
from tests.learning.sync.ranks import Ranks
from tests.running.ranks.rank_runs import Script
from tests.running.ranks.test_ranks import as_one, configs, parts_of, trained
from tests.running.runs import ENDLESS, behavior

GRADED = "tests.running.ranks.worlds:Graded"
BEHAVIORS = "Left", "Right"
MOST_AT_ONCE = 4
MOST_SECONDS = 0.05  # between two lots of commands: a few updates
NUM_LESSONS = 3
LESSONS = {
    "grade": {
        "curriculum": [
            {
                "name": f"lesson {number}", "value": float(number),
                "completion_criteria": {
                    "measure": "reward", "behavior": "Left", "threshold": 1e9, "min_lesson_length": 5,
                },
            }
            for number in range(1, NUM_LESSONS)
        ]
        + [{"name": "last", "value": 9.0}]
    }
}  # fmt: skip


def drawn(luck: random.Random, script: Script) -> Command:
    """Any command that is for training."""
    name = luck.choice((*BEHAVIORS, None))
    one = luck.choice(BEHAVIORS)
    saved = [event.path for event in script.run.of(CheckpointSaved) if event.behavior == one]
    makers: list[Callable[[], Command]] = [
        lambda: SetHyperparameter(one, "learning_rate", luck.uniform(1e-4, 1e-2)),
        lambda: SetHyperparameter(one, "beta", luck.uniform(1e-3, 1e-1)),
        lambda: SetHyperparameter(one, "target_kl", luck.choice((1e-6, 0.01, 1.0))),
        lambda: SetHyperparameter(one, "learning_rate", -1.0),  # is refused
        lambda: SetLesson("grade", luck.randint(1, NUM_LESSONS)),
        lambda: SaveCheckpoint(name),
        Pause,
        Resume,
        Resume,
        lambda: RollBack(one, luck.choice(saved[-5:])) if saved else SaveCheckpoint(one),
    ]
    return luck.choice(makers)() if luck.random() < 0.97 else ExportPolicy(name)


def send_many(number: int, seed: int, script: Script) -> None:
    """So many commands, and the end, which comes while they are carried out."""
    run, luck, sent = script.run, random.Random(seed), list[Command]()
    trained(script)
    while len(sent) < number:
        lot = [drawn(luck, script) for _ in range(min(luck.randint(1, MOST_AT_ONCE), number - len(sent)))]
        for command in lot:
            run.launch.send(command)
        sent += lot
        if luck.random() < 0.5:
            run.launch.send(Resume())  # a behavior that is evaluated by its thread answers nothing while it is paused
            for command in lot:
                run.wait_for(CommandFinished, lambda event, own=command: event.id == own.id)  # type: ignore[misc]
        time.sleep(luck.uniform(0.0, MOST_SECONDS))
        assert not run.launch.wait(0), (run.wait(), run.of(RunStateChanged)[-1])
    assert run.send(Resume()) is not None
    trained(script)
    assert run.send(Stop()).ok
    finished = Counter(event.id for event in run.of(CommandFinished))
    assert all(finished[command.id] == 1 for command in sent)


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize(
    ("size", "number"),
    [
        (2, 20),
        pytest.param(3, 20, marks=pytest.mark.slow),
        pytest.param(2, 300, marks=pytest.mark.slow),
        pytest.param(3, 300, marks=pytest.mark.slow),
    ],
)
def test_many_commands_come_at_the_same_updates_on_all(
    size: int, number: int, threaded: bool, tmp_path: Path, two: Ranks, three: Ranks
) -> None:
    """While behaviors are evaluated and saved at intervals, and every message, block and update may be late."""
    behaviors = {
        name: behavior(
            max_steps=ENDLESS, keep_checkpoints=0, threaded=threaded, checkpoint_interval=300,
            evaluation={"interval": 128, "episodes": 3}, hyperparameters__target_kl=0.01,
        )
        for name in BEHAVIORS
    }  # fmt: skip
    run = configs(tmp_path, *[{}] * size, behaviors=behaviors, env=GRADED, environment_parameters=LESSONS)
    parts = parts_of({2: two, 3: three}[size], run, partial(send_many, number, number + size), delays=0.005)
    first = as_one(parts, may_lack_summaries=True)
    assert first.exit_code == 0, first.reason
    assert first.of(EvaluationReported)
    kinds = Counter(len(change) for change in first.changes)
    print(f"{number} commands on {size} ranks: {kinds[4]} changes of hyperparameters, {kinds[2]} roll backs")
    assert kinds[4] + kinds[2] >= number / 10
