"""What is wrong with bytes from Unity."""

from rl_tui.engine.errors import EnvironmentFailure


class WireError(EnvironmentFailure):
    """A player sent, or would be sent, what the protocol does not allow. The message names the behavior or the side
    channel, what was found, and what must be there."""
