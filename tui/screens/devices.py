"""Every device by itself: how busy it has been, and the processes on it."""

from __future__ import annotations

from textual.app import ComposeResult

from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.device_blocks import DevicesList
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.context import Context


class DevicesScreen(RunScreen):
    """enter shows one device alone, over the whole run; esc all of them again."""

    BINDINGS = bindings("devices")
    places = ("devices",)

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(context, name)
        self.devices = DevicesList()

    def body(self) -> ComposeResult:
        """The blocks."""
        yield self.devices

    def action_open(self) -> None:
        """The device below the cursor alone, or all again."""
        chosen = self.devices.chosen()
        self.devices.alone = "" if self.devices.alone or chosen is None else chosen.key
        self.context.redraw()

    def action_back(self) -> None:
        """One step back."""
        if self.devices.alone:
            self.action_open()
        else:
            super().action_back()
