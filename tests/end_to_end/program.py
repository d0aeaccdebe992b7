"""The whole program as a user meets it: in a process with pipes, or on a terminal of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from rl_tui.engine.session.codec import decode
from rl_tui.engine.session.messages import Event
from tests.pseudo_terminal import DEADLINE_SECONDS, PseudoTerminal
from tests.warm_start import COLD, WarmProcess

ROOT = Path(__file__).parent.parent.parent
COMMAND = [sys.executable, "-W", "error::ResourceWarning", "-m", "rl_tui"]

CARTPOLE = """\
behaviors:
  CartPole:
    trainer_type: ppo
    hyperparameters: {batch_size: 64, buffer_size: 512}
    network_settings: {hidden_units: 32, num_layers: 1}
    time_horizon: 128
    max_steps: 2000
    summary_freq: 500
    checkpoint_interval: 1000
env_settings:
  env: gymnasium:CartPole-v1
  num_envs: 4
  seed: 1
"""


def surroundings(**more: str) -> dict[str, str]:
    """The environment variables of a user: rl-tui is installed, and PYTHONPATH his own."""
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return {**own, "TERM": "xterm-256color", "LANG": "C.UTF-8"} | more


def start(
    *words: str,
    folder: Path,
    ignored: Sequence[int] = (),
    file_bytes: int = -1,
    more: Mapping[str, str] = MappingProxyType({}),
    from_cold: bool = False,
) -> subprocess.Popen[str]:
    """`rl-tui` with these words, in that folder, with stdin closed and stdout and stderr piped.

    ignored: signals, as under nohup. file_bytes: see WarmProcess. more: variables. from_cold: in a new interpreter.
    """
    return WarmProcess(
        [*COLD * from_cold, *COMMAND, *words],
        ignored=ignored,
        file_bytes=file_bytes,
        cwd=folder,
        env=surroundings(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], seconds: float = DEADLINE_SECONDS) -> tuple[int, str, str]:
    """Its exit code, stdout and stderr once it has ended; killed, with what it said, when it does not."""
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
        raise AssertionError(f"still running after {seconds} s:\n{stdout}\n{stderr}") from None
    return process.returncode, stdout, stderr


def run(*words: str, folder: Path, from_cold: bool = False) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one whole command."""
    return finish(start(*words, folder=folder, from_cold=from_cold))


def read_until(process: subprocess.Popen[str], pattern: str) -> str:
    """Everything the process said on stdout up to the line that matches."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if re.search(pattern, line):
            return said
    raise AssertionError(f"ended with {process.wait()} before saying {pattern!r}:\n{said}")


def events_of(run_folder: Path) -> list[Event]:
    """Every event of the run, from its events.jsonl."""
    return [decode(line).event for line in (run_folder / "events.jsonl").read_text().splitlines()]


def wait_for_summary(run_folder: Path, number: int = 1, *, after: str = "") -> int:
    """The run has learned for as long as so many summaries take; returns how many there are by now.

    after: a kind of event; summaries before the first one do not count.
    """
    deadline = time.monotonic() + DEADLINE_SECONDS
    events = run_folder / "events.jsonl"

    def count() -> int:
        text = events.read_text() if events.exists() else ""
        since = text.partition(f'"event": "{after}"')[2] if after else text
        return since.count('"event": "MetricsReported"')

    while (found := count()) < number:
        assert time.monotonic() < deadline, f"{found} of {number} summaries in {events}"
        time.sleep(0.05)
    return found


def terminal(
    *words: str,
    folder: Path,
    size: tuple[int, int] = (120, 40),
    stdin: int | None = None,
    ignored: Sequence[int] = (),
    more: Mapping[str, str] = MappingProxyType({}),
    from_cold: bool = False,
) -> PseudoTerminal:
    """`rl-tui` with these words, in that folder, on a terminal of its own. stdin: see PseudoTerminal.

    ignored: signals. more: variables. from_cold: in a new interpreter.
    """
    variables = surroundings(PYTHONPATH=str(folder), XDG_STATE_HOME=str(folder / "state"), **more)
    return PseudoTerminal(
        [*COLD * from_cold, *COMMAND, *words],
        size,
        folder=folder,
        variables=variables,
        stdin=stdin,
        ignored=ignored,
    )
