"""What the agents of one player are and do, by behavior."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages
from rl_tui.engine.sampling.environments.unity.wire.actions import write_actions
from rl_tui.engine.sampling.environments.unity.wire.agents import BehaviorReader
from rl_tui.engine.sampling.environments.unity.wire.packages import order_in_doubt
from rl_tui.engine.specs import Actions, BehaviorSpec, Steps


class Behaviors:
    """Those of one connection, by the names Unity gives them: `Name?team=N`.

    known: of an earlier connection, which must still be as they were. warn: called with lines for the user.
    """

    def __init__(
        self,
        package_version: str,
        known: Mapping[str, BehaviorSpec],
        warn: Callable[[str], None],
        *,
        with_deprecated: bool,
    ) -> None:
        self._package_version, self._with_deprecated, self._warn = package_version, with_deprecated, warn
        self.specs: dict[str, BehaviorSpec] = dict(known)
        self.num_agents: dict[str, int] = dict.fromkeys(known, 0)  # that have waited for a decision at once
        self._announced: dict[str, messages.BrainParametersProto] = {}
        self._readers: dict[str, BehaviorReader] = {}

    def read(self, output: messages.UnityOutputProto) -> dict[str, Steps]:
        """The steps of every behavior whose agents are in the message. Raises EnvironmentFailure."""
        for brain in output.rl_initialization_output.brain_parameters:
            self._announced[brain.brain_name] = brain
        lists = output.rl_output.agentInfos
        return {name: self._read(name, lists[name]) for name in sorted(lists) if lists[name]}

    def write(self, actions: Mapping[str, Actions], into: messages.UnityRLInputProto) -> None:
        """Put in the actions of all agents that wait."""
        for name, chosen in actions.items():
            if len(chosen.continuous):
                into.agent_actions[name] = write_actions(chosen, with_deprecated=self._with_deprecated)

    def _read(self, name: str, content: bytes) -> Steps:
        reader = self._readers.get(name) or self._meet(name, content)
        steps = reader.read(content)
        self.num_agents[name] = max(self.num_agents[name], len(steps.decisions.agent_ids))
        return steps

    def _meet(self, name: str, content: bytes) -> BehaviorReader:
        """A behavior with its first agents."""
        if name not in self._announced:
            described = ", ".join(sorted(self._announced)) or "none"
            raise EnvironmentFailure(f"agents of behavior {name!r} must follow its description, got {described}")
        reader = BehaviorReader(name, self._announced[name], content, self._package_version)
        if self.specs.setdefault(name, reader.spec) != reader.spec:
            raise EnvironmentFailure(
                f"{name}: observations and actions must stay as they were when this run began, got others: "
                "start another run for the changed agent"
            )
        if doubt := order_in_doubt(reader.spec):
            self._warn(f"{name}: {doubt}")
        self.num_agents.setdefault(name, 0)
        self._readers[name] = reader
        return reader
