"""Files of older versions of ML-Agents, rewritten as today's."""

from __future__ import annotations

from rl_tui.engine.config.legacy.behaviors import rewrite_behavior
from rl_tui.engine.config.legacy.flat_format import is_flat, sort_flat_behaviors
from rl_tui.engine.config.legacy.parameters import rewrite_parameters
from rl_tui.engine.config.legacy.rewriting import Rewriting, Section
from rl_tui.engine.config.yaml_document import Document, read_yaml


def read_document(content: bytes) -> Document:
    """The document in a UTF-8 file. In the flat form the last of two equal keys counts, as for its readers then."""
    document = read_yaml(content)
    if document.repeated and is_flat(document.values):
        return read_yaml(content, last_counts=True)
    return document


def modernize(values: dict[str, object]) -> Rewriting:
    """Bring a file's values into today's form, in place."""
    rewriting = Rewriting(values)
    rewrite_parameters(rewriting)
    sort_flat_behaviors(rewriting)
    top = Section(rewriting, (), values)
    if default := top.inner("default_settings"):
        rewrite_behavior(default)
    if behaviors := top.inner("behaviors"):
        for behavior in behaviors.inners():
            rewrite_behavior(behavior)
    return rewriting
