"""`rl-tui ctl`: what scripts and schedulers ask of a run that trains in another process."""

from __future__ import annotations

import argparse
import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rl_tui.engine.errors import AttachError, ConfigError
from rl_tui.engine.remote.client import ANSWER_SECONDS, NoAnswerError, RemoteSession
from rl_tui.engine.remote.greeting import Wanted
from rl_tui.engine.running.threads import spawn
from rl_tui.engine.session.messages import (
    AddNote,
    Command,
    ExportPolicy,
    Pause,
    Resume,
    RollBack,
    SaveCheckpoint,
    SetHyperparameter,
    SetLesson,
    Stop,
)
from rl_tui.engine.session.sentences import label_of
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.archive import Archive
from rl_tui.tui.command_line.attach import folder_of, session_of
from rl_tui.tui.command_line.command_arguments import FOLDER_TEXT, RESULTS_DIR
from rl_tui.tui.command_line.flag_parser import FlagParser, parse
from rl_tui.tui.command_line.train_arguments import number
from rl_tui.tui.terminal.streams import write_stderr, write_stdout

REFUSED_CODE, TIMEOUT_CODE = 1, 124
LOOK_SECONDS = 0.5  # from one look whether the process is still there to the next
STATUS = "status"
EPILOG = """\
actions:
  pause, resume           of one behavior, or of all
  checkpoint, export      of one behavior, or of each
  set NAME VALUE          a hyperparameter, from the next update on
  roll-back STEP          continue from the checkpoint of that step
  lesson PARAMETER N      let an environment parameter go to that lesson, counted from 1
  note TEXT               write a note, which charts mark
  stop                    save everything and end; --now does not save
  status                  print what it does, and change nothing

exit codes:
  0 carried out; 1 refused or failed; 2 the command line; 8 no process trains the run, or it cannot be reached;
  124 no outcome within --timeout, though the run may still carry it out"""


class Action(NamedTuple):
    """make: the command, of what was typed and the run's view. values: the names of what follows the action.
    needs_view: the view is empty without."""

    make: Callable[[argparse.Namespace, RunView], Command]
    values: tuple[str, ...] = ()
    needs_view: bool = False


def _set(typed: argparse.Namespace, view: RunView) -> Command:
    name, value = typed.values
    return SetHyperparameter(_behavior(typed, view), name, _number(value))


def _roll_back(typed: argparse.Namespace, view: RunView) -> Command:
    name, (step,) = _behavior(typed, view), typed.values
    checkpoints = view.behaviors[name].checkpoints if name in view.behaviors else []
    paths = {str(saved.step): saved.path for _, saved in checkpoints}
    if step not in paths:
        raise ConfigError(f"STEP: must be that of a checkpoint of {name} ({', '.join(paths) or 'none'}), got {step}")
    return RollBack(name, paths[step])


ACTIONS: Mapping[str, Action] = {
    "pause": Action(lambda typed, _: Pause(typed.behavior)),
    "resume": Action(lambda typed, _: Resume(typed.behavior)),
    "checkpoint": Action(lambda typed, _: SaveCheckpoint(typed.behavior)),
    "export": Action(lambda typed, _: ExportPolicy(typed.behavior)),
    "set": Action(_set, ("NAME", "VALUE"), needs_view=True),
    "roll-back": Action(_roll_back, ("STEP",), needs_view=True),
    "lesson": Action(lambda typed, _: SetLesson(typed.values[0], int(_number(typed.values[1]))), ("PARAMETER", "N")),
    "note": Action(lambda typed, _: AddNote(typed.values[0], typed.behavior), ("TEXT",)),
    "stop": Action(lambda typed, _: Stop("now" if typed.now else "checkpoint")),
}


def ctl(words: Sequence[str]) -> int:
    """The run was asked, and its answer is printed. EPILOG has the exit codes."""
    typed = _parse(words)
    path = folder_of(Archive(Path(typed.results_dir)), typed.run)
    action = ACTIONS.get(typed.action)
    wants: Wanted = "view" if action is None or action.needs_view else "outcomes"
    try:
        session = session_of(path, wants, seconds=min(typed.timeout, ANSWER_SECONDS))
    except NoAnswerError as error:
        if typed.timeout >= ANSWER_SECONDS:
            raise
        write_stderr(str(error))
        return TIMEOUT_CODE
    try:
        if action is None:
            write_stdout(_status(path, session.live.view, is_json=typed.json))
            return 0
        return _ask(session, action.make(typed, session.live.view), typed)
    finally:
        session.close()


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = FlagParser(
        "rl-tui ctl",
        description="Ask something of a run that trains in another process, and wait for the outcome.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", metavar="RUN", help="id or folder of the run")
    parser.add_argument("action", choices=[*ACTIONS, STATUS], metavar="ACTION", help="see below")
    parser.add_argument("values", nargs="*", default=[], metavar="VALUE", help="see below")
    parser.add_argument("--results-dir", default=RESULTS_DIR, metavar="DIR", help=FOLDER_TEXT)
    parser.add_argument("--behavior", metavar="NAME", help="which behavior, if the run has several")
    parser.add_argument("--now", action="store_true", help="with stop: what came after the last checkpoints is lost")
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the outcome")
    seconds = number("a number of seconds greater than 0", float, 0.001)
    parser.add_argument("--timeout", type=seconds, default=math.inf, metavar="SECONDS", help="wait no longer than that")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    typed = parse(parser, words)
    expected = ACTIONS[typed.action].values if typed.action in ACTIONS else ()
    if typed.action == "note" and typed.values:
        typed.values = [" ".join(typed.values)]
    if typed.now and typed.action != "stop":
        parser.error("--now: only with stop")
    if len(typed.values) != len(expected):
        wanted = " ".join(expected) or "nothing"
        parser.error(f"{typed.action}: must be followed by {wanted}, got {' '.join(typed.values) or 'nothing'}")
    return typed


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(f"VALUE: must be a number, got {text!r}") from error


def _behavior(typed: argparse.Namespace, view: RunView) -> str:
    names = list(view.behaviors)
    if typed.behavior is None and len(names) != 1:
        raise ConfigError(f"--behavior: must be one of {', '.join(names) or 'those that will appear'}")
    return str(typed.behavior or names[0])


def _ask(session: RemoteSession, command: Command, typed: argparse.Namespace) -> int:
    """Send it, and print its outcome. Raises AttachError where the process ends meanwhile."""
    woken = threading.Event()
    session.live.mail.on_news = woken.set
    spawn("attached", session.main, session.bus, session.crashed)
    session.send(command)
    deadline = time.monotonic() + (0.0 if typed.no_wait else typed.timeout)
    while (outcome := session.live.outcome(command.id)) is None:
        left = deadline - time.monotonic()
        if left <= 0:
            _say(command, None, "sent" if typed.no_wait else f"no outcome within {typed.timeout:g} s", typed.json)
            return 0 if typed.no_wait else TIMEOUT_CODE
        woken.wait(min(left, LOOK_SECONDS))
        woken.clear()
    if command.id in session.lost:
        raise AttachError(f"{typed.run}: its process ended before it answered")
    _say(command, outcome.ok, outcome.message, typed.json)
    return 0 if outcome.ok else REFUSED_CODE


def _say(command: Command, is_ok: bool | None, message: str, is_json: bool) -> None:
    """On stdout; what was refused on stderr, but as JSON. is_ok: None where that is not known."""
    if is_json:
        write_stdout(json.dumps({"command": label_of(command), "ok": is_ok, "message": message}) + "\n")
    elif is_ok is False:
        write_stderr(f"{label_of(command)}: {message}")
    else:
        write_stdout(safe_text(f"{label_of(command)}: {message}") + "\n")


def _status(path: Path, view: RunView, *, is_json: bool) -> str:
    """What the run does."""
    figures = {name: _figures(view, name) for name in view.behaviors}
    if is_json:
        whole = {"run_id": path.name, "path": str(path), "state": view.state, "behaviors": figures}
        return json.dumps(whole) + "\n"
    lines = [f"{path.name}: {view.state}, files in {path}"]
    for name, of in figures.items():
        words = [of["state"], f"step {of['step']:,} of {of['max_steps']:,}"]
        words += [f"elo {of['rating']:.0f}"] if of["rating"] is not None else []
        words += [f"mean return {of['mean_return']:.4g}"] if of["mean_return"] is not None else []
        words += [f"{of['steps_per_second']:,.0f} steps/s"] if of["steps_per_second"] else []
        words += [f"checkpoint of step {of['checkpoint']:,}"] if of["checkpoint"] is not None else []
        lines.append(f"  {name}: {', '.join(words)}")
    lines += [f"  {raised.behavior or 'run'}: {raised.message}" for _, raised in view.warnings.values()]
    return safe_text("\n".join(lines), multiline=True) + "\n"


def _figures(view: RunView, name: str) -> dict[str, Any]:
    behavior = view.behaviors[name]
    return {
        "state": behavior.state,
        "step": behavior.step,
        "max_steps": behavior.max_steps,
        "mean_return": behavior.mean_return,
        "rating": behavior.rating,
        "steps_per_second": behavior.steps_per_second,
        "checkpoint": behavior.checkpoints[-1][1].step if behavior.checkpoints else None,
    }
