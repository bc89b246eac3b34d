"""``waywiser mpi``: the MPI library of this machine, and what it does with each kind of memory."""

from __future__ import annotations

from waywiser.cli.app import Json, print_result, verb


@verb("Show the MPI library of this machine, and try it.")
def mpi(mpicc: str = "", launcher: str = "", trying: bool = False, json: Json = False) -> None:
    """Show the MPI library that ranks would use, its launcher, and what it does with GPU memory.

    --mpicc PATH: The mpicc of the library. Without it: that of WAYWISER_MPICC, the first in PATH,
        or that of the Python environment.
    --launcher TEMPLATE: Start ranks by another launcher than the library's mpiexec, such as
        'srun -n {ranks} {command}'.
    --try: Start two ranks for each kind of memory and each operation, and check the bytes. A crash
        of MPI is a result.

    waywiser mpi
        show library, launcher and the bridge that was compiled for them
    waywiser mpi --try
        show which kinds of memory, on GPUs too, MPI can send
    """
    from waywiser.measure.ranks.mpi_library import find_library
    from waywiser.report.views.mpi import library_parts

    library = find_library(mpicc)
    tries = None
    if trying:
        from waywiser.measure import scope
        from waywiser.measure.ranks.tries import try_all

        tries = list(try_all(library, scope.working_machine(), launcher))
    document = {
        "schema": 1,
        "library": library.name,
        "version": library.version,
        "text": library.text,
        "mpicc": library.mpicc,
        "launcher": launcher or library.launcher,
        "bridge": library.bridge,
        "was_cached": library.was_cached,
        "tries": tries,
    }
    print_result(document, library_parts(library, launcher, tries), json=json)
