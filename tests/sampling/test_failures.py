"""Environments that raise, die, hang or return what is invalid: each is named with its reason, in either pool."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rl_tui.engine.errors import ConfigError, EnvironmentFailure, NonFiniteError
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import InstanceFailure
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.specs import Json
from tests.deadline import DEADLINE_SECONDS
from tests.sampling.driving import history, survivors

WORLDS = "tests.sampling.worlds"
MISBEHAVING = f"{WORLDS}:Misbehaving"


def make_pool(
    where: str, env: str, num_copies: int = 3, num_workers: int = 1, timeout: float = DEADLINE_SECONDS, **kwargs: Json
) -> EnvironmentPool:
    source = EnvironmentSource(env, "B", kwargs)
    if where == "serial":
        return SerialPool(env, source.make, num_copies)
    return ProcessPool(source, num_copies, num_workers, timeout)


@contextlib.contextmanager
def started(pool: EnvironmentPool) -> Iterator[EnvironmentPool]:
    try:
        pool.start()
        yield pool
    finally:
        pool.close()
        pool.close()


def failure_of(pool: EnvironmentPool) -> InstanceFailure:
    """The failure that ends a run of ten steps."""
    with started(pool), pytest.raises(InstanceFailure) as failure:
        history(pool, 10)
    return failure.value


ACROSS = ["raises", "exits", "rewards_infinity"]  # the others are found by the same check, wherever it runs
WRONG = [
    ("raises", "raised ValueError: the wheels came off"),
    ("exits", "raised SystemExit: enough"),
    ("shows_another_shape", r"Walker: observation 'side' must be float32 \(2, 1\) for 2 agents, got float32 \(2, 3\)"),
    ("shows_too_little", "Walker: observations must be 2 like its specs, got 1"),
    ("shows_nan", r"Walker: observation 'position' of agent 1 is not finite: \[nan\]"),
    ("rewards_infinity", "Walker: the reward of agent 1 is not finite: inf"),
    ("repeats_an_id", "Walker: agent_ids must be unique, got 0 more than once"),
    ("forbids_everything", "Walker: action_mask leaves agent 0 no choice in branch 0"),
]


@pytest.mark.parametrize(
    ("where", "fault", "words"),
    [("serial", *wrong) for wrong in WRONG] + [("process", *wrong) for wrong in WRONG if wrong[0] in ACROSS],
)
def test_misbehaving_instance_is_named_with_its_reason_in_one_line(where: str, fault: str, words: str) -> None:
    failure = failure_of(make_pool(where, MISBEHAVING, fault=fault))
    expected = (
        rf"{MISBEHAVING}, instance \d, worker \d: step" if where == "process" else f"{MISBEHAVING}, instance 0: step"
    )
    with pytest.raises(InstanceFailure, match=f"^{expected}[^\n]*{words}[^\n]*$"):
        raise failure
    assert failure.instance is not None
    assert ("Traceback" in failure.detail) == (fault in ("raises", "exits")), "only of the user's own code"
    if fault in ("raises", "exits"):
        assert re.search(rf", at tests/sampling/worlds.py:\d+ in {fault}$", str(failure))
        assert "engine/sampling/pools" not in failure.detail
    assert failure.exit_code == (5 if fault in ("rewards_infinity", "shows_nan") else 3)
    assert isinstance(failure, NonFiniteError) == (failure.exit_code == 5)


def test_instance_that_raises_what_ctrl_c_does_is_named_where_no_user_can_have_pressed_it() -> None:
    failure = failure_of(make_pool("process", MISBEHAVING, fault="interrupts"))
    assert re.search(r"step raised KeyboardInterrupt, at tests/sampling/worlds.py:\d+ in interrupts$", str(failure))
    with started(make_pool("serial", MISBEHAVING, fault="interrupts")) as pool, pytest.raises(KeyboardInterrupt):
        history(pool, 10)


@pytest.mark.parametrize(
    ("fault", "words"),
    [("dies", "the process exited with code 7 in step"), ("crashes", "the process was killed by SIGSEGV in step")],
)
def test_dead_worker_is_named_with_its_exit_status(fault: str, words: str) -> None:
    failure = failure_of(make_pool("process", MISBEHAVING, num_workers=2, fault=fault))
    assert words in str(failure)
    assert failure.instance is not None
    assert f"instance {failure.instance}, worker {failure.worker}" in str(failure)
    if fault == "crashes":
        assert "Segmentation fault" in failure.detail
        assert "worlds.py" in failure.detail


@pytest.mark.parametrize("fault", ["hangs", "hangs_with_a_child"])
def test_hanging_worker_is_named_with_the_place_it_hangs_at_and_killed(fault: str) -> None:
    pool = make_pool("process", MISBEHAVING, num_workers=2, timeout=0.6, fault=fault)
    with started(pool):
        assert isinstance(pool, ProcessPool)
        workers = [psutil.Process(pid) for pid in pool.worker_pids.values()]
        with pytest.raises(InstanceFailure, match=r"step has not returned for 0.6 s, at \w+.py:\d+ in \w+") as failure:
            history(pool, 10)
        assert fault in failure.value.detail
        everything = [*workers, *(child for worker in workers if worker.is_running() for child in worker.children())]
    assert survivors(everything, DEADLINE_SECONDS) == []


def test_worker_that_answers_in_time_is_never_overdue() -> None:
    """Two instances share the worker; each may take the whole time that is allowed."""
    source = EnvironmentSource(f"{__name__}:make_slow", "B", {})
    with started(ProcessPool(source, 2, 1, timeout_wait=3.9)) as pool:
        history(pool, 1)


def make_slow() -> object:
    """A Line whose steps take 2 s."""
    from rl_tui.engine.sampling.environments.toys.line import Line

    class Slow(Line):
        def step(self, actions: object) -> object:  # type: ignore[override]  # passed on as it is
            time.sleep(2.0)
            return super().step(actions)  # type: ignore[arg-type]  # as above

    return Slow("B", 1)


@pytest.mark.parametrize("where", ["serial", "process"])
def test_copy_that_raises_inside_a_loop_is_named(where: str) -> None:
    failure = failure_of(make_pool(where, f"{__name__}:make_brittle", num_copies=4))
    assert "(copy " in str(failure)
    assert "RuntimeError: broke" in str(failure)


def make_brittle() -> object:
    """A Gymnasium environment whose third step raises."""
    from tests.sampling.worlds import Counting

    class Brittle(Counting):
        def step(self, action: object) -> object:  # type: ignore[override]  # passed on as it is
            if self._step == 2:
                raise RuntimeError("broke")
            return super().step(action)

    return Brittle(length=9)


@pytest.mark.parametrize("where", ["serial", "process"])
@pytest.mark.parametrize(
    ("env", "kind", "words"),
    [
        ("gymnasium:CartPol-v1", ConfigError, "Did you mean"),
        ("pettingzoo:mpe/simple_v3", ConfigError, "Did you mean pettingzoo:mpe2.simple_v3"),
        ("unity:builds/3DBall", ConfigError, "^builds/3DBall: no such Unity player"),
        (
            f"{__name__}:make_nothing",
            EnvironmentFailure,
            r"start raised ZeroDivisionError.*test_failures.py:\d+ in make",
        ),
    ],
)
def test_environment_that_cannot_be_made_says_why(where: str, env: str, kind: type[Exception], words: str) -> None:
    pool = make_pool(where, env)
    with pytest.raises(kind, match=words):
        pool.start()
    pool.close()


def make_nothing() -> object:
    return 1 / 0


def test_worker_that_cannot_even_start_shows_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rl_tui.engine.sampling.pools.child.subprocess", subprocess)  # a warm one has started already
    monkeypatch.setattr("sys.path", ["/nowhere"])
    pool = make_pool("process", "toy:line")
    with pytest.raises(InstanceFailure, match="the process exited with code 1 in start") as failure:
        pool.start()
    pool.close()
    assert "Error" in failure.value.detail


def test_what_environments_print_goes_to_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = EnvironmentSource(f"{__name__}:make_chatty", "B", {})
    with started(ProcessPool(source, 2, 2, 10.0, log_folder=tmp_path)):
        pass
    with started(ProcessPool(source, 1, 1, 10.0)):
        pass
    assert [(tmp_path / f"worker-{i}.log").read_text() for i in range(2)] == ["hello\nworld\n"] * 2
    assert capfd.readouterr() == ("", "")


def make_chatty() -> object:
    from rl_tui.engine.sampling.environments.toys.line import Line

    os.write(1, b"hello\n")
    os.write(2, b"world\n")
    return Line("B", 1)


def test_serial_pool_says_what_it_is_busy_with() -> None:
    seen: list[tuple[bool, str]] = []

    class Watched:
        def __getattr__(self, name: str) -> object:
            seen.append((pool.busy_since is not None, pool.busy_with))
            return getattr(inner, name)

    from rl_tui.engine.sampling.environments.toys.line import Line

    inner = Line("B", 1)
    pool = SerialPool("toy:line", lambda *_: [Watched()], 1)
    with started(pool):
        history(pool, 1)
        assert pool.busy_since is None
    assert (True, "toy:line, instance 0: reset") in seen
    assert (True, "toy:line, instance 0: step") in seen
    assert all(busy for busy, words in seen if words.endswith(("reset", "step")))
