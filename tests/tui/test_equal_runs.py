"""Runs with one seed have one picture: only clocks and speeds are those of the machine."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from rl_tui.engine.running import progress, worker_advice
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.event_log import read_events
from tests.running.runs import behavior, configuration, run_to_end
from tests.tui.driver import Driven

SIZES = ((80, 24), (120, 40), (200, 60))
CLOCKS = (
    r"\b\d\d:\d\d:\d\d\b",
    r"(?<=\bup )\w+",
    r"(?<=\bafter )\w+",
    r"(?<=\bsteps/s) +\S+",
    r"[━─╸]{4,} +\d+%(?= *│)",  # a part of the time
)


def without_clocks(text: str) -> str:
    """The text with signs in the place of times, speeds and of where the time went."""
    for pattern in CLOCKS:
        text = re.sub(pattern, "#", text)
    return re.sub(" {2,}", "  ", text)  # a longer time has fewer blanks beside it


async def test_two_runs_with_one_seed_have_one_overview(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One reports after every step, the other everything at its end."""
    config = configuration(tmp_path, {"Walker": behavior(max_steps=3000)})
    monkeypatch.setattr(worker_advice, "LEAST_SECONDS", 1e9)  # a busy machine is no reason for advice
    pictures = []
    for seconds in (0.0, 1e9):
        monkeypatch.setattr(progress, "EPISODES_SECONDS", seconds)
        run = run_to_end(config)
        view = RunView()
        for envelope in read_events(run.folder / "events.jsonl"):
            view.apply(envelope)
        shutil.rmtree(run.folder)
        texts = []
        for size in SIZES:
            async with Driven(view, size) as driven:
                texts.append(without_clocks(await driven.text()))
        pictures.append(texts)
    assert "Return · Walker" in pictures[0][1]
    assert re.search("[▁-█]{4}", pictures[0][1]), "there is a trend"
    pairs = zip(*("".join(texts).splitlines() for texts in pictures), strict=True)
    assert [(one, other) for one, other in pairs if one != other] == []
