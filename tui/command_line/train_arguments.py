"""The flags of the command line, and what they mean as settings.

The flags of `mlagents-learn` keep their names, defaults and meaning. A typed flag wins over the file, the file over the
default; a flag cannot unset a `true` of the file.
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
  rl-tui replay RUN        watch a recorded run again, at any speed
  rl-tui evaluate RUN      play its policy again, and print what it earns
  rl-tui ls [RESULTS_DIR]  list the runs of a folder (default results)
  rl-tui runs [RESULTS_DIR]  compare, resume, evaluate, delete them on a screen
  rl-tui presets [NAME]    list the presets that come with rl-tui, or print one
  rl-tui schema            print the configuration's JSON Schema, for editors
  rl-tui check-env NAME    try an environment of yours, before training in it
  rl-tui upgrade-config IN OUT   rewrite a file of an older ML-Agents
Each has its own --help. A file that is named like a command is ./demo.
"""

EXAMPLES = """\
examples:
  rl-tui ppo/CartPole                                train a preset on a screen
  rl-tui ppo/CartPole --no-ui --run-id a             without one, into results/a
  rl-tui ppo/CartPole --no-ui --run-id a --resume    go on where that stopped
  rl-tui my.yaml --env gymnasium:LunarLander-v3      name the environment here
  rl-tui my.yaml --set behaviors.My.max_steps=1e6    change one setting
  rl-tui my.yaml --dry-run                           show what would run

keys on the screen: p pause, c checkpoint, e export, ? help, q quit.
exit codes: 0 done, or stopped with everything saved; 1 internal error, or an
answer that cannot be written; 2 bad command line or file, 3 environment failed,
5 diverged, 6 run busy, 7 checkpoint unusable or not written; 129/143 stopped
by SIGHUP/SIGTERM, 130 by SIGINT, or on the screen without saving.
"""

DEPRECATED = {
    "load": "--load is deprecated and does nothing; use --resume to go on with a run",
    "train": "--train is deprecated and does nothing; training is the default",
    "torch": "--torch was removed and does nothing; PyTorch is always used",
    "tensorflow": "--tensorflow was removed and does nothing; PyTorch is always used",
}
LOOK = ("theme", "ascii", "readonly", "no_bell", "no_mouse", "no_title")


@dataclass(frozen=True, slots=True)
class Look:
    """How the screen is to be. theme: a name, "" for the one of last time."""

    is_ascii: bool = False
    theme: str = ""
    is_readonly: bool = False
    has_bell: bool = True
    has_mouse: bool = True
    has_title: bool = True


@dataclass(frozen=True, slots=True)
class Arguments:
    """One command line, understood. overrides: dotted path of a setting -> typed value. words: the line itself."""

    config: str
    overrides: dict[str, Setting] = field(default_factory=dict)
    is_deterministic: bool = False
    is_dry_run: bool = False
    is_headless: bool = False
    look: Look = field(default_factory=Look)
    log_format: Literal["text", "json"] = "text"
    warnings: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def parse_arguments(words: Sequence[str]) -> Arguments:
    """What the command line asks for. Leaves through SystemExit for --help, --version and mistakes (code 2)."""
    typed = vars(understood(_parser(), words))
    overrides = {path: value for path, value in typed.items() if "." in path or path == "debug"}
    overrides.update(dict(typed.get("set", ())))
    return Arguments(
        config=typed["config"],
        overrides=overrides,
        is_deterministic="deterministic" in typed,
        is_dry_run="dry_run" in typed,
        is_headless="no_ui" in typed,
        look=look_of(typed),
        log_format=typed.get("log_format", "text"),
        warnings=tuple(_warnings(typed)),
        words=tuple(words),
    )


def understood(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """What the words mean to the parser. Leaves through SystemExit where one means nothing, with what was meant."""
    typed, unknown = parser.parse_known_args(words)
    if unknown:
        from rl_tui.tui.command_line.unknown_flags import explain

        parser.error(explain(unknown, parser._option_string_actions, parser.prog))
    return typed


def _warnings(typed: Mapping[str, object]) -> Iterator[str]:
    """One line for every flag that does nothing in this command line."""
    yield from (warning for name, warning in DEPRECATED.items() if name in typed)
    if "no_ui" in typed:
        yield from (f"--{name.replace('_', '-')}: no effect with --no-ui" for name in LOOK if name in typed)


def add_look_flags(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """The flags of every command that has a screen; the parser leaves out what was not typed."""
    parser.add_argument("--theme", metavar="NAME", help="colors of the screen; ctrl+p on it lists their names")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument("--readonly", action="store_true", help="look only: no key changes the run")
    parser.add_argument("--no-bell", action="store_true", help="no bell and no notice when the run ends or fails")
    parser.add_argument("--no-title", action="store_true", help="leave the title of the terminal's window as it is")
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal, to select text")


def words_of(look: Look) -> list[str]:
    """The flags that ask for that look."""
    flags = {
        "--ascii": look.is_ascii,
        "--readonly": look.is_readonly,
        "--no-bell": not look.has_bell,
        "--no-mouse": not look.has_mouse,
        "--no-title": not look.has_title,
    }
    theme = ["--theme", look.theme] if look.theme else []
    return theme + [flag for flag, is_wanted in flags.items() if is_wanted]


def look_of(typed: Mapping[str, object]) -> Look:
    """What was typed of those flags."""
    return Look(
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
        argument_default=argparse.SUPPRESS,  # only what was typed is there, so the file keeps the rest
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
    group.add_argument("--no-ui", action="store_true", help="no screen: one line per summary and event on stdout")
    group.add_argument("--log-format", choices=("text", "json"), help="lines of --no-ui (default text)")
    add_look_flags(group)
    group.add_argument("--dry-run", action="store_true", help="print the effective configuration and stop")
    _setting(group, "--debug", "debug", None, "log what a run does and how long it takes (docs/runs.md)")


def _add_run_flags(group: argparse._ArgumentGroup) -> None:
    _setting(
        group,
        "--run-id",
        "checkpoint_settings.run_id",
        str,
        "name of the run and its folder (default: of CONFIG, counted)",
    )
    _setting(group, "--results-dir", "checkpoint_settings.results_dir", str, "where runs are kept (default results)")
    _setting(group, "--resume", "checkpoint_settings.resume", None, "go on where the run of this id stopped")
    _setting(group, "--force", "checkpoint_settings.force", None, "start anew in an existing run folder")
    initialize_text = "start with the weights of another run"
    _setting(group, "--initialize-from", "checkpoint_settings.initialize_from", str, initialize_text, "RUN_ID")
    _setting(group, "--inference", "checkpoint_settings.inference", None, "only act, learn nothing")
    group.add_argument("--deterministic", action="store_true", help="act without chance: the mean or the likeliest")
    _setting(group, "--seed", "env_settings.seed", int, "of everything random; -1 draws one (default -1)")
    _setting(group, "--torch-device", "torch_settings.device", str, "cpu, cuda, cuda:1, ...", "DEVICE")
    set_text = "one setting by its path in the file, a list or mapping as JSON; may be repeated"
    group.add_argument("--set", action="append", type=_assignment, metavar="PATH=VALUE", help=set_text)


def _add_environment_flags(group: argparse._ArgumentGroup) -> None:
    env_text = "gymnasium:ID, package.module:factory, or BEHAVIOR=ENV,BEHAVIOR=ENV"
    _setting(group, "--env", "env_settings.env", _environment, env_text)
    _setting(group, "--num-envs", "env_settings.num_envs", int, "copies of the environment (default 1)", "N")
    _setting(group, "--num-workers", "env_settings.num_workers", int, "processes they live in; 0 is this one", "N")
    _setting(group, "--timeout-wait", "env_settings.timeout_wait", int, "seconds until it counts as hung (60)", "S")
    restarts = "env_settings.max_lifetime_restarts"
    _setting(group, "--max-lifetime-restarts", restarts, int, "restarts of one worker, -1 no limit", "N")
    restarts = "env_settings.restarts_rate_limit_n"
    _setting(group, "--restarts-rate-limit-n", restarts, int, "restarts in one period, -1 no limit", "N")
    restarts = "env_settings.restarts_rate_limit_period_s"
    _setting(group, "--restarts-rate-limit-period-s", restarts, int, "length of that period", "S")


def _add_unity_flags(group: argparse._ArgumentGroup) -> None:
    _setting(group, "--base-port", "env_settings.base_port", int, "first port (default 5005)", "N")
    _setting(group, "--num-areas", "env_settings.num_areas", int, "training areas in a scene (default 1)", "N")
    _setting(group, "--width", "engine_settings.width", int, "of the window (default 84)", "N")
    _setting(group, "--height", "engine_settings.height", int, "of the window (default 84)", "N")
    _setting(group, "--quality-level", "engine_settings.quality_level", int, "of graphics (default 5)", "N")
    _setting(group, "--time-scale", "engine_settings.time_scale", float, "speed of time (default 20)", "X")
    _setting(group, "--target-frame-rate", "engine_settings.target_frame_rate", int, "default -1, no limit", "N")
    _setting(group, "--capture-frame-rate", "engine_settings.capture_frame_rate", int, "default 60", "N")
    _setting(group, "--no-graphics", "engine_settings.no_graphics", None, "without a window")
    monitor_text = "only worker 0 has a window"
    _setting(group, "--no-graphics-monitor", "engine_settings.no_graphics_monitor", None, monitor_text)
    group.add_argument(
        "--env-args",
        dest="env_settings.env_args",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="everything after it goes to the player; must be last",
    )


def _setting(
    group: argparse._ArgumentGroup,
    flag: str,
    path: str,
    kind: Callable[[str], Setting] | None,
    text: str,
    metavar: str | None = None,
) -> None:
    """Add one flag whose value goes to the setting at `path`; a flag without a kind stands for true."""
    if kind is None:
        group.add_argument(flag, dest=path, action="store_true", help=text)
    else:
        group.add_argument(flag, dest=path, type=kind, metavar=metavar or flag.rpartition("-")[2].upper(), help=text)


def _assignment(text: str) -> tuple[str, Setting]:
    """The path and value of `path=value`, where a value reads as JSON if it can and as plain text otherwise."""
    path, equals, value = text.partition("=")
    if not (path and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form path=value")
    return path, read_value(f"--set {visible(path)}", value)


def _environment(text: str) -> Setting:
    """One environment, or with `=` a mapping from behaviors to environments."""
    if "=" not in text:
        return text
    pairs = [part.partition("=") for part in text.split(",")]
    wrong = [behavior for behavior, equals, env in pairs if not (behavior and equals and env)]
    if wrong or len({behavior for behavior, _, _ in pairs}) < len(pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form BEHAVIOR=ENV,BEHAVIOR=ENV, each behavior once")
    return {behavior: env for behavior, _, env in pairs}
