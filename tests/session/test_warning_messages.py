"""The words of every warning that the stories of test_health.py and its neighbor raise, in messages.txt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from rl_tui.engine.session.messages import WarningCleared, WarningRaised
from tests.golden_files import catalog, check_file
from tests.session import test_health, test_health_of_games


def test_every_warning_has_the_words_of_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, dict[WarningRaised, None]] = defaultdict(dict)
    only = test_health.only

    def noting(warnings: Sequence[WarningRaised | WarningCleared]) -> WarningRaised:
        warning: WarningRaised = only(warnings)
        found[warning.kind][warning] = None
        return warning

    modules = test_health, test_health_of_games
    for module in modules:
        monkeypatch.setattr(module, "only", noting)
    for name, story in [item for module in modules for item in vars(module).items()]:
        is_marked = hasattr(story, "pytestmark")  # as slow, or with parameters
        if name.startswith("test_") and not is_marked and "only" in story.__code__.co_names:
            story()
    sections = {
        kind: [(warning.behavior or "the run", [warning.message, f"-> {warning.advice}"]) for warning in found[kind]]
        for kind in sorted(found)
    }
    check_file(Path(__file__).parent / "messages.txt", catalog(sections))
