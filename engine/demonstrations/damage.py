"""What is wrong with a file of demonstrations, and where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rl_tui.engine.errors import DemonstrationError


class Damage(Exception):
    """Bytes are not what the format says. at: the first one that is wrong, or of the record that holds it."""

    def __init__(self, at: int, text: str) -> None:
        super().__init__(text)
        self.at = at


@contextmanager
def named_after(path: Path) -> Iterator[None]:
    """Whatever is wrong with this file is a DemonstrationError with its path."""
    try:
        yield
    except Damage as damage:
        raise DemonstrationError(f"{path}: byte {damage.at}: {damage}") from damage
    except OSError as error:
        raise DemonstrationError(f"{path}: cannot be read: {error.strerror or error}") from error
