"""`rl-tui upgrade-config`: a file of an older ML-Agents, written in today's format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rl_tui.engine.config.diagnostics import SourceMap
from rl_tui.engine.config.legacy.modernize import modernize, read_document
from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.yaml_document import write_yaml


@dataclass(frozen=True, slots=True)
class Upgrade:
    """notes: one line for each legacy spelling; none for a file of today's format, which is unchanged."""

    content: bytes
    notes: tuple[str, ...]


def upgrade(content: bytes, file: str) -> Upgrade:
    """The same settings in today's format, in the order of the file; comments are lost.

    Both are read as the same RunConfig. `file` is its name in messages. Raises ConfigError for an invalid file.
    """
    config = parse_config(content, file)
    document = read_document(content)
    rewriting = modernize(document.values)
    if rewriting.is_current:
        return Upgrade(content, ())
    source = SourceMap(file, document.keys, document.key_values, written=rewriting.written)
    text = write_yaml(_as_read(document.values, config.model_dump()))
    return Upgrade(text.encode(), tuple(source.lines([*rewriting.notes(), *document.repeated])))


def _as_read(written: Mapping[str, object], read: Mapping[str, object]) -> dict[str, object]:
    """The written keys, each with its value as read: 5e5 as 500000."""
    return {key: _value_as_read(value, read[key]) for key, value in written.items()}


def _value_as_read(written: object, read: object) -> object:
    if isinstance(written, dict) and isinstance(read, dict):
        return _as_read(written, read)
    if isinstance(written, list) and isinstance(read, list):
        return [_value_as_read(*pair) for pair in zip(written, read, strict=True)]
    return read
