"""``waywiser doctor``: is this machine, or the one of a profile, fit to be measured?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from waywiser.cli.app import CLEAN, FINDING, Json, print_result, verb
from waywiser.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from waywiser.report.parts import Block, Section


@verb("Say whether this machine is fit to be measured.")
def doctor(
    file: str | None = None,
    severity: str = "warning",
    cluster: bool = False,
    mpi: bool = False,
    trying: bool = False,
    mpicc: str = "",
    launcher: str = "",
    json: Json = False,
) -> int:
    """Say whether this machine, or the one of a profile, is fit to be measured, and what to do.

    [FILE]: A profile: check its machine, as it was stored.
    --severity WORD: The least severity that ends with 1: info, warning or error; by default
        warning.
    --cluster: Also say what a survey of a cluster from here lacks; what is missing ends with 1.
    --mpi: Also show the MPI library that ranks would use here, its launcher, and the bridge that
        was compiled for them.
    --try: The same, and start two ranks for each kind of memory, on GPUs too, and each operation,
        and check the bytes. A crash of MPI is a result.
    --mpicc PATH: The same as --mpi with the mpicc of this library. Without it: that of
        WAYWISER_MPICC, the first in PATH, or that of the Python environment.
    --launcher TEMPLATE: The same as --mpi with ranks that another launcher starts than the
        library's mpiexec, such as 'srun -n {ranks} {command}'.

    waywiser doctor
        check this machine before a survey
    waywiser doctor node.wwp --severity error
        check the machine of a profile; exit with 1 for errors alone
    """
    from itertools import chain

    from waywiser.curves import at_least
    from waywiser.doctor.diagnosis import diagnose, live_situation, stored_situation, unchecked
    from waywiser.machine import lost_text
    from waywiser.report.parts import Words
    from waywiser.report.views.doctor import finding_parts
    from waywiser.words.status import parse_severity

    least = parse_severity(severity)
    if file is None:
        situation, created = live_situation(), ""
    else:
        from waywiser.profile import Profile

        with Profile.open(file) as profile:
            situation, created = stored_situation(profile), profile.created
    findings, missing = diagnose(situation), unchecked(situation)
    hostname = situation.machine.hostname
    document: dict[str, object] = {"schema": 2, "hostname": hostname, "findings": findings}
    parts: list[Block] = [*finding_parts(findings, missing)]
    if situation.build:
        machine = situation.machine
        driver = f"{machine.driver} supports CUDA {machine.cuda_driver}" if machine.driver else ""
        document |= {"version": __version__, "build": situation.build, "driver": driver}
        parts.insert(
            0, Words(f"waywiser {__version__}: {situation.build}; driver: {driver or 'none'}")
        )
    if file is not None:
        document |= {"profile": file, "created": created, "not_checked": missing}
        when = f"as the profile of {created[:16]} UTC describes it"
        lost = lost_text(situation.machine)
        parts.insert(0, Words(f"{hostname or file}, {when}: {lost}".rstrip(), "lead"))
    beside: Iterable[Block | Section] = ()
    if mpi or trying or mpicc or launcher:
        from waywiser.cli.mpi_answer import mpi_answer

        document["mpi_library"], beside = mpi_answer(mpicc, launcher, tries=trying)
    missing_needs: Sequence[str] = ()
    if cluster:
        from waywiser.cluster.surveys.survey_needs import missing_here, needs_text

        lacks = missing_here(mpicc, launcher)
        missing_needs = lacks.always
        document |= {"missing": lacks.always, "missing_for_mpi": lacks.for_mpi}
        lines = [*needs_text(*lacks)] or ["a survey of a cluster lacks nothing here"]
        beside = chain(map(Words, lines), beside)
    print_result(document, chain(parts, beside), json=json)
    return FINDING if missing_needs or at_least(findings, least) else CLEAN
