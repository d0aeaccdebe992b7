"""The project's own vocabulary stays the field's: words that once had a private meaning here do not come back."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FEW = 5  # where a word is also plain English, fewer than so many uses in the whole project
READ = (".py", ".md", ".toml", ".tcss", ".yaml")

QUAINT = {
    "report, log, publish": "tell|tells|told|telling",
    "name who it is": "nobody|somebody|anybody|everybody|whoever|whomever",
    "name the result": "becomes?|became|becoming",
    "must be ..., got ...": "is right|are right",
    "internal error": "(bug|mistake|fault)s? of ours",
    "segment": "pieces?",
    "request, setting": "wish|wishes|wished",
    "observations, actions, trajectories": "lives? through|lived through",
    "yield, wait": "(give|gives|gave|giving)[ _]way",
    "should_continue, on_minibatch": "may_go_on|counts_ends",
    "grad_log_prob, grad_head, grad_values": "by_log_prob|by_head|by_values",
    "suspicious, unused, is_current": "doubtful|ineffective|is_of_today",
    "supervisor, UI priority, diagnostics": "crew|courtesy|theater",
    "again": "anew",
    "rarely": "seldom",
}


def project_texts() -> dict[Path, str]:
    """Every text file of the project that a person wrote, but this one."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in listed.split("\0") if name.endswith(READ) and not name.startswith("src/")]
    return {path: path.read_text() for path in paths if path.is_file() and path != Path(__file__)}


@functools.cache
def uses() -> dict[str, list[str]]:
    """The lines in which there is one of these words, by what to write instead."""
    groups = {f"words_{number}": better for number, better in enumerate(QUAINT)}
    any_word = "|".join(f"(?P<{group}>{QUAINT[better]})" for group, better in groups.items())
    word = re.compile(rf"(?<![a-z])(?:{any_word})(?![a-z])", re.IGNORECASE)
    found = dict[str, list[str]]((better, []) for better in QUAINT)
    for path, text in project_texts().items():
        for number, line in enumerate(text.splitlines(), 1):
            for group in dict.fromkeys(match.lastgroup for match in word.finditer(line)):
                found[groups[str(group)]].append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    return found


@pytest.mark.parametrize("better", QUAINT)
def test_words_of_a_private_language_are_rare(better: str) -> None:
    """The key is what to write instead."""
    assert len(uses()[better]) < FEW, f"write {better} instead:\n" + "\n".join(uses()[better])
