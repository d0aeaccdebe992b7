"""Numbers, times and names as text: short and of bounded width."""

from __future__ import annotations

import math
import re
import time

from rich.cells import cell_len, chop_cells, set_cell_size

_UNITS = ("", "k", "M", "G", "T", "P")


def num_cells(text: str) -> int:
    """How many terminal cells the text takes. Printable ASCII, most of it, needs no lookup."""
    return len(text) if text.isascii() and text.isprintable() else cell_len(text)


def fit(text: str, width: int, ellipsis: str = "…") -> str:
    """`text` in at most `width` cells; an ellipsis stands for what is cut off."""
    if num_cells(text) <= width:
        return text
    if width <= num_cells(ellipsis):
        return ellipsis[: max(width, 0)]
    return set_cell_size(text, width - num_cells(ellipsis)).rstrip() + ellipsis


def fit_path(path: str, width: int, ellipsis: str = "…") -> str:
    """`path` in at most `width` cells; its end is kept, which names the file."""
    if num_cells(path) <= width:
        return path
    if width <= num_cells(ellipsis):
        return ellipsis[: max(width, 0)]
    kept = path
    while kept and num_cells(kept) > width - num_cells(ellipsis):
        kept = kept[1:]
    whole_names = kept[kept.find("/") :] if "/" in kept else kept
    return ellipsis + (whole_names if len(whole_names) * 2 > len(kept) else kept)


def fit_message(message: str, width: int, ellipsis: str = "…") -> str:
    """`message` in at most `width` cells; a path that ends it is shortened from its left, else the end is cut."""
    if num_cells(message) <= width:
        return message
    head, space, last = message.rpartition(" ")
    room = width - num_cells(head + space)
    if "/" in last and room >= 12:  # a shorter end of a path says less than the words before it
        return head + space + fit_path(last, room, ellipsis)
    return fit(message, width, ellipsis)


def wrapped(text: str, width: int) -> list[str]:
    """All of `text` in lines of at most `width` cells, broken at blanks where it can be; width: at least 2.

    Indented text stays indented, and the rest of a broken line two cells further.
    """
    rows: list[str] = []
    for paragraph in text.split("\n"):
        words = paragraph.lstrip(" ")
        indent = min(len(paragraph) - len(words), width // 2)
        if not indent or not words:
            rows += _broken(words, width)
            continue
        first, *_ = _broken(words, width - indent)
        rest = words[len(first) :].lstrip(" ")
        rows.append(" " * indent + first)
        deeper = min(indent + 2, width // 2)
        rows += [" " * deeper + row for row in _broken(rest, width - deeper)] if rest else []
    return rows


def _broken(paragraph: str, width: int) -> list[str]:
    rows: list[str] = []
    row: str | None = None
    for word in paragraph.split(" "):
        joined = word if row is None else f"{row} {word}"
        if num_cells(joined) <= width:
            row = joined
            continue
        if row is not None:
            rows.append(row)
        *full, row = chop_cells(word, width) or [""]
        rows += full
    return [*rows, row or ""]


def left(text: str, width: int, ellipsis: str = "…") -> str:
    """`text` in exactly `width` cells, flush left."""
    return set_cell_size(fit(text, width, ellipsis), width)


def right(text: str, width: int, ellipsis: str = "…") -> str:
    """`text` in exactly `width` cells, flush right."""
    text = fit(text, width, ellipsis)
    return " " * (width - num_cells(text)) + text


def count(value: float) -> str:
    """A count in three digits and a unit, at most 5 characters up to 1e18: 987, 9.87k, 12.3M."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) < 1000 or abs(value) >= 1e18:
        return str(round(value)) if abs(value) < 1000 else _scientific(value)
    rounded = float(f"{value:.3g}")
    power = min(int(math.log10(abs(rounded)) / 3 + 1e-9), len(_UNITS) - 1)
    scaled = rounded / 1000**power
    if abs(scaled) >= 1000:
        return _scientific(value)
    decimals = 2 if abs(scaled) < 10 else 1 if abs(scaled) < 100 else 0
    return f"{scaled:.{decimals}f}{_UNITS[power]}"


def round_count(value: float) -> str:
    """A count without trailing zeros: 50k, 1M, 1.5M."""
    return re.sub(r"\.0+(?=\D|$)|(?<=\.[1-9])0(?=\D)", "", count(value))


def number(value: float | None) -> str:
    """A measured value in four digits, at most 8 characters: -0.021, 412.3, 12.3k, 1.2e-5; "-" when absent."""
    if value is None:
        return "-"
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    size = float(f"{abs(value):.4g}")
    if size < 0.001:
        return _scientific(value)
    if size >= 10_000:
        return count(value)
    decimals = next(decimals for limit, decimals in ((10, 3), (100, 2), (1000, 1), (10_000, 0)) if size < limit)
    return f"{value:.{decimals}f}"


def score(mean_return: float | None, held_out_loss: float | None) -> str:
    """How good a policy is: its return, or without one "loss 0.038"; "-" for neither."""
    return number(mean_return) if mean_return is not None or held_out_loss is None else f"loss {number(held_out_loss)}"


def _scientific(value: float) -> str:
    digits = 1 if 1e-99 < abs(value) < 1e99 else 0  # the third digit of an exponent replaces the decimal
    mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def duration(seconds: float) -> str:
    """A span of time in at most 6 characters up to 1000 days: 42s, 12m07, 2h03, 5d03h."""
    if not math.isfinite(seconds):
        return "-"
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{minutes}m{whole % 60:02}"
    return f"{hours}h{minutes % 60:02}" if hours < 100 else f"{days}d{hours % 24:02}h"


def size(num_bytes: float) -> str:
    """A size in powers of 1024: 512B, 1.5K, 31G."""
    scaled = float(num_bytes)
    for unit in "BKMGT":
        if abs(scaled) < 999.5 or unit == "T":
            break
        scaled /= 1024
    return f"{scaled:.1f}{unit}" if unit != "B" and abs(scaled) < 9.95 else f"{scaled:.0f}{unit}"


def time_of_day(wall_time: float, *, seconds: bool = True) -> str:
    """Local time as 17:14:05, or 17:14 without seconds."""
    return time.strftime("%H:%M:%S" if seconds else "%H:%M", time.localtime(wall_time))


def percent(part: float, whole: float) -> int:
    """`part` of `whole` in whole percent, 0 to 100; 100 only if nothing is missing."""
    if whole <= 0 or not math.isfinite(part):
        return 0
    return 100 if part >= whole else max(0, min(99, int(100 * part / whole)))
