"""What an environment renders for people, as u8[H, W, 3] or as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import ConfigError, EnvironmentFailure
from rl_tui.engine.process.installation import command_for_extra

Frame: TypeAlias = NDArray[np.uint8]
_SHOWN_PIXELS = 336  # a small image is enlarged to about this height


def rendered(
    render: Callable[[], Any],
    mode: str | None,  # Any: as the environment returned it
) -> Frame | str | None:
    """A frame of a Gymnasium environment, or text in the mode "ansi"; None in any mode but these two.

    Raises ConfigError if a package for drawing is missing, EnvironmentFailure for anything but a frame.
    """
    if mode not in ("rgb_array", "ansi"):
        return None
    import gymnasium

    try:
        drawn = render()
    except gymnasium.error.DependencyNotInstalled as error:
        if "pygame" in str(error):
            command = command_for_extra("render")
            raise ConfigError(f"drawing it needs pygame, which is not installed. Install it with: {command}") from error
        raise ConfigError(f"env_kwargs.render_mode: {error}") from error
    if mode == "ansi":
        drawn = drawn[0] if isinstance(drawn, tuple | list) and drawn else drawn
        if not isinstance(drawn, str):
            raise EnvironmentFailure(f"render must return text in the mode ansi, got {type(drawn).__name__}")
        return drawn
    frame = np.asarray(drawn[0] if isinstance(drawn, tuple | list) else drawn)
    if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
        raise EnvironmentFailure(f"render must return uint8 (height, width, 3), got {frame.dtype} {frame.shape}")
    return frame.copy()


def frames_per_second(metadata: Mapping[str, Any]) -> float | None:  # Any: as the environment has it
    """From the metadata of a Gymnasium environment, if it has a number above zero."""
    found = metadata.get("render_fps")
    return float(found) if isinstance(found, int | float) and found > 0 else None


def enlarged(image: NDArray[np.uint8]) -> Frame:
    """A small image u8[H, W, C] of one channel or three, with each pixel as a square."""
    side = max(1, _SHOWN_PIXELS // len(image))
    large = image.repeat(side, axis=0).repeat(side, axis=1)
    return np.broadcast_to(large, (*large.shape[:2], 3)).copy()


def fitted(frame: Frame, width: int, height: int) -> Frame:
    """The frame scaled to fit, with square pixels; each is the mean of the area that it covers."""
    scale = min(width / frame.shape[1], height / frame.shape[0])
    columns, rows = (max(1, round(side * scale)) for side in (frame.shape[1], frame.shape[0]))
    if frame.shape[:2] == (rows, columns):
        return frame
    lines = _areas(frame.shape[0], rows) @ frame.reshape(len(frame), -1).astype(np.float32)
    pixels = _areas(frame.shape[1], columns) @ lines.reshape(rows, -1, 3)
    small: Frame = np.rint(pixels).astype(np.uint8)
    return small


def _areas(source: int, target: int) -> NDArray[np.float32]:
    """f32[target, source]: the share of each target pixel that every source pixel covers."""
    edges = np.linspace(0.0, source, target + 1)
    at = np.arange(source)
    covered = np.minimum(edges[1:, None], at + 1) - np.maximum(edges[:-1, None], at)
    shares: NDArray[np.float32] = (np.maximum(covered, 0.0) * (target / source)).astype(np.float32)
    return shares
