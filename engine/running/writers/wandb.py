"""Weights & Biases: one of its runs for each run, also if it is resumed."""

from __future__ import annotations

import os
import secrets
from typing import Any

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.process.files import open_regular
from rl_tui.engine.running.writers.base import WriterContext
from rl_tui.engine.running.writers.settings import WandbSettings
from rl_tui.engine.running.writers.tensorboard import histograms_of
from rl_tui.engine.running.writers.tracking import PROJECT, earlier_id, keep_id, numbers_of, text_of, with_line
from rl_tui.engine.session.messages import Envelope, MetricsReported, RunStateChanged
from rl_tui.engine.storage.file_names import RUN_LOGS

INIT_SECONDS = 30.0  # a server that takes longer to answer is not there
UPLOAD_SECONDS = 15.0  # at the end; what is left can be uploaded with `wandb sync`
NOT_LOGGED_IN = (
    "Weights & Biases does not know who you are: run `wandb login`, or set WANDB_API_KEY, or record the run without"
    " uploading it, with writers.wandb.mode: offline"
)


class WandbWriter:
    """Records metrics by behavior, each against its own steps. Notes, checkpoints and the like are in the run's notes.

    Nothing is asked for on the terminal. Files are in `wandb/` of the run's folder; uploading is done by the library's
    own process.
    """

    def __init__(self, settings: WandbSettings, context: WriterContext):
        import wandb

        self._wandb = wandb
        self._behaviors: set[str] = set()
        self._exit_code = 0
        try:
            self._require_login(settings)
            self._run = self._start(settings, context)
        except BaseException:
            self._tear_down()
            raise
        self._notes_file = context.folder / RUN_LOGS / "wandb_notes"  # offline, earlier ones cannot be read back
        self._notes = self._run.notes or ""
        if context.resumed and self._notes_file.exists():
            with open(self._notes_file, encoding="utf-8", opener=open_regular) as file:
                self._notes = file.read()
        self._run.config.update(dict(context.configuration), allow_val_change=True)

    def write(self, envelope: Envelope) -> None:
        """Record the numbers and the line of an event that has some."""
        event = envelope.event
        if numbers := numbers_of(event):
            behavior = numbers.behavior.replace(".", "_")  # dots in the name of an axis would mean nested values
            values: dict[str, Any] = {f"{behavior}/{tag}": value for tag, value in numbers.values.items()}
            for tag, histogram in histograms_of(event).items() if isinstance(event, MetricsReported) else ():
                edges = [histogram.minimum, *histogram.limits]
                values[f"{behavior}/{tag}"] = self._wandb.Histogram(np_histogram=(list(histogram.counts), edges))
            self._run.log(values | {self._axis_of(behavior): numbers.step})
        if line := text_of(event):
            self._notes = self._run.notes = with_line(self._notes, line)
            with open(self._notes_file, "w", encoding="utf-8", opener=open_regular) as file:
                file.write(self._notes)
        if isinstance(event, RunStateChanged) and event.exit_code is not None:
            self._exit_code = event.exit_code

    def close(self) -> None:
        """Upload what is left, for a limited time, and end the library's process."""
        self._run.finish(exit_code=self._exit_code)
        self._tear_down()

    def _require_login(self, settings: WandbSettings) -> None:
        """Raise ConfigError where the library would ask for a key on the terminal."""
        self._wandb.setup(settings=self._wandb.Settings(silent=True))
        is_online = (settings.mode or os.environ.get("WANDB_MODE", "online")) == "online"
        if is_online and not self._wandb.login(prompt=False, verify=False):
            raise ConfigError(NOT_LOGGED_IN)

    def _start(self, settings: WandbSettings, context: WriterContext) -> Any:
        run_id = earlier_id(context, "wandb") or secrets.token_hex(4)
        run = self._wandb.init(
            entity=settings.entity,
            project=settings.project or os.environ.get("WANDB_PROJECT") or PROJECT,
            name=settings.name or context.run_id,
            group=settings.group,
            tags=settings.tags or None,
            dir=str(context.folder),
            id=run_id,
            resume="allow",
            reinit="create_new",  # the environment may have a run of its own
            settings=self._wandb.Settings(
                **({} if settings.mode is None else {"mode": settings.mode}),
                silent=True,
                console="off",
                init_timeout=INIT_SECONDS,
                finish_timeout=UPLOAD_SECONDS,
            ),
        )
        keep_id(context, "wandb", run_id)
        return run

    def _axis_of(self, behavior: str) -> str:
        """The name of the behavior's steps, against which its metrics are drawn."""
        step = f"{behavior}/step"
        if behavior not in self._behaviors:
            self._behaviors.add(behavior)
            self._run.define_metric(step, hidden=True)
            self._run.define_metric(f"{behavior}/*", step_metric=step)
        return step

    def _tear_down(self) -> None:
        """End the library's process now: at the end of the program, it would be waited for without a limit."""
        if self._wandb.run is None:
            self._wandb.teardown()
