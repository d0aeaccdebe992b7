"""TensorBoard files, read back with tensorboard's own reader."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rl_tui.engine.running.writers.settings import TensorBoardSettings
from rl_tui.engine.running.writers.tensorboard import TensorBoardWriter
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    Envelope,
    Histogram,
    HyperparameterChanged,
    LogEmitted,
    MetricsReported,
    NoteAdded,
    ProgressReported,
)
from tests.deadline import DEADLINE_SECONDS
from tests.running.writers.contexts import Logged, context_in

ROOT = Path(__file__).parents[3]
REWARD = "Environment/Cumulative Reward"
RETURNS = Histogram(1.0, 3.0, 3, 6.0, 14.0, (1.0, 2.0, 3.0), (1.0, 1.0, 1.0))


def summary(step: int, behavior: str = "B", returns: Histogram | None = None, **extra: float) -> MetricsReported:
    metrics = {REWARD: float(step) / 2, "Losses/Policy Loss": 0.25, **extra}
    return MetricsReported(behavior, step, 1.0, metrics, 1.0, 0.0, returns, True)


def writer_in(folder: Path, behaviors=None, logged=None) -> TensorBoardWriter:
    return TensorBoardWriter(TensorBoardSettings(), context_in(folder, behaviors, logged=logged))


def read(folder: Path) -> EventAccumulator:
    return EventAccumulator(str(folder), size_guidance={"histograms": 0, "scalars": 0, "tensors": 0}).Reload()


def test_scalars_come_back_with_their_tags_steps_and_times(tmp_path):
    logged = Logged()
    writer = writer_in(tmp_path, logged=logged)
    for number, step in enumerate([1000, 2000, 3000], start=1):
        writer.write(Envelope(number, 500.0 + number, summary(step)))
    writer.close()
    back = read(tmp_path / "B")
    assert sorted(back.Tags()["scalars"]) == [REWARD, "Losses/Policy Loss"]
    assert [(e.step, e.value, e.wall_time) for e in back.Scalars(REWARD)] == [
        (1000, 500.0, 501.0),
        (2000, 1000.0, 502.0),
        (3000, 1500.0, 503.0),
    ]
    assert logged.lines == []


def test_the_histogram_of_returns_comes_back(tmp_path):
    writer = writer_in(tmp_path)
    writer.write(Envelope(1, 0.0, summary(1000, returns=RETURNS)))
    writer.close()
    (event,) = read(tmp_path / "B").Histograms(f"{REWARD}_hist")
    back = event.histogram_value
    assert (event.step, back.min, back.max, back.num, back.sum, back.sum_squares) == (1000, 1.0, 3.0, 3, 6.0, 14.0)
    assert (tuple(back.bucket_limit), tuple(back.bucket)) == (RETURNS.limits, RETURNS.counts)


def test_hyperparameters_come_back_as_text(tmp_path):
    settings = {"trainer_type": "ppo", "hyperparameters": {"batch_size": 64, "beta": 0.01}}
    writer = writer_in(tmp_path, {"B": settings})
    writer.write(Envelope(1, 0.0, BehaviorStarted("B", "ppo", "toy:line", 700, 1000, 1, 1, False)))
    writer.close()
    (event,) = read(tmp_path / "B").Tensors("Hyperparameters/text_summary")
    text = event.tensor_proto.string_val[0].decode()
    assert text.splitlines() == ["trainer_type:\tppo", "hyperparameters:\t", "\tbatch_size:\t64", "\tbeta:\t0.01"]
    metadata = read(tmp_path / "B").SummaryMetadata("Hyperparameters/text_summary")
    assert metadata.plugin_data.plugin_name == "text"


def test_changes_and_notes_come_back_as_text_where_they_were_made(tmp_path):
    writer = writer_in(tmp_path)
    events = (
        BehaviorStarted("A", "ppo", "toy:line", 700, 1000, 1, 1, False),
        BehaviorStarted("B", "ppo", "toy:line", 0, 1000, 1, 1, False),
        ProgressReported("B", 50, 60, 1.0, 1),
        NoteAdded("warmer"),
        NoteAdded("limps", "B"),
        HyperparameterChanged("B", 40, "beta", 0.005, 0.25),
    )
    for number, event in enumerate(events, start=1):
        writer.write(Envelope(number, 500.0 + number, event))
    writer.close()

    def texts(behavior, tag):
        return [(e.step, e.tensor_proto.string_val[0].decode()) for e in read(tmp_path / behavior).Tensors(tag)]

    assert texts("A", "Notes") == [(700, "warmer")]
    assert texts("B", "Notes") == [(50, "warmer"), (50, "limps")]
    assert texts("B", "Hyperparameters/changes") == [(40, "beta 0.005 -> 0.25")]


def test_what_mlagents_hides_from_tensorboard_stays_hidden(tmp_path):
    writer = writer_in(tmp_path)
    writer.write(Envelope(1, 0.0, summary(1, **{"Step": 1.0, "Is Training": 1.0})))
    writer.close()
    assert not {"Step", "Is Training"} & set(read(tmp_path / "B").Tags()["scalars"])


def test_each_behavior_has_its_file_and_other_events_have_none(tmp_path):
    writer = writer_in(tmp_path)
    writer.write(Envelope(1, 0.0, summary(1, "A")))
    writer.write(Envelope(2, 0.0, summary(1, "B")))
    writer.write(Envelope(3, 0.0, LogEmitted("info", "C", "hello")))
    writer.close()
    names = {path.parent.name: path.name for path in tmp_path.glob("*/*")}
    assert set(names) == {"A", "B"}
    assert all(name.startswith("events.out.tfevents.") for name in names.values())


def test_a_resumed_run_adds_a_file_and_the_curves_join(tmp_path):
    for step in (1000, 2000):
        writer = writer_in(tmp_path)
        writer.write(Envelope(1, float(step), summary(step)))
        writer.close()
    assert len(list((tmp_path / "B").iterdir())) == 2
    assert [event.step for event in read(tmp_path / "B").Scalars(REWARD)] == [1000, 2000]


def test_a_summary_can_be_read_as_soon_as_it_is_written_and_no_thread_is_started(tmp_path):
    threads = threading.active_count()
    writer = writer_in(tmp_path)
    writer.write(Envelope(1, 0.0, summary(1000)))
    assert threading.active_count() == threads
    assert len(read(tmp_path / "B").Scalars(REWARD)) == 1
    writer.close()


def test_a_file_that_was_cut_off_loses_only_its_last_summary(tmp_path):
    writer = writer_in(tmp_path)
    for step in range(1, 21):
        writer.write(Envelope(step, 0.0, summary(step)))
    writer.close()
    (path,) = (tmp_path / "B").iterdir()
    os.truncate(path, path.stat().st_size - 5)
    assert [event.step for event in read(tmp_path / "B").Scalars(REWARD)] == list(range(1, 20))


def test_a_folder_that_cannot_be_made_is_reported_and_does_not_raise(tmp_path):
    (tmp_path / "B").write_text("a file stands where the folder should be")
    logged = Logged()
    writer = writer_in(tmp_path, logged=logged)
    for step in range(3):
        writer.write(Envelope(step, 0.0, summary(step)))
    writer.close()
    ((level, message),) = logged.lines
    assert level == "error"
    assert str(tmp_path / "B") in message


def test_the_file_stays_readable_when_space_returns(tmp_path):
    """In a process of its own, because a limit on file sizes counts for a whole process."""
    program = """
import resource, signal, sys
from pathlib import Path
from rl_tui.engine.session.messages import Envelope, MetricsReported
from tests.running.writers.contexts import Logged
from tests.running.writers.test_tensorboard import writer_in
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
logged = Logged()
writer = writer_in(Path(sys.argv[1]), logged=logged)
for step in range(1, 31):
    limit = 700 if 10 < step <= 20 else resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    writer.write(Envelope(step, 0.0, MetricsReported("B", step, 1.0, {"Policy/Entropy": 1.0}, None, None, None, True)))
assert "File too large" in logged.lines[0][1], logged.lines
writer.close()
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=DEADLINE_SECONDS, cwd=ROOT)
    steps = [event.step for event in read(tmp_path / "B").Scalars("Policy/Entropy")]
    assert steps == [*range(1, steps.index(21) + 1), *range(21, 31)]
    assert len(steps) < 30


def test_the_writer_brings_no_heavy_library(tmp_path):
    program = (
        "import sys; from pathlib import Path\n"
        "from rl_tui.engine.running.writers.settings import TensorBoardSettings\n"
        "from rl_tui.engine.running.writers.tensorboard import TensorBoardWriter\n"
        "from rl_tui.engine.session.messages import Envelope, NoteAdded\n"
        "from tests.running.writers.contexts import context_in\n"
        "assert not any(m.startswith('tensorboard') for m in sys.modules)\n"
        "writer = TensorBoardWriter(TensorBoardSettings(), context_in(Path(sys.argv[1])))\n"
        "writer.write(Envelope(1, 0.0, NoteAdded('hi', 'B')))\n"
        "print(*{'tensorflow', 'torch', 'textual'} & sys.modules.keys())\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    assert (
        subprocess.run(command, timeout=DEADLINE_SECONDS, check=True, cwd=ROOT, stdout=subprocess.PIPE).stdout == b"\n"
    )
    assert (tmp_path / "B").is_dir()
