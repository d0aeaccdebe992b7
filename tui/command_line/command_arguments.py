"""The command lines that do not train: `rl-tui evaluate`, `check-env`, `upgrade-config`, `ls`, `demo` and `replay`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rl_tui.tui.command_line.train_arguments import Look, add_look_flags, look_of, understood
from rl_tui.tui.demo.script import HOURS

RESULTS_DIR = "results"


@dataclass(frozen=True, slots=True)
class EvaluateArguments:
    """`rl-tui evaluate`. checkpoint: newest, best or a step; behavior: None when none was typed."""

    run: str
    results_dir: str
    behavior: str | None
    episodes: int
    checkpoint: str
    seed: int
    is_stochastic: bool
    is_onnx: bool
    record: str | None
    shows_progress: bool = False


@dataclass(frozen=True, slots=True)
class CheckArguments:
    """`rl-tui check-env`. kwargs: arguments of the environment. timeout: seconds of a call."""

    env: str
    kwargs: Mapping[str, object]
    num_envs: int
    steps: int
    seed: int
    timeout: int


@dataclass(frozen=True, slots=True)
class ListArguments:
    """`rl-tui ls`. results_dir: None when none was typed."""

    results_dir: str | None
    is_json: bool


@dataclass(frozen=True, slots=True)
class RunsArguments:
    """`rl-tui runs`. results_dir: None when none was typed."""

    results_dir: str | None
    look: Look


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
    seed: int
    behaviors: int
    hours: float
    look: Look


@dataclass(frozen=True, slots=True)
class ReplayArguments:
    """`rl-tui replay`. speed: None for one that suits the length of the run."""

    run: str
    results_dir: str
    speed: float | None
    look: Look


def parse_evaluate(words: Sequence[str]) -> EvaluateArguments:
    """Whether there is such a run is not known yet."""
    parser = argparse.ArgumentParser(
        "rl-tui evaluate",
        description="Play a run's policy in the environment of its run, and print what it earns. Nothing is changed.",
    )
    parser.add_argument("run", metavar="RUN", help="its id or its folder")
    folder_text = f"where runs are kept (default {RESULTS_DIR})"
    parser.add_argument("--results-dir", default=RESULTS_DIR, metavar="DIR", help=folder_text)
    parser.add_argument("--behavior", metavar="NAME", help="which one, where the run has several")
    episodes = _number("a whole number, at least 1", int, 1, 2**31)
    parser.add_argument("--episodes", type=episodes, default=100, metavar="N", help="how many (default 100)")
    checkpoint_text = "newest, best or a step (default newest)"
    parser.add_argument("--checkpoint", type=_checkpoint, default="newest", metavar="WHICH", help=checkpoint_text)
    seed = _number("a whole number from 0 to 4294967295", int, 0, 2**32 - 1)
    parser.add_argument("--seed", type=seed, default=1, metavar="N", help="of environments and draws (default 1)")
    parser.add_argument("--stochastic", action="store_true", help="draw actions, as in training")
    parser.add_argument("--onnx", action="store_true", help="act by the file that was exported at that checkpoint")
    record_text = "write the first episodes to a .gif or .mp4 (needs the extra `record`)"
    parser.add_argument("--record", metavar="FILE", help=record_text)
    parser.add_argument("--progress", action="store_true", help="say on stderr how far it is, about once a second")
    typed = understood(parser, words)
    return EvaluateArguments(
        run=typed.run,
        results_dir=typed.results_dir,
        behavior=typed.behavior,
        episodes=typed.episodes,
        checkpoint=typed.checkpoint,
        seed=typed.seed,
        is_stochastic=typed.stochastic,
        is_onnx=typed.onnx,
        record=typed.record,
        shows_progress=typed.progress,
    )


def parse_check(words: Sequence[str]) -> CheckArguments:
    """Whether there is such an environment is not known yet."""
    parser = argparse.ArgumentParser(
        "rl-tui check-env",
        description="Make an environment, act in it at random, and say whether it can be trained in.",
    )
    parser.add_argument("env", metavar="NAME", help="as env in a file: package.module:factory, gymnasium:ID, ...")
    kwargs_text = "env_kwargs as JSON, e.g. '{\"length\": 12}'"
    parser.add_argument("--env-kwargs", type=_mapping, default={}, metavar="JSON", help=kwargs_text)
    copies = _number("a whole number from 1 to 1024", int, 1, 1024)
    parser.add_argument("--num-envs", type=copies, default=2, metavar="N", help="copies (default 2)")
    steps = _number("a whole number, at least 1", int, 1, 2**31)
    parser.add_argument("--steps", type=steps, default=500, metavar="N", help="of each agent (default 500)")
    seed = _number("a whole number from 0 to 4294967295", int, 0, 2**32 - 1)
    parser.add_argument("--seed", type=seed, default=1, metavar="N", help="of environments and actions (default 1)")
    timeout = _number("a whole number, at least 1", int, 1, 2**31)
    timeout_text = "seconds until a call counts as hung (default 60)"
    parser.add_argument("--timeout-wait", type=timeout, default=60, metavar="S", help=timeout_text)
    typed = understood(parser, words)
    return CheckArguments(typed.env, typed.env_kwargs, typed.num_envs, typed.steps, typed.seed, typed.timeout_wait)


def parse_ls(words: Sequence[str]) -> ListArguments:
    """Leaves through SystemExit for --help and mistakes (code 2); so do the others."""
    parser = argparse.ArgumentParser("rl-tui ls", description="List the runs of a folder, the newest first.")
    parser.add_argument("results_dir", nargs="?", metavar="RESULTS_DIR", help=f"default {RESULTS_DIR}")
    parser.add_argument("--json", action="store_true", help="one JSON object per run and line, with all that is known")
    typed = understood(parser, words)
    return ListArguments(typed.results_dir, typed.json)


def parse_runs(words: Sequence[str]) -> RunsArguments:
    """Whether there is such a folder is not known yet."""
    parser = argparse.ArgumentParser(
        "rl-tui runs",
        description="Look at the runs of a folder on a screen: sort, group and compare them, resume, evaluate, delete.",
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("results_dir", nargs="?", default=None, metavar="RESULTS_DIR", help=f"default {RESULTS_DIR}")
    add_look_flags(parser)
    typed = understood(parser, words)
    return RunsArguments(typed.results_dir, look_of(vars(typed)))


def parse_upgrade(words: Sequence[str]) -> UpgradeArguments:
    """Nothing is read or written yet."""
    parser = argparse.ArgumentParser(
        "rl-tui upgrade-config",
        description="Rewrite a configuration of an older ML-Agents in today's format. Comments are lost.",
    )
    parser.add_argument("source", metavar="IN", help="the file to read; it stays as it is")
    parser.add_argument("target", metavar="OUT", help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")
    typed = understood(parser, words)
    return UpgradeArguments(typed.source, typed.target, typed.force)


def parse_demo(words: Sequence[str]) -> DemoArguments:
    """Every number is within what the demo can tell."""
    parser = argparse.ArgumentParser(
        "rl-tui demo",
        description="Try every key on a made-up run. Nobody trains, and nothing is written to disk.",
        argument_default=argparse.SUPPRESS,
    )
    speed = _number("a number from 0 to 100000", float, 0, 100_000)
    parser.add_argument("--speed", type=speed, default=10.0, metavar="X", help="of its time (default 10)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another one, another story (default 1)")
    behaviors = _number("a whole number from 1 to 12", int, 1, 12)
    parser.add_argument("--behaviors", type=behaviors, default=3, metavar="N", help="1 to 12 (default 3)")
    hours = _number("a number from 0 to 24", float, 0, 24)
    parser.add_argument("--hours", type=hours, default=HOURS, metavar="H", help=f"of past, 0 to 24 (default {HOURS})")
    add_look_flags(parser)
    typed = understood(parser, words)
    return DemoArguments(typed.speed, typed.seed, typed.behaviors, typed.hours, look_of(vars(typed)))


def parse_replay(words: Sequence[str]) -> ReplayArguments:
    """Whether there is such a run is not known yet."""
    parser = argparse.ArgumentParser(
        "rl-tui replay",
        description="Watch a recorded run again. On the screen, < and > change the speed, ( and ) go back and forward.",
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("run", metavar="RUN", help="its id, its folder, or a file of events")
    folder_text = f"where runs are kept (default {RESULTS_DIR})"
    parser.add_argument("--results-dir", default=RESULTS_DIR, metavar="DIR", help=folder_text)
    speed = _number("a number, at least 0", float, 0, math.inf)
    parser.add_argument("--speed", type=speed, default=None, metavar="X", help="default: it takes about a minute")
    add_look_flags(parser)
    typed = understood(parser, words)
    return ReplayArguments(typed.run, typed.results_dir, typed.speed, look_of(vars(typed)))


def _mapping(text: str) -> dict[str, object]:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f'found {text!r}, expected a JSON object such as {{"length": 12}}')
    return value


def _checkpoint(text: str) -> str:
    if text in ("newest", "best") or (text.isascii() and text.isdigit()):
        return text
    raise argparse.ArgumentTypeError(f"found {text!r}, expected newest, best or a step")


def _number(expected: str, kind: Callable[[str], float], low: float, high: float) -> Callable[[str], float]:
    """What reads a flag's number between these bounds; `expected` names it where it is none."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"found {text!r}, expected {expected}")
        return value

    return read
