"""How this process's memory is given back to the kernel."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of malloc.h
_BYTES = 1 << 30  # larger than any temporary of an update


def keep_freed_memory() -> bool:
    """Let what is freed be used again, rather than go back to the kernel; whether the C library was told so.

    glibc gives large blocks back at once, and the kernel clears each page of the next one anew: measured, 800 page
    faults and 1.3 of the 9 ms of a SAC update, all for temporaries of the same few sizes. Elsewhere nothing is changed.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
        ctypes.CDLL(None).gnu_get_libc_version  # noqa: B018  # musl has mallopt in no version, others their own rules
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _BYTES)) and bool(mallopt(_TRIM_THRESHOLD, _BYTES))
