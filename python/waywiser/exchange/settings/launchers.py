"""Places of processes as launchers take them.

- Slurm: ``--cpu-bind=map_cpu:`` for processes with one CPU each, else ``mask_cpu:``. The numbers
  are the operating system's.
- Open MPI: a rankfile. Its slots are logical numbers of cores.
- MPICH (Hydra): ``-bind-to user:``. The numbers are the operating system's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from waywiser.analysis.questions.rank_binding import BoundRank, RankBinding
from waywiser.machine import format_list


def slurm(found: RankBinding) -> str:
    """Options of ``srun``."""
    if all(len(rank.cpus) == 1 for rank in found.ranks):
        places = ",".join(str(rank.cpus[0]) for rank in found.ranks)
        return f"--ntasks={len(found.ranks)} --cpu-bind=map_cpu:{places}\n"
    masks = ",".join(f"{sum(1 << cpu for cpu in rank.cpus):#x}" for rank in found.ranks)
    return f"--ntasks={len(found.ranks)} --cpu-bind=mask_cpu:{masks}\n"


def openmpi(found: RankBinding) -> str:
    """A rankfile, for ``mpiexec --map-by rankfile:file=FILE``."""
    host = found.hostname or "localhost"
    lines = [f"# {line}" for line in comments(found)]
    lines += [f"rank {r.rank}={host} slot={format_list(r.cores)}" for r in found.ranks]
    return "".join(f"{line}\n" for line in lines)


def mpich(found: RankBinding) -> str:
    """Options of ``mpiexec``."""
    places = ",".join("+".join(map(str, rank.cpus)) for rank in found.ranks)
    return f"-n {len(found.ranks)} -bind-to user:{places}\n"


LAUNCHERS: dict[str, Callable[[RankBinding], str]] = {
    "slurm": slurm,
    "openmpi": openmpi,
    "mpich": mpich,
}


def launcher_text(found: RankBinding, launcher: str) -> str:
    """What one of `LAUNCHERS` takes."""
    return LAUNCHERS[launcher](found)


def comments(found: RankBinding) -> Iterable[str]:
    """Why each GPU has its node, and where each process is."""
    yield from found.reasons
    yield from map(_place, found.ranks)


def _place(rank: BoundRank) -> str:
    return f"rank {rank.rank}: gpu:{rank.gpu}, CPUs {format_list(rank.cpus)} of numa:{rank.node}"
