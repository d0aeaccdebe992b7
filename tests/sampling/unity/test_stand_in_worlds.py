"""Every world of the stand-in player keeps to what Unity's agents do, and makes trouble only on demand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import psutil
import pytest
import yaml

from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages
from tests.deadline import DEADLINE_SECONDS
from tests.unity_player.arguments import CAPABILITIES, TASKS, parse
from tests.unity_player.executable import make_player
from tests.unity_player.messages import ActionsMismatch, Acts, Brain, Said, Speech
from tests.unity_player.official import official_spec
from tests.unity_player.trainer import Trainer, agents
from tests.unity_player.trouble import CHANGES, trouble
from tests.unity_player.worlds import World, make_world

ALL = messages.UnityRLCapabilitiesProto(**dict.fromkeys(CAPABILITIES, True))
Infos = Mapping[str, list[messages.AgentInfoProto]]


def world_of(*arguments: str) -> World:
    return make_world(parse(arguments), 1, 1, Speech(ALL))


def infos(said: Said) -> Infos:
    return {name: list(messages.AgentInfoListProto.FromString(content).value) for name, content in said.lists.items()}


def allowed(brain: Brain, waiting: list[messages.AgentInfoProto]) -> Acts:
    """For each branch the first choice that is not forbidden."""
    discrete = np.zeros((len(waiting), len(brain.branches)), np.int32)
    for row, info in enumerate(waiting):
        first = 0
        for branch, size in enumerate(brain.branches):
            mask = info.action_mask[first : first + size] or [False] * size
            discrete[row, branch], first = list(mask).index(False), first + size
    return Acts(np.zeros((len(waiting), brain.continuous), np.float32), discrete)


def played(world: World, num: int) -> Iterator[Infos]:
    said = world.reset()
    for _ in range(num):
        lists = infos(said)
        waiting = {name: [info for info in some if not info.done] for name, some in lists.items()}
        assert said.waiting == {name: len(some) for name, some in waiting.items()}
        yield lists
        said = world.step({name: allowed(world.brains[name], some) for name, some in waiting.items()})


@pytest.mark.parametrize("ids", ["stay", "change"])
@pytest.mark.parametrize("task", TASKS)
def test_ids_are_unique_among_those_that_wait_and_an_end_belongs_to_an_agent_that_was_there(
    task: str, ids: str
) -> None:
    world = world_of("--task", task, "--ids", ids, "--max-steps", "15")
    present: dict[str, set[int]] = {name: set() for name in world.brains}
    ended: dict[str, list[int]] = {name: [] for name in world.brains}
    for lists in played(world, 160):
        for name, some in lists.items():
            waiting = [info.id for info in some if not info.done]
            over = [info.id for info in some if info.done]
            assert len(set(waiting)) == len(waiting)
            assert present[name] >= set(over)
            present[name] = (present[name] - set(over)) | set(waiting)
            ended[name] += over
    for some_ids in ended.values():
        assert some_ids
        assert (len(set(some_ids)) == len(some_ids)) == (ids == "change" and task != "basic")


def test_a_crowd_has_late_behaviors_absent_agents_empty_lists_masks_groups_and_ends_of_both_kinds() -> None:
    lists = list(played(world_of("--task", "crowd"), 100))
    assert [bool(some["Buffer?team=0"]) for some in lists[:6]] == [False] * 5 + [True]
    assert len({len([info for info in some["Walker?team=0"] if not info.done]) for some in lists}) > 1
    every = [info for some in lists for name in some for info in some[name]]
    assert {(info.done, info.max_step_reached) for info in every} == {(False, False), (True, False), (True, True)}
    assert {info.group_id for info in every} == {0, 1, 2}
    assert any(info.group_reward for info in every)
    assert {len(info.action_mask) for info in every} == {0, 3}
    again = [some for some in lists if {i.id for i in some["Walker?team=0"] if i.done} & waiting_ids(some)]
    assert again


def waiting_ids(lists: Infos) -> set[int]:
    return {info.id for info in lists["Walker?team=0"] if not info.done}


def test_who_acts_as_wanted_earns_one_and_who_does_not_earns_less() -> None:
    world = world_of("--task", "crowd", "--spec", '[{"name": "A", "continuous": 1, "observations": [[2]]}]')
    waiting = infos(world.reset())["A?team=0"]
    wanted = np.array([[2 * info.observations[0].float_data.data[0] - 1] for info in waiting], np.float32)
    none = np.zeros((4, 0), np.int32)
    rewards = [info.reward for info in infos(world.step({"A?team=0": Acts(wanted, none)}))["A?team=0"]]
    assert rewards == pytest.approx([1] * 4)
    rewards = [info.reward for info in infos(world.step({"A?team=0": Acts(wanted + 3, none)}))["A?team=0"]]
    assert max(rewards) < 0.5


def test_a_forbidden_choice_is_refused() -> None:
    spec = '[{"name": "A", "branches": [2], "observations": [[2]], "has_masks": true, "agents": 30}]'
    world = world_of("--task", "crowd", "--spec", spec)
    waiting = infos(world.reset())["A?team=0"]
    acts = allowed(world.brains["A?team=0"], waiting)
    acts.discrete[:] = [[list(info.action_mask).index(True) if True in info.action_mask else 0] for info in waiting]
    with pytest.raises(ActionsMismatch, match="may not choose"):
        world.step({"A?team=0": acts})


def test_images_are_sent_uncompressed_to_a_trainer_that_cannot_read_them() -> None:
    said = make_world(parse(["--task", "visual"]), 1, 1, Speech()).reset()
    seen = {one.name: one for one in infos(said)["Visual?team=0"][0].observations}
    assert [name for name, one in seen.items() if one.compression_type] == ["Color", "Mapped", "Gray"]
    assert all(len(one.float_data.data) == math.prod(one.shape) for one in seen.values() if not one.compression_type)


def test_there_is_a_world_for_every_behavior_of_the_official_files(mlagents_data: Path) -> None:
    files = sorted(mlagents_data.glob("config/*/*.yaml"))
    names = {name for file in files for name in yaml.safe_load(file.read_text())["behaviors"]}
    assert len(names) > 10
    world = world_of("--task", "crowd", "--spec", official_spec(sorted(names)))
    assert {name.partition("?")[0] for name in world.brains} == names
    for lists in played(world, 3):
        assert all(lists.values())


@pytest.mark.parametrize("kind", sorted(CHANGES))
def test_trouble_changes_what_is_said(kind: str) -> None:
    message = messages.UnityMessageProto(header=messages.HeaderProto(status=200))
    for name, content in world_of("--task", "ball").reset().lists.items():
        message.unity_output.rl_output.agentInfos[name] = content
    content = message.SerializeToString()
    changed = messages.UnityMessageProto.FromString(trouble(f"{kind}@2").happen(content))
    assert changed.unity_output.rl_output.agentInfos != message.unity_output.rl_output.agentInfos


@pytest.mark.parametrize(("kind", "code"), [("crash", -11), ("exit:7", 7)])
def test_a_player_dies_at_the_request_that_trouble_names_and_only_once_with_a_file(
    tmp_path: Path, kind: str, code: int
) -> None:
    player = make_player(tmp_path, "--trouble", f"{kind}@2", "--trouble-once", str(tmp_path / "happened"))
    with Trainer() as trainer:
        process = trainer.start(player, "-logFile", str(tmp_path / "log"))
        trainer.shake_hands()
        assert process.wait(DEADLINE_SECONDS) == code
        trainer.start(player, "-logFile", str(tmp_path / "log"))
        trainer.shake_hands()
        assert len(agents(trainer.receive())["3DBall?team=0"]) == 12


def test_a_wrapper_is_the_parent_of_the_player(tmp_path: Path) -> None:
    with Trainer() as trainer:
        process = trainer.start(make_player(tmp_path, "--wrapper"))
        trainer.shake_hands()
        trainer.receive()
        assert len(psutil.Process(process.pid).children()) == 1
        trainer.close()
        assert process.wait(DEADLINE_SECONDS) == 0
