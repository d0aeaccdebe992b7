"""The file of a replay buffer: one safetensors file, replaced atomically, verified by its checksum.

It may hold gigabytes, so it is written from the arrays, and compared with them, without a copy. The file's metadata
has everything else:

    description   format_version, behavior, step, values
    sha256        of the description and of every array by name
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.process.files import open_regular, require_regular
from rl_tui.engine.specs import Json, State
from rl_tui.engine.storage.disk import DISK, UNFINISHED, Disk, remove_tree

FORMAT_VERSION = 1
# https://github.com/huggingface/safetensors#format: 8 bytes with the length of the header, the header, the data
_TYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int32": "I32",
    "int64": "I64",
    "float32": "F32",
    "float64": "F64",
}
_Array = NDArray[Any]  # of a type above
_BLOCK = 1 << 20  # bytes that are compared at once


def write_replay_buffer(path: Path, behavior: str, step: int, replay: State, disk: Disk = DISK) -> None:
    """Replace the file at `path` by this buffer, durably, and read it back.

    Raises CheckpointError when the disk refuses; the file is then unchanged.
    """
    tensors = {name: np.ascontiguousarray(array) for name, array in sorted(replay.tensors.items())}
    description = json.dumps(
        {"format_version": FORMAT_VERSION, "behavior": behavior, "step": step, "values": replay.values}
    )
    metadata = {"description": description, "sha256": _digest(description, tensors.items())}
    unfinished = path.with_name(UNFINISHED + path.name)
    try:
        remove_tree(unfinished, disk)
        header = _header(metadata, tensors)
        disk.write(unfinished, header)
        for array in tensors.values():
            disk.append(unfinished, _bytes_of(array))
        disk.sync(unfinished)
        _verify(unfinished, [memoryview(header), *map(_bytes_of, tensors.values())])
        disk.rename(unfinished, path)
        disk.sync(path.parent)
    except OSError as error:
        _remove(unfinished, disk)
        raise CheckpointError(f"{path}: not written ({error.strerror}); the previous file is untouched") from error
    except CheckpointError:
        _remove(unfinished, disk)
        raise


def read_replay_buffer(path: Path, behavior: str) -> State:
    """The verified buffer in that file. Raises CheckpointError, also when it belongs to another behavior."""
    try:
        require_regular(path)
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    except (OSError, safetensors.SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    description = metadata.get("description", "")
    if metadata.get("sha256") != _digest(description, tensors.items()):
        raise CheckpointError(f"{path}: its content does not match its sha256")
    return State(tensors, _values(path, description, behavior))


def _values(path: Path, description: str, behavior: str) -> dict[str, Json]:
    match json.loads(description):  # its checksum matched: `write_replay_buffer` wrote it
        case {"format_version": 1, "behavior": str(name), "values": dict(values)}:
            if name != behavior:
                raise CheckpointError(f"{path}: must be of behavior {behavior!r}, got {name!r}")
            return values
        case body:
            raise CheckpointError(f"{path}: format version must be 1, got {body.get('format_version')!r}")


def _verify(path: Path, parts: Iterable[memoryview]) -> None:
    """Raise CheckpointError unless the file holds exactly these bytes, one part after the other."""
    with open(path, "rb", opener=open_regular) as file:
        blocks = (part[start : start + _BLOCK] for part in parts for start in range(0, len(part), _BLOCK))
        is_equal = all(file.read(len(block)) == bytes(block) for block in blocks) and not file.read(1)
    if not is_equal:
        raise CheckpointError(f"{path}: the bytes read back differ from the bytes written")


def _header(metadata: Mapping[str, str], tensors: Mapping[str, _Array]) -> bytes:
    entries: dict[str, Json] = {"__metadata__": dict(metadata)}
    end = 0
    for name, array in tensors.items():
        start, end = end, end + array.nbytes
        entries[name] = {"dtype": _TYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [start, end]}
    content = json.dumps(entries).encode()
    content += b" " * (-len(content) % 8)  # so that the arrays are aligned
    return len(content).to_bytes(8, "little") + content


def _digest(description: str, tensors: Iterable[tuple[str, _Array]]) -> str:
    digest = hashlib.sha256(description.encode())
    for name, array in tensors:
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(_bytes_of(array))
    return digest.hexdigest()


def _bytes_of(array: _Array) -> memoryview:
    """The memory of a contiguous array."""
    return array.reshape(-1).view(np.uint8).data


def _remove(path: Path, disk: Disk) -> None:
    with suppress(OSError):
        remove_tree(path, disk)
