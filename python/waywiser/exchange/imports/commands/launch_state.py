"""What the words in front of a program say: ranks, places, environment and other settings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod

from waywiser.exchange.imports.commands.options import FoundOption

MOST_RANKS = 10_000_000

_LISTING = re.compile(
    r"(?:^|[_-])(?:debug\w*|log\w*|verbos\w*|display\w*|report\w*|print\w*|show\w*|dump\w*)",
    re.IGNORECASE,
)
"""Names of variables and parameters that only change what is written."""
_OF_TRANSPORTS = re.compile(
    r"(?:NCCL|RCCL|UCX|UCC|HSA|HIP|ROCR|GPU|CUDA|OMPI|PMIX|PRTE|MPICH|MPIR|FI|MV2|MVP|I_MPI|PSM|PSM2"
    r"|PSM3|OMP|KMP|GOMP|HCOLL|MXM|SHARP|GDRCOPY|NVSHMEM|MPI|ROCM|ONEAPI|ZE|SYCL|MALLOC)_\w+"
    r"|\w+_VISIBLE_DEVICES"
)
_INCIDENTAL = re.compile(
    r"(?:SSH|XDG|DBUS|GITHUB|CI|RUNNER|BUILD)_\w+|\w+_PORT"
    r"|SLURM_(?!CPU_BIND|MEM_BIND|GPU_BIND|DISTRIBUTION|MPI_TYPE|HINT|NETWORK|NNODES|N?TASKS|\w*NODELIST"
    r"|JOB_NUM_NODES)\w+"
    r"|HOME|O?L?D?PWD|USER|LOGNAME|SHELL|TERM|LANG|LC_\w+|EDITOR|HOSTNAME|SECONDS|RANDOM|PS[0-9]|_"
    r"|(?:\w*_)?(?:OUT\w*|LOGS?|LOGDIR|LOGFILE|RESULTS?\w*|TMP\w*|TEMP|SCRATCH|WORK\w*|JOB\w*|RUN\w*"
    r"|ITER\w*|WARMUPS?|REP\w*|TRIAL\w*|STAMP|TIMESTAMP|DATE|TIME|TAG|NAME|ID|NOW|N|I|DIR|SUFFIX|PREFIX)"
)


def is_setting(variable: str) -> bool:
    """Whether a variable can change what is measured, and not only what is written, or where."""
    if _LISTING.search(variable):
        return False
    return bool(_OF_TRANSPORTS.fullmatch(variable)) or not _INCIDENTAL.fullmatch(variable)


class LaunchState:
    """What the launchers and wrappers of one command say together."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = dict(environment)
        self.known = dict(environment)
        """The environment before the command changes it."""
        self.settings: list[str] = []
        self.launcher = ""
        """The last one, which says how many ranks there are."""
        self.ranks = 0
        """0 if no launcher says it."""
        self.allocated = 0
        """Ranks that an allocation has room for, and that another launcher starts."""
        self.nodes = 0
        self.hosts: list[str] = []
        self.memory_node: int | None = None
        """The NUMA node that memory is bound to."""

    def set(self, name: str, value: str) -> None:
        """Adds a setting that is not a variable."""
        if not _LISTING.search(name):
            self.settings.append(f"{name}={value}" if value else name)

    def set_folder(self, name: str, word: str) -> None:
        """The folder of a program that is named by its whole path."""
        folder = word.rpartition("/")[0]
        if folder.startswith(("/", "~", "$")):
            self.settings.append(f"{name}={folder}")

    def set_variable(self, text: str) -> None:
        """A variable as ``NAME=VALUE``; a bare name has the value that is known, or one that is
        not."""
        name, separator, value = text.partition("=")
        if separator:
            self.environment[name] = value
        elif re.fullmatch(r"[A-Za-z_]\w*", name) and name not in ("ALL", "NONE"):
            self.environment.setdefault(name, f"${name}")

    def unset(self, name: str) -> None:
        self.environment.pop(name, None)

    def take(self, found: Iterable[FoundOption]) -> list[FoundOption]:
        """Takes over variables and settings; returns the options with another meaning."""
        others = []
        for each in found:
            match each.option.kind:
                case "plain":
                    continue
                case "setting":
                    self.set(each.option.name or each.name.lstrip("-"), " ".join(each.values))
                case "variable":
                    for value in each.values:
                        self.set_variable(value)
                case "pair" if len(each.values) == 2:
                    self.set_variable("=".join(each.values))
                case "list":
                    for part in ",".join(each.values).split(","):
                        self.set_variable(part)
                case _:
                    others.append(each)
        return others

    def set_hosts(self, hosts: str) -> None:
        """The hosts of a list as ``a:4,b:4``."""
        self.hosts = [each for each in hosts.split(",") if each]
        self.set("hosts", hosts)

    def set_nodes(self, text: str) -> None:
        self.nodes = number(text)
        self.set("nodes", text)


def number(text: str) -> int:
    """A count, or a product of counts; 0 for anything else."""
    product = re.fullmatch(r"\$\(\(\s*([0-9]{1,7}(?:\s*\*\s*[0-9]{1,7}){0,4})\s*\)\)", text)
    if product:
        return min(prod(map(int, product[1].split("*"))), MOST_RANKS)
    return int(text) if re.fullmatch(r"[0-9]{1,7}", text) else 0


def last_of(found: Iterable[FoundOption], kind: str) -> str:
    """The value of the last option with this meaning; empty without one."""
    values = [each.values[0] for each in found if each.option.kind == kind and each.values]
    return values[-1] if values else ""
