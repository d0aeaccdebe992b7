"""What mlagents 1.1.0 reads from .demo files, as JSON: run by a Python that has it.

python official_loader.py FILE... > official.json, a digest for each column of each file: see digests. With --fields
before the files, the columns themselves. A file that its loader refuses has the reason instead. The loader imports
torch for a class that it does not use here: none is needed.
"""

import hashlib
import json
import sys
import types

import numpy as np

stand_in = types.ModuleType("mlagents.trainers.torch_entities.action_log_probs")
stand_in.LogProbsTuple = object
sys.modules[stand_in.__name__] = stand_in

from google.protobuf.message import DecodeError  # noqa: E402
from mlagents.trainers.buffer import BufferKey  # noqa: E402
from mlagents.trainers.demo_loader import load_demonstration, make_demo_buffer  # noqa: E402
from mlagents.trainers.trajectory import ObsUtil  # noqa: E402
from mlagents_envs.exception import UnityException  # noqa: E402
from mlagents_envs.rpc_utils import process_pixels  # noqa: E402

REFUSALS = (UnityException, DecodeError, ArithmeticError, LookupError, OSError, RuntimeError, TypeError, ValueError)


def columns_of(path):
    """Every record's fields, and the loader's pairs but those that are wrong."""
    spec, pairs, total = load_demonstration(path)
    infos, actions = [pair.agent_info for pair in pairs], [pair.action_info for pair in pairs]
    columns = {
        "shapes": [list(one.shape) for one in spec.observation_specs],
        "goals": [one.observation_type.value for one in spec.observation_specs],
        "continuous_size": spec.action_spec.continuous_size,
        "branches": list(spec.action_spec.discrete_branches),
        "num_records": len(pairs),
        "num_expected": total,
        "rewards": np.array([info.reward for info in infos], "<f4"),
        "done": np.array([info.done for info in infos], "u1"),
        "max_step_reached": np.array([info.max_step_reached for info in infos], "u1"),
        "ids": np.array([info.id for info in infos], "<i8"),
        "actions": actions_of(actions),
    }
    for index, one in enumerate(spec.observation_specs):
        columns[f"observation {index}"] = observations([info.observations[index] for info in infos], list(one.shape))
    try:
        columns.update(pairs_of(spec, pairs))
    except REFUSALS as error:
        columns["refused"] = f"{type(error).__name__}: {error}"
    return columns


def actions_of(actions):
    """The list that counts of each: the deprecated one where the others are empty. The last record may have none."""
    lists = [[*a.continuous_actions, *a.discrete_actions] or list(a.vector_actions_deprecated) for a in actions]
    width = max(map(len, lists))
    return np.array([one or [0] * width for one in lists], "<f4")


def observations(found, shape):
    """f32[N, ...] or, of PNG files, u8[N, H, W, C], whichever way round the shape is."""
    if not found[0].compression_type:
        return np.array([one.float_data.data for one in found], "<f4").reshape([len(found), *shape])
    num_channels = shape[2] if shape[2] <= 4 and shape[0] > 4 else shape[0]
    images = [process_pixels(one.compressed_data, num_channels, list(one.compressed_channel_mapping)) for one in found]
    return np.rint(np.array(images) * 255).astype("u1").transpose(0, 2, 3, 1)


def pairs_of(spec, pairs):
    """The loader's rows, without pairs of two ids, and of an end with the beginning that follows.

    Before version 1.0 of the package, whose files have the deprecated actions and one id, an end was recorded with that
    beginning.
    """
    buffer = make_demo_buffer(pairs, spec, 1)
    is_old = not any(pair.action_info.continuous_actions or pair.action_info.discrete_actions for pair in pairs)
    infos = [pair.agent_info for pair in pairs]
    kept = [row for row, after in enumerate(infos[1:]) if after.id == infos[row].id and (is_old or not infos[row].done)]
    rows = {
        "pair rewards": np.array(buffer[BufferKey.ENVIRONMENT_REWARDS], "<f4")[kept],
        "pair done": np.array(buffer[BufferKey.DONE], "u1")[kept],
    }
    for name, key in (("continuous", BufferKey.CONTINUOUS_ACTION), ("discrete", BufferKey.DISCRETE_ACTION)):
        if key in buffer:
            rows[f"pair {name}"] = np.array(buffer[key], "<f4")[kept]
    for index in range(len(spec.observation_specs)):
        rows[f"pair observation {index}"] = np.array(buffer[ObsUtil.get_name_at(index)], "<f4")[kept]
    return rows


def digest(value):
    """An array as its type, shape and SHA-256; anything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    content = np.ascontiguousarray(value)
    return [value.dtype.str, list(value.shape), hashlib.sha256(content.tobytes()).hexdigest()[:24]]


def main():
    """Print the JSON."""
    words = sys.argv[1:]
    paths = [word for word in words if word != "--fields"]
    written = {}
    for path in paths:
        try:
            columns = columns_of(path)
        except REFUSALS as error:
            columns = {"refused": f"{type(error).__name__}: {error}"}
        if "--fields" in words:
            columns = {name: np.asarray(value).tolist() for name, value in columns.items()}
        else:
            columns = {name: digest(value) for name, value in columns.items()}
        written[path.rsplit("/", 1)[-1]] = columns
    files = []
    for name, columns in written.items():
        lines = ",\n".join(f"  {json.dumps(column)}: {json.dumps(value)}" for column, value in columns.items())
        files.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
    print("{\n" + ",\n".join(files) + "\n}")


if __name__ == "__main__":
    main()
