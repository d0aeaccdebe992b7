"""mlagents 1.1.0's loader on the files of demonstrations.py: run by its own Python, with their paths on stdin.

Each answer is the seconds from a path to the AgentBuffer that its trainers draw from. The loader imports torch for a
class that it does not use here: none is needed.
"""

import sys
import time
import types

stand_in = types.ModuleType("mlagents.trainers.torch_entities.action_log_probs")
stand_in.LogProbsTuple = object
sys.modules[stand_in.__name__] = stand_in

from google.protobuf.internal import api_implementation  # noqa: E402
from mlagents.trainers.demo_loader import demo_to_buffer  # noqa: E402

if api_implementation.Type() == "python":
    sys.exit("protobuf must be compiled there, got the one in Python: it would be ten times as slow")
for line in sys.stdin:
    begun = time.perf_counter()
    demo_to_buffer(line.strip(), 1)
    print(time.perf_counter() - begun, flush=True)
