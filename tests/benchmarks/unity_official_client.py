"""Run by the Python of the official mlagents_envs 1.1.0: plays with a player, and saves all that it received.

One argument: JSON with player, port, seed, num_areas, steps, arguments, timeout, parameters and out, the path of the
.npz file. Its arrays are named step|behavior|kind|field; what is no array stands in its text `notes`, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from uuid import UUID

import numpy as np
from mlagents_envs.environment import UnityEnvironment
from mlagents_envs.side_channel.engine_configuration_channel import EngineConfigurationChannel
from mlagents_envs.side_channel.environment_parameters_channel import EnvironmentParametersChannel
from mlagents_envs.side_channel.float_properties_channel import FloatPropertiesChannel
from mlagents_envs.side_channel.raw_bytes_channel import RawBytesChannel
from mlagents_envs.side_channel.stats_side_channel import StatsSideChannel

ECHO = UUID("621f0a70-4f87-11ea-a6bf-784f4387d1f7")


class Play:
    """One conversation. notes: the behaviors, statistics, echoes, and the error that ended it."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.arrays = {}
        self.notes = {"specs": {}, "statistics": {}, "echoes": [], "properties": {}, "error": ""}
        self.engine, self.parameters = EngineConfigurationChannel(), EnvironmentParametersChannel()
        self.statistics, self.raw, self.floats = StatsSideChannel(), RawBytesChannel(ECHO), FloatPropertiesChannel()
        self.rng = np.random.default_rng(0)

    def play(self):
        """Until the last step, or an error."""
        channels = [self.engine, self.parameters, self.statistics, self.raw, self.floats]
        self.engine.set_configuration_parameters(640, 480, 2, 20.0, -1, 60)
        self._send()
        env = None
        try:
            env = UnityEnvironment(
                self.wanted["player"],
                base_port=self.wanted["port"],
                seed=self.wanted["seed"],
                num_areas=self.wanted["num_areas"],
                no_graphics=True,
                timeout_wait=self.wanted["timeout"],
                additional_args=self.wanted["arguments"],
                side_channels=channels,
                log_folder=self.wanted["log_folder"],
            )
            self._steps(env)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the official client makes of the player
            self.notes["error"] = f"{type(error).__name__}: {error}"
        self.notes["echoes"] = [bytes(echo).hex() for echo in self.raw.get_and_clear_received_messages()]
        self.notes["properties"] = self.floats.get_property_dict_copy()
        for name, values in self.statistics.get_and_reset_stats().items():
            self.notes["statistics"][name] = [(value, method.value) for value, method in values]
        if env is not None and self.notes["error"]:
            env._process.kill()  # some of them do not end by themselves
        elif env is not None:
            env.close()

    def _send(self):
        self.parameters.set_float_parameter("size", 1.5)
        self.parameters.set_uniform_sampler_parameters("uniform", 1.0, 2.0, 3)
        self.parameters.set_gaussian_sampler_parameters("gaussian", 4.0, 5.0, 6)
        self.parameters.set_multirangeuniform_sampler_parameters("ranges", [(1.0, 2.0), (3.0, 4.0)], 7)
        self.raw.send_raw_data(bytearray(b"\x00\xff\x01"))
        self.floats.set_property("height", 2.5)

    def _steps(self, env):
        for number in range(self.wanted["steps"]):
            if number in self.wanted["resets"]:
                env.reset()
            else:
                env.step()
            for name, spec in env.behavior_specs.items():
                self._keep(number, name, spec, *env.get_steps(name))
                self._act(number, name, spec, env)

    def _keep(self, number, name, spec, decisions, terminals):
        self.notes["specs"][name] = {
            "observations": [
                [list(one.shape), [int(bits) for bits in one.dimension_property], one.observation_type.value, one.name]
                for one in spec.observation_specs
            ],
            "continuous": spec.action_spec.continuous_size,
            "branches": list(spec.action_spec.discrete_branches),
        }
        for kind, steps in (("decisions", decisions), ("terminals", terminals)):
            for field in ("agent_id", "reward", "group_id", "group_reward"):
                self.arrays[f"{number}|{name}|{kind}|{field}"] = getattr(steps, field)
            for index, seen in enumerate(steps.obs):
                self.arrays[f"{number}|{name}|{kind}|observation{index}"] = seen
        self.arrays[f"{number}|{name}|terminals|interrupted"] = terminals.interrupted
        if decisions.action_mask is not None:
            self.arrays[f"{number}|{name}|decisions|mask"] = np.concatenate(decisions.action_mask, axis=1)

    def _act(self, number, name, spec, env):
        """At random, among what is allowed."""
        decisions, _ = env.get_steps(name)
        actions = spec.action_spec.empty_action(len(decisions))
        actions.continuous[:] = self.rng.uniform(-1, 1, actions.continuous.shape)
        for branch, size in enumerate(spec.action_spec.discrete_branches):
            forbidden = np.zeros((len(decisions), size), bool)
            if decisions.action_mask is not None:
                forbidden = decisions.action_mask[branch]
            actions.discrete[:, branch] = np.argmax(self.rng.random(forbidden.shape) - forbidden, axis=1)
        env.set_actions(name, actions)
        self.arrays[f"{number}|{name}|actions|continuous"] = actions.continuous
        self.arrays[f"{number}|{name}|actions|discrete"] = actions.discrete


if __name__ == "__main__":
    play = Play(json.loads(sys.argv[1]))
    play.play()
    np.savez(play.wanted["out"], notes=json.dumps(play.notes), **play.arrays)
    os._exit(0)  # after an error the official client hangs at the end of Python
