"""Older files, read as what they mean today."""

from __future__ import annotations

from collections.abc import Container

from engine.flat_format import sort_flat_behaviors
from engine.older_behaviors import rewrite_behavior
from engine.older_parameters import rewrite_parameters
from engine.rewriting import Rewriting, Section


def modernize(values: dict[str, object], sections: Container[str]) -> Rewriting:
    """Bring a file's values into today's form, in place. sections: the names at the top of today's files."""
    rewriting = Rewriting(values)
    rewrite_parameters(rewriting)
    sort_flat_behaviors(rewriting, sections)
    top = Section(rewriting, (), values)
    if default := top.inner("default_settings"):
        rewrite_behavior(default)
    if behaviors := top.inner("behaviors"):
        for behavior in behaviors.inners():
            rewrite_behavior(behavior)
    return rewriting
