"""Makes untrusted text safe to show: names, log lines, error messages and paths may contain anything."""

from __future__ import annotations

import re

# Whole sequences are removed first, so that "\x1b[31mred" leaves "red" and not "[31mred" (ECMA-48, 5.4 and 5.6).
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colors, cursor, erase
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x18\x1a\x1b\x90-\x9f]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]"  # every other sequence that starts with an escape
)
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, delete, C1
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # bidirectional and deprecated format controls (UAX 9)
    r"\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"  # byte order mark, interlinear annotation, tags
)
_BREAK = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
EXCERPT_LINES = 12  # of a traceback on a console or in a log: the last calls and the error


def excerpt(detail: str) -> str:
    """The most informative lines: the last ones of a traceback, the first ones of a dump of stacks."""
    lines = detail.rstrip("\n").split("\n")
    if len(lines) <= EXCERPT_LINES:
        return "\n".join(lines)
    if "Traceback (most recent call last):" in detail:
        return "\n".join(["...", *lines[-EXCERPT_LINES:]])
    return "\n".join([*lines[:EXCERPT_LINES], "..."])


def counted(number: int, thing: str) -> str:
    """The number and the thing, in the plural unless there is one: "1 run", "2 runs"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def one_line(text: str) -> str:
    """The lines of `text` joined by spaces, stripped and without empty ones."""
    return " ".join(stripped for row in text.splitlines() if (stripped := row.strip()))


def safe_text(text: str, *, multiline: bool = False) -> str:
    """`text` without anything that could control a terminal or change the writing direction.

    Escape sequences are removed whole, other control characters singly; a lone surrogate, which no stream can encode,
    is replaced by U+FFFD. Newlines and tabs are replaced by one space each unless `multiline`.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCE.sub("", text)
    text = _BREAK.sub("\n", text)
    text = _CONTROL.sub("", text)
    text = _SURROGATE.sub("\ufffd", text)
    return text if multiline else text.replace("\n", " ").replace("\t", " ")
