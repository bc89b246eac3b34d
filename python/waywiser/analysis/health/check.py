"""Checks a profile, or the hosts of many, against every reference at hand: what ``waywiser check``
and `waywiser.check` do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from waywiser.analysis.comparison.checkup import Checkup, check_up
from waywiser.analysis.comparison.differences import load_text
from waywiser.analysis.dataset.dask_parts import dask_parts
from waywiser.analysis.dataset.engines import PACKAGES, has_engines, require_engines
from waywiser.analysis.dataset.files import is_dataset
from waywiser.analysis.dataset.parts import (
    divide,
    history_by,
    join_parts,
    parts_that_fit,
    share,
    workers_for,
    write_part,
    write_references,
)
from waywiser.analysis.dataset.scan import Scan
from waywiser.analysis.health.health_check import HealthCheck, health_of, host_health
from waywiser.analysis.health.kept_profiles import (
    NotKept,
    former_checks,
    keep_baseline,
    kept_baselines,
)
from waywiser.analysis.health.many_hosts import (
    ReadHosts,
    ReadPeers,
    health_of_hosts,
    peers_of_dataset,
    read_dataset,
    read_hosts,
    runs_beside_peers,
)
from waywiser.analysis.health.reference_results import host_results
from waywiser.analysis.history.history import History
from waywiser.analysis.history.labels import Labels, has_labels, read_labels
from waywiser.curves import (
    NO_BASELINE,
    NormalPath,
    NormalValue,
    Subject,
    below_findings,
    normal_paths_of,
    read_subject,
    read_table,
    shipped_values,
    verdicts_text,
)
from waywiser.machine import Machine, require_real
from waywiser.profile import Profile
from waywiser.stats import THRESHOLD
from waywiser.words import Value, WaywiserError

MeasureAgain = Callable[[str, Subject, Sequence[str], Sequence[str]], tuple[Subject | None, str]]
"""Measures suspected paths of a profile again: its file, the node, the paths, and the repetitions
that are known. Returns the new profile, or None and why there is none."""


COMPARING = ("waywiser.analysis.health.many_hosts", "scipy.special", *PACKAGES)
"""Modules that a process loads which compares hosts with their peers."""

LEAST_SECONDS = 10
"""In less nothing is decided."""
MOST_PARTS = 10_000
"""Parts of a check."""


class CheckError(WaywiserError):
    """What a check cannot do with what it was given."""


class References(Value, frozen=True):
    """What to compare with, and how. Baselines and former checks that are kept for this user are
    used beside what is named here."""

    baseline: tuple[str, ...] = ()
    fleet: str = ""
    """A folder of profiles of nodes of its kind, and of its own nights."""
    repeat: tuple[str, ...] = ()
    values: tuple[NormalValue, ...] = ()
    """Those of other machines beside those of this version."""
    threshold: float = THRESHOLD
    max_hidden: float | None = None
    expect_gpus: int = 0
    since: str = ""
    first_day: str = ""
    """The first day whose nights are looked at; empty for all."""
    labels: Labels = msgspec.field(default_factory=dict)


class CheckedProfile(NamedTuple):
    """One profile and its verdict."""

    node: Subject
    found: HealthCheck
    failure: str
    """Why suspected paths could not be measured again; empty if they were, or if none are."""


def check_profile(
    file: str, references: References, measure_again: MeasureAgain | None = None
) -> CheckedProfile:
    """Checks one profile. Suspected paths are measured again by ``measure_again``, if it is
    given. Raises `waywiser.words.WaywiserError`: a file that cannot be read, a baseline of a
    simulated machine, options for a baseline without one."""
    node = read_subject(file, links=True)
    checkup, failure = _against_baseline(node, file, references, measure_again)
    values = (*shipped_values(), *references.values)
    with Profile.open(file) as profile:
        read, beside = Subject.of(profile), normal_paths_of(profile, values)
    hosts = _known_hosts(node, file, references)
    nights = None if hosts is None else hosts.nights
    peers = hosts.peers.only(node.called) if hosts is not None and references.fleet else None
    results = host_results(
        node,
        read,
        beside,
        checkup,
        peers,
        nights,
        threshold=references.threshold,
        expect_gpus=references.expect_gpus,
    )
    if checkup is not None:
        notes = (*checkup.notes, *_normal_notes(node, beside))
        checkup = msgspec.structs.replace(checkup, notes=notes)
    host = host_health(node.name, (node.called,), results)
    found = health_of(
        [host], baseline=checkup, peers=peers, nights=nights, other_machines=tuple(beside)
    )
    return CheckedProfile(node, found, failure)


def check_hosts(files: Sequence[str], references: References) -> HealthCheck:
    """Checks each host of many profiles, or of folders of them, beside its peers and its own
    nights. Files that cannot be read are listed. Raises `CheckError` for a baseline."""
    of_one = {
        "--baseline": references.baseline,
        "--repeat": references.repeat,
        "--max-hidden": references.max_hidden is not None,
    }
    if given := [option for option, value in of_one.items() if value]:
        raise CheckError(
            f"{given[0]} is for one profile, and several were named",
            remedy=f"name one profile, or remove {given[0]}",
        )
    named = [*files, *filter(None, (references.fleet,))]
    scans = {}
    if len(named) == 1 and is_dataset(Path(named[0])) and has_engines():
        scan = scans[named[0]] = Scan(named[0], references.first_day)
        with workers_for(scan, COMPARING) as workers:  # they start while the runs are read
            if (parts := parts_that_fit(scan, workers.count)) > 1:
                peers = workers.start_aside(peers_of_dataset, *_peers_of(scan, references))
                division = divide(scan, parts, references.threshold, references.since)
                share(division, workers)
                nights = history_by(workers.each, division, references.labels)
                return _of_parts(scan, nights, references, peers())
    values = (*shipped_values(), *references.values)
    return health_of_hosts(_read_hosts(named, references, scans=scans), values)


def check_by_dask(folder: str, references: References, address: str) -> HealthCheck:
    """Checks the hosts of a data set as `check_hosts` does, whose nights the workers of a Dask
    scheduler check. Raises `PartsError`, `NoEngine`."""
    _require_dataset(folder)
    scan = Scan(os.path.abspath(folder), references.first_day)
    with dask_parts(address) as (each_part, parts):
        division = divide(scan, parts, references.threshold, references.since)
        nights = history_by(each_part, division, references.labels)
    return _of_parts(scan, nights, references)


def check_part(folder: str, references: References, part: str) -> HealthCheck | Path:
    """One step of a check in parts: ``references/16`` writes the references of all classes,
    ``3/16`` checks the third of 16 parts, and ``join`` says what all parts found. Returns the file
    that was written, or the answer. Raises `PartsError`."""
    _require_dataset(folder)
    if part == "join":
        joined = join_parts(folder)
        return _of_parts(Scan(folder, joined.first_day), joined, references)
    number, _, of = part.partition("/")
    longest = len(str(MOST_PARTS))
    parts = int(of) if of.isdecimal() and len(of) <= longest else 0
    if number == "references" and 0 < parts <= MOST_PARTS:
        scan = Scan(folder, references.first_day)
        division = divide(scan, parts, references.threshold, references.since)
        return write_references(division)
    is_number = number.isdecimal() and len(number) <= longest
    if is_number and 1 <= int(number) <= parts <= MOST_PARTS:
        return write_part(folder, int(number), parts, references.labels)
    raise CheckError(
        f"--part {part[:40]!r} is no part",
        remedy="write references/16, then 1/16 to 16/16, then join",
    )


def _require_dataset(folder: str) -> None:
    """Raises `CheckError` for a folder without a data set, `NoEngine` if none can be read here."""
    require_engines()
    if not is_dataset(Path(folder)):
        raise CheckError(
            "there is no data set in this folder",
            where=folder,
            remedy=f"waywiser export {folder} --format parquet makes it of profiles",
        )


def _peers_of(scan: Scan, references: References) -> tuple[Any, ...]:
    """The arguments of `peers_of_dataset`."""
    return scan, runs_beside_peers(scan), references.threshold, references.expect_gpus


def _of_parts(
    scan: Scan, nights: History, references: References, peers: ReadPeers | None = None
) -> HealthCheck:
    if peers is None:
        peers = peers_of_dataset(*_peers_of(scan, references))
    values = (*shipped_values(), *references.values)
    return health_of_hosts(read_dataset(scan, nights, peers), values)


def keep(checked: CheckedProfile, file: str) -> str:
    """Keeps the profile as a baseline of its machine, and returns the file. Raises `NotKept` if the
    check found or suspects something, or if other programs used the machine meanwhile."""
    (host,) = checked.found.hosts
    wrong = [each for each in host.results if each.is_wrong]
    if wrong:
        why = f"by its {wrong[0].reference}: {wrong[0].statement}"
        raise NotKept(f"is not kept: {why}", where=file, remedy="repair it, or measure again")
    if (checkup := checked.found.baseline) is not None and checkup.suspects:
        why = f"by its baseline a loss is suspected: {checkup.suspects[0]}"
        raise NotKept(f"is not kept: {why}", where=file, remedy="measure again")
    if text := load_text(checked.node):
        why = f"is not kept: other programs used the CPUs meanwhile: {text}"
        raise NotKept(why, where=file, remedy="measure again while it is idle")
    return str(keep_baseline(file, checked.node.machine))


def read_values(files: Sequence[str]) -> tuple[tuple[NormalValue, ...], Labels]:
    """The values of tables of other machines, and the labels of nodes: a file whose first line has
    ``NAME=VALUE`` has labels. Raises `waywiser.curves.normal_table.NormalTableError` and
    `waywiser.analysis.history.labels.LabelsError`."""
    values: list[NormalValue] = []
    labels: dict[str, dict[str, str]] = {}
    for name in files:
        if not has_labels(name):
            values += read_table(name)
            continue
        for host, own in read_labels(name).items():
            labels.setdefault(host, {}).update(own)
    return tuple(values), labels


def require_seconds(within: int) -> None:
    """Raises `CheckError` for a measurement that is too short to decide anything."""
    if 0 < within < LEAST_SECONDS:
        raise CheckError(
            f"{within} s are too short to measure a machine",
            remedy=f"give {LEAST_SECONDS} or more, or 0 to measure nothing",
        )


def read_references(
    machine: Machine, references: References, created: str = ""
) -> tuple[list[Subject], list[Subject]]:
    """The baselines of a machine and the repetitions. Of kept baselines the survey that was
    ``created`` then does not count. Raises `ProfileError` for one that cannot be read, `CheckError`
    for options for a baseline without one."""
    names = references.baseline or kept_baselines(machine)
    before = [read_subject(each, links=True) for each in names]
    if not references.baseline:  # a profile is not its own baseline
        before = [each for each in before if each.created != created]
    if not before and (references.repeat or references.max_hidden is not None):
        option = "--repeat" if references.repeat else "--max-hidden"
        raise CheckError(f"{option} is for a baseline", remedy="name one with --baseline")
    for old in before:
        require_real(old.machine, old.called, allowed="simulated")
    return before, [read_subject(each) for each in references.repeat]


def _against_baseline(
    node: Subject, file: str, references: References, measure_again: MeasureAgain | None
) -> tuple[Checkup | None, str]:
    """What the baselines say, and why suspected paths could not be measured again; None without a
    baseline."""
    before, again = read_references(node.machine, references, node.created)
    if not before:
        return None, ""
    repeats = references.repeat
    limit, hidden = references.threshold, references.max_hidden
    found, failure = check_up(node, before, limit, again, hidden), ""
    if found.suspects and measure_again is not None:
        measured, failure = measure_again(file, node, found.suspects, repeats)
        if measured is not None:
            found = check_up(node, before, limit, [*again, measured], hidden)
    return found, failure


def _known_hosts(node: Subject, file: str, references: References) -> ReadHosts | None:
    """The host with its peers and its nights; None if no profiles of them are known. Raises
    `CheckError` for a folder that is not there."""
    former = [each for each in former_checks(node.machine) if not _is_same(each, file)]
    folders = [references.fleet] if references.fleet else []
    if not folders and not former:
        return None
    if folders and not os.path.exists(references.fleet):
        raise CheckError(
            "there is no such folder", where=references.fleet, remedy="name one with --baseline"
        )
    return _read_hosts([*folders, *former, file], references, node)


def _read_hosts(
    files: Sequence[str],
    references: References,
    node: Subject | None = None,
    scans: Mapping[str, Scan] = {},
) -> ReadHosts:
    return read_hosts(
        files,
        references.threshold,
        references.since,
        references.labels,
        references.expect_gpus,
        node=node,
        scans=scans,
        first_day=references.first_day,
    )


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _normal_notes(node: Subject, beside: Sequence[NormalPath]) -> Iterator[str]:
    """What is below the range of other machines, and how many paths have a verdict. No verdict
    changes the status beside a baseline."""
    below = below_findings(node.machine, beside)
    for finding in below:
        yield f"review: {finding.title}; {finding.remedy}"
    if text := verdicts_text(beside):
        yield f"beside other machines {text}{f'. {NO_BASELINE}' if below else ''}"
