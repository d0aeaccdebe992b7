"""What a run costs that can be attached to, and how soon an attached screen answers: `python -m
tests.benchmarks.attached`.

The cost is the share of the thread `attach` in the CPU time of the run's process, as the kernel counts both: whole runs
with and without differ by more from one time to the next. Viewers are in this process, which is not counted. Keys are
pressed on `rl-tui attach` while three behaviors train in the run's process.
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
STEPS, QUICK_STEPS = 30_000, 10_000
VIEWERS = 2
WATCHED_SECONDS = 15.0
MEASURED = """\
import sys
import time
from pathlib import Path

from rl_tui.engine.remote.server import SessionServer
from rl_tui.tui.cli import main

serve = SessionServer.main


def measured(self, log):
    serve(self, log)
    Path(sys.argv[1]).write_text(str(time.thread_time()))


SessionServer.main = measured
sys.exit(main(sys.argv[2:]))
"""


@contextmanager
def run(folder: Path, run_id: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run without a screen, which writes the CPU seconds of its thread `attach` into a file; stopped if it still
    trains."""
    program = ["-c", MEASURED, str(folder / f"{run_id}.seconds")]
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


def share_of_attaching(folder: Path, run_id: str, steps: int, viewers: int) -> float:
    """Percent of the CPU time of one whole run, from its start on."""
    names = "CartPole", "Acrobot", "Pendulum"
    words = [word for name in names for word in ("--set", f"behaviors.{name}.max_steps={steps}")]
    with run(folder, run_id, *words) as process:
        for _ in range(viewers):
            session = attach_soon(folder / "results" / run_id)
            threading.Thread(target=session.main, daemon=True).start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.returncode
    return 100 * float((folder / f"{run_id}.seconds").read_text()) / (usage.ru_utime + usage.ru_stime)


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
    rounds, steps = typed.rounds or (1 if typed.quick else 3), QUICK_STEPS if typed.quick else STEPS
    shares: dict[int, list[float]] = {0: [], VIEWERS: []}
    with tempfile.TemporaryDirectory(prefix="rl-tui-bench-") as name:
        folder = Path(name)
        os.environ[FOLDER_VARIABLE] = f"{name}/sockets"
        (folder / "three.yaml").write_text(TRAINING)
        milliseconds, training, at_rest = keys_over_the_socket(folder, 5 if typed.quick else 60)
        for number in range(rounds):
            for viewers, measured in shares.items():
                measured.append(share_of_attaching(folder, f"{viewers}-{number}", steps, viewers))
    alone, viewed = (median(measured) for measured in shares.values())
    rows = [
        row("CPU time of what lets others attach", alone, MARK_SOCKET, "%", 2),
        row(f"more with {VIEWERS} idle viewers", viewed - alone, MARK_VIEWERS, "%", 2),
        row("key to picture over the socket, p50", median(milliseconds), MARK_P50_MS, "ms"),
        row("key to picture over the socket, p95", quantile(milliseconds, 0.95), MARK_P95_MS, "ms"),
        row("sent to a viewer at rest", at_rest, MARK_BYTES, "B/s"),
        ("sent to a viewer while three behaviors train", f"{training:,.0f} B/s", "", ""),
    ]
    print(table(("", "measured", "mark", ""), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
