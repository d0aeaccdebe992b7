"""Groups of runs of one configuration: their settings differ only in the seed and the run's folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rl_tui.engine.errors import RlTuiError
from rl_tui.tui.runs.configurations import KeyPath, Settings, read_settings
from rl_tui.tui.runs.sources import Runs

if TYPE_CHECKING:
    from rl_tui.engine.session.summaries import RunSummary

SEED: KeyPath = ("env_settings", "seed")
# Settings of the folder, the start and the log of a run, which do not change what it learns.
NOT_OF_A_GROUP: frozenset[KeyPath] = frozenset(
    {
        SEED,
        ("env_settings", "base_port"),
        *(("checkpoint_settings", name) for name in ("run_id", "results_dir", "resume", "resume_or_start", "force")),
        *(("checkpoint_settings", name) for name in ("load_model", "train_model")),  # of older versions
        ("debug",),
    }
)


def group_key(configuration: str) -> str:
    """The same for two configurations that differ only in NOT_OF_A_GROUP. Raises ValueError if it is not YAML."""
    return key_of_settings(read_settings(configuration))


def key_of_settings(settings: Settings) -> str:
    """As `group_key`, of settings that were read already."""
    kept = sorted((path, value) for path, value in settings.items() if path not in NOT_OF_A_GROUP)
    return "=" + hashlib.sha256(repr(kept).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class GroupReader:
    """Reads configurations, each once until it changes. Used by one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}  # the key by the configuration's text

    def of(self, found: Sequence[RunSummary], runs: Runs) -> dict[str, str]:
        """The group of each run by its id; runs whose configuration cannot be read have none."""
        before, self._known, groups = self._known, {}, {}
        for run in found:
            try:
                text = runs.configuration(run.run_id)
                self._known[text] = before[text] if text in before else group_key(text)
            except (RlTuiError, ValueError):
                continue
            groups[run.run_id] = self._known[text]
        return groups
