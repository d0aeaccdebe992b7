"""A parser of arguments in which a flag with a value may stand once, and which explains unknown ones: flags that
ML-Agents once had, misspelled flags and extra arguments.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rl_tui.engine.config.diagnostics import closest, suggest, visible

_PARAMETERS = "Parameters of an environment and curricula belong in the file, under environment_parameters"
_REMOVED = {  # from its migration notes, up to release 0.16
    "--cpu": "--torch-device cpu trains on the CPU",
    "--save-freq": "Each behavior has its own interval: --set behaviors.NAME.checkpoint_interval=50000",
    "--keep-checkpoints": "Each behavior has its own number: --set behaviors.NAME.keep_checkpoints=5",
    "--lesson": "A run begins at the first lesson, and goes to another by itself or by hand while it trains",
    "--curriculum": _PARAMETERS,
    "--sampler": _PARAMETERS,
    "--num-runs": "One command is one run: start several, each with its own --run-id and --seed",
    "--worker-id": "--base-port is the port of the first player, and each further one has the next",
    "--slow": "--time-scale 1 is real time",
    "--docker-target-name": "--results-dir names the folder of the results",
}
_REMOVED_OF_DEMO = {
    "--behaviors": "The demo is a recording of three behaviors: leave the flag out",
    "--hours": "The demo is a recording and begins after 1.7 hours: leave the flag out",
    "--seed": "The demo is a recording, the same every time: leave the flag out",
}


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


def parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Parse the words. Raises SystemExit for unknown ones, with suggestions."""
    typed, unknown = parser.parse_known_args(words)
    if unknown:
        parser.error(_explain(unknown, parser._option_string_actions, parser.prog))
    return typed


def _explain(words: Sequence[str], flags: Iterable[str], command: str) -> str:
    """One line for every unknown flag among the words. flags: those that the command has."""
    known = list(flags)
    removed = {"rl-tui": _REMOVED, "rl-tui demo": _REMOVED_OF_DEMO}.get(command, {})
    unknown = [word.partition("=")[0] for word in words if word.startswith("--")]
    if not unknown:
        return f"unexpected arguments: {' '.join(map(visible, words))}"
    return "\n".join(
        f"{visible(flag)}: no such flag.{_hint(flag, known, removed, command)}" for flag in dict.fromkeys(unknown)
    )


def _hint(flag: str, known: Sequence[str], removed: Mapping[str, str], command: str) -> str:
    close = closest(flag, [*known, *removed])
    if close is not None and close in removed:
        return f" {removed[close]}"
    return suggest(flag, known) or f" `{command} --help` lists them"
