"""The survey of each node by itself: made on all at once, fetched, and compared as a fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from waywiser.analysis.comparison.fleet import assess_fleet
from waywiser.cluster.connection.coordinator import Coordinator, NoAnswer, Reply
from waywiser.cluster.connection.fetched_files import fetch_files
from waywiser.cluster.connection.protocol import CheckEnded, NodeFile, RunCheck
from waywiser.curves import read_subject
from waywiser.measure.supervise import Deadline
from waywiser.profile import ClusterFolder, ProfileError
from waywiser.profile.cluster_folder import profile_path
from waywiser.words import ClusterNode, compress_hosts

SURVEY_SECONDS = 300.0
"""Seconds for the survey of one node."""

_ANSWER_SECONDS = 60.0
"""Seconds beyond that for its answer."""

_CUT_ANSWER_SECONDS = 2.0
"""The same if the deadline of the run is near; the profiles have as long at least."""


def without_profile(folder: ClusterFolder, nodes: Sequence[ClusterNode]) -> list[ClusterNode]:
    """The nodes that can be surveyed, and have no profile yet."""
    return [
        node
        for node in nodes
        if node.state == "joined" and not profile_path(folder.path, node.name).exists()
    ]


def survey_nodes(
    folder: ClusterFolder,
    coordinator: Coordinator,
    nodes: Sequence[ClusterNode],
    note: Callable[[str], None],
    deadline: Deadline,
) -> None:
    """Surveys the nodes, and stores their profiles. What fails costs the profile of the node.
    The ``deadline`` is that for it, profiles included; a survey that it cuts is no fault of its
    node."""
    is_cut = deadline.seconds < SURVEY_SECONDS
    limit = min(deadline.seconds, SURVEY_SECONDS)
    replies = coordinator.ask(
        {node.name: RunCheck(seconds=limit) for node in nodes},
        limit + (_CUT_ANSWER_SECONDS if is_cut else _ANSWER_SECONDS),
    )
    files: dict[str, NodeFile] = {}
    cut: list[str] = []
    for name, reply in replies.items():
        if isinstance(reply, CheckEnded) and reply.profile is not None:
            files[name] = reply.profile
        elif is_cut and (isinstance(reply, NoAnswer) or getattr(reply, "is_late", False)):
            cut.append(name)
        else:
            note(f"{name}: its own survey failed: {_reason(reply)}")
    if cut:
        note(
            f"{compress_hosts(cut)}: no survey of each by itself: the deadline left {limit:.3g} s "
            "for it"
        )
    rest = Deadline(max(deadline.left, _CUT_ANSWER_SECONDS))
    for name, problem in fetch_files(coordinator, files, folder.new_profile, rest).items():
        note(f"{name}: its profile was not received: {problem}")


def faults(folder: ClusterFolder) -> Iterator[str]:
    """What is wrong with nodes by themselves, beside nodes of equal hardware: a line for each."""
    read, names = [], {}
    for name in folder.nodes:
        path = profile_path(folder.path, name)
        try:
            if path.is_file():
                read.append(read_subject(str(path), links=True))
                names[str(path)] = name
        except ProfileError as error:
            yield f"{name}: its profile cannot be read: {error.what}"
    found = assess_fleet(read)
    for host in found.of("bad", "suspect"):
        for fault in host.faults:
            yield f"{names.get(host.files[-1], host.host)} is {host.status}: {fault.title}"


def _reason(reply: Reply) -> str:
    if isinstance(reply, CheckEnded):
        return reply.printed or "it made no profile"
    return getattr(reply, "reason", "it answered something else")
