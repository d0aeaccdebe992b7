"""Memory that does not suffice, this machine's or a device's, as an error for the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from rl_tui.engine.errors import OutOfMemory

FREE = " is free."  # after these words torch lists other processes, and advises on its allocator
ON_THE_HOST = "can't allocate memory: "  # torch has no class for it
IN_LIBRARIES = ("CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")  # they allocate for themselves


@contextmanager
def needing_memory(what: str) -> Iterator[None]:
    """What is done in here raises OutOfMemory, in one line, where there is not enough for it."""
    try:
        yield
        return
    except (MemoryError, RuntimeError) as error:
        text = _explanation(error)
        if text is None:
            raise
        problem = f"{what} does not fit in memory: {text}"
    raise OutOfMemory(problem)  # outside: the frames of the other would keep what they have allocated


def _explanation(error: Exception) -> str | None:
    """What was asked for and what must be smaller; None for any other error."""
    text = str(error)
    if isinstance(error, torch.OutOfMemoryError):
        first, found, _ = text.splitlines()[0].partition(FREE)
        return f"{first}{found} {_smaller('hyperparameters.batch_size')}"
    if any(name in text for name in IN_LIBRARIES):
        return f"{text.splitlines()[0]}. {_smaller('hyperparameters.batch_size')}"
    if isinstance(error, MemoryError) or ON_THE_HOST in text:
        reason = text.partition(ON_THE_HOST)[2] or text or "the machine has none left"
        return f"{reason.rstrip('.')}. {_smaller('hyperparameters.buffer_size')}"
    return None


def _smaller(key: str) -> str:
    return f"{key} or the network must be smaller"
