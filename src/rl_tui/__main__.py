"""`python -m rl_tui` is `rl-tui`."""

from __future__ import annotations

import sys

from rl_tui.tui.cli import main

if __name__ == "__main__":
    sys.exit(main())
