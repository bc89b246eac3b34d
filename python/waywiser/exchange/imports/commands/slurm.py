"""``srun`` and ``salloc`` of Slurm, and ``flux run``, whose options are the same in part."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from waywiser.exchange.imports.commands.launch_state import LaunchState, last_of, number
from waywiser.exchange.imports.commands.options import (
    FLAG,
    PLAIN,
    PLAIN_FLAG,
    SETTING,
    OptionMeaning,
    options,
    take_options,
)

NAMES = frozenset({"srun", "salloc"})
OF_FLUX = frozenset({"flux"})

_TABLE = options(
    {
        "-n --ntasks": OptionMeaning("ranks"),
        "-N --nodes": OptionMeaning("nodes"),
        "--ntasks-per-node --tasks-per-node": OptionMeaning("each"),
        "-w --nodelist": OptionMeaning("hosts"),
        "--export": OptionMeaning("list"),
        "-c --cpus-per-task -m --distribution --gpus-per-task --gpus-per-node --gpus -G --gres "
        "--cpu-bind --gpu-bind --mem-bind --mpi -C --constraint -x --exclude --network --hint -B "
        "--container-image --container-name -p --partition --reservation -r --relative "
        "--environment --ntasks-per-socket --ntasks-per-gpu --ntasks-per-core "
        "--accel-bind --cpu-freq --threads-per-core --switches --multi-prog --cores-per-socket"
        : SETTING,
        "--oversubscribe --overlap --exclusive --exact": FLAG,
        "-A --account -q --qos -t --time "
        "-J --job-name --jobid -o --output -e --error "
        "-i --input --mem --mem-per-cpu --mem-per-gpu "
        "-D --chdir --comment --licenses "
        "--kill-on-bad-exit -W --wait --container-mounts --container-workdir "
        "--open-mode --mail-type --mail-user --profile --slurmd-debug -T --threads "
        "--propagate --bcast --het-group --pack-group --clusters -M"
        : PLAIN,
        "-l --label -u --unbuffered -v --verbose -vv -vvv -Q --quiet -K --pty -H --hold -s "
        "-O --overcommit --no-kill --no-container-mount-home "
        "--container-writable --container-mount-home --container-remap-root -E --preserve-env "
        "-X --disable-status"
        : PLAIN_FLAG,
    }
)  # fmt: skip
_TABLE_OF_FLUX = options(
    {
        "-n --ntasks": OptionMeaning("ranks"),
        "-N --nodes": OptionMeaning("nodes"),
        "--tasks-per-node": OptionMeaning("each"),
        "--env": OptionMeaning("list"),
        "--requires -c --cores-per-task -g --gpus-per-task --cores --gpus-per-node -o --setopt"
        : SETTING,
        "-q --queue -B --bank -t --time-limit "
        "--job-name --output --error --input --cwd --label-io-to"
        : PLAIN,
        "-l --label-io -v --verbose -u --unbuffered --exclusive -x": PLAIN_FLAG,
    }
)  # fmt: skip


def read(
    words: Sequence[str], at: int, launch: LaunchState, is_command: Callable[[str], bool]
) -> int:
    """Takes what the launcher at ``words[at]`` says; returns where its program begins."""
    at += 1
    table = _TABLE
    if words[at - 1].rpartition("/")[2] in OF_FLUX:
        table = _TABLE_OF_FLUX
        while at < len(words) and words[at] in ("mini", "run", "submit"):
            at += 1
    found, end = take_options(words, at, table, is_command)
    others = launch.take(found)
    if hosts := last_of(others, "hosts"):
        launch.set_hosts(hosts)
    nodes, each = last_of(others, "nodes"), last_of(others, "each")
    if nodes:
        launch.set_nodes(nodes)
    if each:
        launch.set("ranks-of-node", each)
    ranks = number(last_of(others, "ranks")) or number(nodes) * number(each)
    if words[at - 1].rpartition("/")[2] == "salloc":
        launch.allocated = ranks  # it starts its program once
        return end
    if not ranks:
        ranks = launch.allocated or number(launch.environment.get("SLURM_NTASKS", ""))
    launch.ranks = ranks or launch.ranks
    return end
