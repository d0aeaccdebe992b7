"""What follows from the version of the package com.unity.ml-agents that a player was built with.

Since 3.0.0-exp.1 the shape of an image is C, H, W: its channels, rows and columns. Where it is not compressed, its
floats were H, W, C nevertheless up to 4.0.0; since 4.0.1 they are C, H, W, too
(https://github.com/Unity-Technologies/ml-agents/pull/6239).
"""

from __future__ import annotations

import re

from rl_tui.engine.specs import BehaviorSpec, UnityPackage

_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})(?!\d)(?:\.(\d{1,9})(?!\d))?", re.ASCII)
_FIRST_OF_CHANNELS_FIRST = 3, 0, 0
_LAST_OF_ROWS_FIRST = 4, 0, 0
_ALWAYS_KNOWN = "3.0.0-exp.1"  # the one of the former that was read as such from the beginning


def version_numbers(version: str) -> tuple[int, int, int] | None:
    """(4, 0, 0) of `4.0.0-pre.1` and of `4.0`; None for what is no version."""
    match = _VERSION.match(version)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3] or 0))


def package_of(version: str) -> UnityPackage:
    """The package, with the order of its uncompressed images; that of their shape where the version says nothing."""
    numbers = version_numbers(version)
    has_rows_first = numbers is not None and numbers <= _LAST_OF_ROWS_FIRST
    return UnityPackage(version, "HWC" if has_rows_first else "CHW")


def announces_rows_first(version: str) -> bool:
    """Whether images are announced as H, W, C, as before 3.0.0-exp.1."""
    numbers = version_numbers(version)
    return numbers is not None and numbers < _FIRST_OF_CHANNELS_FIRST


def order_in_doubt(spec: BehaviorSpec) -> str:
    """A line about images whose order cannot be known from their package; "" where it can."""
    package = spec.unity_package
    if package is None or version_numbers(package.version) is not None or not (names := _names(spec)):
        return ""
    return (
        f"{names} is not compressed, and is read as channels, height, width: packages com.unity.ml-agents up to 4.0.0 "
        f"send it as height, width, channels, but the player names no version that can be read ({package.version!r})"
    )


def misread_before(before: BehaviorSpec, now: BehaviorSpec) -> str:
    """A line about images that were read in the wrong order, as far as is known; "" for none.

    before: what a checkpoint was trained with; its package is None where the program that wrote it took the floats of
    every package but 3.0.0-exp.1 for C, H, W. now: what is played.
    """
    package = now.unity_package
    if before.unity_package is not None or package is None or not (names := _names(before)):
        return ""
    if package.version == _ALWAYS_KNOWN:
        return ""
    packages = "the uncompressed images of com.unity.ml-agents 3.0.0 to 4.0.0"
    if package.image_order == "HWC":
        return (
            f"{names}: this policy learned from pixels in the wrong order, since earlier versions of rl-tui misread "
            f"{packages}, and this player has {package.version}. Now they are read as the game itself reads them, "
            "where what it learned does not help: start a new run"
        )
    return (
        f"{names}: this policy may have learned from pixels in the wrong order: earlier versions of rl-tui misread "
        f"{packages}, and did not save which one the player had (now {package.version or 'none'}). If it was one of "
        "these, start a new run"
    )


def _names(spec: BehaviorSpec) -> str:
    """Uncompressed images of which the order matters, which it does not with one channel."""
    images = [one for one in spec.observations if one.kind == "image" and one.dtype == "float32" and one.shape[2] > 1]
    return " and ".join(f"{one.name!r} {list(one.shape)}" for one in images)
