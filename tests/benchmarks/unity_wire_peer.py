"""mlagents_envs 1.1.0 on the messages of unity_wire.py: run by its own Python, and told on stdin how often.

Each line is the path of a request and a number of times; each answer the median seconds from that request's bytes to
DecisionSteps, and from actions to the reply's bytes.
"""

import statistics
import sys
import time

import numpy as np
from mlagents_envs.base_env import ActionTuple
from mlagents_envs.communicator_objects.unity_message_pb2 import UnityMessageProto
from mlagents_envs.environment import UnityEnvironment
from mlagents_envs.rpc_utils import behavior_spec_from_proto, steps_from_proto
from mlagents_envs.side_channel.side_channel_manager import SideChannelManager


class Peer:
    """The parts of its UnityEnvironment that deal with one exchange, without a player."""

    def __init__(self, first):
        output = UnityMessageProto.FromString(first).unity_output
        [brain] = output.rl_initialization_output.brain_parameters
        info = output.rl_output.agentInfos[brain.brain_name].value[0]
        self.spec = behavior_spec_from_proto(brain, info)
        self.environment = UnityEnvironment.__new__(UnityEnvironment)
        self.environment._side_channel_manager = SideChannelManager([])
        self.environment._env_state = {}
        self.environment._loaded = False  # there is nothing to close

    def exchange(self, request, actions):
        """The reply's bytes."""
        infos = UnityMessageProto.FromString(request).unity_output.rl_output.agentInfos
        for name in infos:
            self.environment._env_state[name] = steps_from_proto(infos[name].value, self.spec)
        reply = self.environment._generate_step_input(dict.fromkeys(infos, actions))
        return UnityMessageProto(unity_input=reply).SerializeToString()


def measure(path, times):
    """Median seconds."""
    with open(path, "rb") as file:
        request = file.read()
    peer = Peer(request)
    actions = ActionTuple(np.full((256, 2), 0.5, np.float32), np.zeros((256, 0), np.int32))
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        peer.exchange(request, actions)
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


for line in sys.stdin:
    path, times = line.split()
    print(measure(path, int(times)), flush=True)
