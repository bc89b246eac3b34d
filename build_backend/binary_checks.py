"""Reads what a binary needs: the GPUs that it has code for, its processor, libraries, and versions
of symbols.

    python binary_checks.py CUOBJDUMP FILE...

Exits with 1 and one line on stderr if a GPU of compute capability 6.0 to 9.0 would have to
translate PTX in a kernel of one of the files: PTX that is newer than the driver does not load.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

SUPPORTED = (60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90)
"""The compute capabilities of GPUs that drivers of R525 know."""

SYSTEM = {
    "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libgcc_s.so.1",
    "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
}  # fmt: skip
"""Libraries that every distribution has, and the loader itself."""

OURS = {"libwaywiser_transfer.so.2", "libhwloc.so.15", "libpciaccess.so.0"}
"""The libraries that a wheel carries."""


def kernels(cuobjdump: Path, file: Path, kind: str) -> Counter[int]:
    """How many images of a kind (``elf``: machine code, ``ptx``) a file has by architecture."""
    answer = subprocess.run(
        [cuobjdump, f"--list-{kind}", file], capture_output=True, text=True, check=False
    )
    return Counter(int(number) for number in re.findall(r"\.sm_(\d+)[a-z]?\.", answer.stdout))


def only_ptx(elf: Counter[int]) -> list[int]:
    """The supported capabilities for which some image has no machine code. It runs from its minor
    version on, within a major version."""
    images = max(elf.values(), default=0)
    complete = [number for number, count in elf.items() if count == images]
    return [
        wanted
        for wanted in SUPPORTED
        if not any(has // 10 == wanted // 10 and has <= wanted for has in complete)
    ]


def newest_symbols(file: Path) -> dict[str, tuple[int, ...]]:
    """The newest version of GLIBC, GLIBCXX, CXXABI and GCC that a file needs, as far as it needs
    them."""
    answer = subprocess.run(
        ["readelf", "-W", "-V", file], capture_output=True, text=True, check=True
    )
    needs = answer.stdout.partition("Version needs section")[2]
    newest: dict[str, tuple[int, ...]] = {}
    for family, text in re.findall(r"Name: ([A-Z]+)_([\d.]+)", needs):
        version = tuple(map(int, text.split(".")))
        newest[family] = max(version, newest.get(family, ()))
    return newest


def processor(file: Path) -> str:
    """The processor that a file is for, as names of wheels have it."""
    with file.open("rb") as opened:
        number = int.from_bytes(opened.read(20)[18:], "little")
    return {62: "x86_64", 183: "aarch64"}.get(number, f"number {number}")


def needed(file: Path) -> list[str]:
    """The shared libraries that a file names."""
    answer = subprocess.run(
        ["readelf", "-W", "-d", file], capture_output=True, text=True, check=True
    )
    return re.findall(r"\(NEEDED\).*\[(.*)\]", answer.stdout)


def main() -> int:
    cuobjdump, *files = map(Path, sys.argv[1:])
    for file in files:
        missing = only_ptx(kernels(cuobjdump, file, "elf"))
        if missing:
            names = ", ".join(f"{number // 10}.{number % 10}" for number in missing)
            print(
                f"{file.name} has no machine code for GPUs of compute capability {names}: "
                "add their architectures to CMAKE_CUDA_ARCHITECTURES",
                file=sys.stderr,
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
