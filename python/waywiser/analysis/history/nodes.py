"""Which profiles are of one node: by the UUIDs of its GPUs, not by its name.

A node keeps its identity if it gets another name, or other GPUs in some of its slots. A host with
other GPUs altogether is another node. Surveys within `NIGHT` of the first one are of one night.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import msgspec

from waywiser.analysis.history.night import Night, PathColumns, moment_of
from waywiser.analysis.history.reader_clock import FIRST_YEAR, latest_moment
from waywiser.words import grouped

NIGHT = timedelta(hours=12)
"""Surveys that began within so long after another one are of the same night."""

SAME_NODE = 0.5
"""The least share of the GPUs of a node that another name has to have to be that node."""

CLOCK_SET = timedelta(minutes=10)
"""Visits that began before their survey by more than this: the clock was set meanwhile."""


class NodeNights:
    """The surveys of one node, in the order of time."""

    def __init__(self, first: Night) -> None:
        self.surveys: list[Night] = []
        self.notes: list[str] = []
        self._gpus: dict[str, str] = {}
        """UUIDs by address, of all that was seen."""
        self.add(first)

    @property
    def last(self) -> Night:
        return self.surveys[-1]

    @property
    def host(self) -> str:
        return self.last.host

    @property
    def uuids(self) -> frozenset[str]:
        """Those of the last survey that has any."""
        return next((s.uuids for s in reversed(self.surveys) if s.uuids), frozenset())

    def add(self, survey: Night) -> None:
        known = self.surveys[-1].gpus if self.surveys else ()
        for gpu in survey.gpus if survey.gpus != known else ():
            before = self._gpus.get(gpu.pci) if gpu.pci and gpu.uuid else None
            if before and before != gpu.uuid:
                self.notes.append(
                    f"gpu:{gpu.index} is another device since {day_of(survey)} ({before} before, "
                    f"{gpu.uuid} now): its paths begin anew"
                )
            if gpu.pci and gpu.uuid:
                self._gpus[gpu.pci] = gpu.uuid
        self.surveys.append(survey)

    def drop_paths(self) -> None:
        """Drops the columns of all surveys, which take most of their memory."""
        self.surveys = [msgspec.structs.replace(each, paths=PathColumns()) for each in self.surveys]

    def nights(self) -> list[list[Night]]:
        """The surveys by night."""
        found: list[list[Night]] = []
        for survey in self.surveys:
            if found and survey.moment - found[-1][0].moment < NIGHT:
                found[-1].append(survey)
            else:
                found.append([survey])
        return found


def day_of(survey: Night) -> str:
    """``2026-11-26``, UTC."""
    return survey.created[:10]


def nodes_of(
    surveys: Iterable[Night],
    now: datetime | None = None,
    latest: datetime | None = None,
) -> tuple[list[NodeNights], dict[str, str]]:
    """All nodes, and the files that are not used with the reason of each. ``latest`` is the
    latest moment at which a survey of a fleet can have begun, by default by these."""
    surveys = list(surveys)
    here = now or datetime.now(UTC)
    if latest is None:
        latest = latest_moment((survey.moment for survey in surveys), here)
    unused = {}
    kept = []
    for survey in surveys:
        if why := _wrong_clock(survey, latest, here):
            unused[survey.file] = why
        else:
            kept.append(survey)
    kept.sort(key=lambda survey: (survey.moment, survey.file))
    nodes: list[NodeNights] = []
    owners: dict[str, NodeNights] = {}
    by_name: dict[str, list[NodeNights]] = {}
    for survey in kept:
        usual = _usual_owner(survey, owners, by_name)
        node = _owner(survey, owners, by_name) if usual is None else usual
        if node is None:
            node = NodeNights(survey)
            nodes.append(node)
            node.notes += _after(survey, by_name.get(survey.host, ()))
        elif original := _original(survey, node):
            unused[survey.file] = f"a copy of {original.file}"
            continue
        else:
            node.add(survey)
        if usual is None:
            owners.update(dict.fromkeys(survey.uuids, node))
            known = by_name.setdefault(survey.host, [])
            if node not in known:
                known.append(node)
    return nodes, unused


def _wrong_clock(survey: Night, latest: datetime, here: datetime) -> str:
    if survey.moment > latest:
        return (
            f"it is from the future ({survey.created[:16]}): the clock of its host was wrong, or "
            f"that of this one is ({here:%Y-%m-%dT%H:%M})"
        )
    if survey.moment.year < FIRST_YEAR:
        return f"it is from {survey.created[:10]}: the clock of its host was not set"
    if survey.first_visit and moment_of(survey.first_visit) < survey.moment - CLOCK_SET:
        return "its visits began before its survey: the clock of its host was set meanwhile"
    return ""


def _usual_owner(
    survey: Night, owners: Mapping[str, NodeNights], by_name: Mapping[str, Sequence[NodeNights]]
) -> NodeNights | None:
    """Returns the owner of a survey that has the host and all GPUs of the one before it, as nearly
    all have; None of others."""
    node = by_name[survey.host][-1] if survey.host in by_name else None
    if node is None or node.last.gpus is not survey.gpus or node.host != survey.host:
        return None
    is_known = [owners.get(gpu.uuid) is node for gpu in survey.gpus if gpu.uuid]
    return node if is_known and all(is_known) else None


def _owner(
    survey: Night, owners: Mapping[str, NodeNights], by_name: Mapping[str, Sequence[NodeNights]]
) -> NodeNights | None:
    """The node that a survey is of; None if it is of a new one."""
    namesakes, uuids = by_name.get(survey.host, ()), survey.uuids
    if not uuids:
        return namesakes[-1] if namesakes else None
    shared = Counter(owners[uuid] for uuid in uuids if uuid in owners)
    if not shared:
        # its GPUs were not known by UUID before
        return next((node for node in namesakes if not node.uuids), None)
    node, number = max(shared.items(), key=lambda each: (each[0].host == survey.host, each[1]))
    share = number / max(len(uuids), len(node.uuids))
    return node if node.host == survey.host or share >= SAME_NODE else None


def _original(survey: Night, node: NodeNights) -> Night | None:
    """The survey of which another file is a copy."""
    for each in takewhile(lambda each: each.created == survey.created, reversed(node.surveys)):
        paths, others = set(survey.paths), set(each.paths)
        if paths <= others or paths >= others:
            return each
    return None


def _after(survey: Night, namesakes: Sequence[NodeNights]) -> Iterator[str]:
    """Says that a host had other GPUs before."""
    before = [node for node in namesakes if node.uuids and survey.uuids]
    if before:
        yield (
            f"all GPUs of {survey.host} are other ones since {day_of(survey)}: it is followed as "
            "another node"
        )


def named_nodes(nodes: Sequence[NodeNights]) -> dict[str, NodeNights]:
    """Nodes by the name of their host; with a GPU of theirs where several have the same."""
    found: dict[str, NodeNights] = {}
    for host, same in grouped((node.host, node) for node in nodes).items():
        for number, node in enumerate(same, 1):
            gpu = min(node.uuids, default=f"{number}")
            name = host if len(same) == 1 else f"{host} ({gpu[:12]})"
            while name in found:
                name += f" {number}"
            found[name] = node
    return found
