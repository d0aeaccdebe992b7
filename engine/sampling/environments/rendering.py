"""What an environment shows to a human, as u8[H, W, 3]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.errors import ConfigError, EnvironmentFailure

Frame: TypeAlias = NDArray[np.uint8]
_SHOWN_PIXELS = 336  # a small image is enlarged to about this height


def rendered(render: Callable[[], Any], mode: str | None) -> Frame | None:  # Any: whatever the environment returned
    """A frame of a Gymnasium environment; None in another mode than "rgb_array".

    Raises ConfigError when a package that draws is missing, EnvironmentFailure for what is no frame.
    """
    if mode != "rgb_array":
        return None
    import gymnasium

    try:
        drawn = render()
    except gymnasium.error.DependencyNotInstalled as error:
        raise ConfigError(f"env_kwargs.render_mode: {error}") from error
    frame = np.asarray(drawn[0] if isinstance(drawn, tuple | list) else drawn)
    if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
        raise EnvironmentFailure(f"render gave {frame.dtype} {frame.shape}, expected uint8 (height, width, 3)")
    return frame.copy()


def enlarged(image: NDArray[np.uint8]) -> Frame:
    """A small image u8[H, W, C] of one channel or three, each pixel drawn as a square."""
    side = max(1, _SHOWN_PIXELS // len(image))
    large = image.repeat(side, axis=0).repeat(side, axis=1)
    return np.broadcast_to(large, (*large.shape[:2], 3)).copy()
