"""A parser of arguments in which a flag with a value may stand once."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from rl_tui.engine.config.diagnostics import visible


class FlagParser(argparse.ArgumentParser):
    """Refuses a flag that stands twice, of which Python's would take the last value. Appended ones may be repeated."""

    def __init__(self, *args: Any, **settings: Any) -> None:  # Any: as Python's own
        super().__init__(*args, **settings)
        for name in (None, "store"):
            self.register("action", name, _StoreOnce)


class _StoreOnce(argparse.Action):
    """Keeps one value."""

    _is_stored = False

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Raises ArgumentError for a second one."""
        if self._is_stored:
            both = (visible(str(value)) for value in (getattr(namespace, self.dest), values))
            raise argparse.ArgumentError(self, f"must be given once, got {' and '.join(both)}")
        self._is_stored = True
        setattr(namespace, self.dest, values)
