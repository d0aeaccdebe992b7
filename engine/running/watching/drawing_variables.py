"""The environment variables of a process in which an environment is drawn, for nothing but the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping


def drawing_variables() -> Mapping[str, str]:
    """Rendering needs no window and no sound; what the user has set comes first."""
    variables = {"SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
    return variables | ({"MUJOCO_GL": "egl"} if _has_no_display() else {})


def _has_no_display() -> bool:
    """Whether OpenGL must do without a display; MuJoCo does not detect it."""
    return sys.platform == "linux" and not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY")
