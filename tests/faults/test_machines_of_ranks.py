"""Two machines: network namespaces with addresses of their own, a link between them, and torchrun on both."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rl_tui.engine.session.messages import CheckpointSaved, RunStateChanged
from tests.deadline import DEADLINE_SECONDS
from tests.end_to_end.program import events_of, finish, surroundings, wait_for_summary
from tests.faults.rank_programs import ENDLESS, free_port, write
from tests.sampling.driving import survivors

SIZE = 2
ADDRESSES = "10.231.7.1", "10.231.7.2"


def ip(*words: str) -> None:
    """The command of iproute2. Raises CalledProcessError."""
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@pytest.fixture
def machines() -> Iterator[list[str]]:
    """The names of two namespaces, connected with each other and with nothing else."""
    names = [f"ranks-{os.getpid()}-{number}" for number in range(SIZE)]
    ends = [f"r{os.getpid()}-{number}" for number in range(SIZE)]
    try:
        try:
            for name in names:
                ip("netns", "add", name)
            ip("link", "add", ends[0], "netns", names[0], "type", "veth", "peer", "name", ends[1], "netns", names[1])
            for name, end, address in zip(names, ends, ADDRESSES, strict=True):
                ip("-n", name, "link", "set", "lo", "up")
                ip("-n", name, "address", "add", f"{address}/24", "dev", end)
                ip("-n", name, "link", "set", end, "up")
        except (OSError, subprocess.CalledProcessError) as error:
            reason = getattr(error, "stderr", "") or error
            pytest.skip(f"network namespaces cannot be made here: {reason}")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


@pytest.mark.slow
@pytest.mark.parametrize("is_cut", [False, True])
def test_two_machines_train_one_run_until_the_link_is_cut(is_cut: bool, machines: list[str], tmp_path: Path) -> None:
    """The rest ends by itself within the deadline, rank 0 with everything saved."""
    write(tmp_path, max_steps=ENDLESS if is_cut else 1000)
    port = free_port(random.Random())
    processes = [
        subprocess.Popen(
            ["ip", "netns", "exec", name, sys.executable, "-m", "torch.distributed.run", "--nnodes", str(SIZE),
             "--node-rank", str(number), "--nproc-per-node", "1", "--master-addr", ADDRESSES[0], "--master-port",
             str(port), "-m", "rl_tui", "line.yaml", "--no-ui", "--run-id", "run"],
            cwd=tmp_path, env=surroundings(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )
        for number, name in enumerate(machines)
    ]  # fmt: skip
    seen: list[psutil.Process] = []
    try:
        if is_cut:
            wait_for_summary(tmp_path / "results/run", 5)
            for process in processes:
                seen += psutil.Process(process.pid).children(recursive=True)
            ip("-n", machines[1], "link", "set", f"r{os.getpid()}-1", "down")
        ended = [finish(process) for process in processes]
        assert survivors(seen, DEADLINE_SECONDS) == []
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    said = "\n\n".join(stdout for _, stdout, _ in ended)
    events = events_of(tmp_path / "results/run")
    if not is_cut:
        assert [code for code, _, _ in ended] == [0, 0], said
        assert events[-1] == RunStateChanged("finished", "", 0)
        return
    assert all(code for code, _, _ in ended), said
    assert "rank 1 of 2 on " in said, said
    assert "was lost: nothing was heard of it for" in said
    assert [event for event in events if isinstance(event, CheckpointSaved)][-1].reason == "error"
