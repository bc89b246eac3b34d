"""Which hosts a launcher says that it cannot use, from what it prints."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from waywiser.words import WordError, expand_hosts

_LINE_CHARACTERS = 400

_WORD = re.compile(r"(?:[\w.-]|\[[0-9,-]+\])+")
"""A host, or a host list of Slurm: ``n[2-3]``."""

_NODE_FAILURE = re.compile(r"[Nn]ode failure on (\S+)")
"""What ``srun`` prints about a node that Slurm has lost, while it ends the ranks of the others."""


def hosts_named_first(
    missing: Collection[str], launched: Collection[str], text: str
) -> dict[str, str]:
    """Returns the missing hosts in the first line that names any, each with that line: what comes
    later is often about hosts whose processes the launcher ends because of the first. A line that
    names all ``launched`` hosts, as a list of them, blames none."""
    for line in text.splitlines():
        words = set(_words(line))
        named = words.intersection(missing)
        if named and not words.issuperset(launched):
            return dict.fromkeys(named, line.strip()[:_LINE_CHARACTERS])
    return {}


def hosts_that_failed(text: str) -> Mapping[str, str]:
    """Returns the hosts that Slurm has lost while a launch ran, each with the line that says so."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if match := _NODE_FAILURE.search(line):
            for host in _expanded(match[1].rstrip(",.:;")):
                found.setdefault(host, line.strip()[:_LINE_CHARACTERS])
    return found


def _words(line: str) -> Iterator[str]:
    for word in _WORD.findall(line):
        yield from _expanded(word) if "[" in word else (word, word.rstrip("."))


def _expanded(text: str) -> tuple[str, ...]:
    try:
        return expand_hosts(text)
    except WordError:
        return ()
