"""The process ends, whatever a library that hangs has registered for its end."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.deadline import DEADLINE_SECONDS

PROGRAM = """
import atexit, sys, threading, time
from rl_tui.engine.process.leaving import end_process, leave_behind
atexit.register(print, "at exit")
print("printed")
if sys.argv[1] == "left":
    threading.Thread(target=time.sleep, args=(600,)).start()
    leave_behind()
end_process(3)
"""


@pytest.mark.parametrize(("what", "printed", "exit_code"), [("left", "printed\n", 3), ("", "printed\nat exit\n", 0)])
def test_process_waits_at_its_end_only_where_nothing_was_left_behind(what: str, printed: str, exit_code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, what], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
    assert (done.stdout, done.returncode) == (printed, exit_code)
