"""How long tests wait for what must happen: nothing is measured by it, so that it is enough on the busiest machine."""

from __future__ import annotations

DEADLINE_SECONDS = 300.0  # for what takes seconds on an idle machine
