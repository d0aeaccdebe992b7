"""Saved policies that play against each other, from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rl_tui.engine.api.plain_failures import plain_failures
from rl_tui.engine.api.policies import is_whole
from rl_tui.engine.api.run_keywords import argument_of
from rl_tui.engine.config.naming import naming
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.arena.arena import play_arena
from rl_tui.engine.running.arena.request import ArenaRequest, ArenaResult


def arena(
    *entrants: str | os.PathLike[str],
    games: int = 100,
    seed: int = 1,
    greedy: bool = False,
    behavior: str | None = None,
    with_random: bool = True,
    results_dir: str | os.PathLike[str] = "results",
    env: str | None = None,
    env_kwargs: Mapping[str, object] | None = None,
    num_envs: int | None = None,
    set: Mapping[str, object] | None = None,  # noqa: A002  # as the flag, and as `rl_tui.train` has it
) -> ArenaResult:
    """Let every pair play so many games, and rate them, as `rl-tui arena` does.

    entrants: runs, by id or folder, or RUN@STEP; folders of checkpoints; ONNX files; "random". greedy: with the
    likeliest actions, instead of sampled ones. behavior: which one, if a run has several environments, or a team
    several behaviors. env, env_kwargs: another environment than that of the first run. num_envs: copies of it. set:
    settings of the first run by dotted path, e.g. how games are decided. Raises RlTuiError.
    """
    for name, number in (("games", games), ("num_envs", 1 if num_envs is None else num_envs)):
        if not is_whole(number) or number < 1:
            raise ConfigError(f"{name}: must be a whole number of at least 1, got {number!r}")
    if not is_whole(seed) or not 0 <= seed < 2**32:
        raise ConfigError(f"seed: must be a whole number from 0 to 4294967295, got {seed!r}")
    if not entrants:
        raise ConfigError("entrants: must be at least one run, checkpoint or ONNX file, got none")
    given = {"env": env, "env_kwargs": None if env_kwargs is None else dict(env_kwargs), "num_envs": num_envs}
    request = ArenaRequest(
        entrants=[os.fspath(entrant) for entrant in entrants],
        results_dir=Path(results_dir),
        games=games,
        seed=seed,
        way="greedy" if greedy else "sampled",
        behavior=behavior,
        with_random=with_random,
        overrides={
            **{f"env_settings.{name}": value for name, value in given.items() if value is not None},
            **(set or {}),
        },
    )
    with naming(argument_of), plain_failures():
        return play_arena(request)
