"""MLflow: one of its runs for each run, also if it is resumed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rl_tui.engine.running.writers.base import WriterContext
from rl_tui.engine.running.writers.settings import MlflowSettings
from rl_tui.engine.running.writers.tracking import PROJECT, earlier_id, keep_id, numbers_of, text_of, with_line
from rl_tui.engine.session.messages import Envelope, RunStateChanged
from rl_tui.engine.session.states import BAD_ENDS

DESCRIPTION = "mlflow.note.content"  # the tag that MLflow shows as the description of a run
BATCH = 100  # parameters in one request, MLflow's limit
LONGEST_VALUE = 500  # characters of a parameter that every version accepts
_FORBIDDEN = re.compile(r"[^\w./: -]", re.ASCII)  # in the names of metrics and parameters


class MlflowWriter:
    """Records metrics by behavior, and the configuration as parameters. Notes, checkpoints and the like are lines of
    the run's description.

    Parameters cannot be changed: what a resumed run has other settings for is a tag of the parameter's name.
    """

    def __init__(self, settings: MlflowSettings, context: WriterContext):
        from mlflow.entities import Metric, Param, RunTag
        from mlflow.tracking import MlflowClient

        self._metric, self._param, self._tag = Metric, Param, RunTag
        local = f"sqlite:///{context.folder / 'mlflow.db'}"
        uri = settings.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or local
        self._client = MlflowClient(tracking_uri=uri)
        run = self._resumed(context) or self._new(settings, context, is_local=uri == local)
        self._id = run.info.run_id
        self._text = run.data.tags.get(DESCRIPTION, "")
        self._status = "FINISHED"
        self._write_configuration(run.data.params, context.configuration)
        for key, value in settings.tags.items():
            self._client.set_tag(self._id, key, value)

    def write(self, envelope: Envelope) -> None:
        """Record the numbers and the line of an event that has some."""
        event = envelope.event
        if numbers := numbers_of(event):
            now = int(envelope.time * 1000)
            named = {_name(f"{numbers.behavior}/{tag}"): value for tag, value in numbers.values.items()}
            metrics = [self._metric(name, value, now, numbers.step) for name, value in named.items()]
            self._client.log_batch(self._id, metrics=metrics)
        if line := text_of(event):
            self._text = with_line(self._text, line)
            self._client.set_tag(self._id, DESCRIPTION, self._text)
        if isinstance(event, RunStateChanged) and event.exit_code is not None:
            self._status = "FAILED" if event.state in BAD_ENDS else "KILLED" if event.exit_code else "FINISHED"

    def close(self) -> None:
        """The run has ended in MLflow, too."""
        self._client.set_terminated(self._id, self._status)

    def _resumed(self, context: WriterContext) -> Any:
        """The run of an earlier process, if it is still there."""
        from mlflow.exceptions import MlflowException

        run_id = earlier_id(context, "mlflow")
        if run_id is None:
            return None
        try:
            self._client.update_run(run_id, status="RUNNING")
            return self._client.get_run(run_id)
        except MlflowException as error:
            context.log("warning", f"run {run_id} cannot be continued, a new one is recorded: {error}")
            return None

    def _new(self, settings: MlflowSettings, context: WriterContext, is_local: bool) -> Any:
        name = settings.experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or PROJECT
        artifacts = (context.folder / "mlflow").as_uri() if is_local else None
        experiment = self._client.get_experiment_by_name(name)
        found = experiment.experiment_id if experiment else self._client.create_experiment(name, artifacts)
        run = self._client.create_run(found, run_name=settings.name or context.run_id)
        keep_id(context, "mlflow", run.info.run_id)
        return run

    def _write_configuration(self, known: Mapping[str, str], configuration: Mapping[str, Any]) -> None:
        values = {_name(path): value[:LONGEST_VALUE] for path, value in _flat(configuration)}
        added = [self._param(path, value) for path, value in values.items() if path not in known]
        changed = [self._tag(path, value) for path, value in values.items() if known.get(path, value) != value]
        for start in range(0, len(added), BATCH):
            self._client.log_batch(self._id, params=added[start : start + BATCH])
        for start in range(0, len(changed), BATCH):
            self._client.log_batch(self._id, tags=changed[start : start + BATCH])


def _flat(section: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Every value as text, by its dotted path."""
    for key, value in section.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value if isinstance(value, str) else json.dumps(value)


def _name(text: str) -> str:
    """The text as MLflow accepts it."""
    return _FORBIDDEN.sub("_", text)
