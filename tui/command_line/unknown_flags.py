"""Unknown arguments of a command line: flags that ML-Agents once had, misspelled flags, and extra arguments.

The flags that ML-Agents once had are from its migration notes, up to release 0.16.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rl_tui.engine.config.diagnostics import closest, suggest, visible

_PARAMETERS = "Parameters of an environment and curricula belong in the file, under environment_parameters"

REMOVED = {
    "--multi-gpu": (
        "Use --torch-device to select one device. The engine's updates already work over several processes, but no"
        " command starts them yet"
    ),
    "--cpu": "--torch-device cpu trains on the CPU",
    "--save-freq": "Each behavior has its own interval: --set behaviors.NAME.checkpoint_interval=50000",
    "--keep-checkpoints": "Each behavior has its own number: --set behaviors.NAME.keep_checkpoints=5",
    "--lesson": "A run begins at the first lesson, and goes to another by itself or by hand while it trains",
    "--curriculum": _PARAMETERS,
    "--sampler": _PARAMETERS,
    "--num-runs": "One command is one run: start several, each with its own --run-id and --seed",
    "--worker-id": "--base-port is the port of the first player, and each further one has the next",
    "--slow": "--time-scale 1 is real time",
    "--docker-target-name": "--results-dir names the folder of the results",
}


def explain(words: Sequence[str], flags: Iterable[str], command: str) -> str:
    """One line for every unknown flag among the words. flags: those that the command has."""
    known = list(flags)
    removed = REMOVED if command == "rl-tui" else {}
    unknown = [word.partition("=")[0] for word in words if word.startswith("--")]
    if not unknown:
        return f"unexpected arguments: {' '.join(map(visible, words))}"
    return "\n".join(
        f"{visible(flag)}: no such flag.{_hint(flag, known, removed, command)}" for flag in dict.fromkeys(unknown)
    )


def _hint(flag: str, known: Sequence[str], removed: Mapping[str, str], command: str) -> str:
    close = closest(flag, [*known, *removed])
    if close is not None and close in removed:
        return f" {removed[close]}"
    return suggest(flag, known) or f" `{command} --help` lists them"
