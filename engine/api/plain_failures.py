"""Errors whose text cannot control the terminal on which Python prints it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.session.text import safe_text


def make_plain(error: RlTuiError) -> None:
    """Nothing in its text can control a terminal, on which Python prints it as it is."""
    error.args = (safe_text(str(error), multiline=True),)
    error.detail = safe_text(error.detail, multiline=True)


@contextmanager
def plain_failures() -> Iterator[None]:
    """What is raised within is plain text, whatever an environment or a file has put into it."""
    try:
        yield
    except RlTuiError as error:
        make_plain(error)
        raise
