"""The agents of one behavior as columns. Shapes: N agents that wait or whose episodes have ended, of all copies."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.action_space import ActionCodec
from rl_tui.engine.sampling.environments.choice_names import choice_names_of_pettingzoo
from rl_tui.engine.sampling.environments.gymnasium_loop import as_rewards
from rl_tui.engine.sampling.environments.measuring import Tally
from rl_tui.engine.sampling.environments.observation_space import observation_leaves, stack
from rl_tui.engine.sampling.environments.pettingzoo.episodes import Action, AgentName, Ended, Seen
from rl_tui.engine.sampling.environments.pettingzoo.roles import Spaces, equal
from rl_tui.engine.sampling.environments.space_json import spaces_to_json
from rl_tui.engine.sampling.environments.spaces import Space
from rl_tui.engine.specs import Actions, BehaviorSpec, Bool, DecisionSteps, Int64, Observations, Steps, TerminalSteps

MOST_KNOWN = 1000  # spaces that need not be compared again; some environments make new ones all the time
MASK = "action_mask"  # in a Dict of observations, or in infos


class BehaviorColumns:
    """Gathers what happens to the agents of one behavior, or team, in a step of all copies.

    has_common_reward: of groups, whether what their agents earn is the group's; None without groups. env_name: in its
    metadata, "" where it has none. Agents are numbered by the caller.
    """

    def __init__(
        self, name: str, agent_spaces: Spaces, has_common_reward: bool | None = None, env_name: object = ""
    ) -> None:
        self._spaces, self._has_common_reward = agent_spaces, has_common_reward
        observation_space, action_space = agent_spaces
        self._codec = ActionCodec(action_space, name)
        self._observes_mask = observes_mask(observation_space, self._codec.spec.mask_size)
        seen = without_mask(observation_space) if self._observes_mask else observation_space
        self._leaves = observation_leaves(seen, name)
        described = spaces_to_json(seen, action_space)
        names = choice_names_of_pettingzoo(env_name, self._codec.spec)
        seen_specs = tuple(leaf.spec for leaf in self._leaves)
        self.spec = BehaviorSpec(name, seen_specs, self._codec.spec, described, choice_names=names)
        self.tally: Tally | None = None
        self._known: dict[tuple[int, int], Spaces] = {}  # by their ids, which are theirs as long as they are kept
        self._ids: list[int] = []
        self._id_column: Int64 = np.empty(0, np.int64)
        self.begin()

    def require(self, agent: AgentName, agent_spaces: Spaces) -> None:
        """The agent's spaces are those of the behavior. Raises EnvironmentFailure."""
        ids = (id(agent_spaces[0]), id(agent_spaces[1]))
        if ids in self._known:
            return  # to compare them takes a sixth of the time of a short episode
        if not equal(self._spaces, agent_spaces):
            (seen, does), (other_seen, other_does) = self._spaces, agent_spaces
            raise EnvironmentFailure(
                f"{self.spec.name}: agent {agent!r} must observe {seen} and do {does}, like the others of its behavior,"
                f" got {other_seen} and {other_does}"
            )
        if len(self._known) < MOST_KNOWN:
            self._known[ids] = agent_spaces

    def begin(self) -> None:
        """Nothing has happened yet in this step."""
        self._waiting: list[tuple[int, Seen, float, int]] = []
        self._ended: list[tuple[int, Ended, float, int]] = []
        self._earned: dict[int, list[float]] = defaultdict(list)  # by group, by those that have acted

    @property
    def has_any(self) -> bool:
        """Whether anything has."""
        return bool(self._waiting or self._ended)

    def add_newcomer(self, agent_id: int, seen: Seen, group: int) -> None:
        """An agent that begins an episode and waits for an action."""
        self._waiting.append((agent_id, seen, 0.0, group))

    def add_waiting(self, agent_id: int, seen: Seen, reward: float, group: int) -> None:
        """An agent that waits for an action again. reward: since its last one."""
        self._waiting.append((agent_id, seen, reward, group))
        self._earned[group].append(reward)
        if self.tally is not None:
            self.tally.add(seen.infos)

    def add_ended(self, agent_id: int, ended: Ended, reward: float, group: int) -> None:
        """An agent whose episode has ended."""
        self._ended.append((agent_id, ended, reward, group))
        self._earned[group].append(reward)
        if self.tally is not None:
            self.tally.add(ended.seen.infos)

    def rows(self, actions: Actions) -> Sequence[Action]:
        """The action of each agent that waited, in the order in which they were added."""
        return self._codec.rows(actions)

    def steps(self) -> Steps:
        """All that was added."""
        measured = None if self.tally is None else self.tally.drain()
        return Steps(self._decisions(), self._terminals() if self._ended else None, measured)

    def _decisions(self) -> DecisionSteps:
        ids, all_seen, rewards, groups = zip(*self._waiting, strict=True) if self._waiting else ((), (), (), ())
        if self._ids != (listed := list(ids)):  # the same array while no agent comes or goes
            self._ids, self._id_column = listed, np.array(listed, np.int64)
        return DecisionSteps(
            self._id_column,
            self._stacked(all_seen),
            action_mask=mask_rows(self._codec, all_seen, self._observes_mask),
            **self._rewards(rewards, groups),
        )

    def _terminals(self) -> TerminalSteps:
        ids, ended, rewards, groups = zip(*self._ended, strict=True)
        return TerminalSteps(
            np.array(ids, np.int64),
            self._stacked([one.seen for one in ended]),
            truncated=np.array([one.is_truncated for one in ended], np.bool_),
            **self._rewards(rewards, groups),
        )

    def _stacked(self, all_seen: Sequence[Seen]) -> Observations:
        return stack(self._leaves, [seen.observation for seen in all_seen])

    def _rewards(self, rewards: Sequence[float], groups: Sequence[int]) -> dict[str, Any]:
        """Rewards of agents and of their groups, and these, by the names of `DecisionSteps`."""
        if self._has_common_reward is None:
            return {"rewards": as_rewards(rewards)}
        columns = {"rewards": as_rewards(rewards), "group_ids": np.array(groups, np.int64)}
        if self._has_common_reward:
            means = {group: math.fsum(earned) / len(earned) for group, earned in self._earned.items()}
            of_groups = as_rewards([means.get(group, 0.0) for group in groups])
            columns |= {"rewards": np.zeros(len(groups), np.float32), "group_rewards": of_groups}
        return columns


def observes_mask(space: Space, mask_size: int) -> bool:
    """Whether an agent observes its action mask, next to something else."""
    if not isinstance(space, spaces.Dict) or MASK not in space.spaces or len(space.spaces) == 1:
        return False
    return math.prod(space.spaces[MASK].shape or ()) == mask_size


def without_mask(space: Space) -> spaces.Dict:
    """What else it observes."""
    assert isinstance(space, spaces.Dict)
    return spaces.Dict({key: child for key, child in space.spaces.items() if key != MASK})


def mask_rows(codec: ActionCodec, all_seen: Sequence[Seen], is_observed: bool) -> Bool | None:
    """bool[N, sum of branches] of N agents' action masks; None if everything is allowed.

    An agent that is allowed nothing takes the first choice, as with `sample` of Gymnasium's spaces.
    """
    rows = codec.mask_rows([seen.observation[MASK] if is_observed else seen.infos.get(MASK) for seen in all_seen])
    if rows is None:
        return None
    first = 0
    for size in codec.spec.branches:
        rows[~rows[:, first : first + size].any(axis=1), first] = True
        first += size
    return rows
