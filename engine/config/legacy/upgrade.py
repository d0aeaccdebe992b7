"""Files of older versions of ML-Agents, rewritten into today's format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rl_tui.engine.config.diagnostics import SourceMap
from rl_tui.engine.config.legacy.modernize import modernize, read_document
from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.yaml_document import write_yaml


@dataclass(frozen=True, slots=True)
class Upgrade:
    """notes: one line for each older spelling; empty for a file of today's format, whose content is as it was."""

    content: bytes
    notes: tuple[str, ...]


def upgrade(content: bytes, file: str) -> Upgrade:
    """The same settings in today's format, in the order of the file; comments are lost.

    What is read from the result equals what is read from the file. `file` is its name in messages. Raises ConfigError
    with one line for every mistake in it.
    """
    config = parse_config(content, file)
    document = read_document(content, RunConfig.model_fields)
    rewriting = modernize(document.values, RunConfig.model_fields)
    if rewriting.is_current:
        return Upgrade(content, ())
    source = SourceMap(file, document.keys, document.key_values, written=rewriting.written)
    text = write_yaml(_as_read(document.values, config.model_dump()))
    return Upgrade(text.encode(), tuple(source.lines([*rewriting.notes(), *document.repeated])))


def _as_read(written: Mapping[str, object], read: Mapping[str, object]) -> dict[str, object]:
    """The keys that are written, each with the value that was read: 5e5 as 500000."""
    return {key: _value_as_read(value, read[key]) for key, value in written.items()}


def _value_as_read(written: object, read: object) -> object:
    if isinstance(written, dict) and isinstance(read, dict):
        return _as_read(written, read)
    if isinstance(written, list) and isinstance(read, list):
        return [_value_as_read(*pair) for pair in zip(written, read, strict=True)]
    return read
