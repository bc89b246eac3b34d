"""The nodes of a run and their groups, from the files and variables that name them.

- a hostfile of MPI: a host per line, with ``slots=8``, ``:8``, comments;
- Slurm: ``SLURM_JOB_NODELIST``, and the switches of ``scontrol show topology``;
- a file of groups: ``NAME: HOSTLIST`` per line, or lines of Slurm's topology.conf.

Host lists (``n[01-32]``) may stand wherever hosts are named.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from waywiser.words import (
    MOST_HOSTS,
    WaywiserError,
    WordError,
    expand_hosts,
    read_regular,
    why_not_read,
)

LIMIT_BYTES = 16 * 2**20
SCONTROL_SECONDS = 20.0
_RESOLVERS = 32
_MOST_NAMED = 3

_SLOTS = re.compile(r"(?:slots|max[-_]slots|cpus?|binding)=\S+|:[0-9]+")
_HOST_WITH_PROCESSES = re.compile(r"(.+?):[0-9]+")
_GROUP_LINE = re.compile(r"([^\s:=]+)\s*[:\s]\s*(\S.*)")


class HostsError(WaywiserError):
    """A file that should name hosts or groups, and does not."""


class HostLine(NamedTuple):
    """A host and the line that names it."""

    name: str
    line: int


def read_hostfile(file: str, is_known: Callable[[str], bool] | None = None) -> tuple[str, ...]:
    """The hosts of an MPI hostfile, in its order. ``is_known``: whether a name is a host, by
    default whether it has an address.

    Raises `HostsError` naming file and line: garbage, a host named twice, an unknown host.
    """
    hosts = list(_hosts_of(file, _lines(file)))
    if not hosts:
        raise HostsError("names no host", where=file, remedy="write one host per line")
    seen: dict[str, int] = {}
    for host in hosts:
        if host.name in seen:
            raise HostsError(
                f"{host.name} is named twice, before in line {seen[host.name]}",
                where=_at(file, host.line),
                remedy="name each host once; slots=N sets its number of processes",
            )
        seen[host.name] = host.line
    _require_known(file, hosts, is_known or has_address)
    return tuple(host.name for host in hosts)


def has_address(name: str) -> bool:
    """Whether the name of a host resolves."""
    try:
        return bool(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError):
        return False


def slurm_hosts(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The nodes of the Slurm allocation that this process runs in; empty outside of one. Raises
    `WordError` if the variable is no host list."""
    return expand_hosts(environment.get("SLURM_JOB_NODELIST", ""))


def slurm_groups(seconds: float = SCONTROL_SECONDS) -> dict[str, tuple[str, ...]]:
    """The nodes below each leaf switch, from ``scontrol show topology``; empty if Slurm has no
    topology, or does not answer in time. Raises `HostsError` for what cannot be read."""
    if shutil.which("scontrol") is None:
        return {}
    try:
        answer = subprocess.run(
            ["scontrol", "--oneliner", "show", "topology"],
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    if answer.returncode:
        return {}
    text = answer.stdout.decode(errors="replace")
    return topology_groups(text, "scontrol show topology")


def topology_groups(text: str, where: str) -> dict[str, tuple[str, ...]]:
    """The nodes below each switch or block that has nodes of its own, from topology.conf or from
    the output of ``scontrol show topology``. Raises `HostsError`."""
    return _groups(where, _topology_lines(where, _numbered(text)))


def read_groups(file: str) -> dict[str, tuple[str, ...]]:
    """The groups of a file: ``NAME: HOSTLIST`` per line, or Slurm's topology.conf. Raises
    `HostsError` naming file and line."""
    lines = list(_lines(file))
    found = _groups(file, _group_lines(file, lines))
    if not found:
        raise HostsError("names no group", where=file, remedy="write NAME: n[01-16] per line")
    return found


def groups_among(
    groups: Mapping[str, Sequence[str]], nodes: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """The groups with those of their nodes that are in the run, without empty ones."""
    among = set(nodes)
    kept = {name: tuple(n for n in members if n in among) for name, members in groups.items()}
    return {name: members for name, members in kept.items() if members}


class _GroupLine(NamedTuple):
    name: str
    hosts: tuple[str, ...]
    line: int


def _at(where: str, line: int) -> str:
    return f"{where}, line {line}"


def _lines(file: str) -> Iterator[tuple[int, str]]:
    try:
        text = read_regular(file, LIMIT_BYTES).decode()
    except OSError as error:
        raise HostsError(why_not_read(error), where=file) from error
    except UnicodeDecodeError as error:
        raise HostsError("is no text", where=file, remedy="name a file of text") from error
    return _numbered(text.removeprefix("\ufeff"))


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines that say something, without comments, by number."""
    for number, line in enumerate(text.split("\n"), 1):
        kept = line.partition("#")[0].strip()
        if kept:
            yield number, kept


def _hosts_of(file: str, lines: Iterable[tuple[int, str]]) -> Iterator[HostLine]:
    count = 0
    for number, line in lines:
        head, *options = line.split()
        counted = _HOST_WITH_PROCESSES.fullmatch(head)
        wrong = next((each for each in options if not _SLOTS.fullmatch(each)), None)
        if wrong is not None:
            raise HostsError(
                f"{wrong!r} is no option of a host",
                where=_at(file, number),
                remedy="write one host per line: n1, n1 slots=8 or n1:8",
            )
        for name in _expanded(counted[1] if counted else head, _at(file, number)):
            count += 1
            if count > MOST_HOSTS:
                raise HostsError(f"names more than {MOST_HOSTS:,} hosts", where=file)
            yield HostLine(name, number)


def _expanded(text: str, where: str) -> tuple[str, ...]:
    try:
        return expand_hosts(text)
    except WordError as error:
        raise HostsError(error.what, where=where, remedy=error.remedy) from error


def _require_known(file: str, hosts: Sequence[HostLine], is_known: Callable[[str], bool]) -> None:
    with ThreadPoolExecutor(max_workers=min(_RESOLVERS, len(hosts))) as resolvers:
        known = list(resolvers.map(is_known, (host.name for host in hosts)))
    unknown = [host for host, is_one in zip(hosts, known, strict=True) if not is_one]
    if not unknown:
        return
    named = ", ".join(f"{host.name} (line {host.line})" for host in unknown[1:_MOST_NAMED])
    more = len(unknown) - _MOST_NAMED
    others = f"; so are {named}" if named else ""
    raise HostsError(
        f"{unknown[0].name} is unknown: it has no address{others}"
        + (f" and {more} more" if more > 0 else ""),
        where=_at(file, unknown[0].line),
        remedy="correct the name or remove the line",
    )


def _group_lines(file: str, lines: Sequence[tuple[int, str]]) -> Iterator[_GroupLine]:
    if any(_is_topology(line) for _, line in lines):
        yield from _topology_lines(file, lines)
        return
    for number, line in lines:
        found = _GROUP_LINE.fullmatch(line)
        if found is None:
            raise HostsError(
                f"{line!r} is no group",
                where=_at(file, number),
                remedy="write NAME: n[01-16] per line",
            )
        yield _GroupLine(found[1], _expanded(found[2], _at(file, number)), number)


def _is_topology(line: str) -> bool:
    return line.lower().startswith(("switchname=", "blockname="))


def _topology_lines(where: str, lines: Iterable[tuple[int, str]]) -> Iterator[_GroupLine]:
    """Switches above others repeat the nodes of those, and are no groups."""
    for number, line in lines:
        if not _is_topology(line):
            continue
        words = (word.partition("=") for word in line.split())
        fields = {key.lower(): value for key, _, value in words}
        name = fields.get("switchname") or fields.get("blockname") or ""
        if not name:
            raise HostsError("a switch without a name", where=_at(where, number))
        if fields.get("switches") or not fields.get("nodes"):
            continue
        yield _GroupLine(name, _expanded(fields["nodes"], _at(where, number)), number)


def _groups(where: str, lines: Iterable[_GroupLine]) -> dict[str, tuple[str, ...]]:
    """Raises `HostsError` for a group that is defined twice and for a node that is named twice."""
    found: dict[str, tuple[str, ...]] = {}
    defined: dict[str, int] = {}
    place: dict[str, tuple[str, int]] = {}
    for name, hosts, line in lines:
        if name in found:
            raise HostsError(
                f"the group {name} is defined twice, before in line {defined[name]}",
                where=_at(where, line),
            )
        for host in hosts:
            if host in place:
                before, before_line = place[host]
                raise HostsError(
                    f"{host} is named twice, before in line {before_line} (group {before})",
                    where=_at(where, line),
                    remedy="name each node in one group",
                )
            place[host] = (name, line)
        found[name], defined[name] = hosts, line
    return found
