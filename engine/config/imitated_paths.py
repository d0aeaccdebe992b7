"""Where the demonstrations, teachers and opponents are that a configuration file names."""

import os
from collections.abc import Iterator

KEYS = ("demo_path", "teacher", "opponent")


def find_beside(values: dict[str, object], file: str) -> None:
    """In the settings of a file, a relative path that the working directory does not have, and the folder of the file
    does, is written in full. As in ML-Agents, every other one means the working directory."""
    for section in _sections([values.get("default_settings"), values.get("behaviors")]):
        for key in KEYS:
            path = section.get(key)
            if isinstance(path, str) and not os.path.exists(path):
                beside = os.path.join(os.path.dirname(file), path)
                if os.path.exists(beside):
                    section[key] = os.path.abspath(beside)


def _sections(values: list[object]) -> Iterator[dict[str, object]]:
    """The mappings among these, and those within them."""
    for value in values:
        if isinstance(value, dict):
            yield value
            yield from _sections([*value.values()])
