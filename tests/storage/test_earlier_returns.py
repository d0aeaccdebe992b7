"""What a resumed run knows of the returns before it."""

from __future__ import annotations

import os
from pathlib import Path

from rl_tui.engine.session.codec import encode
from rl_tui.engine.session.messages import Envelope, EpisodesFinished, Event
from rl_tui.engine.storage.earlier_returns import earlier_returns


def recorded(path: Path, *events: Event) -> Path:
    """The file with these events."""
    path.write_text("".join(encode(Envelope(number, 1.0, event)) + "\n" for number, event in enumerate(events, 1)))
    return path


def episodes(behavior: str, lowest: float, highest: float) -> EpisodesFinished:
    return EpisodesFinished(behavior, 100, 2, (lowest + highest) / 2, lowest, highest, 10.0)


def test_two_returns_that_differ_are_found_or_the_only_one(tmp_path: Path) -> None:
    same, other = episodes("Walker", 5.0, 5.0), episodes("Crawler", 1.0, 2.0)
    path = recorded(tmp_path / "events.jsonl", other, same, same)
    assert earlier_returns(path, "Walker") == (5.0,)
    assert earlier_returns(recorded(path, same, episodes("Walker", 5.0, 9.0)), "Walker") == (5.0, 9.0)
    assert earlier_returns(recorded(path, same, episodes("Walker", 3.0, 3.0)), "Walker") == (3.0, 5.0)


def test_file_that_is_missing_damaged_or_none_at_all_has_no_returns(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert earlier_returns(path, "Walker") == ()
    path.write_bytes(
        b'{"event": "EpisodesFinished", "behavior": "Walker", "min_return": "nan"}\n"EpisodesFinished"\n\xff{'
    )
    assert earlier_returns(path, "Walker") == ()
    path.unlink()
    os.mkfifo(path)
    assert earlier_returns(path, "Walker") == ()
