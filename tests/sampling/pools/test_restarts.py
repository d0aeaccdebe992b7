"""A worker that fails is started again, alone, and nothing that it left unfinished is learned as an end."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import InstanceFailure, InstanceStopped, NonFiniteAnswer
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.quota import RestartQuota
from rl_tui.engine.sampling.pools.reports import Awaiting, Note, Report, Restarted, Restarting
from rl_tui.engine.specs import Ending, Trajectories
from tests.deadline import DEADLINE_SECONDS, wait_until
from tests.fakes import RandomPolicy
from tests.sampling.driving import descriptors, receive_all, send_all, survivors

UNLIMITED = partial(RestartQuota, -1, -1, 60.0)


@contextlib.contextmanager
def mortals(
    folder: Path,
    *faults: str,
    num_copies: int = 1,
    num_workers: int = 1,
    timeout: float = DEADLINE_SECONDS,
    quota: Callable[[], RestartQuota] | None = UNLIMITED,
    repeats: bool = False,
    at: int = 3,
) -> Iterator[ProcessPool]:
    """A started pool of Mortals whose n-th life has the n-th fault, at that step."""
    folder.mkdir(exist_ok=True)
    arguments = {"folder": str(folder), "faults": [*faults], "repeats": repeats, "at": at}
    source = EnvironmentSource("tests.sampling.mortal:Mortal", "Walker", arguments)
    pool = ProcessPool(source, num_copies, num_workers, timeout, make_quota=quota)
    try:
        pool.start()
        pool.reset(5)
        yield pool
    finally:
        pool.close()


class Run:
    """A pool with a collector, and everything that came out."""

    def __init__(self, pool: ProcessPool, horizon: int = 100) -> None:
        self.pool = pool
        policies = {name: RandomPolicy(spec.actions) for name, spec in pool.specs.items()}
        self.collector = Collector(pool, policies, dict.fromkeys(policies, horizon))
        self.reports: list[Report] = []
        self.blocks: list[Trajectories] = []

    def cycle(self) -> bool:
        """Receive and act once; whether there was anything to act on."""
        has_arrived = self.collector.receive(0.1)
        self.reports += self.pop_reports()
        while self.collector.is_due("Walker", 1):
            self.blocks.append(self.collector.drain("Walker"))
        if has_arrived:
            self.collector.act()
        return has_arrived

    def pop_reports(self) -> list[Report]:
        """What the pool reports; a test may look at each."""
        return self.pool.pop_reports()

    def until(self, is_reached: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
        """Cycles until something holds."""
        deadline = time.monotonic() + seconds
        while not is_reached():
            assert time.monotonic() < deadline, self.reports
            self.cycle()

    def of(self, kind: type[Report]) -> list[Report]:
        """The reports of one kind."""
        return [report for report in self.reports if isinstance(report, kind)]


FAULTS = {
    "raises": "step raised ValueError: the wheels came off",
    "exits": "step raised SystemExit: enough",
    "dies": "the process exited with code 7 in step",
    "crashes": "the process was killed by SIGSEGV in step",
    "hangs": "step has not returned for 2 s",
    "closes_the_pipe": "the process closed its pipe in step",
    "scribbles_on_the_pipe": "must carry records only",
    "changes_its_shape": "must be float32",
}


def test_a_worker_that_fails_in_any_way_is_started_again_and_acts(tmp_path: Path) -> None:
    before = descriptors()
    with mortals(tmp_path / "lives", *FAULTS, timeout=2.0) as pool:
        run = Run(pool)
        first = psutil.Process(pool.worker_pids[0])
        run.until(lambda: len(run.of(Restarted)) == len(FAULTS))
        assert survivors([first], seconds=0) == []
        assert len(pool.worker_pids) == 1
        for number, (words, report) in enumerate(zip(FAULTS.values(), run.of(Restarting), strict=True), 1):
            assert isinstance(report, Restarting)
            assert words in report.reason
            assert (report.worker, report.instances, report.count) == (0, (0,), number)
    assert descriptors() <= before
    seeds = [int(line) for line in (tmp_path / "lives/seeds").read_text().split()]
    assert seeds == list(range(5, 5 + 1 + len(FAULTS)))


def test_other_workers_act_on_while_one_hangs_and_restarts(tmp_path: Path) -> None:
    lives = ("hangs", "behaves", "behaves", "is_made_when_asked")
    with mortals(tmp_path, *lives, num_copies=3, num_workers=3, timeout=2.0) as pool:
        run = Run(pool)
        run.until(lambda: bool(run.of(Restarting)))
        sampled = run.collector.num_sampled["Walker"]
        run.until(lambda: run.collector.num_sampled["Walker"] > sampled + 20)
        assert not run.of(Restarted)
        (tmp_path / "asked").touch()
        run.until(lambda: bool(run.of(Restarted)))


def test_a_hanging_worker_is_found_although_each_look_finds_answers_of_another(tmp_path: Path) -> None:
    with mortals(tmp_path, "hangs", num_copies=2, num_workers=2, timeout=0.5) as pool:
        run = Run(pool)

        def act_after_a_while() -> bool:
            time.sleep(0.05)  # the next answer is there before anyone waits for it; if not, the test sees less
            return bool(run.of(Restarting))

        run.until(act_after_a_while)


def test_all_instances_of_a_worker_restart_with_it_and_get_seeds_of_their_own(tmp_path: Path) -> None:
    with mortals(tmp_path, "behaves", "dies", num_copies=2) as pool:
        run = Run(pool)
        run.until(lambda: bool(run.of(Restarted)))
        (report,) = run.of(Restarting)
        assert isinstance(report, Restarting)
        assert report.instances == (0, 1)
        run.until(lambda: len((tmp_path / "seeds").read_text().split()) == 4)
    assert (tmp_path / "seeds").read_text().split() == ["5", "6", "7", "8"]


def test_what_a_lost_worker_left_is_truncated_where_its_last_action_was_chosen(tmp_path: Path) -> None:
    """A Line's episode is longer than the two steps that this one makes before it dies."""
    with mortals(tmp_path, "dies") as pool:
        run = Run(pool)
        run.until(lambda: bool(run.of(Restarted)) and bool(run.blocks))
        block = run.blocks[0]
        assert block.endings.tolist() == [Ending.TRUNCATED] * 2
        assert block.lengths.tolist() == [2, 2]
        assert not len(block.episode_returns)
        positions = block.observations[1][:, 0].reshape(2, 2)
        moved = np.abs(block.next_observations[1][:, 0] - positions[:, 1])
        assert (moved <= 0.25).all()
        assert run.collector.num_departed("Walker") == 0


def test_steps_of_one_copy_are_not_mixed_up_with_the_end_of_its_worker(tmp_path: Path) -> None:
    """The pool comes late: it finds the steps of the first copy, and that the second one has taken too long."""
    with mortals(tmp_path, "dawdles", "hangs", num_copies=2, at=1, timeout=0.5) as pool:
        first, random = receive_all(pool), np.random.default_rng(0)
        send_all(pool, {0: first[0]}, random)
        assert pool.receive(0.0) == []
        wait_until((tmp_path / "dawdles").exists)
        send_all(pool, {1: first[1]}, random)
        assert pool.receive(0.0) == []
        wait_until((tmp_path / "has_dawdled").exists)
        time.sleep(1.0)
        assert [instance for instance, _ in pool.receive(0.0)] == [0]
        assert pool.pop_lost() == []
        wait_until(lambda: not pool.receive(0.1) and pool.pop_lost() == [0, 1])


def test_failing_again_while_restarting_counts_again(tmp_path: Path) -> None:
    with mortals(tmp_path, "dies", "cannot_be_made", "dies") as pool:
        run = Run(pool)
        run.until(lambda: len(run.of(Restarted)) == 2)
        reasons = [report.reason for report in run.of(Restarting) if isinstance(report, Restarting)]
        assert "start raised ValueError: no wheels left" in reasons[1]
        assert len(reasons) == 3


@pytest.mark.parametrize(
    ("quota", "num_restarts", "words"),
    [
        (
            partial(RestartQuota, 2, -1, 60.0),
            2,
            "the worker was restarted 2 times, as often as env_settings.max_lifetime_restarts: 2 allows",
        ),
        (
            partial(RestartQuota, 10, 1, 60.0),
            1,
            r"once, as often as env_settings.restarts_rate_limit_n: 1 \(restarts_rate_limit_period_s: 60\) allows",
        ),
        (partial(RestartQuota, 0, 1, 60.0), 0, "7 in step; env_settings.max_lifetime_restarts: 0 allows no restart"),
        (None, 0, "code 7 in step$"),
    ],
)
def test_exhausted_quota_ends_the_pool_and_names_the_limit(
    tmp_path: Path, quota: Callable[[], RestartQuota] | None, num_restarts: int, words: str
) -> None:
    with mortals(tmp_path, "dies", "dies", "dies", quota=quota) as pool:
        run = Run(pool)
        with pytest.raises(InstanceFailure, match=words):
            run.until(lambda: False)
        assert len([*run.of(Restarting), *pool.pop_reports()]) >= num_restarts


def test_quota_forgets_what_is_older_than_its_period() -> None:
    now = 0.0
    quota = RestartQuota(5, 2, 60.0, clock=lambda: now)
    assert [quota.take(), quota.take(), quota.take()] == [True, True, False]
    now = 60.0
    assert [quota.take(), quota.take(), quota.take()] == [True, True, False]
    now = 200.0
    assert [quota.take(), quota.take()] == [True, False]
    assert "max_lifetime_restarts: 5 allows" in quota.words


def test_a_number_that_is_not_finite_is_no_reason_to_restart(tmp_path: Path) -> None:
    with mortals(tmp_path, "shows_nan") as pool, pytest.raises(NonFiniteAnswer):
        Run(pool).until(lambda: False)


def test_first_start_that_fails_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match=r"no wheels left, at [^;]*$"), mortals(tmp_path, "cannot_be_made"):
        pass
    assert len(list(tmp_path.glob("life-*"))) == 1


def test_a_start_has_the_same_limit_the_first_time_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "start has not returned for 0.7 s"
    with mortals(tmp_path / "again", "dies", "is_made_slowly", timeout=0.5) as pool:
        monkeypatch.setattr("rl_tui.engine.sampling.pools.worker_process.START_SECONDS", 0.7)
        run = Run(pool)
        run.until(lambda: any(isinstance(report, Restarting) and words in report.reason for report in run.reports))
    with pytest.raises(InstanceFailure, match=words), mortals(tmp_path / "first", "is_made_slowly", timeout=0.5):
        pass


def test_without_a_limit_of_calls_a_start_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for the Editor, whose user decides how long everything takes."""
    monkeypatch.setattr("rl_tui.engine.sampling.pools.worker_process.START_SECONDS", 0.1)
    with mortals(tmp_path, "is_made_in_a_second", "is_made_in_a_second", timeout=math.inf) as pool:
        run = Run(pool)
        os.kill(pool.worker_pids[0], signal.SIGKILL)
        run.until(lambda: bool(run.of(Restarted)))
        assert len(run.of(Restarting)) == 1


def test_a_pool_that_is_closed_during_a_restart_waits_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mortals(tmp_path, "dies", "is_made_slowly") as pool:
        run = Run(pool)
        run.until((tmp_path / "life-1").exists)
        worker = psutil.Process(pool.worker_pids[0])
        start = time.monotonic()
        monkeypatch.setattr("rl_tui.engine.sampling.pools.process.END_SECONDS", DEADLINE_SECONDS)  # for what it closes
        pool.close()
        assert time.monotonic() - start < DEADLINE_SECONDS
        assert survivors([worker], seconds=0) == []


def test_an_instance_that_the_user_stops_waits_in_the_same_process_and_counts_as_nothing(tmp_path: Path) -> None:
    """It waits longer than any call may take."""
    source = EnvironmentSource("tests.sampling.mortal:Stoppable", "Walker", {"folder": str(tmp_path)})
    pool = ProcessPool(source, 1, 1, 0.5, make_quota=partial(RestartQuota, 0, 0, 60.0))
    pool.start()
    pool.reset(1)
    run, pids = Run(pool), pool.worker_pids
    try:
        waited = time.monotonic() + 1.0
        run.until(lambda: time.monotonic() > waited)
        (tmp_path / "play").touch()
        run.until(lambda: run.reports.count(Awaiting("press Play")) == 2)
        (tmp_path / "play").touch()
        run.until(lambda: run.collector.num_sampled["Walker"] > 20)
        assert pool.worker_pids == pids
        awaited = [Awaiting("press Play"), Awaiting("")]
        assert run.reports == [Note("info", "listening on port 5004"), *awaited, *awaited]
        assert run.blocks[0].endings.tolist() == [Ending.TRUNCATED] * 2
    finally:
        pool.close()


def test_without_a_quota_an_instance_that_the_user_stops_ends_the_pool(tmp_path: Path) -> None:
    (tmp_path / "play").touch()
    source = EnvironmentSource("tests.sampling.mortal:Stoppable", "Walker", {"folder": str(tmp_path)})
    pool = ProcessPool(source, 1, 1, 10.0)
    pool.start()
    pool.reset(1)
    try:
        with pytest.raises(InstanceStopped, match="Play was stopped"):
            Run(pool).until(lambda: False)
    finally:
        pool.close()
