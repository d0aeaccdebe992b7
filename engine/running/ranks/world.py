"""Which rank of how many this process is, as the program that started it says in its environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.engine.errors import ConfigError

KEY: Final = "RL_TUI_RANKS_KEY"  # a secret of the ranks; set for those that are started here, and else by the user
LIFELINE: Final = "RL_TUI_RANKS_LIFELINE"  # for those that are started here: a descriptor that closes when rank 0 ends
AGENT_STORE: Final = "TORCHELASTIC_USE_AGENT_STORE"  # torchrun listens at MASTER_PORT itself
KEY_BYTES = 32
FIRST_PORT, NUM_PORTS = 20_000, 20_000  # of a Slurm job, below those that Linux gives to connections


@dataclass(frozen=True, slots=True)
class World:
    """A rank, from 0, of `size`. local_rank, local_size: among those of this machine. address, port: where rank 0 is
    found. launcher: what started the ranks, for messages. key: a secret that they share, "" without any.
    is_started_here: rank 0 has started this process, to which its output and its signals belong."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    address: str
    port: int
    launcher: str
    key: str = ""
    is_started_here: bool = False


def new_key() -> str:
    """A secret for the ranks of one run."""
    return os.urandom(KEY_BYTES).hex()


def world_of(environment: Mapping[str, str]) -> World | None:
    """What the variables of torchrun, or of Slurm's `srun`, say; None where there are no others. Raises ConfigError
    where they are incomplete."""
    if "RANK" in environment or "WORLD_SIZE" in environment:
        return _of_torch(environment)
    if _number(environment, "SLURM_STEP_NUM_TASKS", default=1) > 1:
        return _of_slurm(environment)
    return None


def _of_torch(environment: Mapping[str, str]) -> World | None:
    if _number(environment, "WORLD_SIZE", default=2, low=1) == 1:
        return None
    missing = [name for name in ("RANK", "WORLD_SIZE") if name not in environment]
    missing += [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in environment]
    if missing:
        found = next(name for name in ("RANK", "WORLD_SIZE") if name in environment)
        raise ConfigError(
            f"{found}={environment[found]} is set in the environment, but not {', '.join(missing)}: torchrun sets"
            f" all of them for several ranks. For a run on its own, unset {found}"
        )
    size = _number(environment, "WORLD_SIZE", low=1)
    rank = _number(environment, "RANK", high=size - 1)
    is_started_here, has_agent = LIFELINE in environment, environment.get(AGENT_STORE) == "True"
    return World(
        rank=rank,
        size=size,
        local_rank=_number(environment, "LOCAL_RANK", default=0),
        local_size=_number(environment, "LOCAL_WORLD_SIZE", default=1, low=1),
        address=environment["MASTER_ADDR"],
        port=_number(environment, "MASTER_PORT", high=65535),
        launcher="rl-tui" if is_started_here else "torchrun" if has_agent else "a program that sets RANK",
        key=environment.get(KEY, ""),
        is_started_here=is_started_here,
    )


def _of_slurm(environment: Mapping[str, str]) -> World:
    """Variables of a job step: a job's script has no step, and is no rank."""
    size = _number(environment, "SLURM_STEP_NUM_TASKS")
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_NODELIST", "")
    tasks = environment.get("SLURM_STEP_TASKS_PER_NODE", "1").split(",")
    node = _number(environment, "SLURM_NODEID", default=0)
    job = _number(environment, "SLURM_JOB_ID", default=0) + _number(environment, "SLURM_STEP_ID", default=0)
    port = _number(environment, "MASTER_PORT", default=FIRST_PORT + job % NUM_PORTS, high=65535)
    return World(
        rank=_number(environment, "SLURM_PROCID", high=size - 1),
        size=size,
        local_rank=_number(environment, "SLURM_LOCALID", default=0),
        local_size=_tasks_of_node(tasks, node),
        address=environment.get("MASTER_ADDR") or first_host(nodes),
        port=port,
        launcher="srun",
        key=environment.get(KEY, ""),
    )


def _tasks_of_node(tasks: list[str], node: int) -> int:
    """Of a list like 2(x3),1: two tasks on each of three nodes, and one on the fourth."""
    for each in tasks:
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", each)
        if found is None:
            return 1
        node -= int(found[2] or 1)
        if node < 0:
            return int(found[1])
    return 1


def first_host(nodes: str) -> str:
    """The first name in Slurm's short form of a list of hosts, such as gpu[01-03,07],login or rack[1-2]n[1-8]. Raises
    ConfigError."""
    found = re.match(r"(?:[^\[,]|\[\w+[^\]]*\])+", nodes)
    if found is None:
        raise ConfigError(f"SLURM_STEP_NODELIST={nodes} names no host: set MASTER_ADDR to that of rank 0")
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", found[0])


def _number(
    environment: Mapping[str, str], name: str, default: int | None = None, low: int = 0, high: int | None = None
) -> int:
    text = environment.get(name)
    if text is None:
        if default is None:
            raise ConfigError(f"{name} is not set in the environment: torchrun and srun set it for each rank")
        return default
    if not re.fullmatch(r"\d+", text) or int(text) < low or (high is not None and int(text) > high):
        bound = f"a whole number from {low}" + (f" to {high}" if high is not None else "")
        raise ConfigError(f"{name}, in the environment, {must_be(bound, text)}")
    return int(text)
