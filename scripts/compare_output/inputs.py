"""What the commands read: kept profiles, damaged ones, other files, and a made machine.

They come from the source tree that holds this script, whatever tree is run, and are prepared once
in a folder, with fixed times of change.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import lzma
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
TESTS = ROOT / "tests"
IMPORTED = TESTS / "exchange" / "imports" / "data"
CAPTURES = TESTS / "captures"

MODIFIED = 1_790_000_000
"""Seconds since 1970: the time of change of every input."""

DAMAGES = 20
"""Damaged profiles, by seed."""

CLUSTERS = ("clusters/healthy", "clusters/slow", "clusters/begun")
"""Folders of cluster surveys: all nodes as usual, a slow node and a slow pair, not complete."""

HWLOC = "two-socket-4gpu"
"""The capture whose processors and memory the made machine has."""


def kept_profiles() -> list[str]:
    """The names of the profiles under docs/results, without ``.xz``."""
    found = RESULTS.rglob("*.wwp.xz")
    return sorted(str(path.relative_to(RESULTS).with_suffix("")) for path in found)


def by_size(names: list[str]) -> list[str]:
    """The smallest first."""
    return sorted(names, key=lambda name: (_packed(name).stat().st_size, name))


def imported_files() -> list[str]:
    return sorted(f"imports/{path.name}" for path in IMPORTED.iterdir())


def captures() -> list[str]:
    files = (path for path in CAPTURES.iterdir() if path.is_file() and path.suffix != ".py")
    return sorted(f"captures/{path.name}" for path in files)


def damaged_profiles() -> list[str]:
    """Profiles with one thing wrong, and files that are none."""
    return [*(f"damaged/{seed}.wwp" for seed in range(DAMAGES)), *_NO_PROFILES]


def cluster_files(folder: str) -> list[str]:
    """The files of one of `CLUSTERS`."""
    return [f"{folder}/{name}" for name in ("plan.json", "nodes.jsonl", "tests.jsonl")]


WHOLE = "damaged/whole.wwp"
"""The profile that the damaged ones were made of."""


def _packed(name: str) -> Path:
    return RESULTS / f"{name}.xz"


_NO_PROFILES: dict[str, Callable[[bytes], bytes]] = {
    "damaged/empty.wwp": lambda whole: b"",
    "damaged/cut.wwp": lambda whole: whole[: len(whole) // 2],
    "damaged/head.wwp": lambda whole: whole[:50],
    "damaged/text.wwp": lambda whole: b"a text\n" * 100,
    "damaged/packed.wwp": lambda whole: lzma.compress(whole, preset=0),
    "damaged/policy.wwp": lambda whole: (
        b'{"format": "waywiser-policy", "schema": 1}\n' + bytes(100)
    ),
    "damaged/zeros.wwp": lambda whole: whole[:4096] + bytes(len(whole) - 4096),
    "damaged/another.wwp": lambda whole: whole[:68] + b"\0\0\0\1" + whole[72:],
    "damaged/newer.wwp": lambda whole: whole[:60] + b"\0\0\1\0" + whole[64:],
    "damaged/older.wwp": lambda whole: whole[:60] + b"\0\0\0\1" + whole[64:],
}


class Inputs:
    """The inputs in a folder, each made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.digests: dict[str, str] = {}

    def prepare(self, names: set[str]) -> None:
        """Makes these, and keeps their digests."""
        for name in sorted(names):
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.startswith("damaged/"):
                self._damage(path.parent)
            elif name.startswith("clusters/"):
                self._survey_cluster(path.parent)
            elif name.startswith("imports/"):
                shutil.copyfile(IMPORTED / path.name, path)
            elif name.startswith("captures/"):
                shutil.copyfile(CAPTURES / path.name, path)
            else:
                path.write_bytes(lzma.decompress(_packed(name).read_bytes()))
            os.utime(path, (MODIFIED, MODIFIED))
            self.digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()

    def _damage(self, folder: Path) -> None:
        if (folder / Path(WHOLE).name).exists():
            return
        damaging = _of_tests("damaging")
        whole, loose = damaging.recorded(folder)
        for seed in range(DAMAGES):
            damaging.damage(loose, folder / f"{seed}.wwp", random.Random(seed))
        for name, made in _NO_PROFILES.items():
            (folder / Path(name).name).write_bytes(made(whole.read_bytes()))
        for path in folder.iterdir():
            os.utime(path, (MODIFIED, MODIFIED))

    def _survey_cluster(self, folder: Path) -> None:
        if (folder / "plan.json").exists():
            return
        planted: dict[str, dict[str, Any]] = {
            "healthy": {},
            "slow": {"slow": {(3, -1, 0): 1.0}, "slow_pairs": {(0, 5): 1.0}},
            "begun": {"tests": 6},
        }
        _of_tests("analysis.cluster.stored_clusters").stored_cluster(folder, **planted[folder.name])


def _of_tests(name: str) -> Any:
    """A module of the tests."""
    sys.path[:0] = [str(TESTS), str(ROOT / "python"), str(ROOT)]
    try:
        return importlib.import_module(name)
    finally:
        del sys.path[:3]


def make_machine(folder: Path) -> None:
    """Writes the made machine for ``fixed/sitecustomize.py``."""
    capture: dict[str, Any] = json.loads((CAPTURES / f"{HWLOC}.json").read_text())
    folder.mkdir(parents=True)
    (folder / "hwloc.xml").write_text(capture["hwloc"])
    for name, text in _SYSTEM.items():
        path = folder / "system" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


_CPUS = range(32)
_SYSTEM = {
    "proc/cpuinfo": "\n".join(
        f"processor\t: {cpu}\nmodel name\t: Fixed CPU\nmicrocode\t: 0x1\nflags\t\t: fpu sse avx2\n"
        for cpu in _CPUS
    ),
    "proc/meminfo": "MemTotal: 134217728 kB\nMemFree: 67108864 kB\nMemAvailable: 100663296 kB\n"
    "SwapTotal: 8388608 kB\nSwapFree: 4194304 kB\nHugePages_Total: 0",
    "proc/cmdline": "root=/dev/sda1 intel_iommu=on",
    "proc/sys/kernel/osrelease": "6.1.0-fixed",
    "proc/sys/kernel/numa_balancing": "1",
    "proc/self/status": "Cpus_allowed_list:\t0-31\nMems_allowed_list:\t0-1",
    "proc/self/limits": "Limit              Soft Limit  Hard Limit  Units\n"
    "Max locked memory  8388608     8388608     bytes",
    "proc/self/cgroup": "0::/",
    "proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "2 1 0:20 / /dev/shm rw - tmpfs tmpfs rw",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "sys/devices/system/cpu/online": "0-31",
    "sys/devices/system/cpu/smt/active": "1",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    "sys/devices/system/node/has_cpu": "0-1",
    **{f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor": "powersave" for cpu in _CPUS},
    "etc/os-release": 'PRETTY_NAME="Fixed Linux 1"',
}
