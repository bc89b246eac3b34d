"""``waywiser advise``: the method for one copy, or where to put buffers and threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

from waywiser.cli.app import Json, ProfileFile, print_result, verb
from waywiser.words import WaywiserError
from waywiser.words.numbers import COUNTS, POSITIVE_COUNTS, Bounds

if TYPE_CHECKING:
    from waywiser.analysis.policy.advice import CopyRequest
    from waywiser.analysis.questions.placement import Placement
    from waywiser.machine.machine import Machine
    from waywiser.report.parts import Block, Section

RANKS_PER_GPU = Bounds(1, 4096)


@verb("Say which method to use for one copy, and why.")
def advise(
    file: ProfileFile,
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
    launcher: str = "",
    ranks_per_gpu: Annotated[int | None, RANKS_PER_GPU] = None,
    json: Json = False,
) -> None:
    """Say which method to use for one copy, how fast it is and why, or, with --placement, where to
    put buffers and threads and which GPUs to use together.

    --from MEMORY: Where the bytes are: pageable@numa:0.
    --to MEMORY: Where they go: device@gpu:0.
    --path NAME: Instead of --from and --to: the name of a path as --only takes it: 'h2d gpu:0'.
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
    --placement: Instead of a copy: where to put buffers and threads, which GPUs to use together,
        and what the worst choice costs.
    --for LAUNCHER: With --placement: what a launcher takes to start one process for each GPU on the
        better NUMA node: options for slurm or mpich, or a rankfile for openmpi. Standard error has
        the reasons.
    --ranks-per-gpu N: With --for: so many processes of each GPU; by default 1.

    waywiser advise node.wwp --from pinned@numa:0 --to device@gpu:1 --bytes 64MiB
        say how to copy 64 MiB to a GPU
    waywiser advise node.wwp --placement
        where to put buffers and threads, and which GPUs to use together
    """
    from waywiser.analysis.policy.advice import CopyRequest

    if path:
        source, destination = _ends(file, path, bool(source or destination))
    of_copies = {
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
    require_options(of_copies, placement=placement, table=table)
    _require_launcher(launcher, ranks_per_gpu, placement=placement, table=table)
    if launcher:
        _launch(file, launcher, ranks_per_gpu or 1, json=json)
        return
    if placement:
        _placement(file, tables=table, json=json)
        return
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
    _advise(file, request, is_of_one_size=bool(size), table=table, json=json)


def _ends(file: str, path: str, are_given: bool) -> tuple[str, str]:
    """The memories of the path of a profile that ``--path`` names. Raises `WaywiserError`, also
    with ``--from`` or ``--to`` beside it, and for a set of several copies."""
    from waywiser.curves.named_workloads import named_workload
    from waywiser.profile import Profile
    from waywiser.profile.series_frame import SeriesFrame

    if are_given:
        raise WaywiserError("--path has both memories", remedy="remove --from and --to")
    with Profile.open(file) as profile:
        known = list(SeriesFrame.read(profile).workloads)
        found = named_workload(path, known, profile.machine, "--path")
    if len(found.transfers) > 1:
        raise WaywiserError(
            f"--path {path!r} means {len(found.transfers)} copies at once",
            remedy="name one copy: --path 'h2d gpu:0'",
        )
    source, destination = found.transfers[0].path.ends
    return str(source), str(destination)


def _advise(
    file: str, request: CopyRequest, *, is_of_one_size: bool, table: bool, json: bool
) -> None:
    """Shows the method for one size, or that of every measured size."""
    from waywiser.analysis.policy.advice import advise, find_table
    from waywiser.curves.subject import Subject
    from waywiser.profile import Profile
    from waywiser.report.views.advice import advice_parts, table_parts

    with Profile.open(file) as profile:
        subjects = [Subject.of(profile)]
    if is_of_one_size:
        advice = advise(subjects, request)
        print_result(advice, advice_parts(advice, table=table), json=json)
    else:
        found, notes = find_table(subjects, request)
        print_result(found, table_parts(found, notes), json=json)


def require_options(of_copies: Mapping[str, object], *, placement: bool, table: bool) -> None:
    """Raises `WaywiserError` for an option of copies with ``--placement``, and if one that a copy
    needs is missing without it. ``of_copies`` has what each option was given. A table of all sizes
    needs no ``--bytes``."""
    if placement:
        given = [name for name, value in of_copies.items() if value]
        if given:
            raise WaywiserError(f"{given[0]} says nothing about a placement", remedy="leave it out")
        return
    if table and not of_copies["--bytes"]:
        of_one_size = [
            name for name in ("--max-threads", "--polite", "--beside") if of_copies[name]
        ]
        if of_one_size:
            raise WaywiserError(
                f"{of_one_size[0]} says nothing about a table of all sizes", remedy="add --bytes"
            )
    needed = ("--from", "--to") if table else ("--from", "--to", "--bytes")
    missing = [name for name in needed if not of_copies[name]]
    if missing:
        raise WaywiserError(
            f"{' and '.join(missing)} missing",
            remedy="write --from, --to and --bytes as in the examples of its help, or --placement",
        )


def _require_launcher(
    launcher: str, ranks_per_gpu: int | None, *, placement: bool, table: bool
) -> None:
    """Raises `WaywiserError` for options that have no sense together."""
    if ranks_per_gpu is not None and not launcher:
        raise WaywiserError("--ranks-per-gpu is for --for", remedy="add --for slurm")
    if launcher and not placement:
        raise WaywiserError("--for is for --placement", remedy="add --placement")
    if launcher and table:
        raise WaywiserError("--for and --table do not go together", remedy="remove --table")


def _launch(file: str, launcher: str, per_gpu: int, *, json: bool) -> None:
    """Writes what a launcher takes, and its reasons to standard error."""
    from waywiser.analysis.questions.placement_answer import placement
    from waywiser.analysis.questions.rank_affinity import by_kind, local_ranks_text
    from waywiser.analysis.questions.rank_binding import bind_ranks
    from waywiser.curves.subject import Subject
    from waywiser.exchange.settings.launchers import comments, launcher_text, require_launcher
    from waywiser.profile import Profile
    from waywiser.profile.output_file import STANDARD_OUTPUT, write_output
    from waywiser.report.parts import Words

    require_launcher(launcher)
    with Profile.open(file) as profile:
        subject = Subject.of(profile).decidable
        messages = local_ranks_text(by_kind(subject))
        found = bind_ranks(placement(subject), profile.machine, per_gpu, messages=messages)
        untimed = _untimed_text(profile.machine)
    text = launcher_text(found, launcher)
    if json:
        print_result({"launcher": launcher, "text": text, "binding": found}, (), json=True)
        return
    notes = [*([untimed] if untimed else []),
             *comments(found)]  # fmt: skip
    print_result(None, map(Words, notes), to_errors=True)
    write_output(STANDARD_OUTPUT, text.encode())


def _placement(file: str, *, tables: bool, json: bool) -> None:
    from waywiser.analysis.questions.placement_answer import placement
    from waywiser.curves.subject import Subject
    from waywiser.profile import Profile

    with Profile.open(file) as profile:
        found, untimed = placement(Subject.of(profile)), _untimed_text(profile.machine)
    print_result(found, _placement_parts(found, untimed, tables), json=json)


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
