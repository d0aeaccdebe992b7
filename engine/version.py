"""The version of this program, in the one place that packaging, `--version` and saved files read it from."""

from __future__ import annotations

VERSION = "0.1.0"
