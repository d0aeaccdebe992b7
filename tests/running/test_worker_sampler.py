"""What a run publishes about its worker processes."""

from __future__ import annotations

import os
import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest

from rl_tui.engine.running.worker_sampler import WorkerSampler
from rl_tui.engine.session.messages import (
    DevicesSampled,
    EnvironmentRestarted,
    Pause,
    ProgressReported,
    Resume,
    Stop,
    Worker,
    WorkersSampled,
)
from tests.deadline import DEADLINE_SECONDS
from tests.running.runs import ENDLESS, LiveRun, behavior, configuration, live, run_to_end
from tests.sampling.collecting.rounds import Needs, Rounds, started

TWO_WORKERS = {"num_envs": 4, "num_workers": 2}
LEAST_BYTES = 5 << 20  # of a Python process that has imported numpy


def newest(run: LiveRun) -> WorkersSampled:
    """The next sample."""
    return run.wait_for(WorkersSampled, after=len(run.mail))


def test_workers_that_act_are_sampled_until_the_end(tmp_path: Path) -> None:
    config = configuration(tmp_path, {"Walker": behavior(max_steps=ENDLESS)}, env_settings=TWO_WORKERS)
    with live(config) as run:
        run.wait_for(ProgressReported, lambda progress: progress.sampled > 2000)
        sample = newest(run)
        assert (sample.environment, sample.behaviors) == ("toy:line", ("Walker",))
        assert [worker.number for worker in sample.workers] == [0, 1]
        for worker in sample.workers:
            assert worker.pid is not None
            os.kill(worker.pid, 0)  # there is such a process
            assert worker.steps_per_second is not None
            assert worker.waiting is not None
            assert worker.memory_bytes is not None
            assert worker.steps_per_second > 0
            assert 0 < worker.waiting <= 1, "it waits for every update"
            assert worker.lag in (0, 1), "a segment may have begun before an update"
            assert worker.memory_bytes > LEAST_BYTES
            assert worker.restarts == 0
        assert run.send(Stop()).ok
    last, progress = run.of(WorkersSampled)[-1], run.of(ProgressReported)[-1]
    total = sum(worker.steps_per_second or 0.0 for worker in last.workers)
    assert total == pytest.approx(progress.steps_per_second, rel=0.05)


def test_workers_that_go_on_during_an_update_are_one_version_behind(tmp_path: Path) -> None:
    behaviors = {"Walker": behavior(max_steps=ENDLESS, threaded=True)}
    with live(configuration(tmp_path, behaviors, env_settings=TWO_WORKERS)) as run:
        run.wait_for(WorkersSampled, lambda sample: [worker.lag for worker in sample.workers] == [1, 1])
        assert run.send(Stop()).ok


def test_restart_is_counted_and_the_new_process_is_named(tmp_path: Path) -> None:
    config = configuration(tmp_path, {"Walker": behavior(max_steps=ENDLESS)}, env_settings=TWO_WORKERS)
    with live(config) as run:
        before = run.wait_for(WorkersSampled)
        killed = before.workers[1].pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        run.wait_for(EnvironmentRestarted)
        after = newest(run)
        assert [worker.restarts for worker in after.workers] == [0, 1]
        assert after.workers[0].pid == before.workers[0].pid
        assert after.workers[1].pid not in (None, killed)
        assert run.send(Stop()).ok


def test_workers_of_agents_that_act_here_have_no_times_but_memory(tmp_path: Path) -> None:
    settings = {**TWO_WORKERS, "act_in": "main"}
    with live(configuration(tmp_path, {"Walker": behavior(max_steps=ENDLESS)}, env_settings=settings)) as run:
        sample = newest(run)
        for worker in sample.workers:
            assert (worker.steps_per_second, worker.waiting, worker.lag, worker.restarts) == (None, None, None, 0)
            assert worker.pid is not None
            assert worker.memory_bytes is not None
            assert worker.memory_bytes > LEAST_BYTES
        assert run.send(Stop()).ok


def test_environments_of_this_process_have_no_workers(tmp_path: Path) -> None:
    run = run_to_end(configuration(tmp_path, {"Walker": behavior()}))
    assert run.of(ProgressReported)
    assert not run.of(WorkersSampled)


def test_samples_are_a_second_apart_and_none_comes_while_training_is_paused(tmp_path: Path) -> None:
    config = configuration(tmp_path, {"Walker": behavior(max_steps=ENDLESS)}, env_settings=TWO_WORKERS)
    with live(config) as run:
        for _ in range(3):
            newest(run)
        times = [envelope.time for envelope in run.mail if isinstance(envelope.event, WorkersSampled)]
        assert min(later - earlier for earlier, later in pairwise(times)) > 0.9
        assert run.send(Pause()).ok
        paused_at = len(run.mail)
        for _ in range(2):
            run.wait_for(DevicesSampled, after=len(run.mail))  # once a second
        assert not any(isinstance(event, WorkersSampled) for event in run.events[paused_at:])
        assert run.send(Resume()).ok
        newest(run)
        assert run.send(Stop()).ok


def workers_of(sample: WorkersSampled) -> tuple[Worker, Worker]:
    """Both."""
    first, second = sample.workers
    return first, second


def test_speeds_and_waiting_are_those_of_the_time_that_is_given() -> None:
    """Looked at between two rounds, where nothing changes but how long the workers have waited."""
    with started("gymnasium:Pendulum-v1", "Pendulum", num_copies=4, num_workers=2) as pool:
        rounds = Rounds(pool, Needs(200), horizon=20)
        sampler, totals, seconds = WorkerSampler(pool, rounds.collector), rounds.collector.totals, 20.0

        def look() -> None:
            sample = workers_of(sampler.sample({}, seconds))
            for worker, num_sampled in zip(sample, totals.num_sampled, strict=True):
                assert worker.steps_per_second == pytest.approx(num_sampled / seconds, abs=0.01)
                assert worker.waiting is not None
                assert 0 <= worker.waiting < 1
                assert worker.lag is None, "no learner was given"
            waited, deadline = totals.times[0].waiting, time.monotonic() + DEADLINE_SECONDS
            while totals.times[0].waiting < waited + 0.4:
                assert time.monotonic() < deadline
            sampler.resume()
            for before, after in zip(sample, workers_of(sampler.sample({}, seconds)), strict=True):
                assert after.waiting == pytest.approx(before.waiting, abs=0.01), "0.4 s of 20 s, of a pause"

        rounds.on_round = look
        rounds.until(lambda: rounds.rounds == 3)
