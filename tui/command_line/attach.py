"""`rl-tui attach`: the screen of a run that trains in another process."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from pathlib import Path

from rl_tui.engine.errors import AttachError, ConfigError, RlTuiError
from rl_tui.engine.remote.client import ANSWER_SECONDS, RemoteSession, attach_to
from rl_tui.engine.remote.greeting import Wanted
from rl_tui.engine.running.threads import spawn
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.storage.archive import Archive
from rl_tui.engine.storage.run_summary import summarize
from rl_tui.tui.command_line.alone import require_screen, show_alone
from rl_tui.tui.command_line.command_arguments import FOLDER_TEXT, RESULTS_DIR
from rl_tui.tui.command_line.departure import way_back
from rl_tui.tui.command_line.flag_parser import FlagParser, parse
from rl_tui.tui.command_line.train_arguments import add_screen_flags, screen_options
from rl_tui.tui.terminal.naming import screen_name
from rl_tui.tui.terminal.relaunch import shell_command
from rl_tui.tui.terminal.streams import write_stdout

FAILED_CODE = 1


def attach(words: Sequence[str]) -> int:
    """The screen was shown, and left; the run trains on, unless the user has ended it."""
    parser = FlagParser(
        "rl-tui attach",
        description="Show the screen of a run that trains in another process. q leaves it, and the run trains on;"
        " ctrl+c asks whether to stop the run.",
        argument_default=argparse.SUPPRESS,
    )
    text = "id or folder of the run (default: the only one that trains)"
    parser.add_argument("run", nargs="?", default=None, metavar="RUN", help=text)
    parser.add_argument("--results-dir", default=RESULTS_DIR, metavar="DIR", help=FOLDER_TEXT)
    add_screen_flags(parser)
    typed = parse(parser, words)
    options = screen_options(vars(typed))
    require_screen("attach")
    from rl_tui.tui.command_line.run_screen import ScreenSubject
    from rl_tui.tui.panes.meanwhile import meanwhile

    path, screen = folder_of(Archive(Path(typed.results_dir)), typed.run), screen_name()
    session, runs = session_of(path, name=screen), Archive(path.parent)

    def start() -> None:
        spawn("attached", session.main, session.bus, session.crashed)

    subject = ScreenSubject(
        session,
        start,
        path.name,
        runs=runs,
        detaches=True,
        screen_name=screen,
        said=meanwhile(session.live.view),
    )
    reason = show_alone(subject, options)
    view = session.live.view
    session.close()
    if reason == "detached":
        write_stdout(way_back(path))
    elif view.is_over:
        why = f" ({view.reason})" if view.reason else ""
        write_stdout(safe_text(f"{path.name}: {view.state}{why}, files in {path}") + "\n")
        if view.state != "finished":
            with contextlib.suppress(RlTuiError):  # of what it would refuse
                write_stdout(f"resume with: {shell_command(runs.resume_command(path.name))}\n")
    return FAILED_CODE if reason is None else 0


def session_of(path: Path, wants: Wanted = "view", name: str = "", seconds: float = ANSWER_SECONDS) -> RemoteSession:
    """That of the run in this folder. Raises AttachError; of a run that no process trains with how to resume it."""
    runs = Archive(path.parent)
    run = summarize(path)
    if run is not None and not run.is_alive:
        how = f"{path}: no process trains it now, it is {run.state}"
        with contextlib.suppress(RlTuiError):  # of what it would refuse
            resume = shell_command(runs.resume_command(path.name))
            how += f"; resume it with: {resume}" if run.state != "finished" else ""
        raise AttachError(how)
    return attach_to(path, wants, name, seconds)


def folder_of(archive: Archive, name: str | None) -> Path:
    """That of the run of this name, or of the only one that trains. Raises ConfigError, AttachError."""
    if name is not None:
        path = archive.resolve(name)
        return path if path.is_dir() else path.parent
    alive = [run for run in archive.runs() if run.is_alive]
    if not alive:
        raise AttachError(f"no run trains in {archive.results_dir}; RUN may also be its folder elsewhere")
    if len(alive) > 1:
        raise ConfigError(f"several runs train: name one of {', '.join(run.run_id for run in alive)}")
    return Path(alive[0].path)
