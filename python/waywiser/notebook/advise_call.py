"""The method for each copy, and where to put buffers and threads: `waywiser.advise`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from waywiser.analysis.policy.advice import CopyRequest
from waywiser.notebook.verb_result import FileName, VerbResult, file_names, together
from waywiser.notebook.without_effect import require_effect
from waywiser.words import WaywiserError

if TYPE_CHECKING:
    from waywiser.analysis.questions.placement import Placement
    from waywiser.machine import Machine
    from waywiser.render.parts import Block, Section


def advise_files(
    names: Sequence[FileName],
    *,
    table: bool = False,
    placement: bool = False,
    against: FileName | None = None,
    **of_copy: Any,
) -> VerbResult:
    """As `waywiser.advise`, of which ``of_copy`` are the other arguments. Raises
    `WaywiserError`."""
    files = file_names(names)
    answers: list[tuple[str, VerbResult]] = []
    if any(value for name, value in of_copy.items() if name != "count" or value > 1):
        answers.append(("copy", _of_copy(files, table=table, **of_copy)))
    if placement:
        answers.append(("placement", _placement(files, tables=table)))
    if against:
        answers.append(("against", _difference(os.fspath(against), files)))
    return together(answers or [("methods", _of_all(files))])


def _of_all(files: Sequence[str]) -> VerbResult:
    """The method of each copy by its size."""
    from waywiser.analysis.policy.policy_files import policy_of_files
    from waywiser.render.views.policy import table_parts

    found, tables = policy_of_files(files)
    document = msgspec.json.decode(found.to_json())
    return VerbResult(found, lambda: document, lambda: table_parts(found, tables, files))


def _difference(before: str, files: Sequence[str]) -> VerbResult:
    """Where two policies choose different methods."""
    from waywiser.analysis.policy.difference import compare_policies
    from waywiser.analysis.policy.policy_files import policy_of_files
    from waywiser.render.views.policy import difference_parts

    (first, first_tables), (second, tables) = policy_of_files([before]), policy_of_files(files)
    found = compare_policies(first, second, first_tables, tables)
    names = (before, " ".join(files))
    both = (first, second)
    return VerbResult(found, lambda: found, lambda: difference_parts(found, names, both))


def _ends(files: Sequence[str], path: str) -> tuple[str, str]:
    """The memories of the path of a profile that ``--path`` names. Raises `WaywiserError`, also for
    a set of several copies."""
    from waywiser.curves.named_workloads import named_workload
    from waywiser.profile import Profile, SeriesFrame

    with Profile.open(files[0]) as profile:
        known = list(SeriesFrame.read(profile).workloads)
        found = named_workload(path, known, profile.machine, "--path")
    if len(found.transfers) > 1:
        raise WaywiserError(
            f"--path {path!r} means {len(found.transfers)} copies at once",
            remedy="name one copy: --path 'h2d pinned gpu:0'",
        )
    source, destination = found.transfers[0].path.ends
    return str(source), str(destination)


def _of_copy(
    files: Sequence[str],
    *,
    table: bool,
    path: str,
    from_: str,
    to: str,
    bytes: int | str,
    **others: Any,
) -> VerbResult:
    """The method for one size, or that of every measured size."""
    from waywiser.analysis.policy.advice import advise, find_table
    from waywiser.curves import Subject
    from waywiser.profile import Profile
    from waywiser.render.views.advice import advice_parts, table_parts

    if path:
        ends = _ends(files, path)
        from_, to = from_ or ends[0], to or ends[1]
    _require_options({"from": from_, "to": to, "bytes": bytes, **others}, table=table)
    request = CopyRequest.of(from_, to, bytes or 1, **others)
    subjects = []
    for file in dict.fromkeys(files):
        with Profile.open(file) as profile:
            subjects.append(Subject.of(profile))
    if bytes:
        advice = advise(subjects, request)
        return VerbResult(advice, lambda: advice, lambda: advice_parts(advice, table=table))
    found, notes = find_table(subjects, request)
    return VerbResult(found, lambda: found, lambda: table_parts(found, notes))


def _require_options(of_copy: Mapping[str, object], *, table: bool) -> None:
    """Raises `WaywiserError` if an option is missing that a copy needs. A table of all sizes needs
    no ``--bytes``, and options of one size have no effect on it."""
    if table and not of_copy["bytes"]:
        of_one_size = {
            "--max-threads": of_copy["max_threads"] is not None,
            "--polite": of_copy["polite"],
            "--beside": of_copy["beside"],
        }
        require_effect({"a table of all sizes has none of one size: add --bytes": of_one_size})
    needed = ("from", "to") if table else ("from", "to", "bytes")
    missing = [f"--{name}" for name in needed if not of_copy[name]]
    if missing:
        raise WaywiserError(
            f"{' and '.join(missing)} missing",
            remedy="write --from, --to and --bytes as in the examples of its help; without any of "
            "them the methods of all copies are shown",
        )


def _placement(files: Sequence[str], *, tables: bool) -> VerbResult:
    from waywiser.analysis.questions.placement_answer import placement
    from waywiser.curves import Subject
    from waywiser.profile import Profile

    if len(files) > 1:
        raise WaywiserError("--placement is of one profile", remedy="name one")
    with Profile.open(files[0]) as profile:
        found, untimed = placement(Subject.of(profile)), _untimed_text(profile.machine)
    return VerbResult(found, lambda: found, lambda: _placement_parts(found, untimed, tables))


def _untimed_text(machine: Machine) -> str:
    """A sentence that the times of a machine are none of a real one; empty for a real one."""
    return f"The machine is {machine.untimed}." if machine.untimed else ""


def _placement_parts(found: Placement, untimed: str, tables: bool) -> Iterator[Block | Section]:
    """The sentences, and with ``tables`` all costs."""
    from waywiser.analysis.questions.placement_text import placement_tables
    from waywiser.render.parts import Section, Words
    from waywiser.render.views.answers import answer_sheet

    if untimed:
        yield Words(untimed)
    yield from map(Words, found.sentences)
    for name in found.unanswered:
        yield Words(f"Not determined: {name}.")
    for table in placement_tables(found) if tables else ():
        yield Section("", table.title, (answer_sheet(table),))
