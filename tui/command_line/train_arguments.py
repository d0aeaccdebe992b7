"""The flags of a training, and the settings that they change.

The flags of `mlagents-learn` have the same names, defaults and meaning. A typed flag wins over the file, the file over
the default; a flag cannot unset a `true` of the file.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rl_tui.engine.config import run_flags
from rl_tui.engine.config.diagnostics import must_be, must_be_one_of, visible
from rl_tui.engine.config.flags import Setting, read_value
from rl_tui.engine.version import VERSION
from rl_tui.tui.command_line.flag_parser import FlagParser, parse

DESCRIPTION = """\
Train the agents of a YAML file, with a live screen in this terminal.

commands:
  rl-tui [CONFIG] [flags]  train; CONFIG: a file or a preset like ppo/CartPole;
                           it may be left out with --env
  rl-tui demo              try the screen on a recorded run; nothing is written
  rl-tui attach [RUN]      the screen of a run that trains in another process
  rl-tui ctl RUN ACTION    pause, checkpoint, set, stop, ...: for scripts
  rl-tui replay RUN        play a recorded run, at any speed
  rl-tui evaluate RUN      run a trained policy, and print its returns
  rl-tui arena RUN...      play saved policies against each other, and rate them
  rl-tui play RUN          play a game against a trained policy yourself
  rl-tui demonstrations    show what .demo files hold, or record new ones
  rl-tui ls [RESULTS_DIR]  list the runs of a folder (default results)
  rl-tui runs [RESULTS_DIR]  compare, resume, evaluate, delete runs on a screen
  rl-tui presets [NAME]    list the presets that come with rl-tui, or print one
  rl-tui plugins           list trainers, writers, ..., built in and installed
  rl-tui schema            print the configuration's JSON Schema, for editors
  rl-tui check-env NAME    test your own environment before training in it
  rl-tui upgrade-config IN OUT   convert a file of an older ML-Agents
Each has its own --help.
If a file has the name of a command, write its path: ./demo
"""

EXAMPLES = """\
examples:
  rl-tui ppo/CartPole                                train a preset on a screen
  rl-tui ppo/CartPole --no-ui --run-id a             without one, into results/a
  rl-tui ppo/CartPole --no-ui --run-id a --resume    continue that run
  rl-tui ppo/CartPole --no-ui --resume-or-start      start or continue, for jobs
  rl-tui --env gymnasium:Acrobot-v1                  without a file of your own
  rl-tui --env gymnasium:Pendulum-v1 --trainer sac   by SAC instead of PPO
  rl-tui my.yaml --env gymnasium:LunarLander-v3      choose the environment
  rl-tui 3DBall.yaml --env builds/3DBall             train in a Unity player
  rl-tui 3DBall.yaml                                 or in the Unity Editor
  rl-tui my.yaml --set behaviors.My.max_steps=1e6    change one setting
  rl-tui my.yaml --dry-run                           print what would run
  rl-tui my.yaml --ranks 4 --num-envs 32             four processes, one run

keys on the screen: p pause, c checkpoint, e export, ? help, q quit.
exit codes: 0 done, or stopped with everything saved; 1 internal error, or
stdout cannot be written; 2 bad command line or file; 3 environment failed;
5 diverged; 6 run busy; 7 checkpoint unusable or not written; 9 a rank was
lost; 129 SIGHUP; 130 SIGINT, or stopped on the screen without saving; 143
SIGTERM.
"""

DEPRECATED = {
    "load": "--load is deprecated and does nothing; use --resume to continue a run",
    "train": "--train is deprecated and does nothing; training is the default",
    "torch": "--torch was removed and does nothing; PyTorch is always used",
    "tensorflow": "--tensorflow was removed and does nothing; PyTorch is always used",
}
SCREEN_FLAGS = {  # without --theme: the field of ScreenOptions, its value when typed, and the help
    "ascii": ("is_ascii", True, "draw with ASCII characters only"),
    "readonly": ("is_readonly", True, "no key changes the run"),
    "no_bell": ("has_bell", False, "no bell or desktop notice when the run ends or fails"),
    "no_mouse": ("has_mouse", False, "leave the mouse to the terminal, for selecting text"),
    "no_title": ("has_title", False, "do not change the title of the terminal window"),
}


@dataclass(frozen=True, slots=True)
class ScreenOptions:
    """Options of the screen. theme: a name, "" for the one that was chosen last."""

    is_ascii: bool = False
    theme: str = ""
    is_readonly: bool = False
    has_bell: bool = True
    has_mouse: bool = True
    has_title: bool = True


@dataclass(frozen=True, slots=True)
class TrainArguments:
    """A parsed command line.

    config: "" without any. trainer: "" where none was typed. num_ranks, gpus, join_seconds: as in RanksRequest; None
    where nothing was typed. overrides: dotted path of a setting -> typed value. words:
    the line itself.
    """

    config: str
    trainer: str = ""
    overrides: dict[str, Setting] = field(default_factory=dict)
    is_deterministic: bool = False
    is_dry_run: bool = False
    is_headless: bool = False
    options: ScreenOptions = field(default_factory=ScreenOptions)
    log_format: Literal["text", "json"] = "text"
    stops_on_hangup: bool = False
    is_detached: bool = False
    num_ranks: int = 1
    gpus: int | Literal["all"] | None = None
    join_seconds: float | None = None
    warnings: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def parse_train_arguments(words: Sequence[str]) -> TrainArguments:
    """Parse the command line. Raises SystemExit for --help, --version and errors (code 2)."""
    typed = vars(parse(_parser(), words))
    overrides = {path: value for path, value in typed.items() if "." in path or path == "debug"}
    overrides.update(dict(typed.get("set", ())))
    return TrainArguments(
        config=typed["config"],
        trainer=typed.get("trainer", ""),
        overrides=overrides,
        is_deterministic="deterministic" in typed,
        is_dry_run="dry_run" in typed,
        is_headless="no_ui" in typed or "detach" in typed,
        options=screen_options(typed),
        log_format=typed.get("log_format", "text"),
        is_detached="detach" in typed,
        stops_on_hangup=typed.get("on_hangup") == "stop",
        num_ranks=typed.get("ranks", 1),
        gpus="all" if "multi_gpu" in typed else typed.get("gpus"),
        join_seconds=typed.get("join_timeout"),
        warnings=tuple(_warnings(typed)),
        words=tuple(words),
    )


def _warnings(typed: Mapping[str, object]) -> Iterator[str]:
    """One line for every flag that has no effect in this command line."""
    yield from (warning for name, warning in DEPRECATED.items() if name in typed)
    if headless := next((name for name in ("no_ui", "detach") if name in typed), None):
        names = [name for name in ("theme", *SCREEN_FLAGS) if name in typed]
        yield from (f"{flag_of(name)}: no effect with {flag_of(headless)}" for name in names)


def add_screen_flags(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, without: Sequence[str] = (), **texts: str
) -> None:
    """The flags of every command that has a screen; the parser leaves out what was not typed. without: of these flags.
    texts: other help."""
    parser.add_argument("--theme", metavar="NAME", help="color theme; on the screen, ctrl+p and `theme` list the names")
    for name, (_, _, text) in SCREEN_FLAGS.items():
        if name not in without:
            parser.add_argument(flag_of(name), action="store_true", help=texts.get(name, text))


def screen_flags(options: ScreenOptions) -> list[str]:
    """The flags that stand for those options."""
    flags = [flag_of(typed) for typed, (name, value, _) in SCREEN_FLAGS.items() if getattr(options, name) == value]
    return ["--theme", options.theme, *flags] if options.theme else flags


def flag_of(name: str) -> str:
    """The flag whose value argparse keeps under that name."""
    return f"--{name.replace('_', '-')}"


def screen_options(typed: Mapping[str, object]) -> ScreenOptions:
    """The options that were typed."""
    chosen: dict[str, Any] = {name: value for flag, (name, value, _) in SCREEN_FLAGS.items() if flag in typed}
    return ScreenOptions(theme=str(typed.get("theme", "")), **chosen)


def _parser() -> argparse.ArgumentParser:
    parser = FlagParser(
        prog="rl-tui",
        usage="rl-tui [CONFIG] [flags]",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,  # a flag that was not typed must not override the file
    )
    config_text = "a YAML file or the name of a preset (default: by --env)"
    parser.add_argument("config", nargs="?", default="", metavar="CONFIG", help=config_text)
    parser.add_argument("--version", action="version", version=f"rl-tui {VERSION}")
    _add_output_flags(parser.add_argument_group("screen and output"))
    _add_run_flags(parser.add_argument_group("the run"))
    _add_settings(parser.add_argument_group("the environment"), run_flags.ENVIRONMENT)
    _add_settings(parser.add_argument_group("Unity players"), run_flags.UNITY)
    _add_rank_flags(parser.add_argument_group("several ranks: processes that train together"))
    for name in DEPRECATED:
        parser.add_argument(f"--{name}", action="store_true", help=argparse.SUPPRESS)
    return parser


def _add_output_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--no-ui", action="store_true", help="no screen: print one line per summary and event")
    format_text = "format of these lines (default text)"
    hangup_text = "when the terminal is gone: go on (default), or save and stop"
    detach_text = "return once it trains, without a screen; `rl-tui attach` shows it"
    group.add_argument("--detach", action="store_true", help=detach_text)
    group.add_argument("--on-hangup", type=_one_of("continue", "stop"), metavar="{continue,stop}", help=hangup_text)
    group.add_argument("--log-format", type=_one_of("text", "json"), metavar="{text,json}", help=format_text)
    add_screen_flags(group)
    group.add_argument("--dry-run", action="store_true", help="print the effective configuration and exit")
    _add_settings(group, run_flags.OUTPUT)


def _add_run_flags(group: argparse._ArgumentGroup) -> None:
    _add_settings(group, run_flags.CHECKPOINTS)
    group.add_argument("--trainer", metavar="NAME", help="without CONFIG: ppo (default), sac or another")
    group.add_argument("--deterministic", action="store_true", help="take the most likely actions, or their mean")
    _add_settings(group, (*run_flags.SEED, *run_flags.DEVICE))
    set_text = "set a setting by its path; a list or mapping as JSON; may be repeated"
    group.add_argument("--set", action="append", type=assignment, metavar="PATH=VALUE", help=set_text)


def _add_rank_flags(group: argparse._ArgumentGroup) -> None:
    start = group.add_mutually_exclusive_group()
    whole = number("a whole number from 1", int, low=1)
    start.add_argument("--ranks", type=whole, metavar="N", help="so many on this machine; num_envs is that of all")
    start.add_argument("--gpus", type=whole, metavar="N", help="one for each of so many GPUs")
    start.add_argument("--multi-gpu", action="store_true", help="one for each GPU that there is")
    seconds = number("a number of seconds above 0", float, low=1e-3)
    timeout_text = "seconds for which ranks wait for each other at the start (default 300)"
    group.add_argument("--join-timeout", type=seconds, metavar="S", help=timeout_text)


def _add_settings(group: argparse._ArgumentGroup, flags: Iterable[run_flags.Flag]) -> None:
    """Add flags whose values are those of the settings at their paths."""
    for flag in flags:
        value: dict[str, Any] = {"type": _KINDS.get(flag.kind, str), "metavar": flag.metavar}
        if flag.kind == "true":
            value = {"action": "store_true"}
        elif flag.kind == "rest":
            value["nargs"] = argparse.REMAINDER
        group.add_argument(f"--{flag.name}", dest=flag.path, help=flag.help, **value)


def number(
    expected: str, kind: Callable[[str], float], low: float = -math.inf, high: float = math.inf
) -> Callable[[str], float]:
    """A reader of numbers between these bounds; `expected` describes them in its error."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(must_be(expected, text))
        return value

    return read


def _one_of(*choices: str) -> Callable[[str], str]:
    def chosen(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(must_be_one_of(choices, text))
        return text

    return chosen


def assignment(text: str) -> tuple[str, Setting]:
    """The path and value of `path=value`; the value is JSON if it parses, else plain text."""
    path, equals, value = text.partition("=")
    if not (path and equals):
        raise argparse.ArgumentTypeError(must_be("path=value", text))
    return path, read_value(f"--set {visible(path)}", value)


def _environment(text: str) -> Setting:
    """One environment, or with `=` a mapping from behaviors to environments."""
    if "=" not in text:
        return text
    pairs = [part.partition("=") for part in text.split(",")]
    wrong = [behavior for behavior, equals, env in pairs if not (behavior and equals and env)]
    if wrong or len({behavior for behavior, _, _ in pairs}) < len(pairs):
        raise argparse.ArgumentTypeError(must_be("BEHAVIOR=ENV,BEHAVIOR=ENV, each behavior once", text))
    return {behavior: env for behavior, _, env in pairs}


_KINDS: Mapping[str, Callable[[str], Setting]] = {
    "whole": number("a whole number", int),
    "whole or auto": lambda text: text if text == "auto" else number("a whole number from 0, or auto", int)(text),
    "number": number("a number", float),
    "environment": _environment,
}
