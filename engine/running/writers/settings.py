"""The settings of the writers that are built in."""

from __future__ import annotations

from typing import ClassVar

from rl_tui.engine.config.writers import WriterSettings


class TensorBoardSettings(WriterSettings):
    """TensorBoard's event files, in the folder of each behavior."""

    implementation: ClassVar[str] = "rl_tui.engine.running.writers.tensorboard:TensorBoardWriter"
