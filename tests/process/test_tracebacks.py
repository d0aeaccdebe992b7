"""Where the user's code is, in a thread of this process."""

from __future__ import annotations

import threading

from rl_tui.engine.process.tracebacks import place_in_thread


def test_current_frames_of_python_give_the_line_of_another_thread() -> None:
    """A canary for sys._current_frames, which Python documents for debuggers."""
    started, stop = threading.Event(), threading.Event()

    def hang() -> None:
        started.set()
        stop.wait()

    thread = threading.Thread(target=hang)
    thread.start()
    try:
        started.wait()
        place, stack = place_in_thread(thread.ident or 0)
    finally:
        stop.set()
        thread.join()
    assert place.startswith("tests/process/test_tracebacks.py:")
    assert " in hang\n" in stack
    assert place_in_thread(0) == ("", "")
