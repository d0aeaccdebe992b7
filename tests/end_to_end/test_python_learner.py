"""The examples of docs/python.md about learners: the first one is killed in the middle, and started again."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import rl_tui
from tests.deadline import DEADLINE_SECONDS
from tests.end_to_end.program import ROOT, surroundings
from tests.running.runs import equal, tensors_of

PAGE = (ROOT / "docs/python.md").read_text()
FIRST, *OTHERS = re.findall(r"```python learner\n(.*?)```", PAGE, re.DOTALL)
IMPORTS = "import gymnasium\nimport rl_tui\n"


@contextmanager
def started(program: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The program, which ends with the block."""
    (folder / "page.py").write_text(program)
    process = subprocess.Popen(
        [sys.executable, "-u", "-W", "error::ResourceWarning", "page.py"],
        cwd=folder, env=surroundings(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ran(program: str, folder: Path) -> str:
    """What the program printed, once it has ended well."""
    with started(program, folder) as process:
        stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
        assert (process.returncode, stderr) == (0, ""), stdout + stderr
    return stdout


def greedy_returns(policy: rl_tui.ActingPolicy, episodes: int) -> list[float]:
    """Of so many episodes of CartPole, side by side."""
    envs = gymnasium.make_vec("CartPole-v1", episodes, "vector_entry_point")
    observation, _ = envs.reset(seed=100)
    returns, is_over = np.zeros(episodes), np.zeros(episodes, np.bool_)
    while not is_over.all():
        observation, reward, terminated, truncated, _ = envs.step(policy.act(observation))
        returns += np.where(is_over, 0.0, reward)
        is_over |= terminated | truncated
    return returns.tolist()


@pytest.mark.slow
def test_first_program_of_the_page_survives_kill_and_learns_cartpole(tmp_path: Path) -> None:
    assert len([row for row in FIRST.splitlines() if row]) <= 15
    folder = tmp_path / "results/pole"
    with started(FIRST, tmp_path) as process:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not list(folder.glob("CartPole/checkpoints/CartPole-*")):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    (checkpoint, *_) = sorted(folder.glob("CartPole/checkpoints/CartPole-*"))
    step = int(checkpoint.name.rpartition("-")[2])
    with rl_tui.Learner("ppo/CartPole", "CartPole-v1", folder, seed=1) as learner:
        assert (learner.resumed_from, learner.step) == (checkpoint, step)
        restored = {f"trainer.{name}": array for name, array in learner._learner.trainer.state().tensors.items()}
        assert any(".adam_mean." in name for name in restored)
        assert equal(restored, tensors_of(checkpoint))
    printed = ran(FIRST, tmp_path).splitlines()
    first, last = (int(row.split()[0]) for row in (printed[0], printed[-2]))
    assert step < first < last
    assert last >= 100_000
    assert np.mean(greedy_returns(rl_tui.load_policy(folder), 20)) >= 475
    others = ran(IMPORTS + "\n".join(OTHERS), tmp_path)
    assert re.search(r"^CartPole 100\d\d\d$", others, re.MULTILINE)


def test_types_of_the_page_are_right(tmp_path: Path) -> None:
    """As mypy --strict sees a user's programs; with the project's own options, so that what it has read is known."""
    pages = [tmp_path / f"page_{number}.py" for number in range(len(OTHERS) + 1)]
    for page, text in zip(pages, [FIRST, *(IMPORTS + text for text in OTHERS)], strict=True):
        page.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", *map(str, pages)],
        cwd=ROOT, capture_output=True, text=True, check=False, env=surroundings(),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
