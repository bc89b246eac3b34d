"""Commands that change what later runs measure: the machine, its libraries, and files that runs
read."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ALWAYS = frozenset(
    {
        "sysctl", "modprobe", "rmmod", "insmod", "reboot", "shutdown", "service", "cpupower",
        "cpufreq-set", "tuned-adm", "ethtool", "ifconfig", "mlxconfig", "mlxfwreset", "mst",
        "setpci", "make", "cmake", "ninja", "meson", "ln", "swapoff", "swapon", "mount", "umount",
        "irqbalance", "vi", "vim", "nano", "emacs", "renice", "alias", "nvcc", "patch",
    }
)  # fmt: skip
"""Programs that change something whatever their words are."""
_BY_WORDS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(
        ("nvidia-smi", "rocm-smi", "amd-smi", "xpu-smi"),
        re.compile(
            r"-(?:pl|lgc|rgc|lmc|rmc|ac|rac|pm|c|mig|r|e|acp)$"
            r"|--?(?:set|reset|gpu-reset|power-limit|lock|compute-mode|persistence|auto-boost)|set$|reset$"
        ),
    ),
    "ip": re.compile(r"(?:set|add|del|delete|change|replace|up|down)$"),
    "git": re.compile(
        r"(?:checkout|switch|pull|reset|apply|merge|am|stash|revert|rebase|submodule)$"
    ),
    "sed": re.compile(r"-\w*i|--in-place"),
    **dict.fromkeys(
        ("systemctl", "docker", "podman"),
        re.compile(r"(?:start|stop|restart|reload|build|pull|update|enable|disable)$"),
    ),
    **dict.fromkeys(
        ("apt", "apt-get", "yum", "dnf", "zypper", "pip", "pip3", "conda", "mamba", "brew"),
        re.compile(r"(?:install|remove|purge|upgrade|update|uninstall|erase|downgrade)$"),
    ),
    **dict.fromkeys(
        ("kubectl", "oc", "helm"),
        re.compile(r"(?:apply|delete|scale|patch|edit|replace|set|label|install|upgrade|rollout)$"),
    ),
    "tee": re.compile(r"^/(?:proc|sys|etc)/|\.conf$|\.sh$|hosts?\w*$"),
    "scontrol": re.compile(r"(?:update|reconfigure|reboot)$"),
    "taskset": re.compile(r"-\w*p\w*$|--pid$"),
    "dcgmi": re.compile(r"config$|mig$|profile$"),
    "nvidia-cuda-mps-control": re.compile(r"-d$"),
    "numactl": re.compile(r"--(?:shm|file|huge)"),
    **dict.fromkeys(
        ("cp", "mv", "rm", "chmod", "install", "tar", "unzip", "rsync", "scp"),
        re.compile(r"/(?:usr|opt|etc|lib|lib64|bin)(?:/|$)|\.so\b|\.conf\b|\.sh$|hosts?\w*$|rank\w*file"),
    ),
}  # fmt: skip
"""Programs that change something if one of their words is like this."""
_WRITES = frozenset({"echo", "printf", "cat", "seq", "scontrol", "hostname"})
_RESULT = re.compile(r".*\.(?:log|txt|out|err|csv|json|xml|md|dat|res)(?:\.\w+)?|/dev/null|")
"""Names of files that hold results; none."""
_AS_ROOT = re.compile(r"sudo|doas|env|-[nEHAb]+|\w+=.*")


def is_lasting_change(words: Sequence[str], file: str = "") -> bool:
    """Whether a command changes what later runs measure; ``file`` is where its output goes."""
    rest = list(words)
    while rest and _AS_ROOT.fullmatch(rest[0]):
        del rest[0]
    if not rest:
        return False
    name = rest[0].rpartition("/")[2]
    if name in _WRITES and not _RESULT.fullmatch(file):
        return True
    if name in _ALWAYS:
        return len(rest) > 1 or name in ("make", "ninja", "cmake", "reboot")
    pattern = _BY_WORDS.get(name)
    return pattern is not None and any(map(pattern.search, rest[1:]))
