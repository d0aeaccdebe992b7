"""What demonstrations hold, as text: a paragraph for people, a JSON object for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from rl_tui.engine.session.text import counted, safe_text

if TYPE_CHECKING:
    from rl_tui.engine.demonstrations.summary import DemonstrationSummary, Spread
    from rl_tui.engine.specs import ObservationSpec

INDENT = 14
MOST_CHOICES = 6  # of a branch, which are listed each


def paragraph(summary: DemonstrationSummary) -> str:
    """The path, and a line for each fact."""
    names = ", ".join(name for name in summary.names if name)
    rows = [
        ("behavior", summary.behavior),
        ("recording", names or "without a name"),
        ("size", f"{counted(summary.num_files, 'file')}, {summary.bytes:,} bytes, {summary.num_records:,} records"),
        ("agent ids", f"{summary.num_agents:,}"),
        ("steps", f"{summary.num_steps:,}"),
        ("episodes", f"{summary.num_episodes:,}{_unfinished(summary)}"),
        ("return", _spread(summary.returns)),
        ("length", _spread(summary.lengths)),
        *((f"observation {number}", _observation(one)) for number, one in enumerate(summary.observations)),
        *((f"continuous {number}", _spread(one)) for number, one in enumerate(summary.continuous)),
        *((f"branch {number}", _choices(counts)) for number, counts in enumerate(summary.branches)),
    ]
    lines = [summary.path, *(f"  {name:{INDENT}} {text}" for name, text in rows)]
    return "".join(safe_text(line) + "\n" for line in lines)


def json_line(summary: DemonstrationSummary) -> str:
    """An object with every field."""
    return json.dumps(asdict(summary)) + "\n"


def _unfinished(summary: DemonstrationSummary) -> str:
    if not summary.num_unfinished:
        return ""
    return (
        f", of which {summary.num_unfinished:,} not recorded to {'its' if summary.num_unfinished == 1 else 'their'} end"
    )


def _spread(spread: Spread) -> str:
    if spread.min == spread.max:
        return f"{spread.min:.6g}"
    return f"{spread.mean:.6g} on average, {spread.min:.6g} to {spread.max:.6g}"


def _observation(spec: ObservationSpec) -> str:
    sizes = "x".join(map(str, spec.shape))
    of_what = {"vector": "vector of", "entities": "set of", "image": "image of"}[spec.kind]
    kind = "bytes" if spec.dtype == "uint8" else "floats"
    return f"{spec.name}: {'goal, ' if spec.is_goal else ''}{of_what} {sizes} {kind}"


def _choices(counts: tuple[int, ...]) -> str:
    """How often each choice was taken, the most frequent ones first where there are many."""
    total = sum(counts)
    choices = list(range(len(counts)))
    if len(counts) > MOST_CHOICES:
        choices = sorted(choices, key=lambda choice: -counts[choice])[:MOST_CHOICES]
    text = ", ".join(f"{choice}: {100 * counts[choice] / total:.1f}%" for choice in choices)
    others = len(counts) - len(choices)
    return f"{counted(len(counts), 'choice')}, {text}{f', and {others} others' if others else ''}"
