"""Names of observations, for those that have none or share one."""

from __future__ import annotations

from collections.abc import Iterable


def unique_names(given: Iterable[str]) -> list[str]:
    """One name for each: obs_0, obs_1 ... where it is empty, by position, and NAME_2, NAME_3 ... where it is taken."""
    names: list[str] = []
    for index, name in enumerate(given):
        first = unique = name or f"obs_{index}"
        number = 2
        while unique in names:
            unique = f"{first}_{number}"
            number += 1
        names.append(unique)
    return names
