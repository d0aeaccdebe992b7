"""Several ranks: what the flags, and the variables of a launcher, ask for."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.ranks.requested import JOIN_SECONDS, RanksRequest, RequestedRanks
from rl_tui.engine.running.ranks.world import world_of
from rl_tui.tui.command_line.train_arguments import TrainArguments, flag_of


def ranks_request(arguments: TrainArguments, environment: Mapping[str, str] = os.environ) -> RanksRequest | None:
    """The ranks of this command line; None for a run on its own. Raises ConfigError."""
    world = world_of(environment)
    seconds = JOIN_SECONDS if arguments.join_seconds is None else arguments.join_seconds
    if world is not None and world.is_started_here:
        return RanksRequest(world=world, seconds=seconds)
    gpus, num_ranks = arguments.gpus, arguments.num_ranks
    if world is not None and (gpus is not None or num_ranks > 1):
        flag = flag_of("ranks" if gpus is None else "multi_gpu" if gpus == "all" else "gpus")
        text = f"{flag} starts ranks itself, and this is one of {world.size} that {world.launcher} has started"
        raise ConfigError(f"{text}: leave the flag out")
    if world is None and gpus is None and num_ranks == 1:
        return None
    return RanksRequest(num_ranks, gpus, world, seconds, ("--no-ui", *arguments.words))


def requested_ranks(arguments: TrainArguments) -> RequestedRanks | None:
    """How this process joins them. Raises ConfigError."""
    request = ranks_request(arguments)
    return None if request is None else RequestedRanks(request)
