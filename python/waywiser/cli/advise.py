"""``waywiser advise``: the method for each copy, and where to put buffers and threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec

from waywiser.cli.app import Json, NamedAnswer, print_answers, verb
from waywiser.words import POSITIVE_COUNTS, WaywiserError
from waywiser.words.numbers import COUNTS

if TYPE_CHECKING:
    from waywiser.analysis.policy.advice import CopyRequest
    from waywiser.analysis.questions.placement import Placement
    from waywiser.machine import Machine
    from waywiser.report.parts import Block, Section


@verb("Say which method to use for copies, and where to put buffers and threads.")
def advise(
    files: list[str],
    source: str = "",
    destination: str = "",
    path: str = "",
    size: str = "",
    count: Annotated[int, POSITIVE_COUNTS] = 1,
    host_contiguous: bool = False,
    peers_idle: bool = False,
    max_threads: Annotated[int | None, COUNTS] = None,
    polite: bool = False,
    beside: str = "",
    table: bool = False,
    placement: bool = False,
    against: str = "",
    json: Json = False,
) -> None:
    """Show the fastest method of each copy by its size; for one copy how fast it is and why; or
    where to put buffers and threads.

    FILE...: Profiles (.wwp) of one machine, or one policy.
    --from MEMORY: Where the bytes are: pageable@numa:0.
    --to MEMORY: Where they go: device@gpu:0.
    --path NAME: In place of --from and --to: the name of a path as --only takes it: 'h2d gpu:0'.
    --bytes SIZE: Bytes of the copy, or of each of --count.
    --count N: Pieces of a list; 1 is one copy.
    --host-contiguous: The pieces lie one after another in host memory, and are scattered on the
        GPU.
    --peers-idle: Also methods that use the links of other GPUs.
    --max-threads N: Only methods with at most N CPUs.
    --polite: The method that takes least from other work.
    --beside COLLECTIVE: The method that slows this collective over the GPUs least: allreduce.
    --table: Also show the method of every measured size, or without --bytes that alone; with
        --placement all costs.
    --placement: Show where to put buffers and threads, which GPUs to use together, and what the
        worst choice costs.
    --against FILE: Show where another profile, or another policy, needs different methods.

    waywiser advise node.wwp --from pinned@numa:0 --to device@gpu:1 --bytes 64MiB
        say how to copy 64 MiB to a GPU
    waywiser advise node.wwp --placement
        where to put buffers and threads, and which GPUs to use together
    """
    from waywiser.analysis.policy.advice import CopyRequest

    if path:
        source, destination = _ends(files, path, bool(source or destination))
    of_copy = {
        "--from": source,
        "--to": destination,
        "--bytes": size,
        "--count": count > 1,
        "--host-contiguous": host_contiguous,
        "--peers-idle": peers_idle,
        "--max-threads": max_threads is not None,
        "--polite": polite,
        "--beside": beside,
    }
    answers = []
    if any(of_copy.values()):
        require_options(of_copy, table=table)
        request = CopyRequest.of(
            source,
            destination,
            size or 1,
            count=count,
            host_contiguous=host_contiguous,
            peers_idle=peers_idle,
            max_threads=max_threads,
            polite=polite,
            beside=beside,
        )
        answers.append(_of_copy(files, request, is_of_one_size=bool(size), table=table))
    if placement:
        answers.append(_placement(files, tables=table))
    if against:
        answers.append(_difference(against, files))
    print_answers(answers or [_of_all(files)], json=json)


def _of_all(files: Sequence[str]) -> NamedAnswer:
    """The method of each copy by its size."""
    from waywiser.analysis.policy.policy_files import policy_of_files
    from waywiser.report.views.policy import table_parts

    found, tables = policy_of_files(files)
    document = msgspec.json.decode(found.to_json())
    return NamedAnswer("methods", document, table_parts(found, tables, files))


def _difference(before: str, files: Sequence[str]) -> NamedAnswer:
    """Where two policies choose different methods."""
    from waywiser.analysis.policy.difference import compare_policies
    from waywiser.analysis.policy.policy_files import policy_of_files
    from waywiser.report.views.policy import difference_parts

    (first, first_tables), (second, tables) = policy_of_files([before]), policy_of_files(files)
    found = compare_policies(first, second, first_tables, tables)
    names = (before, " ".join(files))
    return NamedAnswer("against", found, difference_parts(found, names, (first, second)))


def _ends(files: Sequence[str], path: str, are_given: bool) -> tuple[str, str]:
    """The memories of the path of a profile that ``--path`` names. Raises `WaywiserError`, also
    with ``--from`` or ``--to`` beside it, and for a set of several copies."""
    from waywiser.curves.named_workloads import named_workload
    from waywiser.profile import Profile, SeriesFrame

    if are_given:
        raise WaywiserError("--path has both memories", remedy="remove --from and --to")
    with Profile.open(files[0]) as profile:
        known = list(SeriesFrame.read(profile).workloads)
        found = named_workload(path, known, profile.machine, "--path")
    if len(found.transfers) > 1:
        raise WaywiserError(
            f"--path {path!r} means {len(found.transfers)} copies at once",
            remedy="name one copy: --path 'h2d gpu:0'",
        )
    source, destination = found.transfers[0].path.ends
    return str(source), str(destination)


def _of_copy(
    files: Sequence[str], request: CopyRequest, *, is_of_one_size: bool, table: bool
) -> NamedAnswer:
    """The method for one size, or that of every measured size."""
    from waywiser.analysis.policy.advice import advise, find_table
    from waywiser.curves import Subject
    from waywiser.profile import Profile
    from waywiser.report.views.advice import advice_parts, table_parts

    subjects = []
    for file in dict.fromkeys(files):
        with Profile.open(file) as profile:
            subjects.append(Subject.of(profile))
    if is_of_one_size:
        advice = advise(subjects, request)
        return NamedAnswer("copy", advice, advice_parts(advice, table=table))
    found, notes = find_table(subjects, request)
    return NamedAnswer("copy", found, table_parts(found, notes))


def require_options(of_copy: Mapping[str, object], *, table: bool) -> None:
    """Raises `WaywiserError` if an option is missing that a copy needs. ``of_copy`` has what each
    option was given. A table of all sizes needs no ``--bytes``."""
    if table and not of_copy["--bytes"]:
        of_one_size = [name for name in ("--max-threads", "--polite", "--beside") if of_copy[name]]
        if of_one_size:
            raise WaywiserError(
                f"{of_one_size[0]} says nothing about a table of all sizes", remedy="add --bytes"
            )
    needed = ("--from", "--to") if table else ("--from", "--to", "--bytes")
    missing = [name for name in needed if not of_copy[name]]
    if missing:
        raise WaywiserError(
            f"{' and '.join(missing)} missing",
            remedy="write --from, --to and --bytes as in the examples of its help; without any of "
            "them the methods of all copies are shown",
        )


def _placement(files: Sequence[str], *, tables: bool) -> NamedAnswer:
    from waywiser.analysis.questions.placement_answer import placement
    from waywiser.curves import Subject
    from waywiser.profile import Profile

    if len(files) > 1:
        raise WaywiserError("--placement is of one profile", remedy="name one")
    with Profile.open(files[0]) as profile:
        found, untimed = placement(Subject.of(profile)), _untimed_text(profile.machine)
    return NamedAnswer("placement", found, _placement_parts(found, untimed, tables))


def _untimed_text(machine: Machine) -> str:
    """A sentence that the times of a machine are none of a real one; empty for a real one."""
    return f"The machine is {machine.untimed}." if machine.untimed else ""


def _placement_parts(found: Placement, untimed: str, tables: bool) -> Iterator[Block | Section]:
    """The sentences, and with ``tables`` all costs."""
    from waywiser.analysis.questions.placement_text import placement_tables
    from waywiser.report.parts import Section, Words
    from waywiser.report.views.answers import answer_sheet

    if untimed:
        yield Words(untimed)
    yield from map(Words, found.sentences)
    for name in found.unanswered:
        yield Words(f"Not determined: {name}.")
    for table in placement_tables(found) if tables else ():
        yield Section("", table.title, (answer_sheet(table),))
