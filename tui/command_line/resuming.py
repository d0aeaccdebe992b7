"""The command line that goes on with a run, made from the one that started it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rl_tui.engine.session.states import ENDS
from rl_tui.engine.session.view import RunView

HOW_IT_BEGAN = {"--run-id": True, "--initialize-from": True, "--resume": False, "--force": False}  # takes a value?
REST = "--env-args"  # whatever follows is the player's


def can_be_resumed(view: RunView) -> bool:
    """Whether the run ended before its time, and has a checkpoint to go on from."""
    has_more_to_do = view.state in ENDS and view.state != "finished"
    return has_more_to_do and any(behavior.checkpoints for behavior in view.behaviors.values())


def resume_command(words: Sequence[str], run_id: str) -> str:
    """What to type in a shell. words: the command line that started the run, without the program's name."""
    end = words.index(REST) if REST in words else len(words)
    kept, is_value = [], False
    for word in words[:end]:
        flag = "" if is_value else _how_it_began(word)
        if not flag and not is_value:
            kept.append(word)
        is_value = bool(flag) and HOW_IT_BEGAN[flag] and "=" not in word
    return shlex.join(["rl-tui", *kept, "--run-id", run_id, "--resume", *words[end:]])


def _how_it_began(word: str) -> str:
    """The flag that it is, in full or as short as argparse takes it; "" for another word."""
    typed = word.partition("=")[0]
    flags = [flag for flag in HOW_IT_BEGAN if len(typed) > len("--") and flag.startswith(typed)]
    return flags[0] if len(flags) == 1 else ""
