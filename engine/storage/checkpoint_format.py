"""The files of one checkpoint folder, and how a damaged one is recognized.

    tensors.safetensors   every array of the state
    state.json            its plain values, and the description: behavior, step, return, versions
    MANIFEST.json         size and sha256 of the two

Nothing that is read is executed: no pickle, and only these three names are ever opened.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from rl_tui.engine.errors import CheckpointError, NonFiniteError
from rl_tui.engine.process.files import open_regular
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Json, ObservationSpec, State, UnityPackage
from rl_tui.engine.storage.file_names import MANIFEST
from rl_tui.engine.version import VERSION

FORMAT_VERSION = 1
LESSONS = "lessons"  # the part of a state with all about lessons, and in it their numbers by parameter
TENSORS = "tensors.safetensors"
STATE = "state.json"
MANIFEST_BYTES = 65_536  # a manifest has two entries and is far smaller


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The description of a published checkpoint. created_at: Unix seconds. mean_return, held_out_loss: None when
    unknown. lessons: of each environment parameter that has some, from 1."""

    path: Path
    behavior: str
    step: int
    mean_return: float | None
    reason: str
    created_at: float
    program_version: str
    spec: BehaviorSpec | None
    size_bytes: int
    lessons: Mapping[str, int] = field(default_factory=dict)
    held_out_loss: float | None = None

    @property
    def is_from_other_version(self) -> bool:
        """Whether another version of this program wrote it: a reason for a warning, not for an error."""
        return self.program_version != VERSION


def encode(checkpoint: Checkpoint, state: State) -> dict[str, bytes]:
    """The content of every file except the manifest.

    Raises NonFiniteError naming the first tensor or value that is NaN or infinite.
    """
    require_finite(state)
    description = {
        "format_version": FORMAT_VERSION,
        "program_version": checkpoint.program_version,
        "behavior": checkpoint.behavior,
        "step": checkpoint.step,
        "mean_return": checkpoint.mean_return,
        "held_out_loss": checkpoint.held_out_loss,
        "reason": checkpoint.reason,
        "created_at": checkpoint.created_at,
        "spec": None if checkpoint.spec is None else _spec_to_json(checkpoint.spec),
        "values": state.values,
    }
    # safetensors writes the memory of a transposed array as if it were in order, and accepts no numpy scalar
    tensors = {name: np.asarray(array, order="C") for name, array in state.tensors.items()}
    return {TENSORS: safetensors.numpy.save(tensors), STATE: json.dumps(description, indent=1).encode()}


def _spec_to_json(spec: BehaviorSpec) -> dict[str, Json]:
    """Without what it says of its environment, which a checkpoint does not need."""
    unneeded = ("spaces", "reward_threshold", "choice_names")
    return {name: value for name, value in dataclasses.asdict(spec).items() if name not in unneeded}


def encode_manifest(files: Mapping[str, bytes]) -> bytes:
    """The manifest of those files."""
    entries = {name: {"size": len(content), "sha256": _sha256(content)} for name, content in files.items()}
    return json.dumps({"format_version": FORMAT_VERSION, "files": entries}, indent=1).encode()


def require_finite(state: State) -> None:
    """Raise NonFiniteError naming the first tensor or value that is NaN or infinite."""
    for name, array in state.tensors.items():
        if array.dtype.kind in "fc" and not np.isfinite(array).all():
            count = int(array.size - np.isfinite(array).sum())
            raise NonFiniteError(f"tensor {name}: {count} of {array.size} numbers are NaN or infinite")
    for path in _non_finite_values(state.values, "values"):
        raise NonFiniteError(f"{path} is NaN or infinite")


def describe(path: Path) -> Checkpoint:
    """The verified description, without reading the tensors. Raises CheckpointError."""
    entries = _read_manifest(path)
    return _parse_state(path, _read_verified(path, STATE, entries), _total_size(path, entries))[0]


def read_values(path: Path) -> tuple[State, Checkpoint]:
    """The state without its arrays, and its description. Raises CheckpointError."""
    entries = _read_manifest(path)
    checkpoint, values = _parse_state(path, _read_verified(path, STATE, entries), _total_size(path, entries))
    return State(values=values), checkpoint


def read(path: Path) -> tuple[State, Checkpoint]:
    """The state and its description, every byte verified. The arrays are new and writable. Raises CheckpointError."""
    entries = _read_manifest(path)
    checkpoint, values = _parse_state(path, _read_verified(path, STATE, entries), _total_size(path, entries))
    try:
        tensors = safetensors.numpy.load(_read_verified(path, TENSORS, entries))
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path / TENSORS}: must be a safetensors file ({error})") from error
    return State({name: np.require(array, requirements="W") for name, array in tensors.items()}, values), checkpoint


def _non_finite_values(value: Json, path: str) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _non_finite_values(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _non_finite_values(item, f"{path}[{index}]")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_file(path: Path, size: int | None) -> bytes:
    """The content of a regular file of that size; with None, of any size that a manifest may have."""
    try:
        with open(open_regular(path), "rb") as file:
            found = os.fstat(file.fileno()).st_size
            if size is None and found > MANIFEST_BYTES:
                raise CheckpointError(f"{path}: must have at most {MANIFEST_BYTES} bytes, got {found}")
            if size is not None and found != size:
                raise CheckpointError(f"{path}: must have {size} bytes, got {found}")
            return file.read()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error


def _read_manifest(path: Path) -> dict[str, tuple[int, str]]:
    """(size, sha256) of each file of this format."""
    body = _parse_json(path / MANIFEST, _read_file(path / MANIFEST, None))
    files = body.get("files")
    if not isinstance(files, dict) or set(files) != {TENSORS, STATE}:
        raise CheckpointError(f"{path / MANIFEST}: must have entries for {TENSORS} and {STATE} only")
    entries: dict[str, tuple[int, str]] = {}
    for name, entry in files.items():
        size, digest = (entry.get("size"), entry.get("sha256")) if isinstance(entry, dict) else (None, None)
        if not isinstance(size, int) or not isinstance(digest, str):
            raise CheckpointError(f"{path / MANIFEST}: {name} must have a size and a sha256")
        entries[name] = (size, digest)
    return entries


def _read_verified(path: Path, name: str, entries: Mapping[str, tuple[int, str]]) -> bytes:
    size, digest = entries[name]
    content = _read_file(path / name, size)
    if _sha256(content) != digest:
        raise CheckpointError(f"{path / name}: its content does not match the sha256 in {MANIFEST}")
    return content


def _total_size(path: Path, entries: Mapping[str, tuple[int, str]]) -> int:
    """The size of the whole checkpoint in bytes. Raises CheckpointError when a file is missing or has another size."""
    try:
        sizes = {name: (path / name).lstat().st_size for name in (TENSORS, STATE, MANIFEST)}
    except OSError as error:
        raise CheckpointError(f"{path}: {error.filename}: {error.strerror}") from error
    for name, (size, _) in entries.items():
        if sizes[name] != size:
            raise CheckpointError(f"{path / name}: must have {size} bytes, got {sizes[name]}")
    return sum(sizes.values())


def _parse_json(path: Path, content: bytes) -> dict[str, Json]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: must be JSON ({error})") from error
    if not isinstance(body, dict):
        raise CheckpointError(f"{path}: must be a JSON object")
    if body.get("format_version") != FORMAT_VERSION:
        found = body.get("format_version")
        raise CheckpointError(f"{path}: format version must be {FORMAT_VERSION}, got {found!r}")
    return body


def _parse_state(path: Path, content: bytes, size_bytes: int) -> tuple[Checkpoint, dict[str, Json]]:
    body = {"held_out_loss": None} | _parse_json(path / STATE, content)  # earlier versions had none
    match body:
        case {
            "program_version": str(version),
            "behavior": str(behavior),
            "step": int(step),
            "mean_return": float() | int() | None as mean_return,
            "held_out_loss": float() | int() | None as held_out_loss,
            "reason": str(reason),
            "created_at": float() | int() as created_at,
            "spec": dict() | None as spec,
            "values": dict(values),
        }:
            return Checkpoint(
                path=path,
                behavior=behavior,
                step=step,
                mean_return=mean_return,
                reason=reason,
                created_at=created_at,
                program_version=version,
                spec=None if spec is None else _parse_spec(path, spec),
                size_bytes=size_bytes,
                lessons=_lessons(values),
                held_out_loss=held_out_loss,
            ), values
        case _:
            raise CheckpointError(f"{path / STATE}: incomplete, or a value has the wrong type")


def _lessons(values: dict[str, Json]) -> dict[str, int]:
    """From 1, as they are shown; a run saves them from 0."""
    saved = State(values=values).part(LESSONS).values.get(LESSONS)
    numbers = saved if isinstance(saved, dict) else {}
    return {name: number + 1 for name, number in numbers.items() if isinstance(number, int)}


def _parse_spec(path: Path, spec: Mapping[str, Json]) -> BehaviorSpec:
    match spec:
        case {
            "name": str(name),
            "observations": list(observations),
            "actions": {"continuous": int(continuous), "branches": list(branches)},
        }:
            actions = ActionSpec(continuous, tuple(_integers(path, branches)))
            parsed = tuple(_parse_observation(path, item) for item in observations)
            return BehaviorSpec(name, parsed, actions, unity_package=_parse_package(path, spec.get("unity_package")))
        case _:
            raise CheckpointError(f"{path / STATE}: its spec is incomplete")


def _parse_observation(path: Path, observation: Json) -> ObservationSpec:
    optional: dict[str, Json] = {"dtype": "float32", "is_goal": False}
    match optional | (observation if isinstance(observation, dict) else {}):
        case {
            "name": str(name),
            "shape": list(shape),
            "dtype": "float32" | "uint8" as dtype,
            "is_goal": bool(is_goal),
        }:
            return ObservationSpec(name, tuple(_integers(path, shape)), dtype, is_goal)
        case _:
            raise CheckpointError(f"{path / STATE}: its spec is incomplete")


def _parse_package(path: Path, package: Json) -> UnityPackage | None:
    match package:
        case None:  # no player, or an earlier version, which did not know it
            return None
        case {"version": str(version), "image_order": "CHW" | "HWC" as image_order}:
            return UnityPackage(version, image_order)
        case _:
            raise CheckpointError(f"{path / STATE}: its spec is incomplete")


def _integers(path: Path, values: list[Json]) -> Iterator[int]:
    for value in values:
        if not isinstance(value, int):
            raise CheckpointError(f"{path / STATE}: its spec is incomplete")
        yield value
