"""Files that are damaged: each is refused with the byte where it went wrong, or read."""

from __future__ import annotations

import random
import re
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.demonstrations.opening import open_demonstrations
from rl_tui.engine.demonstrations.recorded import RecordedDemonstrations
from rl_tui.engine.errors import DemonstrationError
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import BrainParametersProto
from rl_tui.engine.specs import Ending
from tests.demonstrations.raw_files import brain, content, info, number, old_file, raw_file, record
from tests.demonstrations.recordings import CHOICES, EVERY_KIND, IMAGES, VECTORS, episodes, write
from tests.unity_player.encoding import varint

PLACED = re.compile(r"^[^\n]*mutated\.demo: byte \d+: \S")
LENGTHS = [(6, Ending.TERMINATED), (3, Ending.TRUNCATED), (4, Ending.CUT)]
MOST_BYTES = 300 * 2**20  # that the reader of damaged files may take, beyond what the program itself has


def two_records(**action: object) -> list[bytes]:
    """A step of a behavior with one continuous action."""
    return [record(info([1.0]), **action), record(info([2.0]), continuous_actions=[0.5])]


def read_all(path: Path) -> tuple[RecordedDemonstrations, Transitions]:
    """All steps of a file."""
    opened = open_demonstrations(path)
    return opened, opened.transitions(np.arange(opened.num_steps))


def message_of(path: Path) -> str:
    """Why a file is refused, without its folder."""
    with pytest.raises(DemonstrationError) as refused:
        read_all(path)
    return str(refused.value).replace(f"{path.parent}/", "")


def test_missing_file_wrong_suffix_and_empty_folder_are_refused(tmp_path: Path) -> None:
    folder, text = tmp_path / "empty", tmp_path / "notes.txt"
    folder.mkdir()
    text.write_text("no demonstration")
    assert message_of(tmp_path / "no.demo") == "no.demo: must be a .demo file or a folder of them, got no such file"
    assert message_of(text) == "notes.txt: must be a .demo file or a folder of them, got another"
    assert message_of(folder) == "empty: the folder must hold .demo files, got none"


def test_every_beginning_of_a_file_is_refused_with_the_byte_where_it_ends(tmp_path: Path) -> None:
    short = episodes(VECTORS, [(2, Ending.TERMINATED), (1, Ending.CUT)])
    whole = write(tmp_path / "whole.demo", VECTORS, short).read_bytes()
    metadata_bytes = whole[0]
    path = tmp_path / "cut.demo"
    for size in range(len(whole) - metadata_bytes):  # what follows the last record is not needed
        path.write_bytes(whole[:size])
        found = re.fullmatch(r"cut\.demo: byte (\d+): .*", message_of(path))
        assert found is not None
        assert int(found[1]) <= size
        assert size < 100 or int(found[1]) > size - 100  # a record has less
    path.write_bytes(whole[: len(whole) - metadata_bytes])
    assert open_demonstrations(path).num_steps == 3


@pytest.mark.parametrize(
    ("begin", "changed", "expected"),
    [
        (0, b"\x7f", "byte 0: metadata must have at most 32 bytes, got 127"),
        (2, b"\x02", "byte 1: the version of the format must be 0 or 1, got 2"),
        (33, b"\xff\xff\xff\xff\xff", "byte 33: the behavior must begin here with its length, got none"),
        (33, b"\xff\x7f", "byte 35: the behavior must have 16383 bytes, got 98"),
        (34, b"\xff\xff", "byte 34: must be BrainParametersProto, got 9 other bytes"),
        (43, b"\xff\xff\xff\xff\x7f", "byte 43: a record must have at most 268,435,455 bytes, got a larger length"),
        (43, b"\xff\xff\x7f", "byte 43: the file is cut off: a record of 2097151 bytes begins here, and 87 follow"),
        (44, b"\x1a", "byte 44: a record must have an observation with values, got none"),
        (44, b"\x0f", "byte 44: field 1 must have an encoding from 0 to 2 or 5, got 7"),
    ],
)
def test_damage_is_named_with_its_byte(tmp_path: Path, begin: int, changed: bytes, expected: str) -> None:
    path = raw_file(tmp_path / "a.demo", brain(1), two_records(continuous_actions=[0.5]) + two_records())
    damaged = bytearray(path.read_bytes())
    damaged[begin : begin + len(changed)] = changed
    path.write_bytes(damaged)
    assert message_of(path) == f"a.demo: {expected}"


@pytest.mark.parametrize(
    ("behavior", "records", "expected"),
    [
        (brain(2), two_records(continuous_actions=[0.5]), "byte 44: the action must be 2 finite numbers, got no such"),
        (brain(1), two_records(continuous_actions=[np.nan]), "byte 44: the action must be 1 finite numbers, got [nan]"),
        (
            brain(0, [3]),
            two_records(discrete_actions=[3]),
            "byte 47: the action must be a choice below each of [3], got",
        ),
        (brain(0, [3]), two_records(vector_actions_deprecated=[1.5]), "a choice below each of [3], got [-1]"),
        (brain(1, [3]), two_records(), "must be 1 finite numbers and a choice below each of [3], got no such action"),
        (brain(1), [record(info([1.0], reward=np.inf))] * 2, "byte 44: a reward must be finite, got inf"),
        (brain(1), [record(info([np.nan]), continuous_actions=[0.0])] * 2, "'obs_0' must be finite"),
        (brain(1), [record(info([]), continuous_actions=[0.0])] * 2, "must have an observation with values, got none"),
        (brain(1), [], "the file must have a record, got none"),
        (brain(1), two_records()[:1], "there must be a step, a record with one after it, got none"),
        (brain(), two_records(), "byte 34: a behavior must have an action, got none"),
        (brain(-1), two_records(), "byte 34: New: actions must have at least 0 continuous dimensions"),
        (brain(1), [record(info([1.0])), record(info([1.0, 2.0]))], "must keep the shape [1] on the wire, got [2]"),
    ],
)
def test_what_a_trainer_could_not_use_is_refused(
    tmp_path: Path, behavior: BrainParametersProto, records: list[bytes], expected: str
) -> None:
    assert expected in message_of(raw_file(tmp_path / "a.demo", behavior, records))


def test_image_that_is_damaged_is_found_among_others(tmp_path: Path) -> None:
    path = write(tmp_path / "a.demo", IMAGES, episodes(IMAGES, LENGTHS))
    places = open_demonstrations(path).files[0].columns.begins.tolist()
    damaged = bytearray(path.read_bytes())
    damaged[places[7] + 120] ^= 1
    path.write_bytes(damaged)
    found = message_of(path)
    assert found.startswith(f"a.demo: byte {places[7]}: Eye: observation 'camera': a PNG file must have the checksum")


def test_lengths_that_no_file_has_take_no_memory(tmp_path: Path) -> None:
    """In a process that may take little: a record, and an observation, that would take gigabytes."""
    claims = tmp_path / "claims"
    claims.mkdir()
    whole = raw_file(claims / "whole.demo", brain(1), two_records()).read_bytes()
    (claims / "record.demo").write_bytes(whole[:43] + b"\xff\xff\xff\x7f" + whole[47:])
    (claims / "behavior.demo").write_bytes(whole[:33] + b"\xff\xff\xff\x7f" + whole[37:])
    (claims / "number.demo").write_bytes(_with_records(whole, 2**31 - 1))
    shape = content(13, content(1, varint(2**13) + varint(2**13)) + content(4, b"")) + number(10, 1)
    raw_file(claims / "shape.demo", brain(1), [content(1, shape) + content(2, b"")] * 2)
    program = f"""
import resource
from pathlib import Path
from rl_tui.engine.demonstrations.opening import open_demonstrations
from rl_tui.engine.demonstrations.recorded import RecordedDemonstrations
from rl_tui.engine.errors import DemonstrationError
before = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (before + {MOST_BYTES}, before + {MOST_BYTES}))
for path in sorted(Path({str(claims)!r}).iterdir()):
    try:
        open_demonstrations(path)
        print(path.name, "read")
    except DemonstrationError as error:
        print(str(error).partition(": ")[2])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines() == [
        f"byte 37: the behavior must have {2**28 - 1} bytes, got {len(whole) - 37}",
        f"byte {len(whole)}: the file is cut off: it must have 2147483647 records, got 2",
        f"byte 43: the file is cut off: a record of {2**28 - 1} bytes begins here, and {len(whole) - 47} follow",
        "byte 44: New: observation 'obs_0' must have 67108864 floats, got 0",
        "byte 44: the action must be 1 finite numbers, got no such action",
    ]


def _with_records(whole: bytes, count: int) -> bytes:
    metadata = number(1, 1) + content(2, b"raw") + number(3, count)
    return (varint(len(metadata)) + metadata).ljust(33, b"\0") + whole[33:]


def mutated(chance: random.Random, whole: bytes, other: bytes) -> bytes:
    """The bytes with one to four changes of the kinds that broken disks and programs make."""
    changed = bytearray(whole)
    for _ in range(chance.choice((1, 1, 2, 4))):
        begin = chance.randrange(chance.choice((64, len(changed))) % len(changed) + 1)
        end = min(len(changed), begin + chance.randrange(1, 40))
        match chance.randrange(7):
            case 0 if begin < len(changed):
                changed[begin] ^= 1 << chance.randrange(8)
            case 1:
                del changed[begin:end]
            case 2:
                changed[begin:begin] = chance.randbytes(end - begin)
            case 3:
                changed[begin:begin] = changed[begin:end]
            case 4:
                changed[begin:end] = b"\xff" * (end - begin)
            case 5 if chance.random() < 0.3:
                del changed[begin:]
            case 6:
                changed[begin:end] = other[begin:end]
        if not changed:
            break
    return bytes(changed)


@pytest.mark.parametrize("num_files", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_files_are_refused_with_a_byte_or_read(tmp_path: Path, num_files: int) -> None:
    chance, outcomes = random.Random(5), Counter[str]()
    wholes = [
        write(tmp_path / f"{spec.name}.demo", spec, episodes(spec, LENGTHS)).read_bytes()
        for spec in (EVERY_KIND, VECTORS, CHOICES, IMAGES)
    ]
    wholes.append(old_file(tmp_path / "old.demo").read_bytes())
    path = tmp_path / "mutated.demo"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(num_files):
        path.write_bytes(mutated(chance, chance.choice(wholes), chance.choice(wholes)))
        try:
            opened, steps = read_all(path)
        except DemonstrationError as error:
            outcomes["refused" if PLACED.match(str(error)) else f"without a byte: {error}"] += 1
        else:
            assert opened.num_steps == steps.num_rows == opened.episodes[-1, 1]
            assert np.isfinite(steps.continuous_actions).all()
            assert (steps.discrete_actions < np.array(opened.spec.actions.branches)).all()
            outcomes["read"] += 1
    assert outcomes.keys() == {"read", "refused"}
    assert outcomes["read"] > num_files // 50
    assert outcomes["refused"] > num_files // 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_BYTES / 1024
