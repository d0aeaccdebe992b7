"""The settings of a configuration as a tree of sections, a behavior being one of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rl_tui.tui.runs.configurations import KeyPath, Setting

REST = "other"  # of settings that are in no section


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the file. settings: its own, in the order of the file; sections: those inside it."""

    path: KeyPath
    title: str
    settings: Sequence[Setting]
    sections: Sequence[Section]

    def every_setting(self) -> Iterator[Setting]:
        """Those of the sections inside it as well."""
        yield from self.settings
        for section in self.sections:
            yield from section.every_setting()


def sections_of(settings: Sequence[Setting]) -> list[Section]:
    """The sections at the top, in the order of the file; last the settings that are in none."""
    groups: dict[KeyPath, list[Setting]] = {}
    rest = []
    for setting in settings:
        if len(setting.path) > 1:
            groups.setdefault(setting.path[: 2 if setting.path[0] == "behaviors" else 1], []).append(setting)
        else:
            rest.append(setting)
    made = [_section(path, path[-1], members) for path, members in groups.items()]
    return [*made, Section((), REST, rest, ())] if rest else made


def opened_by_room(sections: Sequence[Section], room: int) -> set[KeyPath]:
    """The paths of the sections that are open at first: the outermost first, as long as all fits that many lines."""
    opened: set[KeyPath] = set()
    room -= len(sections)
    waiting = deque(sections)
    while waiting:
        section = waiting.popleft()
        room -= len(section.settings) + len(section.sections)
        if room < 0:
            break
        opened.add(section.path)
        waiting += section.sections
    return opened


def _section(path: KeyPath, title: str, settings: Sequence[Setting]) -> Section:
    """One that has nothing but a single other section is shown as that one, with both names."""
    own = [setting for setting in settings if len(setting.path) <= len(path) + 1]
    groups: dict[str, list[Setting]] = {}
    for setting in settings:
        if len(setting.path) > len(path) + 1:
            groups.setdefault(setting.path[len(path)], []).append(setting)
    inner = [_section((*path, key), key, members) for key, members in groups.items()]
    if not own and len(inner) == 1:
        return replace(inner[0], title=f"{title}.{inner[0].title}")
    return Section(path, title, own, inner)
