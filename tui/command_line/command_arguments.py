"""The arguments of every command but training."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.tui.command_line.flag_parser import FlagParser, parse
from rl_tui.tui.command_line.train_arguments import ScreenOptions, add_screen_flags, number, screen_options

if TYPE_CHECKING:
    from rl_tui.engine.config.wrappers import Wrapper  # imports pydantic, which takes long
    from rl_tui.engine.running.evaluation.saved_policy import Way  # imports torch

RESULTS_DIR = "results"
FOLDER_TEXT = f"folder of the runs (default {RESULTS_DIR})"
SMALLEST_PLOT, LARGEST_PLOT = (40, 10), 1000  # columns and rows
SPEED_TEXT = "playback speed, as a multiple of real time"
SEED_TEXT = "seed of the environment and the actions (default 1)"


@dataclass(frozen=True, slots=True)
class EvaluateArguments:
    """`rl-tui evaluate`. checkpoint: newest, best or a step; behavior: None if it was not typed.

    ways: how it acts, one after the other.
    """

    run: str
    results_dir: str
    behavior: str | None
    episodes: int
    checkpoint: str
    seed: int
    ways: tuple[Way, ...]
    is_onnx: bool
    record: str | None
    shows_progress: bool = False


@dataclass(frozen=True, slots=True)
class CheckArguments:
    """`rl-tui check-env`. kwargs, wrappers: of the environment. timeout: seconds for each call."""

    env: str
    kwargs: Mapping[str, object]
    wrappers: tuple[Wrapper, ...]
    num_envs: int
    steps: int
    seed: int
    timeout: int


@dataclass(frozen=True, slots=True)
class ListArguments:
    """`rl-tui ls`. results_dir: None if it was not typed."""

    results_dir: str | None
    is_json: bool


@dataclass(frozen=True, slots=True)
class RunsArguments:
    """`rl-tui runs`. results_dir: None if it was not typed."""

    results_dir: str | None
    options: ScreenOptions


@dataclass(frozen=True, slots=True)
class UpgradeArguments:
    """`rl-tui upgrade-config`. source, target: paths."""

    source: str
    target: str
    is_forced: bool


@dataclass(frozen=True, slots=True)
class DemoArguments:
    """`rl-tui demo`."""

    speed: float
    options: ScreenOptions


@dataclass(frozen=True, slots=True)
class ReplayArguments:
    """`rl-tui replay`. speed: None for one that depends on the length of the run.

    plot: the metric to be printed instead, "" for the usual one, None for the screen. behavior: None for all. size: of
    the chart, in columns and rows; None for that of the terminal.
    """

    run: str
    results_dir: str
    speed: float | None
    options: ScreenOptions
    plot: str | None = None
    behavior: str | None = None
    size: tuple[int, int] | None = None


def parse_evaluate(words: Sequence[str]) -> EvaluateArguments:
    """Does not check whether the run exists."""
    parser = FlagParser(
        "rl-tui evaluate",
        description="Run a trained policy in the environment of its run, and print its returns.",
    )
    parser.add_argument("run", metavar="RUN", help="id or folder of the run")
    parser.add_argument("--results-dir", default=RESULTS_DIR, metavar="DIR", help=FOLDER_TEXT)
    parser.add_argument("--behavior", metavar="NAME", help="which behavior, if the run has several")
    episodes = number("a whole number, at least 1", int, 1, 2**31)
    parser.add_argument("--episodes", type=episodes, default=100, metavar="N", help="number of episodes (default 100)")
    checkpoint_text = "newest, best or a step (default newest)"
    parser.add_argument("--checkpoint", type=checkpoint_name, default="newest", metavar="WHICH", help=checkpoint_text)
    seed = number("a whole number from 0 to 4294967295", int, 0, 2**32 - 1)
    parser.add_argument("--seed", type=seed, default=1, metavar="N", help=SEED_TEXT)
    ways = parser.add_mutually_exclusive_group()
    greedy_text = "only with the most likely actions, or their mean"
    ways.add_argument("--deterministic", dest="ways", action="store_const", const=("greedy",), help=greedy_text)
    sampled_text = "only with sampled actions, as in training (default: both, one after the other)"
    ways.add_argument("--stochastic", dest="ways", action="store_const", const=("sampled",), help=sampled_text)
    parser.set_defaults(ways=("greedy", "sampled"))
    onnx_text = "use the ONNX file that was exported at that checkpoint"
    parser.add_argument("--onnx", dest="is_onnx", action="store_true", help=onnx_text)
    record_text = "write the first episodes to a .gif or .mp4 (needs the extra `record`)"
    parser.add_argument("--record", metavar="FILE", help=record_text)
    progress_text = "print progress on stderr, about once a second"
    parser.add_argument("--progress", dest="shows_progress", action="store_true", help=progress_text)
    return EvaluateArguments(**vars(parse(parser, words)))


def parse_check(words: Sequence[str]) -> CheckArguments:
    """Does not check whether the environment exists."""
    parser = FlagParser(
        "rl-tui check-env",
        description="Make an environment, take random actions in it, and report whether it can be used for training.",
    )
    env_text = "as env in a file: package.module:factory, gymnasium:ID, the path of a Unity player, ..."
    parser.add_argument("env", metavar="NAME", help=env_text)
    add_environment_flags(parser)
    copies = number("a whole number from 1 to 1024", int, 1, 1024)
    parser.add_argument("--num-envs", type=copies, default=2, metavar="N", help="copies of the environment (default 2)")
    from_one = number("a whole number, at least 1", int, 1, 2**31)
    parser.add_argument("--steps", type=from_one, default=500, metavar="N", help="steps of each agent (default 500)")
    seed = number("a whole number from 0 to 4294967295", int, 0, 2**32 - 1)
    parser.add_argument("--seed", type=seed, default=1, metavar="N", help=SEED_TEXT)
    timeout_text = "seconds before a call of the environment counts as hung (default 60)"
    parser.add_argument("--timeout-wait", type=from_one, default=60, metavar="S", help=timeout_text)
    graphics_text = "start Unity players without a window and drawing"
    parser.add_argument("--no-graphics", action="store_true", help=graphics_text)
    typed = parse(parser, words)
    if typed.no_graphics:
        from rl_tui.engine.config.environment_name import full_name, is_of_unity

        if not is_of_unity(full_name(typed.env)):
            parser.error("--no-graphics: only Unity players have graphics")
        typed.env_kwargs = {**typed.env_kwargs, "no_graphics": True}
    copies, timeout = typed.num_envs, typed.timeout_wait
    return CheckArguments(typed.env, typed.env_kwargs, typed.wrappers, copies, typed.steps, typed.seed, timeout)


def parse_ls(words: Sequence[str]) -> ListArguments:
    """Raises SystemExit for --help and errors (code 2), as the others do."""
    parser = FlagParser("rl-tui ls", description="List the runs of a folder, newest first.")
    parser.add_argument("results_dir", nargs="?", metavar="RESULTS_DIR", help=FOLDER_TEXT)
    parser.add_argument("--json", action="store_true", help="print one JSON object per line and run, with every field")
    typed = parse(parser, words)
    return ListArguments(typed.results_dir, typed.json)


def parse_runs(words: Sequence[str]) -> RunsArguments:
    """Does not check whether the folder exists."""
    parser = FlagParser(
        "rl-tui runs",
        description="Show the runs of a folder on a screen: sort, group, compare, resume, evaluate or delete them.",
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("results_dir", nargs="?", default=None, metavar="RESULTS_DIR", help=FOLDER_TEXT)
    add_screen_flags(parser, readonly="disable resume, evaluate and delete")
    typed = parse(parser, words)
    return RunsArguments(typed.results_dir, screen_options(vars(typed)))


def parse_upgrade(words: Sequence[str]) -> UpgradeArguments:
    """Does not read the files."""
    parser = FlagParser(
        "rl-tui upgrade-config",
        description="Convert a configuration of an older ML-Agents to the current format. Comments are lost.",
    )
    parser.add_argument("source", metavar="IN", help="the file to read; it is not changed")
    parser.add_argument("target", metavar="OUT", help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")
    typed = parse(parser, words)
    return UpgradeArguments(typed.source, typed.target, typed.force)


def parse_demo(words: Sequence[str]) -> DemoArguments:
    """Raises SystemExit for --help and errors (code 2), as the others do."""
    parser = FlagParser(
        "rl-tui demo",
        description="Try every key on a recorded run. Nothing is trained, and nothing is written to disk.",
        argument_default=argparse.SUPPRESS,
    )
    speed = number("a number from 0 to 100000", float, 0, 100_000)
    parser.add_argument("--speed", type=speed, default=10.0, metavar="X", help=f"{SPEED_TEXT} (default 10)")
    add_screen_flags(parser)
    typed = parse(parser, words)
    return DemoArguments(typed.speed, screen_options(vars(typed)))


def parse_replay(words: Sequence[str]) -> ReplayArguments:
    """Does not check whether the run exists."""
    parser = FlagParser(
        "rl-tui replay",
        description="Play a recorded run. On the screen, < and > change the speed, ( and ) go back and forward. With"
        " --plot, print a chart of it instead.",
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("run", metavar="RUN", help="id or folder of the run, or a file of events")
    parser.add_argument("--results-dir", default=RESULTS_DIR, metavar="DIR", help=FOLDER_TEXT)
    speed = number("a number, at least 0", float, 0)
    speed_text = f"{SPEED_TEXT} (default: it takes a minute)"
    parser.add_argument("--speed", type=speed, default=None, metavar="X", help=speed_text)
    plot_text = "print the curve of a metric as text, without a screen (default: what the screen draws first)"
    parser.add_argument("--plot", nargs="?", const="", default=None, metavar="METRIC", help=plot_text)
    behavior_text = "with --plot: only this behavior"
    parser.add_argument("--behavior", default=None, metavar="NAME", help=behavior_text)
    size_text = "with --plot: columns and rows of the chart (default: the terminal's, or 80x24)"
    parser.add_argument("--size", type=_size, default=None, metavar="CxR", help=size_text)
    add_screen_flags(parser)
    typed = parse(parser, words)
    if typed.plot is None and (typed.behavior is not None or typed.size is not None):
        parser.error("--behavior and --size: only with --plot")
    options = screen_options(vars(typed))
    return ReplayArguments(typed.run, typed.results_dir, typed.speed, options, typed.plot, typed.behavior, typed.size)


def add_environment_flags(parser: argparse.ArgumentParser) -> None:
    """How an environment is made that is named on the command line."""
    kwargs_text = "env_kwargs as JSON, e.g. '{\"length\": 12}'"
    parser.add_argument("--env-kwargs", type=_mapping, default={}, metavar="JSON", help=kwargs_text)
    wrappers_text = "wrappers as a JSON list, e.g. '[\"my_world:Faster\"]'"
    parser.add_argument("--wrappers", type=_wrappers, default=(), metavar="JSON", help=wrappers_text)


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,4})x(\d{1,4})", text)
    size = (int(found[1]), int(found[2])) if found is not None else (0, 0)
    if not (SMALLEST_PLOT[0] <= size[0] <= LARGEST_PLOT and SMALLEST_PLOT[1] <= size[1] <= LARGEST_PLOT):
        least = "x".join(map(str, SMALLEST_PLOT))
        raise argparse.ArgumentTypeError(
            must_be(f"columns and rows from {least} to {LARGEST_PLOT}x{LARGEST_PLOT}", text)
        )
    return size


def _mapping(text: str) -> dict[str, object]:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(must_be('a JSON object such as {"length": 12}', text))
    return value


def _wrappers(text: str) -> tuple[Wrapper, ...]:
    import json

    from rl_tui.engine.config.wrappers import EXPECTED, read_wrappers

    try:
        entries = json.loads(text)
        if isinstance(entries, list):
            return read_wrappers(entries)
    except (ValueError, RecursionError):  # the first is also what an entry is refused with
        pass
    raise argparse.ArgumentTypeError(must_be(f"a JSON list, each entry {EXPECTED}", text))


def checkpoint_name(text: str) -> str:
    """newest, best or a step, as it was typed. Raises ArgumentTypeError for anything else."""
    if text in ("newest", "best") or (text.isascii() and text.isdigit()):
        return text
    raise argparse.ArgumentTypeError(must_be("newest, best or a step", text))
