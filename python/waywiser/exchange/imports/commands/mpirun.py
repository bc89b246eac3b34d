"""``mpirun`` and ``mpiexec``: Open MPI, MPICH, Intel MPI, PALS and PRRTE, and MVAPICH's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from waywiser.exchange.imports.commands.launch_state import LaunchState, last_of, number
from waywiser.exchange.imports.commands.options import (
    FLAG,
    PLAIN,
    PLAIN_FLAG,
    OptionMeaning,
    options,
    take_options,
)

NAMES = frozenset(
    f"{name}{kind}"
    for name in ("mpirun", "mpiexec", "orterun", "prun", "prterun")
    for kind in ("", "_mpt", ".hydra", ".mpich", ".openmpi", ".actual", ".slurm")
)
OF_MVAPICH = frozenset({"mpirun_rsh", "ibrun"})

_TABLE = options(
    {
        "-n -np --np -c --n -nprocs": OptionMeaning("ranks"),
        "-N --npernode -npernode -ppn --ppn -perhost": OptionMeaning("each"),
        "-npersocket --npersocket": OptionMeaning("part", 1, "ranks-of-socket"),
        "-H --host -host -hosts --hosts --hostlist": OptionMeaning("hosts"),
        "-x": OptionMeaning("variable"),
        "-genvlist -envlist --genvlist --envlist": OptionMeaning("list"),
        "--prefix --path": OptionMeaning("setting"),
        "-genv -env --genv --env": OptionMeaning("pair", 2),
        "-E": OptionMeaning("variable"),
        "-hostfile --hostfile -machinefile --machinefile -f": OptionMeaning("setting", 1, "file"),
        "--map-by -map-by -rank-by --rank-by --ranks-by": OptionMeaning("map"),
        "--bind-to -bind-to --cpu-bind --cpu-set --cpu-list": OptionMeaning("setting", 1, "bind"),
        "--mca -mca --pmixmca --prtemca --gmca -gmca --omca": OptionMeaning("mca", 2),
        "--tune -am --am --rankfile -rf --depth -d --gpus-per-rank": OptionMeaning("setting"),
        "--bind-to-core --bind-to-socket --bycore --bynode --bysocket --byslot": FLAG,
        "--output-filename -output-filename --output --stdin --wdir -wdir -wd --wd "
        "--xterm --timeout --personality -outfile-pattern -errfile-pattern -l-file --app "
        "-usize --max-restarts --report-uri --stream-buffering --label-file -chdir"
        : PLAIN,
        "--tag-output -tag-output --timestamp-output -timestamp-output --report-bindings "
        "-report-bindings --display-map -display-map --display-allocation --allow-run-as-root "
        "-allow-run-as-root -v --verbose -q --quiet -l -prepend-rank --prepend-rank --label "
        "--line-buffer --oversubscribe -oversubscribe --merge-stderr-to-stdout -genvall -envall "
        "--nooversubscribe --enable-recovery --do-not-launch --display-topo -print-rank-map "
        "-print-all-exitcodes --continuous"
        : PLAIN_FLAG,
        "--display -display": PLAIN,
    }
)  # fmt: skip
_EACH = re.compile(r"(?:^|,)ppr:([0-9]{1,5}):(\w+)", re.IGNORECASE)
_TABLE_OF_MVAPICH = options(
    {
        "-np -n": OptionMeaning("ranks"),
        "-hostfile --hostfile -o": OptionMeaning("setting", 1, "file"),
        "-ssh -rsh -show -debug -xterm": PLAIN_FLAG,
        "-export -export-all": FLAG,
    }
)


def read(
    words: Sequence[str], at: int, launch: LaunchState, is_command: Callable[[str], bool]
) -> int:
    """Takes what the launcher at ``words[at]`` says; returns where its program begins."""
    found, end = take_options(words, at + 1, _TABLE, is_command)
    others = launch.take(found)
    each, is_by_parts = 0, False
    for option in others:
        value = option.values[0] if option.values else ""
        if option.option.kind == "map":
            launch.set(option.name.lstrip("-"), value)
            if ppr := _EACH.search(value):
                each = int(ppr[1]) if ppr[2].lower() in ("node", "n") else 0
                is_by_parts = not each
        elif option.option.kind == "part":
            launch.set(option.option.name, value)
            is_by_parts = True
        elif option.option.kind == "each":
            each = number(value)
            launch.set("ranks-of-node", value)
        elif option.option.kind == "hosts":
            launch.set_hosts(value)
        elif option.option.kind == "mca" and len(option.values) == 2:
            launch.set(f"{option.values[0]}", option.values[1])
    stated = last_of(others, "ranks")
    unstated = 0 if is_by_parts else _by_hosts(launch.hosts, each)
    launch.ranks = number(stated) if stated else unstated
    return end


def _by_hosts(hosts: Sequence[str], each: int) -> int:
    """The ranks of a command that gives no number: as many as a node has on each host, or as there
    are slots on the hosts. 0 without hosts."""
    names = {host.partition(":")[0] for host in hosts}
    if each:
        return each * len(names)
    slots = [number(slot) if colon else 1 for _, colon, slot in (h.partition(":") for h in hosts)]
    return sum(slots) if all(slots) else 0


def read_mvapich(
    words: Sequence[str], at: int, launch: LaunchState, is_command: Callable[[str], bool]
) -> int:
    """The same of MVAPICH's launchers: hosts and variables stand between options and program."""
    found, end = take_options(words, at + 1, _TABLE_OF_MVAPICH, is_command)
    launch.ranks = number(last_of(launch.take(found), "ranks"))
    hosts = []
    while end < len(words) and not is_command(words[end]):
        if "=" in words[end]:
            launch.set_variable(words[end])
        else:
            hosts.append(words[end])
        end += 1
    if hosts:
        launch.set_hosts(",".join(hosts))
    return end
