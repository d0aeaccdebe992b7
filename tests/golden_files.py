"""Text compared with a file that people read: UPDATE_SNAPSHOTS=1 writes the files again."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest


def check_file(path: Path, text: str) -> None:
    """The text is that of the file."""
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text)
    assert path.exists(), f"{path} is missing: run the test with UPDATE_SNAPSHOTS=1 and look at the file"
    expected, found = path.read_text().splitlines(), text.splitlines()
    difference = "\n".join(difflib.unified_diff(expected, found, str(path), "found", lineterm=""))
    if difference:
        pytest.fail(f"{difference}\n\nUPDATE_SNAPSHOTS=1 writes the file again", pytrace=False)


def catalog(sections: Mapping[str, Iterable[tuple[str, Iterable[str]]]]) -> str:
    """Messages to read one after the other: title -> what leads to them, indented, and the lines that a user sees."""
    blocks = []
    for title, cases in sections.items():
        blocks.append(f"{title}\n{'=' * len(title)}\n")
        for given, lines in cases:
            indented = [f"    {line}".rstrip() for line in _printable(given).splitlines()]
            blocks.append("\n".join([*indented, *lines]) + "\n")
    return "\n".join(blocks)


def _printable(text: str) -> str:
    """Without control characters, and without the end of an endless line."""
    return "".join(
        c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text[:2000] + "..." * (len(text) > 2000)
    )
