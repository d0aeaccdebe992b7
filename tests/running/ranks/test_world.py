"""What launchers say in the environment, and what is refused."""

from __future__ import annotations

import pytest

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.ranks.world import FIRST_PORT, KEY, LIFELINE, World, first_host, world_of

TORCH = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "gpu01", "MASTER_PORT": "29500"}
SLURM = {
    "SLURM_STEP_NUM_TASKS": "6", "SLURM_PROCID": "4", "SLURM_LOCALID": "0", "SLURM_NODEID": "2",
    "SLURM_STEP_NODELIST": "gpu[07-08,11]", "SLURM_STEP_TASKS_PER_NODE": "2(x2),1", "SLURM_JOB_ID": "41",
    "SLURM_STEP_ID": "1",
}  # fmt: skip


@pytest.mark.parametrize(
    "environment",
    [{}, {"RANK": "0", "WORLD_SIZE": "1"}, {"WORLD_SIZE": "1"}, {"SLURM_JOB_ID": "7"}, {"SLURM_STEP_NUM_TASKS": "1"}],
)
def test_process_without_others_is_no_rank(environment: dict[str, str]) -> None:
    assert world_of(environment) is None


def test_variables_of_torchrun() -> None:
    more = {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    assert world_of(TORCH | more) == World(1, 4, 1, 2, "gpu01", 29500, "torchrun")
    by_hand = world_of(TORCH)
    assert by_hand == World(1, 4, 0, 1, "gpu01", 29500, "a program that sets RANK")
    assert not by_hand.is_started_here
    own = world_of(TORCH | {KEY: "secret", LIFELINE: "7"})
    assert own is not None
    assert own.is_started_here
    assert "secret" not in repr(world_of(TORCH))


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"RANK": "0"}, "RANK=0 is set in the environment, but not WORLD_SIZE, MASTER_ADDR, MASTER_PORT"),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE=2 is set in the environment, but not RANK, MASTER_ADDR"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "but not MASTER_ADDR, MASTER_PORT: torchrun sets all of them"),
        (TORCH | {"RANK": "4"}, "RANK, in the environment, must be a whole number from 0 to 3, got"),
        (TORCH | {"RANK": "-1"}, "RANK, in the environment, must be a whole number from 0 to 3, got"),
        (TORCH | {"RANK": ""}, "RANK, in the environment, must be a whole number from 0 to 3, got"),
        (TORCH | {"WORLD_SIZE": "0"}, "WORLD_SIZE, in the environment, must be a whole number from 1, got"),
        (TORCH | {"WORLD_SIZE": "two"}, "WORLD_SIZE, in the environment, must be a whole number from 1, got"),
        (TORCH | {"MASTER_PORT": "70000"}, "MASTER_PORT, in the environment, must be a whole number from 0 to 65535"),
        (TORCH | {"LOCAL_WORLD_SIZE": "0"}, "LOCAL_WORLD_SIZE, in the environment, must be a whole number from 1"),
        ({key: SLURM[key] for key in SLURM if key != "SLURM_PROCID"}, "SLURM_PROCID is not set in the environment"),
        (SLURM | {"SLURM_PROCID": "6"}, "SLURM_PROCID, in the environment, must be a whole number from 0 to 5"),
        (SLURM | {"SLURM_STEP_NODELIST": ""}, "names no host: set MASTER_ADDR"),
    ],
)
def test_variables_that_say_no_rank_are_named(environment: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        world_of(environment)
    assert text in str(caught.value)


def test_variables_of_srun() -> None:
    assert world_of(SLURM) == World(4, 6, 0, 1, "gpu07", FIRST_PORT + 42, "srun")
    named = world_of(SLURM | {"MASTER_ADDR": "head", "MASTER_PORT": "1234", "SLURM_NODEID": "1"})
    assert named == World(4, 6, 0, 2, "head", 1234, "srun")


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("gpu01", "gpu01"),
        ("gpu[01-03,07],login", "gpu01"),
        ("gpu[7,9]", "gpu7"),
        ("a,b", "a"),
        ("rack-[1-2]-node", "rack-1-node"),
        ("node[09-10].cluster", "node09.cluster"),
        ("rack[1-2]n[3-4]", "rack1n3"),
        ("rack[1-2]n[3-4].x,login[1-2]", "rack1n3.x"),
    ],
)
def test_first_host_of_a_list(nodes: str, first: str) -> None:
    assert first_host(nodes) == first
