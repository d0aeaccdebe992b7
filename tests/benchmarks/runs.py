"""Whole runs of the program, with and without its screen, and what their events.jsonl says about them."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from rl_tui.engine.session.codec import decode
from rl_tui.engine.session.messages import BehaviorStateChanged, CheckpointSaved, DevicesSampled, Envelope
from tests.benchmarks.processes import run_python, surroundings

COLUMNS, ROWS = 120, 40
LOOK_SECONDS = 0.5  # how often it is looked whether a run on a screen has ended
DEADLINE_SECONDS = 1800.0


def run_without_screen(configuration: Path) -> list[Envelope]:
    """Everything reported by `rl-tui CONFIG --no-ui`, run to its end beside the file."""
    run_python("-m", "rl_tui", str(configuration), "--no-ui", folder=configuration.parent)
    return read_events(configuration.parent)


def train_on_screen(configuration: Path) -> list[Envelope]:
    """The same for `rl-tui CONFIG` on a pseudo-terminal that is read as fast as it is written; left with q."""
    folder = configuration.parent
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    words = [sys.executable, "-m", "rl_tui", str(configuration)]
    process = subprocess.Popen(
        words, cwd=folder, env=surroundings(), stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    try:
        said = _read_to_end(master, process, folder)
        if process.wait(DEADLINE_SECONDS) != 0:
            raise RuntimeError(f"rl-tui on a screen ended with {process.returncode}:\n{said.decode(errors='replace')}")
    finally:
        process.kill()
        process.wait()
        os.close(master)
    return read_events(folder)


def _read_to_end(master: int, process: subprocess.Popen[bytes], folder: Path) -> bytes:
    """The last bytes of what the program wrote; `q` is typed once its run has ended."""
    said, look_at = b"", time.monotonic()
    deadline = look_at + DEADLINE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if select.select([master], [], [], LOOK_SECONDS)[0]:
            try:
                said = (said + os.read(master, 65536))[-4096:]
            except OSError:  # Linux says EIO when the program has closed its side
                break
        if time.monotonic() >= look_at:
            look_at = time.monotonic() + LOOK_SECONDS
            if _has_ended(folder):
                os.write(master, b"q")
    return said


def _has_ended(folder: Path) -> bool:
    """Whether the run's exit code is reported; only the file's end is read, so that looking costs nothing."""
    events = folder / "results/bench/events.jsonl"
    if not events.exists():
        return False
    with events.open("rb") as file:
        file.seek(max(0, events.stat().st_size - 1024))
        lines = file.read().splitlines()
    return bool(lines) and b'"RunStateChanged"' in lines[-1] and b'"exit_code": null' not in lines[-1]


def read_events(folder: Path) -> list[Envelope]:
    """All envelopes of the run `bench` in that folder."""
    return [decode(line) for line in (folder / "results/bench/events.jsonl").read_text().splitlines()]


def throughput(events: Sequence[Envelope]) -> float:
    """Environment steps per second from the reset environments to the end of training, of a run of one behavior."""
    times = {e.event.state: e.time for e in events if isinstance(e.event, BehaviorStateChanged)}
    return final_step(events) / (times["finished"] - times["training"])


def final_step(events: Sequence[Envelope]) -> int:
    """The step at the end."""
    return max(e.event.step for e in events if isinstance(e.event, CheckpointSaved))


def memory_samples(events: Sequence[Envelope]) -> list[tuple[float, int]]:
    """(seconds, resident bytes) of the process while it trained, about one a second."""
    times = {e.event.state: e.time for e in events if isinstance(e.event, BehaviorStateChanged)}
    return [
        (e.time - times["training"], e.event.process_memory_bytes)
        for e in events
        if isinstance(e.event, DevicesSampled) and times["training"] <= e.time <= times["finished"]
    ]
