"""MLflow: one of its runs for each run, also if it is resumed."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from rl_tui.engine.running.writers.base import WriterContext
from rl_tui.engine.running.writers.settings import MlflowSettings
from rl_tui.engine.running.writers.tracking import PROJECT, earlier_id, keep_id, numbers_of, text_of, with_line
from rl_tui.engine.session.messages import Envelope, RunStateChanged
from rl_tui.engine.session.states import BAD_ENDS

DESCRIPTION = "mlflow.note.content"  # the tag that MLflow shows as the description of a run
DATABASE, ARTIFACTS = "mlflow.db", "mlflow-artifacts"  # in the results folder, so that all its runs stand side by side
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
        uri = settings.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
        results = context.folder.parent if uri is None else None
        with nullcontext() if results is None else _alone(results):
            self._client = MlflowClient(tracking_uri=uri if results is None else f"sqlite:///{results / DATABASE}")
            experiment = self._experiment(settings, results)
        run = self._resumed(context) or self._new(settings, context, experiment)
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

    def _experiment(self, settings: MlflowSettings, results: Path | None) -> str:
        """The id of the experiment, created where there is none. results: the folder of a local database."""
        name = settings.experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or PROJECT
        if found := self._client.get_experiment_by_name(name):
            return str(found.experiment_id)
        return str(self._client.create_experiment(name, None if results is None else (results / ARTIFACTS).as_uri()))

    def _new(self, settings: MlflowSettings, context: WriterContext, experiment: str) -> Any:
        run = self._client.create_run(experiment, run_name=settings.name or context.run_id)
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


@contextmanager
def _alone(results: Path) -> Iterator[None]:
    """No other process sets the database up meanwhile: MLflow's changes of its tables fail where two make them."""
    with (results / f"{DATABASE}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


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
