"""Every command but training. What a command needs is imported when it runs, as in `cli.py`."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.process.imports import imports_that_stay
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.command_line import command_arguments
from rl_tui.tui.command_line.alone import require_screen, show_alone
from rl_tui.tui.command_line.demonstrations import demonstrations
from rl_tui.tui.command_line.flag_parser import FlagParser, parse
from rl_tui.tui.command_line.games import parse_game, play_game
from rl_tui.tui.terminal.captured_output import CapturedOutput
from rl_tui.tui.terminal.streams import write_stderr, write_stdout

if TYPE_CHECKING:
    from rl_tui.engine.running.evaluation.saved_policy import Way
    from rl_tui.engine.session.log_position import LogPosition
    from rl_tui.engine.session.messages import Envelope

PROGRESS_SECONDS = 1.0  # from one line to the next
PRINTED_LINES = 5  # of the output of a checked environment: enough to see where it comes from


def print_schema(words: Sequence[str]) -> int:
    """The JSON Schema of the configuration is on stdout, and on stderr which plug-ins are not in it."""
    parser = FlagParser("rl-tui schema", description="Print the JSON Schema of the configuration.")
    parse(parser, words)
    import json

    from rl_tui.engine.config.schema import json_schema, left_out

    for line in left_out():
        write_stderr(line)
    write_stdout(json.dumps(json_schema(), indent=2) + "\n")
    return 0


def print_presets(words: Sequence[str]) -> int:
    """The list of presets, or the text of one, is on stdout."""
    parser = FlagParser("rl-tui presets", description="List the presets, or print one.")
    parser.add_argument("name", nargs="?", metavar="NAME", help="print this preset, e.g. ppo/CartPole")
    name: str | None = parse(parser, words).name
    from rl_tui.engine.config.presets import preset_names, read_preset, summarize_preset

    if name is not None:
        write_stdout(read_preset(name))
        return 0
    import textwrap

    summaries = [summarize_preset(preset) for preset in preset_names()]
    longest = max(len(summary.name) for summary in summaries)
    indent = " " * (longest + 19)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    for summary in summaries:
        text = f"{summary.name:{longest}}  {summary.steps:>9,} steps  {summary.words}"
        write_stdout("\n".join(textwrap.wrap(text, max(60, width), subsequent_indent=indent)) + "\n")
    return 0


def print_plugins(words: Sequence[str]) -> int:
    """The list of plug-ins is on stdout."""
    parser = FlagParser(
        "rl-tui plugins",
        description="List trainers, reward signals, encoders, environments and writers, built in and installed.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line and plug-in")
    is_json: bool = parse(parser, words).json
    from rl_tui.engine.config.plugins import list_plugins
    from rl_tui.tui.command_line.plugin_list import json_lines, paragraphs

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    plugins = list_plugins()
    write_stdout(json_lines(plugins) if is_json else paragraphs(plugins, width))
    return 0


def upgrade_config(arguments: command_arguments.UpgradeArguments) -> int:
    """OUT is IN in the current format, and stdout lists what was changed. Raises ConfigError."""
    from rl_tui.engine.config.legacy.upgrade import upgrade
    from rl_tui.engine.config.loading import read_file
    from rl_tui.engine.storage.disk import write_atomically

    target = Path(arguments.target)
    if os.path.lexists(target) and not arguments.is_forced:
        raise ConfigError(f"{target}: already exists; choose another name or use --force")
    if os.path.lexists(target) and not stat.S_ISREG(os.lstat(target).st_mode):
        raise ConfigError(f"{target}: must be a regular file to be replaced with --force")
    upgraded = upgrade(read_file(Path(arguments.source)), arguments.source)
    try:
        write_atomically(target, upgraded.content)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror or error}") from error
    kind = "in the current format" if upgraded.notes else f"a copy: {arguments.source} is in the current format already"
    for line in (*upgraded.notes, f"{target}: written, {kind}"):
        write_stdout(safe_text(line) + "\n")
    return 0


def evaluate(arguments: command_arguments.EvaluateArguments) -> int:
    """The returns of a run's policy are on stdout. Raises RlTuiError."""
    from rl_tui.engine.storage.archive import Archive

    path = Archive(Path(arguments.results_dir)).resolve(arguments.run)
    from rl_tui.engine.running.evaluation.video import require_recorder

    record = None if arguments.record is None else Path(arguments.record).absolute()
    if record is not None:
        require_recorder(record)
    with imports_that_stay():
        from rl_tui.engine.running.evaluation.saved_policy import EvaluationRequest, SavedRun, ignore_return_of_way
        from rl_tui.engine.running.runtime import limit_threads
    limit_threads()
    played = SavedRun(path.parent if path.is_file() else path).play(
        EvaluationRequest(
            behavior=arguments.behavior,
            episodes=arguments.episodes,
            checkpoint=arguments.checkpoint,
            seed=arguments.seed,
            ways=arguments.ways,
            is_onnx=arguments.is_onnx,
            record=record,
        ),
        Progress(arguments.episodes).on_return if arguments.shows_progress else ignore_return_of_way,
        lambda level, text: write_stderr(text) if level in ("warning", "error") else None,
    )
    for reason in played.skipped:
        write_stderr(f"a checkpoint was skipped: {reason}")
    head = f"{played.behavior} at step {played.step}, seed {arguments.seed}: {played.source}"
    write_stdout(safe_text(head) + "\n")
    write_stdout(f"{'':12}{''.join(f'{way:>12}' for way in played.scores)}\n")
    summaries = [scores.summary for scores in played.scores.values()]
    for name in summaries[0]:
        write_stdout(f"{name:12}{''.join(f'{summary[name]:12.6g}' for summary in summaries)}\n")
    if record is not None:
        write_stdout(safe_text(f"recorded    {record}") + "\n")
    return 0


class Progress:
    """The progress of an evaluation on stderr, about once a second."""

    def __init__(self, num_episodes: int) -> None:
        self._num_episodes = num_episodes
        self._way: Way | None = None
        self._count, self._mean = 0, 0.0
        self._printed_at = time.monotonic()

    def on_return(self, way: Way, total: float) -> None:
        """An episode ended with that return."""
        if way != self._way:
            self._way, self._count, self._mean = way, 0, 0.0
        self._count += 1
        self._mean += total / self._count - self._mean / self._count
        if time.monotonic() - self._printed_at >= PROGRESS_SECONDS:
            self._printed_at = time.monotonic()
            write_stderr(f"{self._count} of {self._num_episodes} {way} episodes, mean {self._mean:.6g} so far")


def check_environment(arguments: command_arguments.CheckArguments) -> int:
    """What is found about an environment is on stdout, and then the last lines that it printed on stderr.

    Raises RlTuiError if it cannot be used for training.
    """
    from rl_tui.engine.running.environment_check import check

    num_warnings, is_for_workers = 0, True
    copies, timeout = arguments.num_envs, arguments.timeout
    findings = check(
        arguments.env, arguments.kwargs, copies, arguments.steps, arguments.seed, timeout, arguments.wrappers
    )
    with CapturedOutput(num_shown=PRINTED_LINES) as output:
        for finding in findings:
            sign = "" if finding.kind == "about" else finding.kind
            num_warnings += finding.kind == "warning"
            is_for_workers &= finding.kind != "failed"
            write_stdout(safe_text(f"{sign:8} {finding.text}") + "\n", output.stdout)
        warned = "" if not num_warnings else f", with {num_warnings} warning{'s' if num_warnings > 1 else ''}"
        ready = "is ready for training" if is_for_workers else "can be trained in with num_workers: 0 only"
        write_stdout(safe_text(f"{arguments.env} {ready}{warned}") + "\n", output.stdout)
    return 0


def folder_of_runs(typed: str | None) -> str:
    """The folder that was typed, or the default. Raises ConfigError if it is not a folder."""
    if typed is not None and not os.path.isdir(typed):
        raise ConfigError(f"{typed}: no such folder")
    return typed or command_arguments.RESULTS_DIR


def browse_runs(arguments: command_arguments.RunsArguments) -> int:
    """The runs of a folder were shown. Raises ConfigError if there is no such folder."""
    require_screen("runs")
    from rl_tui.engine.storage.archive import Archive
    from rl_tui.tui.command_line.run_screen import ScreenSubject
    from rl_tui.tui.runs.browsing import NoRun

    folder = folder_of_runs(arguments.results_dir)
    subject = ScreenSubject(NoRun(), lambda: None, folder, runs=Archive(Path(folder)), opened="runs")
    return 1 if show_alone(subject, arguments.options) is None else 0


def list_runs(arguments: command_arguments.ListArguments) -> int:
    """The runs of a folder are on stdout. Raises ConfigError if the folder cannot be read."""
    from rl_tui.engine.storage.archive import Archive
    from rl_tui.tui.command_line.listing import json_lines, table

    folder = folder_of_runs(arguments.results_dir)
    runs = Archive(Path(folder)).runs()
    if arguments.is_json:
        from rl_tui.engine.storage.run_settings import settings_of_run  # imports pydantic, which takes long

        write_stdout(json_lines(runs, lambda path: settings_of_run(Path(path))))
        return 0
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    write_stdout(table(runs, folder, time.time(), width))
    return 0


def demo(arguments: command_arguments.DemoArguments) -> int:
    """A recorded run was shown as if it trained; returns the exit code that it would have."""
    require_screen("demo")
    from rl_tui.engine.running.threads import spawn
    from rl_tui.tui.command_line.run_screen import ScreenSubject
    from rl_tui.tui.demo.session import DemoSession

    session = DemoSession(arguments.speed)

    def start() -> None:
        spawn("demo", session.playback.main, session.bus, session.playback.crashed)

    subject = ScreenSubject(
        session,
        start,
        "demo",
        clock=session.clock,
        runs=session.recordings,
        notes=session.notes,
        saves_preferences=False,
        is_made_up=True,
    )
    show_alone(subject, arguments.options)
    return session.exit_code


def replay(arguments: command_arguments.ReplayArguments) -> int:
    """A recorded run was played, or a chart of it is on stdout. Raises ConfigError if there is none of that name."""
    if arguments.plot is not None:
        from rl_tui.tui.command_line.plot import plot  # imports numpy

        write_stdout(plot(arguments))
        return 0
    require_screen("replay")
    from rl_tui.engine.running.threads import spawn
    from rl_tui.engine.storage.archive import Archive
    from rl_tui.engine.storage.run_summary import summarize
    from rl_tui.tui.command_line.run_screen import ScreenSubject
    from rl_tui.tui.runs.playback import REFUSAL, Playback, start_speed

    archive, speed = Archive(Path(arguments.results_dir)), arguments.speed
    path = archive.resolve(arguments.run)
    if speed is None:
        summary = summarize(path if path.is_dir() else path.parent)
        speed = start_speed(summary.elapsed_seconds if summary is not None else None)

    def open_events(position: LogPosition) -> Iterator[Envelope | None]:
        return archive.follow(arguments.run, position)

    session = Playback(
        open_events,
        speed,
        lambda: archive.process(arguments.run),
        why_unwatchable=f"a replay has no policy; `rl-tui evaluate {arguments.run}` plays a saved one",
    )

    def start() -> None:
        spawn("replay", session.main, session.bus, session.crashed)

    subject = ScreenSubject(
        session,
        start,
        arguments.run,
        clock=lambda: session.live.view.now,
        runs=archive,
        player=session,
        refuses=REFUSAL,
        notes=session.notes,
    )
    return 1 if show_alone(subject, arguments.options) is None else 0


def attach(words: Sequence[str]) -> int:
    """The screen of a run that trains in another process."""
    from rl_tui.tui.command_line.attach import attach

    return attach(words)


def ctl(words: Sequence[str]) -> int:
    """What a script asks of one."""
    from rl_tui.tui.command_line.ctl import ctl

    return ctl(words)


def arena(words: Sequence[str]) -> int:
    """Saved policies that play against each other."""
    from rl_tui.tui.command_line.arena import arena

    return arena(words)


COMMANDS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "schema": print_schema,
    "presets": print_presets,
    "plugins": print_plugins,
    "evaluate": lambda words: evaluate(command_arguments.parse_evaluate(words)),
    "arena": arena,
    "check-env": lambda words: check_environment(command_arguments.parse_check(words)),
    "upgrade-config": lambda words: upgrade_config(command_arguments.parse_upgrade(words)),
    "demonstrations": demonstrations,
    "play": lambda words: play_game(parse_game(words)),
    "ls": lambda words: list_runs(command_arguments.parse_ls(words)),
    "runs": lambda words: browse_runs(command_arguments.parse_runs(words)),
    "attach": attach,
    "ctl": ctl,
    "demo": lambda words: demo(command_arguments.parse_demo(words)),
    "replay": lambda words: replay(command_arguments.parse_replay(words)),
}


def calls_environments(words: Sequence[str]) -> bool:
    """Whether a command calls environments in this process, whatever these do to it."""
    return words[0] in ("evaluate", "arena", "check-env") or list(words[:2]) == ["demonstrations", "record"]
