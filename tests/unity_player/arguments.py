"""The arguments of a stand-in player: Unity's, and its own, which come before or after them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tests.unity_player.trouble import Trouble, in_turn, trouble

EDITOR_PORT = 5004
TASKS = "ball", "basic", "visual", "groups", "teams", "crowd", "soccer", "goalie"
CAPABILITIES = (
    "baseRLCapabilities",
    "concatenatedPngObservations",
    "compressedChannelMapping",
    "hybridActions",
    "trainingAnalytics",
    "variableLengthObservation",
    "multiAgentGroups",
)


class Options(argparse.Namespace):
    """What a player was started with; see `parser`."""

    port: int | None
    log: Path | None
    no_graphics: bool
    batch_mode: bool
    task: str
    behavior: str
    spec: str | None
    agents: int | None
    max_steps: int
    ids: str
    games: Path | None
    communication_version: str
    package_version: str
    without: list[str]
    deprecated_actions: bool
    statistics: bool
    record: Path | None
    editor: bool
    wrapper: bool
    trouble: list[Trouble]
    trouble_once: Path | None
    trouble_on_port: int | None
    trouble_in_turn: Path | None
    slow_start: float
    slow_step: tuple[float, float]
    stays_alive: bool
    refuses_to_quit: bool
    never_connects: bool
    lifetime: int
    ignored: list[str]


def parser() -> argparse.ArgumentParser:
    """Which arguments there are."""
    made = argparse.ArgumentParser("unity_player", allow_abbrev=False)
    unity = made.add_argument_group("as Unity's players have them")
    unity.add_argument("--mlagents-port", type=int, dest="port")
    unity.add_argument("-logFile", "-logfile", type=Path, dest="log")
    unity.add_argument("-nographics", action="store_true", dest="no_graphics")
    unity.add_argument("-batchmode", action="store_true", dest="batch_mode")
    world = made.add_argument_group("what is in it")
    world.add_argument("--task", default="ball", choices=TASKS)
    world.add_argument("--behavior", default="", help="its name, instead of the task's own")
    world.add_argument("--spec", help="crowd: its behaviors, as JSON or a file of it; see crowd.py")
    world.add_argument("--agents", type=int, help="how many of each behavior, instead of the task's own number")
    world.add_argument("--max-steps", type=int, default=1000, help="after which an episode is interrupted")
    world.add_argument("--ids", choices=("stay", "change"), default="stay", help="of an agent over its episodes")
    world.add_argument("--games", type=Path, help="a file that players add a line to before they say that games ended")
    said = made.add_argument_group("how it speaks")
    said.add_argument("--communication-version", default="1.5.0")
    said.add_argument("--package-version", default="3.0.0", help="floats of images are C, H, W from 4.0.1 on only")
    said.add_argument("--without", action="append", default=[], choices=CAPABILITIES, help="a capability it lacks")
    said.add_argument("--deprecated-actions", action="store_true", help="as packages before hybrid actions")
    said.add_argument("--statistics", action="store_true", help="send some of each kind with every message")
    said.add_argument("--record", type=Path, help="a folder for NNNN.request and NNNN.response")
    said.add_argument(
        "--editor", action="store_true", help="connect to port 5004, or the one given, as the Editor does"
    )
    _add_trouble(made.add_argument_group("trouble"))
    return made


def _add_trouble(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--wrapper", action="store_true", help="the player is a child of this process")
    group.add_argument("--trouble", type=trouble, action="append", default=[], help="KIND@REQUEST; see trouble.py")
    group.add_argument("--trouble-once", type=Path, help="none where this file exists, which trouble creates")
    group.add_argument("--trouble-on-port", type=int, help="only of the player with this port")
    group.add_argument(
        "--trouble-in-turn", type=Path, help="only one: the n-th where this file was used n times before"
    )
    group.add_argument("--slow-start", type=float, default=0.0, help="seconds")
    group.add_argument(
        "--slow-step", type=_seconds, default=(0.0, 0.0), help="seconds, or from-to, drawn for each step"
    )
    group.add_argument("--stays-alive", action="store_true", help="also without a trainer, and when asked to end")
    group.add_argument("--refuses-to-quit", action="store_true", help="whether the trainer or a signal asks for it")
    group.add_argument("--never-connects", action="store_true")
    group.add_argument("--lifetime", type=int, default=600, help="seconds after which it is gone in any case")


def _seconds(words: str) -> tuple[float, float]:
    low, _, high = words.partition("-")
    return float(low), float(high or low)


def parse(arguments: Sequence[str]) -> Options:
    """What it does not know is ignored, as Unity does."""
    options, rest = parser().parse_known_args(arguments, Options())
    options.ignored = rest
    if options.editor and options.port is None:
        options.port = EDITOR_PORT
    if options.trouble_in_turn is not None:
        options.trouble = [in_turn(options.trouble, options.trouble_in_turn)]
    return options
