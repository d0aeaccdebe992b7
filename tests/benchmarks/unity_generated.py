"""`PYTHON unity_generated.py`: rewrites the generated modules of PYTHON's mlagents_envs 1.1.0 for today's protobuf.

They were generated for protobuf 3, and later versions refuse them, or read them in pure Python. The descriptions inside
are kept, and classes made of them as today's generator does; so both sides of a comparison parse in C.
"""

from __future__ import annotations

import ast
import re
import sys
from importlib.util import find_spec
from pathlib import Path

TEMPLATE = """{imports}
from google.protobuf import descriptor_pool
from google.protobuf.internal import builder

DESCRIPTOR = descriptor_pool.Default().AddSerializedFile({content!r})
builder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())
builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, __name__, globals())
"""


def regenerated(text: str) -> str:
    """The new text of a module."""
    found = re.search(r"serialized_pb=_b\((.*)\)$", text, re.MULTILINE)
    if found is None:
        raise ValueError("no description of a .proto file is inside")
    imports = re.findall(r"^from mlagents_envs\S+ import \w+ as \w+$", text, re.MULTILINE)
    return TEMPLATE.format(imports="\n".join(imports), content=ast.literal_eval(found[1]).encode("latin1"))


def main() -> None:
    """Modules that it has rewritten before stay as they are."""
    package = find_spec("mlagents_envs")
    if package is None or package.origin is None:
        sys.exit("mlagents_envs is not installed here")
    for path in sorted(Path(package.origin).parent.glob("communicator_objects/*_pb2.py")):
        text = path.read_text()
        if "serialized_pb" in text:
            path.write_text(regenerated(text))


if __name__ == "__main__":
    main()
