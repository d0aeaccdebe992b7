"""The scripts of docs/batch-jobs.md do what the page says, with a stand-in for SLURM's command."""

from __future__ import annotations

import configparser
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from tests.end_to_end.program import ROOT, surroundings
from tests.pseudo_terminal import DEADLINE_SECONDS

PAGE = (ROOT / "docs" / "batch-jobs.md").read_text()
ENDLESS = """\
behaviors: {W: {trainer_type: ppo, max_steps: 1e8, summary_freq: 2000, hyperparameters: {buffer_size: 1024}}}
env_settings: {env: "toy:line", num_envs: 4}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the script of the page, a configuration, and the two commands that it calls in `bin`."""
    (job,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "bin").mkdir()
    for path, text in {
        "job.sh": job,
        "bin/rl-tui": f'#!/bin/sh\nexec {sys.executable} -m rl_tui "$@"\n',
        "bin/scontrol": '#!/bin/sh\necho "scontrol $@"\n',
    }.items():
        (tmp_path / path).write_text(text)
        (tmp_path / path).chmod(0o755)
    (tmp_path / "walker.yaml").write_text(ENDLESS)
    return tmp_path


@pytest.mark.slow
def test_job_saves_and_requeues_before_its_time_is_up_and_then_resumes(folder: Path) -> None:
    for attempt, beginning in enumerate(("started", "resumed")):
        said = folder / f"said-{attempt}"
        with said.open("w") as output:
            job = start(folder, output)
            wait_for("Step:", said, job)
            job.send_signal(signal.SIGUSR1)
            assert job.wait(DEADLINE_SECONDS) == 143
        text = said.read_text()
        assert f"Run walker {beginning}" in text
        assert "(interrupted" in text
        assert text.endswith("scontrol requeue 77\n")


@pytest.mark.slow
def test_job_that_is_canceled_saves_and_is_not_requeued(folder: Path) -> None:
    said = folder / "said"
    with said.open("w") as output:
        job = start(folder, output)
        wait_for("Step:", said, job)
        os.killpg(job.pid, signal.SIGTERM)  # so that rl-tui has it from SLURM and from its script
        assert job.wait(DEADLINE_SECONDS) == 143
    text = said.read_text()
    assert "Run stopped: everything is saved" in text
    assert "scontrol" not in text


def test_job_that_is_signaled_alone_stops_what_it_started_and_waits_for_it(folder: Path) -> None:
    trainer = "trap 'sleep 0.2; echo saved; exit 143' TERM; echo Step:; for _ in {1..2000}; do sleep 0.02; done"
    (folder / "bin/rl-tui").write_text(f"#!/bin/bash\n{trainer}\n")
    said = folder / "said"
    with said.open("w") as output:
        job = start(folder, output)
        wait_for("Step:", said, job)
        job.send_signal(signal.SIGTERM)
        assert job.wait(DEADLINE_SECONDS) == 143
    assert said.read_text() == "Step:\nsaved\n"


@pytest.mark.slow
def test_service_starts_a_run_and_ends_once_it_has_reached_its_end(folder: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[method-assign, assignment]  # keeps capitals, as configparser documents
    unit.read_string(re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)[0])
    service = unit["Service"]
    (folder / "walker.yaml").write_text(ENDLESS.replace("1e8", "2000"))
    (folder / ".local").mkdir()
    (folder / "bin").rename(folder / ".local/bin")
    command = service["ExecStart"].replace("%h", str(folder)).replace("%i", "walker")
    for chosen in ("walker yet: starting", "walker holds a run: continuing it"):
        ended = subprocess.run(
            command.split(),
            check=False,
            cwd=folder,
            env=surroundings(),
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
        )
        assert ended.returncode == 0, ended
        assert chosen in ended.stdout
    assert "has reached max_steps (2000 of 2000)" in ended.stdout
    table = dict(re.findall(r"^\| ([0-9, ]+) \|.*\| ([^|]*) \|$", PAGE, re.MULTILINE))
    never = [code for code, again in table.items() if again.startswith("no") and code != "0"]
    assert service["RestartPreventExitStatus"].split() == sorted([*never, "7"])
    assert service["SuccessExitStatus"] == "143"


def test_job_that_fails_is_not_requeued(folder: Path) -> None:
    (folder / "walker.yaml").write_text("behaviors: {W: {max_stepz: 1}}\n")
    with (folder / "said").open("w") as output:
        assert start(folder, output).wait(DEADLINE_SECONDS) == 2
    assert "scontrol" not in (folder / "said").read_text()


def start(folder: Path, output: IO[str]) -> subprocess.Popen[bytes]:
    """The job's script as SLURM would start it."""
    path = f"{folder / 'bin'}:/usr/bin:/bin"
    environment = surroundings(PATH=path, SLURM_JOB_ID="77")
    streams = {"stdout": output, "stderr": output}
    return subprocess.Popen(["./job.sh"], cwd=folder, env=environment, start_new_session=True, **streams)


def wait_for(text: str, said: Path, job: subprocess.Popen[bytes]) -> None:
    """The job has printed it."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while text not in said.read_text():
        assert job.poll() is None, said.read_text()
        assert time.monotonic() < deadline, said.read_text()
        time.sleep(0.05)
