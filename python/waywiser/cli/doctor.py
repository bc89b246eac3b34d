"""``waywiser doctor``: is this machine, or the one of a profile, fit to be measured?"""

from __future__ import annotations

import waywiser
from waywiser.cli.app import Json, given_of, print_verb, verb


@verb("Say whether this machine is fit to be measured.")
def doctor(
    file: str | None = None,
    severity: str = "warning",
    cluster: bool = False,
    mpi: bool = False,
    try_: bool = False,
    mpicc: str = "",
    launcher: str = "",
    json: Json = False,
) -> int:
    """Say whether this machine, or the one of a profile, is fit to be measured, and what to do.

    [FILE]: A profile: check its machine, as it was stored.
    --severity WORD: The least severity of a finding that ends with 1: info, warning or error; by
        default warning, also with --mpi, --try and --cluster.
    --cluster: Also say what a survey of a cluster from here lacks; what is missing is an error.
    --mpi: Also show the MPI library that ranks would use here, its launcher, and the bridge that
        was compiled for them.
    --try: The same, and start two ranks for each kind of memory, on GPUs too, and each operation,
        and check the bytes. A crash of MPI is a result.
    --mpicc PATH: The same as --mpi with this library.
    --launcher TEMPLATE: The same as --mpi with this launcher.

    waywiser doctor
        check this machine before a survey
    waywiser doctor node.wwp --severity error
        check the machine of a profile; exit with 1 for errors alone
    """
    given = given_of(locals())
    del given["json"]
    return print_verb(waywiser.doctor(**given), json=json)
