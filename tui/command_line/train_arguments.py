"""The flags of a training, and the settings that they change.

The flags of `mlagents-learn` have the same names, defaults and meaning. A typed flag wins over the file, the file over
the default; a flag cannot unset a `true` of the file.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rl_tui.engine.config.diagnostics import visible
from rl_tui.engine.config.flags import Setting, read_value
from rl_tui.engine.version import VERSION

DESCRIPTION = """\
Train the agents of a YAML file, with a live screen in this terminal.

commands:
  rl-tui CONFIG [flags]    train; CONFIG is a file or a preset like ppo/CartPole
  rl-tui demo              try the screen on a made-up run; nothing is written
  rl-tui replay RUN        play a recorded run, at any speed
  rl-tui evaluate RUN      run a trained policy, and print its returns
  rl-tui ls [RESULTS_DIR]  list the runs of a folder (default results)
  rl-tui runs [RESULTS_DIR]  compare, resume, evaluate, delete runs on a screen
  rl-tui presets [NAME]    list the presets that come with rl-tui, or print one
  rl-tui schema            print the configuration's JSON Schema, for editors
  rl-tui check-env NAME    test your own environment before training in it
  rl-tui upgrade-config IN OUT   convert a file of an older ML-Agents
Each has its own --help. For a file with the name of a command, type ./demo.
"""

EXAMPLES = """\
examples:
  rl-tui ppo/CartPole                                train a preset on a screen
  rl-tui ppo/CartPole --no-ui --run-id a             without one, into results/a
  rl-tui ppo/CartPole --no-ui --run-id a --resume    continue that run
  rl-tui my.yaml --env gymnasium:LunarLander-v3      choose the environment
  rl-tui my.yaml --set behaviors.My.max_steps=1e6    change one setting
  rl-tui my.yaml --dry-run                           print what would run

keys on the screen: p pause, c checkpoint, e export, ? help, q quit.
exit codes: 0 done, or stopped with everything saved; 1 internal error, or
stdout cannot be written; 2 bad command line or file, 3 environment failed,
5 diverged, 6 run busy, 7 checkpoint unusable or not written; 129/143 stopped
by SIGHUP/SIGTERM, 130 by SIGINT, or on the screen without saving.
"""

DEPRECATED = {
    "load": "--load is deprecated and does nothing; use --resume to continue a run",
    "train": "--train is deprecated and does nothing; training is the default",
    "torch": "--torch was removed and does nothing; PyTorch is always used",
    "tensorflow": "--tensorflow was removed and does nothing; PyTorch is always used",
}
SCREEN_FLAGS = ("theme", "ascii", "readonly", "no_bell", "no_mouse", "no_title")


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
    """A parsed command line. overrides: dotted path of a setting -> typed value. words: the line itself."""

    config: str
    overrides: dict[str, Setting] = field(default_factory=dict)
    is_deterministic: bool = False
    is_dry_run: bool = False
    is_headless: bool = False
    options: ScreenOptions = field(default_factory=ScreenOptions)
    log_format: Literal["text", "json"] = "text"
    warnings: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def parse_train_arguments(words: Sequence[str]) -> TrainArguments:
    """Parse the command line. Raises SystemExit for --help, --version and errors (code 2)."""
    typed = vars(parse(_parser(), words))
    overrides = {path: value for path, value in typed.items() if "." in path or path == "debug"}
    overrides.update(dict(typed.get("set", ())))
    return TrainArguments(
        config=typed["config"],
        overrides=overrides,
        is_deterministic="deterministic" in typed,
        is_dry_run="dry_run" in typed,
        is_headless="no_ui" in typed,
        options=screen_options(typed),
        log_format=typed.get("log_format", "text"),
        warnings=tuple(_warnings(typed)),
        words=tuple(words),
    )


def parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Parse the words. Raises SystemExit for unknown ones, with suggestions."""
    typed, unknown = parser.parse_known_args(words)
    if unknown:
        from rl_tui.tui.command_line.unknown_flags import explain

        parser.error(explain(unknown, parser._option_string_actions, parser.prog))
    return typed


def _warnings(typed: Mapping[str, object]) -> Iterator[str]:
    """One line for every flag that has no effect in this command line."""
    yield from (warning for name, warning in DEPRECATED.items() if name in typed)
    if "no_ui" in typed:
        yield from (f"--{name.replace('_', '-')}: no effect with --no-ui" for name in SCREEN_FLAGS if name in typed)


def add_screen_flags(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """The flags of every command that has a screen; the parser leaves out what was not typed."""
    parser.add_argument("--theme", metavar="NAME", help="colors of the screen; its palette (ctrl+p) lists the names")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument("--readonly", action="store_true", help="no key changes the run")
    parser.add_argument("--no-bell", action="store_true", help="no bell or desktop notice when the run ends or fails")
    parser.add_argument("--no-title", action="store_true", help="do not change the title of the terminal window")
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal, for selecting text")


def screen_flags(options: ScreenOptions) -> list[str]:
    """The flags that stand for those options."""
    flags = {
        "--ascii": options.is_ascii,
        "--readonly": options.is_readonly,
        "--no-bell": not options.has_bell,
        "--no-mouse": not options.has_mouse,
        "--no-title": not options.has_title,
    }
    theme = ["--theme", options.theme] if options.theme else []
    return theme + [flag for flag, is_wanted in flags.items() if is_wanted]


def screen_options(typed: Mapping[str, object]) -> ScreenOptions:
    """The options that were typed."""
    return ScreenOptions(
        is_ascii="ascii" in typed,
        theme=str(typed.get("theme", "")),
        is_readonly="readonly" in typed,
        has_bell="no_bell" not in typed,
        has_mouse="no_mouse" not in typed,
        has_title="no_title" not in typed,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rl-tui",
        usage="rl-tui CONFIG [flags]",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,  # a flag that was not typed must not override the file
    )
    parser.add_argument("config", metavar="CONFIG", help="trainer configuration: a YAML file or the name of a preset")
    parser.add_argument("--version", action="version", version=f"rl-tui {VERSION}")
    _add_output_flags(parser.add_argument_group("screen and output"))
    _add_run_flags(parser.add_argument_group("the run"))
    _add_environment_flags(parser.add_argument_group("the environment"))
    _add_unity_flags(parser.add_argument_group("Unity players (not supported yet: accepted, no effect)"))
    for name in DEPRECATED:
        parser.add_argument(f"--{name}", action="store_true", help=argparse.SUPPRESS)
    return parser


def _add_output_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--no-ui", action="store_true", help="no screen: print one line per summary and event")
    group.add_argument("--log-format", choices=("text", "json"), help="format of these lines (default text)")
    add_screen_flags(group)
    group.add_argument("--dry-run", action="store_true", help="print the effective configuration and exit")
    _setting(group, "--debug", "debug", None, "log what the run does and its timings (docs/runs.md)")


def _add_run_flags(group: argparse._ArgumentGroup) -> None:
    _setting(
        group,
        "--run-id",
        "checkpoint_settings.run_id",
        str,
        "name of the run and its folder (default: CONFIG's, numbered)",
    )
    _setting(group, "--results-dir", "checkpoint_settings.results_dir", str, "folder of the runs (default results)")
    _setting(group, "--resume", "checkpoint_settings.resume", None, "continue the run of this id from its checkpoint")
    _setting(group, "--force", "checkpoint_settings.force", None, "start over in an existing run folder")
    initialize_text = "start with the weights of another run"
    _setting(group, "--initialize-from", "checkpoint_settings.initialize_from", str, initialize_text, "RUN_ID")
    _setting(group, "--inference", "checkpoint_settings.inference", None, "act without learning")
    group.add_argument("--deterministic", action="store_true", help="take the most likely actions, or their mean")
    _setting(group, "--seed", "env_settings.seed", int, "random seed; -1 draws one (default -1)")
    _setting(group, "--torch-device", "torch_settings.device", str, "cpu, cuda, cuda:1, ...", "DEVICE")
    set_text = "set a setting by its path; a list or mapping as JSON; may be repeated"
    group.add_argument("--set", action="append", type=_assignment, metavar="PATH=VALUE", help=set_text)


def _add_environment_flags(group: argparse._ArgumentGroup) -> None:
    env_text = "gymnasium:ID, package.module:factory, or BEHAVIOR=ENV,BEHAVIOR=ENV"
    _setting(group, "--env", "env_settings.env", _environment, env_text)
    _setting(group, "--num-envs", "env_settings.num_envs", int, "copies of the environment (default 1)", "N")
    _setting(group, "--num-workers", "env_settings.num_workers", int, "processes that run them; 0: this process", "N")
    _setting(
        group, "--timeout-wait", "env_settings.timeout_wait", int, "seconds until it counts as hung (default 60)", "S"
    )
    restarts = "env_settings.max_lifetime_restarts"
    _setting(group, "--max-lifetime-restarts", restarts, int, "restarts of one worker; -1: no limit", "N")
    restarts = "env_settings.restarts_rate_limit_n"
    _setting(group, "--restarts-rate-limit-n", restarts, int, "restarts in one period; -1: no limit", "N")
    restarts = "env_settings.restarts_rate_limit_period_s"
    _setting(group, "--restarts-rate-limit-period-s", restarts, int, "seconds of that period", "S")


def _add_unity_flags(group: argparse._ArgumentGroup) -> None:
    _setting(group, "--base-port", "env_settings.base_port", int, "first port (default 5005)", "N")
    _setting(group, "--num-areas", "env_settings.num_areas", int, "training areas in a scene (default 1)", "N")
    _setting(group, "--width", "engine_settings.width", int, "window size (default 84)", "N")
    _setting(group, "--height", "engine_settings.height", int, "window size (default 84)", "N")
    _setting(group, "--quality-level", "engine_settings.quality_level", int, "graphics quality (default 5)", "N")
    _setting(group, "--time-scale", "engine_settings.time_scale", float, "speed of time (default 20)", "X")
    _setting(
        group,
        "--target-frame-rate",
        "engine_settings.target_frame_rate",
        int,
        "frames per second (default -1: no limit)",
        "N",
    )
    _setting(
        group, "--capture-frame-rate", "engine_settings.capture_frame_rate", int, "frames per second (default 60)", "N"
    )
    _setting(group, "--no-graphics", "engine_settings.no_graphics", None, "without a window")
    monitor_text = "only worker 0 opens a window"
    _setting(group, "--no-graphics-monitor", "engine_settings.no_graphics_monitor", None, monitor_text)
    group.add_argument(
        "--env-args",
        dest="env_settings.env_args",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="passed to the player; must be the last flag",
    )


def _setting(
    group: argparse._ArgumentGroup,
    flag: str,
    path: str,
    kind: Callable[[str], Setting] | None,
    text: str,
    metavar: str | None = None,
) -> None:
    """Add a flag whose value is that of the setting at `path`; a flag without a kind means true."""
    if kind is None:
        group.add_argument(flag, dest=path, action="store_true", help=text)
    else:
        group.add_argument(flag, dest=path, type=kind, metavar=metavar or flag.rpartition("-")[2].upper(), help=text)


def _assignment(text: str) -> tuple[str, Setting]:
    """The path and value of `path=value`; the value is JSON if it parses, else plain text."""
    path, equals, value = text.partition("=")
    if not (path and equals):
        raise argparse.ArgumentTypeError(f"must be path=value, got {text!r}")
    return path, read_value(f"--set {visible(path)}", value)


def _environment(text: str) -> Setting:
    """One environment, or with `=` a mapping from behaviors to environments."""
    if "=" not in text:
        return text
    pairs = [part.partition("=") for part in text.split(",")]
    wrong = [behavior for behavior, equals, env in pairs if not (behavior and equals and env)]
    if wrong or len({behavior for behavior, _, _ in pairs}) < len(pairs):
        raise argparse.ArgumentTypeError(f"must be BEHAVIOR=ENV,BEHAVIOR=ENV, each behavior once, got {text!r}")
    return {behavior: env for behavior, _, env in pairs}
