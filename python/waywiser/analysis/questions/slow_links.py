"""The links of a profile: each GPU's to the host, and what is said of slow ones."""

from __future__ import annotations

from waywiser.analysis.questions.gpu_links import Link, gpu_links, slow_links_text
from waywiser.analysis.questions.identical import slow_between_gpus
from waywiser.analysis.questions.peer_groups import peer_groups
from waywiser.curves import Overview, Subject
from waywiser.machine import Machine


def links_of_gpus(machine: Machine, found: Overview) -> tuple[dict[int, Link], tuple[str, ...]]:
    """The link to the host of each GPU of the whole profile that has peers, and a sentence about
    those that are slow, and about slow links between GPUs; empty for less than two GPUs."""
    if len(machine.gpus) < 2:
        return {}, ()
    subject = Subject(found.hostname, machine, found.series, seen=found)
    groups = peer_groups(subject)
    links = gpu_links(machine, (each for group in groups for each in group))
    said = slow_links_text(links), slow_between_gpus(groups)
    return links, tuple(filter(None, said))
