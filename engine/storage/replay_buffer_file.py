"""The file of a replay buffer: one safetensors file, replaced whole, whose content is known by its checksum.

It may hold gigabytes, so it is written from the arrays as they lie in memory, and compared with them, without a copy.
What is no array stands in the file's metadata:

    description   format_version, behavior, step, values
    sha256        of the description and of every array by name
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray

from rl_tui.engine.errors import CheckpointError
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
_PIECE = 1 << 20  # bytes that are compared at once


def write_replay_buffer(path: Path, behavior: str, step: int, replay: State, disk: Disk = DISK) -> None:
    """`path` holds this buffer on the medium, and was read back.

    Raises CheckpointError when the disk refuses; the file at `path` is then as it was.
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
        raise CheckpointError(f"{path}: not written ({error.strerror}); the file before it is untouched") from error
    except CheckpointError:
        _remove(unfinished, disk)
        raise


def read_replay_buffer(path: Path, behavior: str) -> State:
    """The buffer in that file, every byte verified. Raises CheckpointError, also when it is another behavior's."""
    _require_regular(path)
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    except (OSError, safetensors.SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error})") from error
    description = metadata.get("description", "")
    if metadata.get("sha256") != _digest(description, tensors.items()):
        raise CheckpointError(f"{path}: its content does not match its sha256")
    return State(tensors, _values(path, description, behavior))


def _values(path: Path, description: str, behavior: str) -> dict[str, Json]:
    match json.loads(description):  # its checksum was right: it is what `write_replay_buffer` wrote
        case {"format_version": 1, "behavior": str(name), "values": dict(values)}:
            if name != behavior:
                raise CheckpointError(f"{path}: of behavior {name!r}, expected {behavior!r}")
            return values
        case body:
            raise CheckpointError(f"{path}: format version {body.get('format_version')!r}, this program reads 1")


def _verify(path: Path, parts: Iterable[memoryview]) -> None:
    """The file holds these bytes, one part after the other, and no more."""
    with path.open("rb") as file:
        pieces = (part[start : start + _PIECE] for part in parts for start in range(0, len(part), _PIECE))
        is_right = all(file.read(len(piece)) == bytes(piece) for piece in pieces) and not file.read(1)
    if not is_right:
        raise CheckpointError(f"{path}: what was written is not what was read back")


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


def _require_regular(path: Path) -> None:
    """A pipe in the file's place would hold up its reader."""
    try:
        is_regular = stat.S_ISREG(path.lstat().st_mode)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    if not is_regular:
        raise CheckpointError(f"{path}: not a regular file")


def _remove(path: Path, disk: Disk) -> None:
    with suppress(OSError):
        remove_tree(path, disk)
