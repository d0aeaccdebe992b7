"""Messages of the machinery of runs, in the words of a Python function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rl_tui.engine.errors import RlTuiError

OF_LEARNER = {  # what the messages have, and what a Learner calls it
    "env_settings.env: must be set (or use --env)": "env: must be set",
    "torch_settings.device: ": "device: ",
    " (or --env)": "",
    "--env": "env",
    "--results-dir must be a writable folder": "It must be in a folder that can be written to",
    "--run-id": "folder",
}


@contextmanager
def worded(words: Mapping[str, str]) -> Iterator[None]:
    """What is raised within names arguments instead of the flags of the command line."""
    try:
        yield
    except RlTuiError as error:
        text = str(error)
        for flag, argument in words.items():
            text = text.replace(flag, argument)
        error.args = (text,)
        raise
