"""What an environment has returned instead of what it must, for a message."""

from __future__ import annotations

_LONGEST_TEXT = 40
_LARGEST = 10**18


def in_words(found: object) -> str:
    """The type of something; a number, None or a text itself. Calls nothing of what it is given."""
    if found is None or type(found) in (bool, float) or (type(found) is int and abs(found) < _LARGEST):
        return str(found)
    if type(found) is str:
        return repr(found[:_LONGEST_TEXT]) + ("..." if len(found) > _LONGEST_TEXT else "")
    name = type(found).__name__
    article = "an" if name[:1] in "aeiou" else "a"
    return f"{article} {name}" if type(found).__module__ == "builtins" else name
