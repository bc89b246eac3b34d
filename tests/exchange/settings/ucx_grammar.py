"""UCX's grammar of the values in ``ucx.conf``, written after its sources and its help texts.

openucx/ucx, version 1.22.0, commit 8a65956348e627ebadd3169bcf25f0df58253922,
src/ucs/config/parser.c. What ``ucx_info -cf`` of that version says:

    bandwidth value: <number>[T|G|M|K]B|b[[p|/]s] or "auto"
    time value: <number>[m|s|ms|us|ns]
    comma-separated list of value or key:value pairs, where key is one of [...].
    A value without a key is the default.

``ucs_config_sscanf_bw`` needs the ``s`` of the unit, reads the prefix as a power of 1024, and
divides bits by 8. A list needs a value for each key, its own or the one without a key.
"""

from __future__ import annotations

import re

PREFIXES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

COPY_KEYS = ("h2d", "d2h", "d2d", "default")
DISTANCE_KEYS = ("phb", "node", "sys")

_BANDWIDTH = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)([Bb])(?:ps|/s|s)")
_TIME = re.compile(r"(\d+(?:\.\d+)?)(us|ns|ms|s)")


def bandwidth(text: str) -> float | None:
    """Bytes per second; None for ``auto``. Raises ValueError for anything else."""
    if text.lower() == "auto":
        return None
    match = _BANDWIDTH.fullmatch(text)
    if match is None:
        raise ValueError(f"Invalid bandwidth: {text!r}")
    return float(match[1]) * PREFIXES[match[2]] / (8 if match[3] == "b" else 1)


def time(text: str) -> float:
    """Seconds."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"Invalid time: {text!r}")
    return float(match[1]) * {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[match[2]]


def keyed(text: str, keys: tuple[str, ...]) -> dict[str, float | None]:
    """The bandwidth of each key."""
    found: dict[str, float | None] = {}
    fallback: list[float | None] = []
    for part in text.split(","):
        key, colon, value = part.partition(":")
        if not colon:
            fallback.append(bandwidth(key))
        elif key not in keys or key in found:
            raise ValueError(f"Invalid key: {part!r}")
        else:
            found[key] = bandwidth(value)
    missing = [key for key in keys if key not in found]
    if missing and len(fallback) != 1:
        raise ValueError(f"No value for {', '.join(missing)}")
    return found | dict.fromkeys(missing, fallback[0] if fallback else None)


def lines(text: str) -> dict[str, str]:
    """The variables of a file. Raises ValueError for a line that is none."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, sign, value = line.partition("=")
        if not sign or not re.fullmatch(r"UCX_[A-Z0-9_]+", name) or name in found:
            raise ValueError(f"Invalid line: {line!r}")
        found[name] = value
    return found
