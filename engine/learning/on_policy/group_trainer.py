"""What PPO with a critic that sees all agents of a group has, whatever it makes of that: MA-POCA, MAPPO.

Shapes: N rows of a rollout in P segments, R reward streams.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, TypeVar

import numpy as np
import torch

from rl_tui.engine.learning.on_policy.advantages import gae
from rl_tui.engine.learning.on_policy.clipping import ClippedTrainer
from rl_tui.engine.learning.on_policy.group_networks import GroupActorCritic, GroupModule, GroupOutputs
from rl_tui.engine.learning.on_policy.group_settings import GroupSettings
from rl_tui.engine.learning.on_policy.prepared import Minibatch
from rl_tui.engine.learning.on_policy.rollout import Rollout
from rl_tui.engine.learning.value_function import Values, no_values
from rl_tui.engine.specs import TERMINATED, Bool, Float32, State, Trajectories

S = TypeVar("S", bound=GroupSettings)


class GroupTrainer(ClippedTrainer[S]):
    """The critic is given the joint step of every row. Values go on after an agent's end while its group does."""

    cuts_at_update = True
    has_baselines: ClassVar[bool]  # of its critic

    _network: GroupActorCritic  # type: ignore[assignment]  # whose forward pass needs the joint steps

    def _make_network(self, device: torch.device) -> GroupActorCritic:  # type: ignore[override]  # as above
        network = self._config.network_settings
        arguments = self._layout, self._spec.actions, network, len(self._streams), self.has_baselines
        return GroupActorCritic(GroupModule(self._random, *arguments), device)

    @property
    def _num_critic_memories(self) -> int:
        return 2 if self.has_baselines else 1

    def _outputs(self, minibatch: Minibatch) -> GroupOutputs:
        assert minibatch.joint is not None
        return self._network.forward(minibatch.features, minibatch.joint, minibatch.sequences)

    def _begin_update(self, rollout: Rollout) -> None:
        """Count the agents of the largest group."""
        block = rollout.experience
        sizes = rollout.joint_steps.sizes
        following = np.zeros(1, np.int64) if block.next_mate_counts is None else block.next_mate_counts + 1
        largest = np.array([sizes.max(initial=1), following.max(initial=1)], np.float64)
        self._largest = max(self._largest, int(self._sync.gather(largest).max()))

    @property
    def _largest(self) -> int:
        return self._network.networks.critic.largest

    @_largest.setter
    def _largest(self, agents: int) -> None:
        self._network.networks.critic.largest = agents

    def _returns(self, rollout: Rollout, values: Float32, next_values: Float32, rewards: Float32) -> Float32:
        """f32[N, R], the lambda-returns of `rewards` f32[N, R].

        values: f32[N, R]. next_values: f32[P, R], of which nothing is left where a whole group has ended, unless the
        signal of a stream ignores that.
        """
        block, streams = rollout.experience, self._streams
        ends = whole_groups_terminated(block)[:, None] & streams.masks_terminal
        remaining = np.where(ends, np.float32(0), next_values)
        return gae(rewards, values, remaining, block.lengths, streams.gammas, self._hyper.lambd)[1]

    def value_function(self) -> Values:
        """None: a value is of all agents of a group."""
        return no_values(f"{self._spec.name}: a critic of groups has no values of single observations")

    def state(self) -> State:
        """Also how many agents the largest group had."""
        state = super().state()
        return replace(state, values=state.values | {"groups": {"largest": self._largest}})

    def load(self, state: State) -> None:
        """See OnPolicyTrainer."""
        super().load(state)
        self._largest = int(state.part("groups").number("largest"))


def whole_groups_terminated(block: Trajectories) -> Bool:
    """bool[P]: nothing follows the segment, neither for its agent nor for others of its group."""
    has_terminated: Bool = block.endings == TERMINATED
    if block.group_ids is None or block.group_ended is None:
        return has_terminated
    last = np.cumsum(block.lengths) - 1
    terminated: Bool = has_terminated & (block.group_ended | (block.group_ids[last] < 0))
    return terminated
