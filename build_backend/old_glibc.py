"""Makes libraries to link with, so that binaries run with an older glibc than this machine's.

    python old_glibc.py FOLDER [CC [OPTION...]]

FOLDER then has libc.so and libm.so without code, which name each function in the newest version
that glibc 2.28 has: the C library that CC links lists the versions of all its functions. What 2.28
lacks is in libcompat.a. Link with -LFOLDER before all other folders.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

NEWEST = (2, 28)

LIBRARIES = ("libc.so.6", "libm.so.6")

MOVED = ("libpthread.so.0", "libdl.so.2", "librt.so.1")
"""Parts of the C library since 2.34, and libraries of their own before. Newer systems have them
empty, so that binaries that need them load."""

LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
"""The library that loads programs, by the processor that they are for."""

_SYMBOL = re.compile(r"^[0-9a-f]+ (?:([0-9a-f]+) )?(\w) ([\w.]+)@@?GLIBC_([\d.]+)$", re.MULTILINE)


def versions(listed: str) -> dict[str, tuple[str, bool, int]]:
    """The version of each symbol in a list of nm, whether it is data, and its size."""
    newest: dict[str, tuple[tuple[int, ...], bool, int]] = {}
    for size, kind, name, version in _SYMBOL.findall(listed):
        number = tuple(map(int, version.split(".")))
        if number <= NEWEST and number >= newest.get(name, ((0,), False, 0))[0]:
            newest[name] = (number, kind in "BDRVbdrv", int(size or "0", 16))
    return {
        name: (f"GLIBC_{'.'.join(map(str, number))}", is_data, size)
        for name, (number, is_data, size) in newest.items()
    }


def sources(symbols: dict[str, tuple[str, bool, int]]) -> tuple[str, str]:
    """An assembler file and a version script that define the symbols."""
    code, nodes = [], dict[str, list[str]]()
    for name, (version, is_data, size) in symbols.items():
        nodes.setdefault(version, []).append(name)
        if is_data:
            code.append(f".data\n.globl {name}\n.type {name},@object\n.size {name},{size}\n")
            code.append(f"{name}: .zero {size}\n")
        else:
            code.append(f".text\n.globl {name}\n.type {name},@function\n{name}: .byte 0\n")
    code.append('.section .note.GNU-stack,"",@progbits\n')
    script = "".join(f"{node} {{ {'; '.join(names)}; }};\n" for node, names in nodes.items())
    return "".join(code), script


def make(folder: Path, compiler: list[str]) -> None:
    """Makes the libraries with a compiler, which may have options."""
    folder.mkdir(parents=True, exist_ok=True)

    def said(*command: str | Path) -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def found(kind: str, name: str) -> str:
        return said(*compiler, f"-print-{kind}-name={name}").strip()

    processor = said(*compiler, "-dumpmachine").partition("-")[0]
    if processor not in LOADERS:
        sys.exit(f"{compiler[0]} compiles for {processor}")
    for library in LIBRARIES:
        real = found("file", library)
        options = ["-D", "-S", "--defined-only", "--with-symbol-versions"]
        listed = said(found("prog", "nm"), *options, real)
        code, script = sources(versions(listed))
        (folder / f"{library}.s").write_text(code)
        (folder / f"{library}.map").write_text(script)
        options = [f"-Wl,-soname,{library}", f"-Wl,--version-script={folder / library}.map"]
        said(*compiler, "-shared", "-nostdlib", *options, "-o", folder / library,
             folder / f"{library}.s")  # fmt: skip
    objects = []
    options = ["-x", "c", "-O2", "-fPIC", "-ffunction-sections", "-fvisibility=hidden", "-c"]
    for source in ("old_glibc", "old_glibc_start"):
        objects.append(folder / f"{source}.o")
        said(*compiler, *options, "-o", objects[-1], Path(__file__).with_name(f"{source}.c"))
    (folder / "libcompat.a").unlink(missing_ok=True)
    said(found("prog", "ar"), "rcs", folder / "libcompat.a", *objects)
    moved = " ".join(found("file", name) for name in MOVED)
    loader = found("file", LOADERS[processor])
    nonshared = found("file", "libc_nonshared.a")
    (folder / "libc.so").write_text(
        f"GROUP ( {folder}/libcompat.a {folder}/libc.so.6 {nonshared} {moved} "
        f"AS_NEEDED ( {loader} ) )\n"
    )
    (folder / "libm.so").write_text(f"INPUT ( {folder}/libm.so.6 )\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]).resolve(), sys.argv[2:] or ["cc"])
