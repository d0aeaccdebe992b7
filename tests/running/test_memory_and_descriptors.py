"""Warnings of a live run about what its processes take of the machine, as its own samples of them show it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from rl_tui.engine.running.machine import cgroups
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import DevicesSampled, WarningRaised
from tests.running.runs import ENDLESS, behavior, configuration, live


@pytest.fixture(scope="module", autouse=True)
def start_workers_warm() -> None:
    """They are not: a worker is a child of the run, by which it is known."""


@pytest.mark.slow
def test_worker_that_leaks_descriptors_is_warned_of_by_its_name(tmp_path: Path) -> None:
    """Time passes ten times as fast for the run's events: a leak is known after some minutes."""
    bus, env = EventBus(clock=lambda: 10 * time.monotonic()), "tests.running.leaking:Leaking"
    walker, settings = behavior(max_steps=ENDLESS), {"num_envs": 1, "num_workers": 1, "timeout_wait": 300}
    with live(configuration(tmp_path, {"Walker": walker}, env, env_settings=settings), bus=bus) as run:
        raised = run.wait_for(WarningRaised, lambda warning: warning.kind == "descriptor_growth")
    assert raised.message.startswith(f"worker 0 of {env} opens ")
    assert "descriptors per 1,000 steps that stay open" in raised.message


@pytest.mark.slow
def test_run_near_the_limit_of_its_container_is_warned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is in files, as a container has them; that of a real one needs root."""
    group, limit = tmp_path / "root/sys/fs/cgroup/job", 1 << 30
    group.mkdir(parents=True)
    (tmp_path / "root/proc/self").mkdir(parents=True)
    (tmp_path / "root/proc/self/cgroup").write_text("0::/job\n")
    (group / "memory.max").write_text(f"{limit}\n")
    (group / "memory.current").write_text(f"{limit * 70 // 100}\n")
    monkeypatch.setattr(cgroups, "ROOT", tmp_path / "root")
    with live(configuration(tmp_path, {"Walker": behavior(max_steps=ENDLESS)})) as run:
        for _ in range(3):
            run.wait_for(DevicesSampled, after=len(run.mail))
        assert run.of(WarningRaised) == []
        (group / "memory.current").write_text(f"{limit * 85 // 100}\n")
        raised = run.wait_for(WarningRaised)
    assert raised.kind == "memory_full"
    assert raised.message.startswith("memory 85% used, ")
    assert " GiB of 1 GiB by this run, " in raised.message
    # The largest of this process and its children, some of which other tests have started.
    assert re.search(r" GiB of it by (training|process \d+)$", raised.message), raised.message
