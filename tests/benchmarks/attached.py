"""What a run costs that can be attached to, and how soon an attached screen answers: `python -m
tests.benchmarks.attached`.

CPU time is that of the run's process and all that it has started, by the kernel, for the same number of steps; the
ways take turns. Viewers are in this process, which is not counted. Keys are pressed on `rl-tui attach` while three
behaviors train in the run's process.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from rl_tui.engine.errors import AttachError
from rl_tui.engine.remote.client import RemoteSession, attach_to
from rl_tui.engine.remote.greeting import greeting_of_client
from rl_tui.engine.remote.sockets import FOLDER_VARIABLE, connect
from tests.benchmarks.processes import PYTHON, ROOT, surroundings
from tests.benchmarks.screen_budgets import SIZE, TRAINING, press_often, quantile, wait_until_training
from tests.benchmarks.tables import row, table
from tests.pseudo_terminal import PseudoTerminal

MARK_SOCKET, MARK_VIEWERS = 3.0, 2.0  # percent of CPU time
MARK_BYTES = 4000.0
MARK_P50_MS, MARK_P95_MS = 40.0, 110.0
STEPS, QUICK_STEPS = 150_000, 20_000
VIEWERS = 2
WATCHED_SECONDS = 15.0
WITHOUT_SOCKET = """\
import sys
from rl_tui.engine.running.launch import Launch
from rl_tui.tui.cli import main
Launch.let_attach = lambda *_: None
sys.exit(main(sys.argv[1:]))
"""


@contextmanager
def run(folder: Path, run_id: str, *words: str, has_socket: bool = True) -> Iterator[subprocess.Popen[bytes]]:
    """A run without a screen; killed if it still trains."""
    program = ["-m", "rl_tui"] if has_socket else ["-c", WITHOUT_SOCKET]
    command = [sys.executable, *program, "three.yaml", "--no-ui", "--run-id", run_id, *words]
    with subprocess.Popen(command, cwd=folder, env=surroundings(), stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            if process.returncode is None and process.poll() is None:
                process.send_signal(signal.SIGTERM)


def attach_soon(run: Path) -> RemoteSession:
    """A session of a run that has just been started."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return attach_to(run)
        except AttachError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def cpu_seconds(folder: Path, run_id: str, steps: int, *, has_socket: bool = True, viewers: int = 0) -> float:
    """Of one whole run, from its start on."""
    words = [
        word
        for name in ("CartPole", "Acrobot", "Pendulum")
        for word in ("--set", f"behaviors.{name}.max_steps={steps}")
    ]
    with run(folder, run_id, *words, has_socket=has_socket) as process:
        for _ in range(viewers):
            session = attach_soon(folder / "results" / run_id)
            threading.Thread(target=session.main, daemon=True).start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.returncode
    return usage.ru_utime + usage.ru_stime


def bytes_per_second(run: Path) -> float:
    """What one viewer is sent."""
    with connect(run) as connection:
        connection.sendall(f"{greeting_of_client('view')}\n".encode())
        drain(connection, 3.0)
        return drain(connection, WATCHED_SECONDS) / WATCHED_SECONDS


def drain(connection: socket.socket, seconds: float) -> int:
    """How many bytes come in that time."""
    end, count = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            count += len(connection.recv(1 << 20))
        except TimeoutError:
            break
    return count


def keys_over_the_socket(folder: Path, presses: int) -> tuple[list[float], float, float]:
    """Milliseconds from a key to its picture; bytes per second of a viewer while three behaviors train, and at rest."""
    results = folder / "results/keys"
    with run(folder, "keys") as process:
        attach_soon(results).close()
        command = [*PYTHON, "-m", "rl_tui", "attach", "keys"]
        variables = {"PYTHONPATH": str(ROOT / "src"), "XDG_STATE_HOME": str(folder), "LANG": "C.UTF-8"}
        with PseudoTerminal(command, SIZE, folder=folder, variables=variables) as screen:
            wait_until_training(screen)
            milliseconds = press_often(screen, presses)
            training = bytes_per_second(results)
            screen.press("P")
            screen.wait_for("PAUSED")
            at_rest = bytes_per_second(results)
            screen.press("q")
            screen.wait()
        process.send_signal(signal.SIGTERM)
    return milliseconds, training, at_rest


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=0)
    typed = parser.parse_args(words)
    rounds, steps = typed.rounds or (1 if typed.quick else 5), QUICK_STEPS if typed.quick else STEPS
    ways: dict[str, dict[str, int]] = {"none": {"has_socket": False}, "socket": {}, "viewers": {"viewers": VIEWERS}}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(prefix="rl-tui-bench-") as name:
        folder = Path(name)
        os.environ[FOLDER_VARIABLE] = f"{name}/sockets"
        (folder / "three.yaml").write_text(TRAINING)
        milliseconds, training, at_rest = keys_over_the_socket(folder, 5 if typed.quick else 60)
        for number in range(rounds):
            for way, more in ways.items():
                seconds[way].append(cpu_seconds(folder, f"{way}-{number}", steps, **more))  # type: ignore[arg-type]
            print(f"round {number + 1}: CPU {', '.join(f'{way} {times[-1]:.1f} s' for way, times in seconds.items())}")
    share = {
        way: 100 * (median(a / b for a, b in zip(seconds[way], seconds[other], strict=True)) - 1)
        for way, other in (("socket", "none"), ("viewers", "socket"))
    }
    rows = [
        row("CPU time per step with a socket, more than without", share["socket"], MARK_SOCKET, "%"),
        row(f"with {VIEWERS} idle viewers, more than with none", share["viewers"], MARK_VIEWERS, "%"),
        row("key to picture over the socket, p50", median(milliseconds), MARK_P50_MS, "ms"),
        row("key to picture over the socket, p95", quantile(milliseconds, 0.95), MARK_P95_MS, "ms"),
        row("sent to a viewer at rest", at_rest, MARK_BYTES, "B/s"),
        row("sent to a viewer while three behaviors train", training, MARK_BYTES, "B/s"),
    ]
    print(table(("", "measured", "mark", ""), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
