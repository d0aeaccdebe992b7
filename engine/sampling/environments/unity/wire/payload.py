"""The values inside a side channel's message, little-endian, as C#'s IncomingMessage and OutgoingMessage have them.

A user's own side channel may use both classes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from rl_tui.engine.sampling.environments.unity.wire.errors import WireError

INT32 = struct.Struct("<i")
FLOAT32 = struct.Struct("<f")


class PayloadWriter:
    """Collects values in `data`. Methods return the writer, so that calls can be chained."""

    def __init__(self) -> None:
        self.data = b""

    def boolean(self, value: bool) -> PayloadWriter:
        """One byte."""
        self.data += b"\x01" if value else b"\x00"
        return self

    def int32(self, value: int) -> PayloadWriter:
        """Four bytes. Raises WireError for a number that does not fit."""
        if not -(2**31) <= value < 2**31:
            raise WireError(f"a whole number for Unity must fit into 32 bits, got {value}")
        self.data += INT32.pack(value)
        return self

    def float32(self, value: float) -> PayloadWriter:
        """Four bytes. Raises WireError for a number that is too large."""
        try:
            self.data += FLOAT32.pack(value)
        except OverflowError as error:
            raise WireError(f"a number for Unity must fit into a 32-bit float, got {value}") from error
        return self

    def floats(self, values: Sequence[float]) -> PayloadWriter:
        """Their number, then four bytes each."""
        self.int32(len(values))
        for value in values:
            self.float32(value)
        return self

    def text(self, value: str) -> PayloadWriter:
        """Its length, then its bytes. Raises WireError for anything but ASCII, which Unity could not read."""
        if not value.isascii():
            raise WireError(f"a name for Unity must consist of ASCII characters, got {value!r}")
        self.int32(len(value))
        self.data += value.encode()
        return self


class PayloadReader:
    """Reads one value after another; each method raises WireError where the message ends too early.

    what: the side channel, for errors.
    """

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._what = data, what
        self._position = 0

    def boolean(self) -> bool:
        """One byte."""
        return self._take(1) != b"\x00"

    def int32(self) -> int:
        """Four bytes."""
        return int(INT32.unpack(self._take(4))[0])

    def float32(self) -> float:
        """Four bytes."""
        return float(FLOAT32.unpack(self._take(4))[0])

    def floats(self) -> list[float]:
        """Their number, then four bytes each."""
        count = self._length()
        return list(struct.unpack(f"<{count}f", self._take(4 * count)))

    def text(self) -> str:
        """Its length, then its bytes, of which C# writes '?' for what is not ASCII."""
        text = self._take(self._length())
        try:
            return text.decode("ascii")
        except UnicodeDecodeError as error:
            raise WireError(f"{self._what}: a text must consist of ASCII characters, got {text!r}") from error

    def _length(self) -> int:
        length = self.int32()
        if length < 0:
            raise WireError(f"{self._what}: a length must be at least 0, got {length}")
        return length

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise WireError(f"{self._what}: a message must have at least {end} bytes, got {len(self._data)}")
        taken = self._data[self._position : end]
        self._position = end
        return taken
