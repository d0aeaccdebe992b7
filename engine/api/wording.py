"""Messages of the machinery of runs, in the words of a Python function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rl_tui.engine.config import run_flags
from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.session.text import safe_text

_OF_LEARNER = {  # what the messages have, and what a Learner calls it
    "env_settings.env: must be set (or use --env)": "env: must be set",
    "torch_settings.device: ": "device: ",
    " (or --env)": "",
    "--env": "env",
    "--results-dir must be a writable folder": "It must be in a folder that can be written to",
    "--run-id": "folder",
}
_SETTING = re.compile(r"--set ([\w.-]+)=([^\s,;]+)")
_FLAG = re.compile(r"--([a-z]+(?:-[a-z]+)*)(:?)")
_FLAGS = {flag.name: flag for flag in run_flags.IN_PYTHON}


def of_learner(text: str) -> str:
    """With the arguments of a Learner instead of flags."""
    for flag, argument in _OF_LEARNER.items():
        text = text.replace(flag, argument)
    return text


def of_run(text: str) -> str:
    """With the arguments of `train` and `start` instead of flags: `resume=True`, or `resume: ` before a message."""
    return _FLAG.sub(_keyword, _SETTING.sub(r'set={"\1": \2}', text))


@contextmanager
def worded(words: Callable[[str], str]) -> Iterator[None]:
    """What is raised within names arguments instead of the flags of the command line."""
    try:
        yield
    except RlTuiError as error:
        reword(error, words)
        raise


def reword(error: RlTuiError, words: Callable[[str], str]) -> None:
    """Its message names arguments, too."""
    error.args = (words(str(error)),)


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


def _keyword(found: re.Match[str]) -> str:
    flag, colon = _FLAGS.get(found[1]), found[2]
    if flag is None:
        return found[0]
    return f"{flag.keyword}{'=True' if flag.kind == 'true' and not colon else ''}{colon}"
