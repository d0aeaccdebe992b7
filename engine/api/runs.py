"""Whole runs, as the command line trains them: in the background, or to their end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

from rl_tui.engine.api.progress import Progress, progress_of
from rl_tui.engine.api.run_handle import POLL_SECONDS, RunHandle, StartedRun
from rl_tui.engine.api.run_keywords import RunKeywords, argument_of, runnable_config
from rl_tui.engine.api.settings import SettingsLike
from rl_tui.engine.config.naming import naming
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.learning.train_step import TrainStepHook
from rl_tui.engine.process.interrupts import is_interrupt
from rl_tui.engine.running.hooks import Hooks, MilestoneHook, StopKinds, StopOn
from rl_tui.engine.running.preflight import require_startable
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.run_summary import summarize

REPEAT_SECONDS = 1.0  # a scheduler signals a job's script and what it started, and the script passes it on


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run that has ended well.

    returns: the mean return of each behavior's newest hundred episodes, or of its newest checkpoint where it had
    nothing left to train; None without any. view: the run's last state, with all curves.
    """

    path: Path
    exit_code: int
    returns: Mapping[str, float | None]
    view: RunView = field(repr=False)


def start(
    settings: SettingsLike,
    *,
    on_train_step: TrainStepHook | None = None,
    every: Mapping[int, MilestoneHook] | None = None,
    stop_on: StopKinds = (),
    attachable: bool = True,
    **keywords: Unpack[RunKeywords],
) -> RunHandle:
    """Start a run and return at once; it trains in threads of this process.

    settings: the path of a file, the name of a preset, the content of a file as a mapping, or a RunConfig.
    on_train_step: called after each gradient step. every: called at multiples of so many steps of a behavior. Both are
    called in the thread that learns, which waits for them; one that raises ends the run with everything saved. With a
    StopIteration, or one of the classes in stop_on, it ends well; the latter is `stopped_by`. attachable: whether
    `rl-tui attach`, `rl-tui ctl` and `rl_tui.attach` of the same user can show and control it meanwhile. Raises
    RlTuiError where the configuration is wrong or the run's folder cannot be used; what goes wrong later is the
    handle's `error`.
    """
    if every is not None and not isinstance(every, Mapping):
        raise ConfigError(f"every: must be a mapping from intervals in steps to functions, got {every!r}")
    ending = StopOn(stop_on)
    milestones = tuple((interval, ending(hook)) for interval, hook in (every or {}).items())
    hooks = Hooks(() if on_train_step is None else (ending(on_train_step),), milestones)
    with naming(argument_of):
        config = runnable_config(settings, keywords)
        require_startable(config)
        return StartedRun(config, hooks, ending, attachable=attachable)


def train(
    settings: SettingsLike,
    *,
    quiet: bool = False,
    on_train_step: TrainStepHook | None = None,
    every: Mapping[int, MilestoneHook] | None = None,
    stop_on: StopKinds = (),
    attachable: bool = True,
    **keywords: Unpack[RunKeywords],
) -> RunResult:
    """Train to the end, and show how it goes: a table in a terminal and in a notebook, else the lines of --no-ui.

    quiet: show nothing. Everything else as `start` has it. Raises RlTuiError where the run cannot start or fails, and
    what a hook raises of the classes in stop_on, as it is, once the run has stopped with everything saved. An
    interrupt (Ctrl-C, the stop button of a notebook, or what a handler of signals raises) stops the run with everything
    saved, and is raised then; a second one does not wait for that. A handler that raises twice within a second has
    raised once.
    """
    with (
        start(
            settings, on_train_step=on_train_step, every=every, stop_on=stop_on, attachable=attachable, **keywords
        ) as run,
        progress_of(run, quiet) as progress,
    ):
        try:
            _follow(run, progress)
        except BaseException:
            _stop(run, progress)
            raise
    if (raised := run.error or run.stopped_by) is not None:
        raise raised
    assert run.exit_code is not None
    path, view = run.path, run.view
    return RunResult(path, run.exit_code, _returns(path, view), view)


def _returns(path: Path, view: RunView) -> dict[str, float | None]:
    """What this process has seen, or else an earlier one."""
    returns = {name: behavior.mean_return for name, behavior in view.behaviors.items()}
    recorded = summarize(path) if None in returns.values() else None
    for behavior in () if recorded is None else recorded.behaviors:
        if behavior.name in returns and returns[behavior.name] is None:
            returns[behavior.name] = behavior.last_return
    return returns


def _follow(run: RunHandle, progress: Progress) -> None:
    """Show the run until it is over."""
    is_over = False
    while not is_over:
        is_over = run.wait(POLL_SECONDS)
        progress.update()


def _stop(run: RunHandle, progress: Progress) -> None:
    """The run is over, and saved unless another interrupt comes."""
    began_at = time.monotonic()
    while not run.is_over:
        try:
            run.stop()
            _follow(run, progress)
        except BaseException as error:
            if time.monotonic() - began_at < REPEAT_SECONDS and _is_of_handler(error):
                continue
            run.stop(now=True)
            run.wait()
            raise


def _is_of_handler(error: BaseException) -> bool:
    """Whether a handler of the program has raised it, and not a user who presses Ctrl-C again."""
    return is_interrupt(error) and not isinstance(error, KeyboardInterrupt)
