"""What each event says, in one sentence: for the log of a screen, the lines of a console, and alerts."""

from __future__ import annotations

from typing import NamedTuple

from rl_tui.engine.session.environment_view import bare_reason, named_reason, worker_word
from rl_tui.engine.session.group_tags import GROUP_RETURN
from rl_tui.engine.session.league_view import RATING
from rl_tui.engine.session.messages import (
    DELTAS,
    AddNote,
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointRemoved,
    CheckpointSaved,
    Command,
    CommandAsked,
    CommandFinished,
    ControllerChanged,
    EnvironmentAwaits,
    EnvironmentFailed,
    EnvironmentRestarted,
    EnvironmentRestarting,
    EpisodesFinished,
    EvaluationReported,
    Event,
    ExportFailed,
    HyperparameterChanged,
    LessonChanged,
    LogEmitted,
    LogLevel,
    MetricsReported,
    NoteAdded,
    PolicyExported,
    RunStarted,
    RunStateChanged,
    SetHyperparameter,
    SetLesson,
    Stop,
    WarningCleared,
    WarningRaised,
    WorkerFailed,
)
from rl_tui.engine.session.states import BAD_ENDS
from rl_tui.engine.session.text import counted, safe_text

LOSSES = "Losses/"  # tags of these begin with it
_SILENT = (*DELTAS, EpisodesFinished)  # most events are one of these
COMMAND_WORDS = {  # what a user calls a command, by its class
    "Pause": "pause",
    "Resume": "resume",
    "SaveCheckpoint": "checkpoint",
    "ExportPolicy": "export",
    "Stop": "stop",
    "SetHyperparameter": "change",
    "RollBack": "roll back",
    "SetLesson": "lesson",
    "AddNote": "note",
}


class Sentence(NamedTuple):
    """What an event says. kind: a short word such as "CKPT", "" for what the log of a screen leaves out. source: the
    behaviors or the part that it is about, "" for the run. details: further lines (a traceback), or "".

    opening: what a whole line begins with, where that is not the source. step: of the behavior, where the sentence is
    about a checkpoint or an export.
    """

    level: LogLevel
    kind: str
    source: str
    text: str
    details: str = ""
    opening: str | None = None
    step: int | None = None

    @property
    def line(self) -> str:
        """The whole sentence where nothing else says what it is about; without its details."""
        if self.opening is not None:
            return self.opening + self.text
        return f"{self.source}: {self.text}" if self.source else self.text


def sentence_of(event: Event) -> Sentence | None:
    """The sentence of an event that needs no earlier one to be described; None for any other."""
    if isinstance(event, _SILENT):
        return None
    groups = _of_run, _of_user, _of_environment, _of_behavior, _of_measurement, _of_file
    return next((said for group in groups if (said := group(event)) is not None), None)


def summary(event: MetricsReported, *, learns_offline: bool = False) -> Sentence:
    """The summary in ML-Agents' words; of a behavior that learns without acting, its losses."""
    parts = [event.behavior, f"Step: {event.step}", f"Time Elapsed: {event.elapsed_seconds:0.3f} s"]
    if learns_offline:
        losses = {tag.removeprefix(LOSSES): loss for tag, loss in event.metrics.items() if tag.startswith(LOSSES)}
        parts += [f"{name}: {loss:.4g}" for name, loss in losses.items()]
    elif event.mean_return is None:
        parts.append("No episode was completed since last summary")
    else:
        parts.append(f"Mean Reward: {event.mean_return:0.3f}")
        parts.append(f"Std of Reward: {event.std_return or 0.0:0.3f}")
    parts += [f"Mean Group Reward: {event.metrics[GROUP_RETURN]:0.3f}"] if GROUP_RETURN in event.metrics else []
    parts.append("Training" if event.is_training else "Not Training")
    parts += [f"ELO: {event.metrics[RATING]:0.3f}"] if RATING in event.metrics else []
    return Sentence("info", "", event.behavior, ". ".join(parts) + ".", opening="")


def label_of(command: Command) -> str:
    """What a user calls the command: "checkpoint Walker"."""
    words = COMMAND_WORDS[type(command).__name__]
    match command:
        case AddNote() | Stop():
            return words
        case SetLesson():
            return f"{words} {command.lesson} of {safe_text(command.parameter)}"
        case SetHyperparameter():
            words = f"{words} {safe_text(command.name)} of"
    return f"{words} {safe_text(command.behavior) if command.behavior else 'all'}"


def command_finished(event: CommandFinished, name: str, behavior: str | None) -> Sentence:
    """The outcome of the command of that class, of one behavior or of the run."""
    outcome = "done" if event.ok else "failed"
    text = f"{COMMAND_WORDS.get(name, name)} {outcome}{_because(event.message)}"
    return Sentence("info" if event.ok else "error", "KEY", behavior or "", text)


def warning_cleared(event: WarningCleared, message: str) -> Sentence:
    """message: of the warning when it was raised."""
    return Sentence("info", "CLEAR", event.behavior, f"cleared: {message}")


def _of_run(event: Event) -> Sentence | None:
    match event:
        case RunStarted(run_id=name):
            verb = "resumed" if event.resumed else "started"
            versions = ", ".join(f"{library} {version}" for library, version in event.versions.items())
            text = f"{verb} in {event.path} (seed {event.seed}, {event.device}{versions and f'; {versions}'})"
            return Sentence("info", "RUN", name, text, opening=f"Run {name} ")
        case RunStateChanged(state=state):
            ending = "" if event.exit_code is None else f" (exit code {event.exit_code})"
            text = f"{state}{_because(event.reason)}{ending}"
            return Sentence("error" if state in BAD_ENDS else "info", "RUN", "", text, opening="Run ")
        case LogEmitted(level=level):
            return Sentence(level, level.upper(), event.source, event.message)
        case WarningRaised(behavior=name):
            return Sentence("warning", "WARN", name, f"{event.message}{'; ' if event.advice else ''}{event.advice}")
        case WorkerFailed():
            return Sentence("error", "BUG", event.worker, f"failed: {event.error}", event.traceback)
    return None


def _of_user(event: Event) -> Sentence | None:
    match event:
        case CommandAsked(behavior=name):
            return Sentence("info", "", name or "", f"{COMMAND_WORDS.get(event.name, event.name)} requested")
        case ControllerChanged(screen=screen):
            text = f"{safe_text(screen)} controls the run" if screen else "no screen shows the run"
            return Sentence("debug", "SCREEN", "", text)
        case NoteAdded(behavior=name):
            return Sentence("info", "NOTE", name or "", event.text, opening=f"Note{f' on {name}' if name else ''}: ")
    return None


def _of_environment(event: Event) -> Sentence | None:
    match event:
        case EnvironmentFailed():
            behaviors = ", ".join(event.behaviors)
            opening = f"Environment failed{', ending ' if behaviors else ''}{behaviors}: "
            return Sentence("error", "ENV", behaviors, named_reason(event), event.detail, opening)
        case EnvironmentRestarting(environment=name):
            text = f"{worker_word(name)} {event.worker}, restart {event.count}: {bare_reason(event)}"
            return Sentence("warning", "ENV", ", ".join(event.behaviors), text, event.detail, f"Environment {name}: ")
        case EnvironmentRestarted(environment=name):
            text = f"{worker_word(name)} {event.worker} acts again after {event.seconds:.1f} s"
            return Sentence("info", "ENV", "", text, opening=f"Environment {name}: ")
        case EnvironmentAwaits(environment=name) if event.text:
            return Sentence("info", "ENV", "", f"{name}: {event.text}", opening="Environment ")
    return None


def _of_behavior(event: Event) -> Sentence | None:
    match event:
        case BehaviorStarted(behavior=name):
            steps = f" from step {event.step} of {event.max_steps}" if event.max_steps else ", inference only"
            counts = f"{counted(event.num_agents, 'agent')}, {counted(event.num_parameters, 'parameter')}"
            threads = "threaded" if event.threaded else "not threaded"
            return Sentence("info", "", name, f"{event.algorithm} on {event.environment}{steps}, {counts}, {threads}")
        case BehaviorStateChanged(behavior=name, state=state):
            level: LogLevel = "error" if state in BAD_ENDS else "info"
            return Sentence(level, "STATE", name, f"{state}{_because(event.reason)}")
        case HyperparameterChanged(behavior=name):
            change = f"{event.name} {event.old:.6g} -> {event.new:.6g}"
            return Sentence("info", "SET", name, f"{change} from step {event.step}")
        case BehaviorRolledBack(behavior=name):
            text = f"rolled back from step {event.from_step} to step {event.step}: {event.path}"
            return Sentence("warning", "BACK", name, text)
        case LessonChanged(behavior=name):
            lesson = f"lesson {event.lesson} of {event.num_lessons}{f' ({event.name})' if event.name else ''}"
            return Sentence("info", "LESSON", name, f"{event.parameter}: {lesson} from step {event.step}")
    return None


def _of_measurement(event: Event) -> Sentence | None:
    match event:
        case MetricsReported():
            return summary(event)
        case EvaluationReported(behavior=name):
            scores = f"return {_short(event.mean_return)} sd {_short(event.std_return)}"
            scores += f", length {_short(event.mean_length)}, {counted(event.episodes, 'episode')}"
            if event.has_opponent:
                scores += f": {event.won} won, {event.drawn} drawn, {event.lost} lost"
            return Sentence("info", "EVAL", name, f"step {event.step} evaluated: {scores} in {event.seconds:.1f} s")
    return None


def _of_file(event: Event) -> Sentence | None:
    match event:
        case CheckpointSaved(behavior=name, step=step):
            worth = f"{_worth(event)}{', best' if event.is_best else ''}"
            text = f"step {step} saved{_unless_due(event)}{worth}: {event.path}"
            return Sentence("info", "CKPT", name, text, step=step)
        case CheckpointFailed(behavior=name, step=step):
            return Sentence("error", "CKPT", name, f"step {step} not saved{_unless_due(event)}: {event.message}")
        case CheckpointRemoved(behavior=name, step=step):
            return Sentence("info", "", name, f"checkpoint of step {step} removed: {event.path}")
        case PolicyExported(behavior=name, step=step):
            text = f"step {step} exported (max difference {event.max_difference:.1e}): {event.path}"
            return Sentence("info", "ONNX", name, text, step=step)
        case ExportFailed(behavior=name, step=step):
            return Sentence("error", "ONNX", name, f"step {step} not exported: {event.message}")
    return None


def _because(reason: str) -> str:
    """The reason behind a statement, "" for none."""
    return f": {reason}" if reason else ""


def _unless_due(save: CheckpointSaved | CheckpointFailed) -> str:
    """Why it was saved, unless that was due at its step."""
    return "" if save.reason == "interval" else f" ({save.reason})"


def _worth(saved: CheckpointSaved) -> str:
    """What ranks it, where that is known."""
    if saved.mean_return is not None:
        return f", return {_short(saved.mean_return)}"
    return "" if saved.held_out_loss is None else f", held-out loss {_short(saved.held_out_loss)}"


def _short(value: float) -> str:
    return f"{value:{'.1f' if abs(value) >= 10 else '.3f'}}"
