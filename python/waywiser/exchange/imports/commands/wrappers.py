"""Programs that start another one beside launchers: of affinity, of time, of containers, of shells.

Each says in its table which of its options and words come before the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from waywiser.exchange.imports.commands.launch_state import LaunchState, number
from waywiser.exchange.imports.commands.options import (
    FLAG,
    PLAIN,
    PLAIN_FLAG,
    SETTING,
    FoundOption,
    OptionMeaning,
    options,
    take_options,
)


class Wrapper(NamedTuple):
    table: Mapping[str, OptionMeaning]
    words: tuple[str, ...] = ()
    """What the words between its options and the program are called as settings; empty: they are
    none."""
    is_setting: bool = True
    """Whether that it is there changes what is measured."""
    verbs: tuple[str, ...] = ()
    """Words that follow it first: ``exec`` of ``singularity exec``."""
    usual: str = ""
    """The setting that it makes without options."""


_NUMACTL = options(
    {
        "-m --membind": OptionMeaning("memory", 1, "membind"),
        "-p --preferred": OptionMeaning("memory", 1, "preferred"),
        "-N --cpunodebind": OptionMeaning("setting", 1, "cpunodebind"),
        "-C --physcpubind": OptionMeaning("setting", 1, "physcpubind"),
        "-i --interleave": OptionMeaning("setting", 1, "interleave"),
        "-b --cpubind": OptionMeaning("setting", 1, "cpunodebind"),
        "-l --localalloc": OptionMeaning("setting", 0, "localalloc"),
        "-a --all": PLAIN_FLAG,
    }
)
_CONTAINER = options(
    {
        "-e --env": OptionMeaning("variable"),
        "--gpus --cpuset-cpus --cpuset-mems --device --network --net --ipc --shm-size --ulimit "
        "--runtime --platform --cap-add --security-opt -v --volume --mount -B --bind --env-file "
        "-c --cpu-shares --cpus -m --memory --pid": SETTING,
        "-w --workdir --name -u --user -h --hostname --entrypoint --log-driver --pwd --home -H "
        "--tmpfs -p --publish -l --label --restart --pull --log-opt -f --file": PLAIN,
        "--privileged": FLAG,
        "--rm -i -t -it -ti --tty --interactive --nv --rocm --cleanenv --contain -d "
        "--writable --no-home --init --stdin -T -q --quiet -s --silent": PLAIN_FLAG,
    }
)  # fmt: skip
_POD = options(
    {
        "-c --container -n --namespace --context --cluster --kubeconfig --image "
        "--overrides": SETTING,
        "-i -t -it -ti --stdin --tty --rm --quiet -q": PLAIN_FLAG,
        "--restart --request-timeout --pod-running-timeout": PLAIN,
    }
)
_BATCH = options(
    {
        "-n -R -gpu -nnodes -m -alloc_flags -l": SETTING,
        "-q -W -P -G -J -o -e -oo -eo -A -N": PLAIN,
        "-I -Is -Ip -K -x -V -X": PLAIN_FLAG,
    }
)
_AS_USER = options(
    {
        "-E -n -H -b": PLAIN_FLAG,
        "-u --user": OptionMeaning("setting", 1, "user"),
        "-g": PLAIN,
        "--preserve-env": PLAIN_FLAG,
    }
)
_PROFILER = options({"-o --output -f --force-overwrite -d": PLAIN})
_NONE: dict[str, OptionMeaning] = {}

WRAPPERS: dict[str, Wrapper] = {
    "numactl": Wrapper(_NUMACTL, (), False),
    "taskset": Wrapper(
        options({"-c --cpu-list": OptionMeaning("setting", 1, "taskset"), "-a": PLAIN_FLAG}),
        (),
        False,
    ),
    "nice": Wrapper(
        options({"-n --adjustment": OptionMeaning("setting", 1, "nice")}), (), False, (), "nice=10"
    ),
    "ionice": Wrapper(options({"-c --class -n --classdata": PLAIN, "-t": PLAIN_FLAG}), (), False),
    "chrt": Wrapper(options({"-f -r -o -b -i -d": FLAG}), ("priority",)),
    "time": Wrapper(
        options({"-f --format -o --output": PLAIN, "-p -v -a --verbose": PLAIN_FLAG}), (), False
    ),
    "timeout": Wrapper(
        options({"-s --signal -k --kill-after": PLAIN, "--foreground": PLAIN_FLAG}), ("",), False
    ),
    "stdbuf": Wrapper(options({"-o -e -i --output --error --input": PLAIN}), (), False),
    "nohup": Wrapper(_NONE, (), False),
    "setsid": Wrapper(_NONE, (), False),
    "unbuffer": Wrapper(_NONE, (), False),
    "catchsegv": Wrapper(_NONE, (), False),
    "exec": Wrapper(_NONE, (), False),
    "command": Wrapper(_NONE, (), False),
    "eval": Wrapper(_NONE, (), False),
    "sudo": Wrapper(_AS_USER, (), False, (), "user=root"),
    "doas": Wrapper(_AS_USER, (), False, (), "user=root"),
    "runuser": Wrapper(_AS_USER, (), False),
    "env": Wrapper(options({"-u --unset": OptionMeaning("unset"), "-i": FLAG}), (), False),
    "setarch": Wrapper(options({"-R": FLAG}), ("architecture",)),
    "hwloc-bind": Wrapper(
        options({"--membind --cpubind": SETTING, "--strict": FLAG}), ("hwloc-bind",), False
    ),
    "likwid-pin": Wrapper(options({"-c -C": OptionMeaning("setting", 1, "likwid-pin")}), (), False),
    "dplace": Wrapper(options({"-c -s -x": SETTING})),
    "cgexec": Wrapper(options({"-g": OptionMeaning("setting", 1, "cgroup")}), (), False),
    "nsys": Wrapper(_PROFILER, (), True, ("profile",)),
    "ncu": Wrapper(_PROFILER),
    "nvprof": Wrapper(_PROFILER),
    "rocprof": Wrapper(_PROFILER),
    "perf": Wrapper(_PROFILER, (), True, ("stat", "record")),
    "strace": Wrapper(options({"-e -o": PLAIN, "-f -c": PLAIN_FLAG})),
    "docker": Wrapper(_CONTAINER, ("image",), False, ("compose", "run", "exec")),
    "nvidia-docker": Wrapper(_CONTAINER, ("image",), False, ("run", "exec")),
    "podman": Wrapper(_CONTAINER, ("image",), False, ("run", "exec")),
    "singularity": Wrapper(_CONTAINER, ("image",), False, ("exec", "run")),
    "apptainer": Wrapper(_CONTAINER, ("image",), False, ("exec", "run")),
    "enroot": Wrapper(_CONTAINER, ("image",), False, ("start",)),
    "docker-compose": Wrapper(_CONTAINER, ("service",), False, ("run", "exec")),
    "kubectl": Wrapper(_POD, ("pod",), False, ("exec", "run")),
    "oc": Wrapper(_POD, ("pod",), False, ("exec", "run")),
    "bsub": Wrapper(_BATCH, (), False),
    "watch": Wrapper(options({"-n --interval": PLAIN, "-d -t -b -e -g": PLAIN_FLAG}), (), False),
    "prlimit": Wrapper(_NONE),
    "systemd-run": Wrapper(options({"-p --property": SETTING, "--unit": PLAIN})),
    "shifter": Wrapper(options({"--image": OptionMeaning("setting", 1, "image")}), (), False),
    "sarus": Wrapper(_CONTAINER, ("image",), False, ("run",)),
    "ch-run": Wrapper(options({"-b -c": PLAIN, "-w": PLAIN_FLAG}), ("image",), False),
    "ssh": Wrapper(
        options({"-i -p -l -o -F": PLAIN, "-t -tt -q -n -x -A": PLAIN_FLAG}), ("host",), False
    ),
    "pdsh": Wrapper(
        options({"-w": OptionMeaning("setting", 1, "hosts"), "-R -f": PLAIN}), (), False
    ),
    "clush": Wrapper(
        options({"-w": OptionMeaning("setting", 1, "hosts"), "-b -L": PLAIN_FLAG}), (), False
    ),
}
REMOTE = frozenset({"ssh", "pdsh", "clush"})
"""Their last word is a line of a shell if it has blanks."""
SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
"""Their option ``-c`` has a line of its own."""

_MASK = re.compile(r"(?:0x)?[0-9a-fA-F,]+")


def read(
    words: Sequence[str], at: int, launch: LaunchState, is_command: Callable[[str], bool]
) -> int:
    """Takes what the wrapper at ``words[at]`` says; returns where its program begins."""
    name = words[at].rpartition("/")[2]
    wrapper = WRAPPERS[name]
    first = at + 1
    found, at = _verbs(words, first, wrapper, is_command)
    if name == "nice" and at < len(words) and re.fullmatch(r"--?[0-9]+", words[at]):
        launch.set("nice", words[at][1:])
        at += 1
    after, end = take_options(words, at, wrapper.table, is_command)
    found += after
    names = {each.option.name for each in found}
    if (wrapper.usual and end == first) or (wrapper.usual == "user=root" and "user" not in names):
        launch.set(*wrapper.usual.split("="))
    if wrapper.is_setting:
        launch.set("by", name)
    for each in launch.take(found):
        _take(each, launch)
    for word in wrapper.words:
        if end < len(words) and not is_command(words[end]):
            if word:
                launch.set(word, words[end])
            end += 1
    if wrapper.words and end < len(words) and re.match(r"-\w|--\w", words[end]):
        found, end = take_options(words, end, wrapper.table, is_command)
        launch.take(found)
    if name == "taskset" and end == at and end < len(words) and _MASK.fullmatch(words[end]):
        launch.set("taskset", words[end])
        end += 1
    if end < len(words) and words[end] == "--":
        end += 1
    return end


def _verbs(
    words: Sequence[str], at: int, wrapper: Wrapper, is_command: Callable[[str], bool]
) -> tuple[list[FoundOption], int]:
    """The options before and between the wrapper's verbs, and where what follows begins."""
    found: list[FoundOption] = []
    while wrapper.verbs and at < len(words):
        before, at = take_options(words, at, wrapper.table, is_command)
        found += before
        if at >= len(words) or words[at] not in wrapper.verbs:
            break
        at += 1
    return found, at


def _take(found: FoundOption, launch: LaunchState) -> None:
    value = found.values[0] if found.values else ""
    if found.option.kind == "unset":
        launch.unset(value)
    elif found.option.kind == "memory":
        launch.set(found.option.name, value)
        if value == "0" or number(value):
            launch.memory_node = number(value)
