"""Saving during training: what waits, what is skipped, what is kept."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.running.checkpoint_parts import CheckpointParts
from rl_tui.engine.running.learner import Learner
from rl_tui.engine.running.saver import Files, SaveJob, Saver
from rl_tui.engine.running.summaries import LearnerSettings
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    CheckpointFailed,
    CheckpointReason,
    CheckpointSaved,
    Event,
    ExportPolicy,
    LogEmitted,
    MetricsReported,
    PolicyExported,
    RollBack,
    SaveCheckpoint,
    SetHyperparameter,
)
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec, State, Weights
from rl_tui.engine.storage import checkpoints
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from rl_tui.engine.storage.checkpoint_format import Checkpoint, describe
from rl_tui.engine.storage.checkpoints import CheckpointStore
from rl_tui.engine.storage.disk import Disk
from rl_tui.engine.storage.replay_buffer_file import read_replay_buffer
from tests.export.exporters import actor_exporter
from tests.running.runs import DEADLINE_SECONDS, behavior, block

SPEC = BehaviorSpec("Walker", (ObservationSpec("side", (1,)),), ActionSpec(0, (3,)))


class HeldDisk(Disk):
    """A real disk on which making a folder waits until `held` is set."""

    def __init__(self) -> None:
        self.held = threading.Event()

    def make_folder(self, path: Path) -> None:
        assert self.held.wait(DEADLINE_SECONDS)
        super().make_folder(path)


class Bench:
    """A saver over real files, without a thread, and a learner that feeds it."""

    def __init__(self, folder: Path, disk: Disk | None = None, **settings: object) -> None:
        self.seconds = 1000.0  # what the learner's clock shows
        (folder / "Walker").mkdir()
        self.bus = EventBus()
        self.mail = self.bus.subscribe()
        self.outcomes: list[tuple[str, bool]] = []
        config = BehaviorConfig.model_validate(behavior(**settings))
        place = BehaviorFolder("Walker", folder / "Walker")
        store = CheckpointStore(place.checkpoints, "Walker", config.keep_checkpoints, SPEC, disk or Disk())
        exporter = actor_exporter(SPEC, config.network_settings, False, config.export_policies)
        files = {"Walker": Files(place, store, exporter, config.export_interval is not None)}
        self.saver = Saver(files, self.bus, self.report, lambda _: None)
        self.trainer = PPOTrainer(SPEC, config, 1, torch.device("cpu"))
        learner = LearnerSettings("Walker", config, True, 0.0, clock=lambda: self.seconds)
        parts = CheckpointParts(learner, self.trainer, self.bus)
        self.learner = Learner(learner, parts, self.saver, self.bus, self.report, 0)

    def train(self, num_rows: int, value: float = 1.0) -> None:
        """The learner takes one block of rows of one agent."""
        self.learner.learn_from(block(num_rows, value), State())

    def write(self) -> list[Event]:
        """Everything that waits is written; all events since the last call."""
        self.saver.end()
        self.saver.main()
        return self.events()

    def report(self, command: str, _: str, is_ok: bool, __: str) -> None:
        self.outcomes.append((command, is_ok))

    def events(self) -> list[Event]:
        return [envelope.event for envelope in self.mail.drain()]

    def job(self, step: int, reason: CheckpointReason = "interval", command: str = "") -> SaveJob:
        commands = (command,) if command else ()
        return SaveJob("Walker", step, self.trainer.weights(), self.trainer.state(), reason, None, commands)


def exported_steps(events: list[Event]) -> list[int]:
    return [event.step for event in events if isinstance(event, PolicyExported)]


def saved_steps(events: list[Event]) -> list[int]:
    return [event.step for event in events if isinstance(event, CheckpointSaved)]


def test_interval_save_comes_with_the_update_that_crosses_it_and_never_between(tmp_path: Path) -> None:
    bench = Bench(tmp_path, checkpoint_interval=32)
    bench.train(40)  # crosses 32, but no update
    assert bench.saver.has_room
    bench.train(40)  # the update
    assert saved_steps(bench.write()) == [80]


def test_interval_save_that_finds_no_room_waits_for_the_next_update(tmp_path: Path) -> None:
    bench = Bench(tmp_path, checkpoint_interval=64)
    bench.train(64)
    bench.train(64)  # one waits already: skipped
    assert saved_steps(bench.write()) == [64]
    bench.train(10)  # no update
    assert bench.saver.has_room
    bench.train(60)
    assert saved_steps(bench.write()) == [198]


def test_what_was_learned_is_saved_by_the_clock_before_it_is_older_than_that(tmp_path: Path) -> None:
    """The newest such checkpoint is kept, with its policy, besides the others."""
    bench = Bench(tmp_path, checkpoint_seconds=600, keep_checkpoints=1, max_steps=1000)
    events, saved_at = list[Event](), list[int]()
    for update in range(1, 13):
        bench.seconds += 170
        bench.train(64)
        if update == 8:
            bench.saver.has_ended = False  # it would refuse this one, for which no thread waits here
            bench.learner.commands.append(SaveCheckpoint())
            bench.learner.serve()
        new = bench.write()
        saved_at += [update for event in new if isinstance(event, CheckpointSaved)]
        events += new
    saved = [event for event in events if isinstance(event, CheckpointSaved)]
    assert saved_at == [3, 6, 8, 9, 12], "a fourth update would come after 680 seconds"
    assert [event.reason for event in saved] == ["clock", "clock", "asked", "clock", "clock"]
    kept = [event.path for event in (saved[2], saved[-1])]
    assert sorted(map(str, (tmp_path / "Walker/checkpoints").iterdir())) == kept
    assert [path.stem for path in sorted((tmp_path / "Walker").glob("*.onnx"))] == ["Walker-512", "Walker-768"]


def test_a_checkpoint_at_an_interval_of_steps_is_as_good_as_one_by_the_clock(tmp_path: Path) -> None:
    bench, events = Bench(tmp_path, checkpoint_seconds=100, checkpoint_interval=192), list[Event]()
    for _ in range(5):
        bench.seconds += 40
        bench.train(64)
        events += bench.write()
    saved = [(event.step, event.reason) for event in events if isinstance(event, CheckpointSaved)]
    assert saved == [(128, "clock"), (192, "interval"), (320, "clock")]


@pytest.mark.parametrize("seconds", [-1, 600])
def test_nothing_is_saved_by_the_clock_between_updates_at_the_end_or_where_it_is_off(
    tmp_path: Path, seconds: int
) -> None:
    bench = Bench(tmp_path, checkpoint_seconds=seconds, max_steps=128)
    bench.seconds += 10_000
    bench.train(40)
    assert bench.saver.has_room, "no update yet"
    if seconds == -1:
        bench.train(24)
        assert bench.saver.has_room
    (tmp_path / "end").mkdir()
    bench = Bench(tmp_path / "end", checkpoint_seconds=seconds, max_steps=64)
    bench.seconds += 10_000
    bench.train(64)
    assert bench.saver.has_room, "the end is saved by itself"


def test_one_by_the_clock_that_finds_no_room_comes_with_the_next_update(tmp_path: Path) -> None:
    bench = Bench(tmp_path, checkpoint_seconds=600)
    assert bench.saver.offer(bench.job(1))
    for _ in range(2):
        bench.seconds += 600
        bench.train(64)
        bench.write()
        assert [event.step for event in bench.saver.listed("Walker")] in ([1], [1, 128])
    assert [event.step for event in bench.saver.listed("Walker")] == [1, 128]


def test_a_behavior_rolls_back_to_a_checkpoint_by_the_clock_and_counts_its_time_from_there(tmp_path: Path) -> None:
    bench = Bench(tmp_path, checkpoint_seconds=600)
    thread = threading.Thread(target=bench.saver.main, daemon=True)
    thread.start()
    bench.seconds += 500
    bench.train(64)
    before = bench.trainer.state().tensors
    bench.seconds += 50
    bench.train(64)
    bench.learner.commands.append(RollBack("Walker", str(tmp_path / "Walker/checkpoints/Walker-64")))
    bench.learner.serve()
    assert (bench.learner.step, [ok for _, ok in bench.outcomes]) == (64, [True])
    after = bench.trainer.state().tensors
    assert all(np.array_equal(before[name], after[name]) for name in before)
    for _ in range(6):
        bench.seconds += 110
        bench.learner.learn_from(block(64, 1.0, bench.learner.weights.version), State())
    bench.saver.end()
    thread.join(DEADLINE_SECONDS)
    assert [checkpoint.step for checkpoint in bench.saver.listed("Walker")] == [64 + 5 * 64]


def test_policies_are_exported_at_an_interval_of_their_own_and_outlive_their_checkpoints(tmp_path: Path) -> None:
    bench = Bench(tmp_path, checkpoint_interval=128, export_interval=192, keep_checkpoints=1, export_policies=["raw"])
    events: list[Event] = []
    for _ in range(7):
        bench.train(64)
        events += bench.write()
    assert saved_steps(events) == [128, 256, 384]
    assert exported_steps(events) == [192, 384]
    bench.learner.commands.append(SaveCheckpoint())
    bench.learner.serve()
    assert exported_steps(bench.write()) == []
    bench.saver.has_ended = False  # it would refuse the last one, for which no thread waits here
    bench.learner.finish("interrupted")
    assert exported_steps(bench.write()) == [448], "the last policy is always there"
    exports = [192, 384, 448]
    assert sorted((tmp_path / "Walker").glob("*.onnx")) == [tmp_path / f"Walker/Walker-{step}.onnx" for step in exports]
    raw = [tmp_path / f"Walker/policies/Walker-{step}-raw.safetensors" for step in exports]
    assert sorted((tmp_path / "Walker/policies").iterdir()) == raw


def test_there_is_one_copy_of_a_replay_buffer_at_a_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    replay = State({"remaining": np.zeros(2, np.int32)}, {"num_added": 2})
    assert bench.saver.has_written_replay("Walker")
    assert bench.saver.offer(bench.job(1))
    assert bench.saver.has_written_replay("Walker"), "a job without one holds none"
    assert not bench.saver.offer(replace(bench.job(2), replay=replay))
    assert bench.saver.has_written_replay("Walker"), "nor does a job that is refused"
    bench.write()
    assert bench.saver.offer(replace(bench.job(3), replay=replay))
    assert not bench.saver.has_written_replay("Walker")
    assert bench.saver.has_written_replay("Runner")
    thread = threading.Thread(target=bench.saver.main, daemon=True)
    bench.saver.has_ended = False
    thread.start()
    assert bench.saver.has_written_replay("Walker", may_wait=True)
    thread.join(DEADLINE_SECONDS)
    assert read_replay_buffer(tmp_path / "Walker/replay_buffer.safetensors", "Walker").values == replay.values


def test_replay_buffer_that_cannot_be_written_is_reported_and_the_checkpoint_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (tmp_path / "Walker/replay_buffer.safetensors").mkdir()
    bench.saver.put(replace(bench.job(1, "asked", "c"), replay=State()))
    events = bench.write()
    assert saved_steps(events) == [1]
    assert bench.outcomes == [("c", True)]
    assert bench.saver.has_written_replay("Walker")
    (warning,) = [event.message for event in events if isinstance(event, LogEmitted)]
    assert "the replay buffer is not saved" in warning


def test_saves_asked_for_are_kept_and_answered_together(tmp_path: Path) -> None:
    bench = Bench(tmp_path, checkpoint_interval=64)
    bench.train(64)  # an interval save waits
    asked = [SaveCheckpoint(), ExportPolicy(), SaveCheckpoint()]
    bench.learner.commands.extend(asked)
    bench.learner.serve()
    assert len(bench.learner.commands) == 3, "kept until there is room"
    thread = threading.Thread(target=bench.saver.main, daemon=True)
    thread.start()
    bench.learner.serve(may_wait=True)
    assert not bench.learner.commands
    bench.saver.end()
    thread.join(DEADLINE_SECONDS)
    assert bench.outcomes == [(asked[0].id, True), (asked[2].id, True), (asked[1].id, True)]
    events = bench.events()
    assert saved_steps(events) == [64, 64]
    assert len([event for event in events if isinstance(event, PolicyExported)]) == 3


def test_put_waits_for_the_one_before_and_loses_nothing(tmp_path: Path) -> None:
    disk = HeldDisk()
    bench = Bench(tmp_path, disk)
    thread = threading.Thread(target=bench.saver.main, daemon=True)
    thread.start()
    bench.saver.put(bench.job(1))
    bench.saver.put(bench.job(2))
    waiting = threading.Thread(target=bench.saver.put, args=(bench.job(3, "asked", "c"),), daemon=True)
    waiting.start()
    assert not bench.saver.offer(bench.job(4))
    assert not bench.saver.has_room
    disk.held.set()
    waiting.join(DEADLINE_SECONDS)
    bench.saver.end()
    thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive()
    assert saved_steps(bench.events()) == [1, 2, 3]
    assert bench.outcomes == [("c", True)]


def test_last_job_put_before_the_end_is_always_written(tmp_path: Path) -> None:
    for turn in range(20):
        (tmp_path / str(turn)).mkdir()
        bench = Bench(tmp_path / str(turn))
        thread = threading.Thread(target=bench.saver.main, daemon=True)
        thread.start()
        nothing_to_trace = Weights(1, {"log_sigma": np.full(1, np.nan, np.float32)})  # refused at once
        bench.saver.put(SaveJob("Walker", 1, nothing_to_trace, None, "asked", None, ("e",)))
        bench.saver.end()
        thread.join(DEADLINE_SECONDS)
        assert bench.outcomes == [("e", False)]


def test_state_that_is_not_finite_is_never_published(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bad = State({"trainer.weight": np.array([np.nan], np.float32)}, {"trainer": {}})
    weights = Weights(1, {name: array * np.float32(np.nan) for name, array in bench.trainer.weights().arrays.items()})
    bench.saver.put(SaveJob("Walker", 7, weights, bad, "asked", None, ("c",)))
    events = bench.write()
    assert [type(event).__name__ for event in events] == ["CheckpointFailed", "ExportFailed"]
    assert isinstance(events[0], CheckpointFailed)
    assert bench.outcomes == [("c", False)]
    assert not list(tmp_path.rglob("*.onnx"))
    assert not list((tmp_path / "Walker/checkpoints").iterdir())


def test_experience_of_a_given_up_policy_is_not_learned_from(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    thread = threading.Thread(target=bench.saver.main, daemon=True)
    thread.start()
    bench.train(64)
    command = SaveCheckpoint()
    bench.learner.commands.append(command)
    bench.learner.serve()
    bench.train(64)
    bench.train(40)  # waits for an update, and is given up
    newest = bench.learner.weights.pop()
    assert newest is not None
    path = tmp_path / "Walker/checkpoints/Walker-64"
    bench.learner.commands.append(RollBack("Walker", str(path)))
    bench.learner.serve()
    gone_back_to = bench.learner.weights.pop()
    assert gone_back_to is not None
    assert gone_back_to.version > newest.version, "no two have the same"
    bench.learner.learn_from(block(64, 1.0, newest.version), State())
    assert (bench.learner.step, bench.learner.num_updates) == (64, 1)
    assert bench.learner.weights.pop() is None
    bench.learner.learn_from(block(63, 1.0, gone_back_to.version), State())
    assert (bench.learner.step, bench.learner.num_updates) == (127, 1), "the 40 rows do not count"
    bench.learner.learn_from(block(1, 1.0, gone_back_to.version), State())
    assert (bench.learner.step, bench.learner.num_updates) == (128, 2)
    bench.saver.end()
    thread.join(DEADLINE_SECONDS)
    assert [ok for _, ok in bench.outcomes] == [True, True]


def test_commands_keep_their_order_while_the_saver_is_busy(tmp_path: Path) -> None:
    """What a checkpoint was asked for before a change is saved without it."""
    bench = Bench(tmp_path)
    bench.saver.offer(bench.job(1))
    change, save = SetHyperparameter("Walker", "beta", 0.25), SaveCheckpoint()
    bench.learner.commands.extend([save, change])
    bench.learner.serve()
    assert list(bench.learner.commands) == [save, change]
    bench.learner.commands.rotate()
    bench.learner.serve()
    assert list(bench.learner.commands) == [save], "a change waits for no disk"
    assert bench.outcomes == [(change.id, True)]


def test_roll_back_after_the_end_of_the_saver_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write()
    bench.learner.commands.append(RollBack("Walker", str(tmp_path)))
    bench.learner.serve()
    assert [ok for _, ok in bench.outcomes] == [False]


def test_learner_shows_summaries_at_multiples_and_says_when_it_trains_no_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path, summary_freq=50, max_steps=200)
    for _ in range(3):
        bench.train(64)
    assert not bench.learner.is_over
    bench.train(64, 2.0)
    assert bench.learner.is_over
    summaries = [event for event in bench.events() if isinstance(event, MetricsReported)]
    assert [event.step for event in summaries] == [50, 100, 150, 250]
    assert [event.is_training for event in summaries] == [True, True, True, False]
    last = summaries[-1]
    assert (last.mean_return, last.std_return) == (128.0, 0.0)
    assert last.metrics["Environment/Cumulative Reward"] == last.metrics["Policy/Extrinsic Reward"] == 128.0
    assert last.metrics["Environment/Episode Length"] == 64
    bench.learner.finish("final")
    bench.learner.finish("interrupted")  # it has ended: nothing more
    events = bench.write()
    assert saved_steps(events) == [256]
    assert [event.step for event in events if isinstance(event, PolicyExported)] == [256]


def test_a_save_reads_every_checkpoint_on_disk_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, keep_checkpoints=2)
    read: list[str] = []

    def counted(path: Path) -> Checkpoint:
        read.append(path.name)
        return describe(path)

    monkeypatch.setattr(checkpoints, "describe", counted)
    for step in (1, 2, 3):
        read.clear()
        assert bench.saver.offer(bench.job(step))
        bench.write()
        assert [checkpoint.step for checkpoint in bench.saver.listed("Walker")] == [1, 2, 3][max(0, step - 2) : step]
    assert read == ["Walker-1", "Walker-2", "Walker-3"]
