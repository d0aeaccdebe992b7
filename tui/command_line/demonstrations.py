"""`rl-tui demonstrations`: what .demo files hold, and new ones of what a policy does."""

from __future__ import annotations

import os
from argparse import SUPPRESS, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.config.diagnostics import must_be_one_of, one_of
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.process.imports import imports_that_stay
from rl_tui.engine.session.text import counted, safe_text
from rl_tui.tui.command_line.command_arguments import (
    FOLDER_TEXT,
    RESULTS_DIR,
    SEED_TEXT,
    add_environment_flags,
    checkpoint_name,
)
from rl_tui.tui.command_line.flag_parser import FlagParser, parse
from rl_tui.tui.command_line.play import PlayArguments, play
from rl_tui.tui.command_line.train_arguments import add_screen_flags, number, screen_options
from rl_tui.tui.terminal.streams import write_stderr, write_stdout

if TYPE_CHECKING:
    from rl_tui.engine.running.evaluation.saved_policy import Way

SUFFIX = ".demo"
DESCRIPTION = """\
Show what demonstrations hold, or record what a policy or a person does.

actions:
  info FILE...     agents, steps, episodes, returns, observations and actions
  record RUN FILE  play a trained policy, and write its episodes to FILE
  play ENV FILE    play an environment yourself, and write your episodes to FILE
Each has its own --help.
"""


@dataclass(frozen=True, slots=True)
class InfoArguments:
    """`rl-tui demonstrations info`. files: .demo files, folders of them, or `minari:NAME`."""

    files: tuple[str, ...]
    is_json: bool


@dataclass(frozen=True, slots=True)
class RecordArguments:
    """`rl-tui demonstrations record`. checkpoint: newest, best or a step; behavior: None if it was not typed."""

    run: str
    file: str
    results_dir: str
    behavior: str | None
    episodes: int
    checkpoint: str
    seed: int
    way: Way
    is_forced: bool


def demonstrations(words: Sequence[str]) -> int:
    """Do what the first word says. Raises RlTuiError; SystemExit for --help and errors (code 2)."""
    parser = FlagParser(
        "rl-tui demonstrations",
        description=DESCRIPTION,
        formatter_class=RawDescriptionHelpFormatter,
        usage="%(prog)s ACTION ...",
    )
    if not words or words[0].startswith("-"):
        parse(parser, words)
        parser.error(f"an action must be given, {one_of(ACTIONS)}")
    action, *rest = words
    if action not in ACTIONS:
        parser.error(must_be_one_of(list(ACTIONS), action))
    return ACTIONS[action](rest)


def parse_info(words: Sequence[str]) -> InfoArguments:
    """Does not look whether the files exist."""
    parser = FlagParser(
        "rl-tui demonstrations info",
        description="Print what demonstrations hold: agents, steps, episodes, returns, observations and actions.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a .demo file, a folder of them, or minari:NAME")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line and FILE, with every field")
    typed = parse(parser, words)
    return InfoArguments(tuple(typed.files), typed.json)


def parse_record(words: Sequence[str]) -> RecordArguments:
    """Does not look whether the run exists."""
    parser = FlagParser(
        "rl-tui demonstrations record",
        description="Play a trained policy in the environment of its run, and write its episodes to a .demo file, "
        "which ML-Agents reads, too.",
    )
    parser.add_argument("run", metavar="RUN", help="id or folder of the run")
    parser.add_argument("file", metavar="FILE", help="the .demo file to write")
    parser.add_argument("--results-dir", default=RESULTS_DIR, metavar="DIR", help=FOLDER_TEXT)
    parser.add_argument("--behavior", metavar="NAME", help="which behavior, if the run has several")
    episodes = number("a whole number, at least 1", int, 1, 2**31)
    parser.add_argument("--episodes", type=episodes, default=10, metavar="N", help="number of episodes (default 10)")
    checkpoint_text = "newest, best or a step (default newest)"
    parser.add_argument("--checkpoint", type=checkpoint_name, default="newest", metavar="WHICH", help=checkpoint_text)
    seed = number("a whole number from 0 to 4294967295", int, 0, 2**32 - 1)
    parser.add_argument("--seed", type=seed, default=1, metavar="N", help=SEED_TEXT)
    sampled_text = "with sampled actions, as in training (default: the most likely ones, or their mean)"
    parser.add_argument(
        "--stochastic", dest="way", action="store_const", const="sampled", default="greedy", help=sampled_text
    )
    parser.add_argument("--force", dest="is_forced", action="store_true", help="replace FILE if it exists")
    return RecordArguments(**vars(parse(parser, words)))


def parse_play(words: Sequence[str]) -> PlayArguments:
    """Does not look whether the environment exists."""
    parser = FlagParser(
        "rl-tui demonstrations play",
        description="Play an environment with the keyboard, action by action, and write the episodes to a .demo file, "
        "which ML-Agents reads, too. It must have one agent, with one choice among several actions.",
        argument_default=SUPPRESS,
    )
    parser.add_argument("env", metavar="ENV", help="as env in a file: gymnasium:ID, toy:NAME, package.module:factory")
    parser.add_argument("file", metavar="FILE", help="the .demo file to write")
    add_environment_flags(parser)
    episodes = number("a whole number, at least 1", int, 1, 2**31)
    episodes_text = "end after so many complete episodes (default: play until q is pressed)"
    parser.add_argument("--episodes", type=episodes, default=None, metavar="N", help=episodes_text)
    seed = number("a whole number from 0 to 4294967295", int, 0, 2**32 - 1)
    seed_text = "seed of the environment (default 1)"
    parser.add_argument("--seed", type=seed, default=1, metavar="N", help=seed_text)
    force_text = "replace FILE if it exists"
    parser.add_argument("--force", dest="is_forced", action="store_true", default=False, help=force_text)
    add_screen_flags(parser, without=("readonly", "no_bell", "no_title"))
    typed = parse(parser, words)
    return PlayArguments(
        env=typed.env,
        file=typed.file,
        kwargs=typed.env_kwargs,
        wrappers=typed.wrappers,
        episodes=typed.episodes,
        seed=typed.seed,
        is_forced=typed.is_forced,
        options=screen_options(vars(typed)),
    )


def print_info(arguments: InfoArguments) -> int:
    """What each file holds is on stdout. Raises DemonstrationError."""
    from rl_tui.engine.demonstrations.opening import open_demonstrations
    from rl_tui.engine.demonstrations.summary import require_decodable, summarize
    from rl_tui.tui.command_line.demonstration_text import json_line, paragraph

    for position, path in enumerate(arguments.files):
        opened = open_demonstrations(path, keep_bytes=0)
        require_decodable(opened)
        summary = summarize(opened, path)
        if arguments.is_json:
            write_stdout(json_line(summary))
        else:
            write_stdout(("\n" if position else "") + paragraph(summary))
    return 0


def writable_path(file: str, *, is_forced: bool) -> Path:
    """Where the .demo file is written, whatever the working directory is by then. Raises ConfigError."""
    path = Path(file).absolute()
    if path.suffix != SUFFIX:
        raise ConfigError(f"{file}: must end with {SUFFIX}")
    if os.path.lexists(path) and not is_forced:
        raise ConfigError(f"{file}: already exists; choose another name or use --force")
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"{file}: must be a file in a folder that exists")
    return path


def play_by_hand(arguments: PlayArguments) -> int:
    """A person has played, and the complete episodes are in the file. Raises RlTuiError."""
    return play(arguments, writable_path(arguments.file, is_forced=arguments.is_forced))


def record(arguments: RecordArguments) -> int:
    """The episodes are in the file, and stdout says how many. Raises RlTuiError."""
    path = writable_path(arguments.file, is_forced=arguments.is_forced)
    from rl_tui.engine.storage.archive import Archive

    run = Archive(Path(arguments.results_dir)).resolve(arguments.run)
    with imports_that_stay():
        from rl_tui.engine.running.evaluation.saved_policy import EvaluationRequest, SavedRun, ignore_return_of_way
        from rl_tui.engine.running.runtime import limit_threads
    limit_threads()
    played = SavedRun(run.parent if run.is_file() else run).play(
        EvaluationRequest(
            behavior=arguments.behavior,
            episodes=arguments.episodes,
            checkpoint=arguments.checkpoint,
            seed=arguments.seed,
            ways=(arguments.way,),
            demonstrations=path,
        ),
        ignore_return_of_way,
        lambda level, text: write_stderr(text) if level in ("warning", "error") else None,
    )
    for reason in played.skipped:
        write_stderr(f"a checkpoint was skipped: {reason}")
    scores = played.scores[arguments.way]
    text = (
        f"{played.behavior} at step {played.step}, seed {arguments.seed}, {arguments.way}: "
        f"{counted(len(scores.returns), 'episode')}, {scores.lengths.sum():,} steps, "
        f"mean return {scores.returns.mean():.6g}"
    )
    write_stdout(safe_text(text) + "\n")
    write_stdout(safe_text(f"recorded    {path}") + "\n")
    return 0


ACTIONS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "info": lambda words: print_info(parse_info(words)),
    "record": lambda words: record(parse_record(words)),
    "play": lambda words: play_by_hand(parse_play(words)),
}
