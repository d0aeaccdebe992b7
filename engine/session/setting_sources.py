"""Where each setting of a run came from, also after a resume from the run's own file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from rl_tui.engine.session.messages import OWN_FILE, RunStarted

SettingPath: TypeAlias = tuple[str, ...]


def setting_sources(event: RunStarted, earlier: Mapping[SettingPath, str]) -> dict[SettingPath, str]:
    """The source of each setting that was set, in a word.

    The run's own file has all settings, defaults among them: where they came from before is in `earlier`, which a run
    recorded by an older version does not have.
    """
    found = {path: source for source, paths in event.sources.items() for path in paths}
    for path in event.sources.get(OWN_FILE, ()):
        del found[path]
        if not earlier:
            found[path] = "file"
        elif path in earlier:
            found[path] = earlier[path]
    return found
