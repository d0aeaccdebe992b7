"""A folder of small recorded runs, as the engine would have left them."""

from __future__ import annotations

from pathlib import Path

from rl_tui.engine.session.messages import (
    BehaviorStarted,
    BehaviorStateChanged,
    EpisodesFinished,
    MetricsReported,
    ProgressReported,
    RunStarted,
    RunStateChanged,
)
from rl_tui.engine.storage.archive import Archive
from rl_tui.engine.storage.event_log import JsonLinesWriter
from tests.tui.scenes import START, Story

CONFIGURATION = """\
behaviors:
  {behavior}:
    trainer_type: ppo
    hyperparameters:
      batch_size: 256
      learning_rate: {learning_rate}
      beta: 0.005
    max_steps: 500000
env_settings:
  env: gymnasium:{behavior}-v5
  num_envs: 8
checkpoint_settings:
  run_id: {run_id}
"""


def story_of(run_id: str, began: float, goal: float, behaviors: tuple[str, ...], ends: bool) -> Story:
    """A run whose return rises to `goal` over 100000 steps."""
    story = Story()
    story.time = began
    story.publish(RunStarted(run_id, f"results/{run_id}", 1, "cpu", False, {}))
    story.publish(RunStateChanged("training"), after=1)
    for name in behaviors:
        story.publish(BehaviorStarted(name, "ppo", f"gymnasium:{name}-v5", 0, 500_000, 8, 9347, True))
        story.publish(BehaviorStateChanged(name, "training"))
    for step in range(1000, 100_001, 1000):
        for name in behaviors:
            value = goal * step / 100_000
            story.publish(ProgressReported(name, step, step, 1000.0, step // 1000), after=1)
            story.publish(EpisodesFinished(name, step, 4, value, value, value, 200.0))
            if step % 10_000 == 0:
                metrics = {"Policy/Entropy": 1.5 - step / 100_000}
                story.publish(MetricsReported(name, step, story.time - began, metrics, value, 1.0, None, True))
    for name in behaviors:
        story.save(name, 100_000, goal, is_best=True)
    if ends:
        for name in behaviors:
            story.publish(BehaviorStateChanged(name, "finished"))
        story.publish(RunStateChanged("finished", exit_code=0))
    return story


def record(
    results: Path, run_id: str, goal: float = 400.0, *, hours_ago: float = 1.0,
    behaviors: tuple[str, ...] = ("Walker",), learning_rate: str = "0.0003", ends: bool = True,
) -> Story:  # fmt: skip
    """Write the folder of one run."""
    story = story_of(run_id, START - 3600 * hours_ago, goal, behaviors, ends)
    write(results, run_id, story, behaviors[0], learning_rate)
    return story


def write(results: Path, run_id: str, story: Story, behavior: str = "Walker", learning_rate: str = "0.0003") -> None:
    """The folder of a run with this story."""
    folder = results / run_id
    folder.mkdir(parents=True)
    (folder / "configuration.yaml").write_text(
        CONFIGURATION.format(behavior=behavior, learning_rate=learning_rate, run_id=run_id)
    )
    writer = JsonLinesWriter(folder / "events.jsonl", append=False)
    for envelope in story.published:
        writer.write(envelope)
    writer.close()


def some_runs(results: Path) -> Archive:
    """Four runs, one of them cut short and one of them two behaviors; newest first: the order of the names."""
    record(results, "walker-ppo", 380.0, hours_ago=0.5)
    record(results, "bold", 431.0, hours_ago=5, learning_rate="0.001")
    record(results, "cut-short", -120.0, hours_ago=30, ends=False)
    record(results, "duo", 250.0, hours_ago=70, behaviors=("Walker", "Crawler"))
    return Archive(results)
