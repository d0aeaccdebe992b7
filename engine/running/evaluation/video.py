"""A video of an environment, written as it is played."""

from __future__ import annotations

import importlib.util
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.process.installation import command_for_extra
from rl_tui.engine.sampling.environments.base import Environment, Rendered
from rl_tui.engine.specs import Steps
from rl_tui.engine.storage.disk import UNFINISHED

FORMATS = (".gif", ".mp4")
STEPS = 300  # of whole episodes, at least: ten seconds
STEPS_HZ = 30
GIF_STEPS = 2  # a frame for so many: a GIF is large, and slow to make


class VideoRecorder:
    """Records the episodes of an environment's first agent in a file that appears when the recorder is closed.

    Used as a context: left by an error, it leaves no file. Raises ConfigError when nothing can be recorded.
    """

    def __init__(self, path: Path, environment: Environment):
        """environment: instance 0 of the pool that plays. path: ends in one of FORMATS."""
        if not isinstance(environment, Rendered):
            raise ConfigError(f"--record {path}: this environment shows no frames")
        self._path = path
        self._unfinished = path.with_name(UNFINISHED + path.name)
        self._environment = environment
        self._writer: Any = None  # imageio's
        self._agent: int | None = None
        self._num_steps = 0
        self._is_over = False

    def add(self, instance: int, steps: Steps | None) -> None:
        """Add a frame, from the first steps until there are enough episodes of the first agent."""
        if steps is None or instance or self._is_over:
            return
        if self._agent is None:
            self._agent = int(steps.decisions.agent_ids[0])
        has_ended = steps.terminals is not None and self._agent in steps.terminals.agent_ids
        if has_ended and self._num_steps >= STEPS:
            self._is_over = True
        elif _format(self._path) == ".mp4" or self._num_steps % GIF_STEPS == 0:
            self._write(self._environment.render())
        self._num_steps += 1

    def _write(self, frame: NDArray[np.uint8] | str | None) -> None:
        if frame is None or isinstance(frame, str):
            raise ConfigError(f"--record {self._path}: this environment shows no frames")
        height, width = frame.shape[0] // 2 * 2, frame.shape[1] // 2 * 2  # the codec halves the resolution of colors
        try:
            self._writer.append_data(frame[:height, :width])
        except OSError as error:
            raise self._refused(error) from error

    def __enter__(self) -> VideoRecorder:
        import imageio.v2 as imageio

        options: dict[str, Any] = {"fps": STEPS_HZ, "macro_block_size": 2}
        if _format(self._path) == ".gif":
            options = {"duration": 1000 * GIF_STEPS / STEPS_HZ, "loop": 0}
        try:
            self._writer = imageio.get_writer(self._unfinished, mode="I", **options)
        except OSError as error:
            raise self._refused(error) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._writer.close()
            if error is None:
                os.replace(self._unfinished, self._path)
        except OSError as refusal:
            raise self._refused(refusal) from refusal
        finally:
            with suppress(OSError):
                self._unfinished.unlink(missing_ok=True)

    def _refused(self, error: OSError) -> ConfigError:
        return ConfigError(f"--record {self._path}: cannot be written ({error.strerror or error})")


def require_recorder(path: Path) -> None:
    """A file of that name can be recorded here. Raises ConfigError."""
    if _format(path) not in FORMATS:
        raise ConfigError(f"--record: must end in {' or '.join(FORMATS)}, got {path}")
    needed = ("imageio", "imageio_ffmpeg") if _format(path) == ".mp4" else ("imageio",)
    missing = [package for package in needed if importlib.util.find_spec(package) is None]
    if missing:
        raise ConfigError(
            f"--record {path}: {missing[0]} is not installed. Install it with: {command_for_extra('record')}"
        )


def _format(path: Path) -> str:
    return path.suffix.lower()
