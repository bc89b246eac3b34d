"""Reads the profiles of many hosts, and compares each with its peers and its own nights."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from waywiser.analysis.comparison.fleet import Fleet, assess_fleet
from waywiser.analysis.comparison.own_findings import own_findings
from waywiser.analysis.comparison.read_subject import read_subject
from waywiser.analysis.history.history import History, history_of
from waywiser.analysis.history.index import read_nights
from waywiser.analysis.history.last_change import with_last_changes
from waywiser.profile import ProfileError
from waywiser.profile.file_name import profiles_in, why_no_profile


def read_fleet(files: Sequence[str], threshold: float, expected_gpus: int = 0) -> Fleet:
    """Assesses the readable profiles; the others are listed with the reason. A folder stands for
    the profiles in it."""

    nodes = []
    unreadable: dict[str, str] = {}
    for file in dict.fromkeys(name for each in files for name in _profiles_of(each)):
        try:
            node = read_subject(file, links=True)
            nodes.append(msgspec.structs.replace(node, own_findings=own_findings(node)))
        except ProfileError as error:
            is_folder = os.path.isdir(file)
            unreadable[file] = why_no_profile(file) if is_folder else error.what
    found = assess_fleet(nodes, threshold, unreadable, expected_gpus)
    return with_last_changes(found, nodes)


def _profiles_of(name: str) -> list[str]:
    """The profiles of a folder; the folder itself if it has none; a file is its own profile."""

    if not os.path.isdir(name):  # no error for a name that is too long
        return [name]
    return profiles_in(Path(name)) or [name]


def read_history(
    files: Sequence[str], threshold: float, since: str, labels: Mapping[str, Mapping[str, str]]
) -> History:
    """Follows the nodes of all profiles that can be read; the others are listed."""
    read = read_nights(list(files))
    return history_of(read.nights, threshold, since, labels, read.unreadable)
