"""Programs that were compiled with an earlier header run with this library: interface 2."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tree import FAKE_FOLDER, ROOT

HEADER = ROOT / "native" / "include" / "waywiser" / "transfer.h"
FIRST_HEADER = ROOT / "tests" / "abi" / "transfer_2.h"
PROGRAM = ROOT / "tests" / "abi" / "program.c"
LIBRARY = FAKE_FOLDER / "waywiser_fake" / "lib" / "libwaywiser_transfer_fake.so.2"


def declarations(header: Path) -> list[str]:
    """The functions, types and macros of a header, each on one line without comments."""
    text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.DOTALL).replace("\\\n", " ")
    macros = re.findall(r"^#define (WAYWISER_\w.*)$", text, flags=re.MULTILINE)
    code = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    found = re.findall(r"typedef [^;{]*(?:\{[^}]*\})?[^;]*;|WAYWISER_API [^;]*;", code)
    assert len(macros) > 5 and len(found) > 20
    return [re.sub(r"\( ", "(", " ".join(each.split())) for each in (*macros, *found)]


def is_kept(old: str, now: list[str]) -> bool:
    """Whether the declaration is the same, a structure that states its size and has got more fields
    at its end, or an enumeration that has got more values at its end."""
    fields, closed, name = old.rpartition("}")
    if closed and old.startswith("typedef enum"):
        fields = fields.rstrip() + ","
    elif not closed or not re.search(r"\{ *size_t size;", fields):
        return old in now
    return old in now or any(
        each.startswith(fields) and each.endswith(closed + name) for each in now
    )


def test_every_declaration_is_that_of_the_first_header() -> None:
    now = declarations(HEADER)
    missing = [each for each in declarations(FIRST_HEADER) if not is_kept(each, now)]
    assert missing == [], "a program would have to be compiled again: raise WAYWISER_TRANSFER_ABI"


def test_a_changed_declaration_is_found(tmp_path: Path) -> None:
    changed = tmp_path / "changed.h"
    text = FIRST_HEADER.read_text()
    for old, new in (
        ("size_t relay_count;", "int relay_count;"),
        ("int quiet;", "double before; int quiet;"),
        ("WAYWISER_FORKED = 9", "WAYWISER_FORKED = 8"),
        ("WAYWISER_FORKED = 9,", "WAYWISER_FORKED = 9, WAYWISER_BETWEEN = 12,"),
        ("void* to, const void* from,", "const void* from, void* to,"),
        ("WAYWISER_TRANSFER_ABI 2", "WAYWISER_TRANSFER_ABI 3"),
    ):
        assert old in text
        changed.write_text(text.replace(old, new))
        now = declarations(changed)
        assert not all(is_kept(each, now) for each in declarations(FIRST_HEADER))


@pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not built")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_a_program_of_the_first_header_runs(tmp_path: Path) -> None:
    program = tmp_path / "program"
    compiled = subprocess.run(
        ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", PROGRAM, "-o", program,
         f"-I{FIRST_HEADER.parent}", LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stderr
    ran = subprocess.run(
        [program], capture_output=True, text=True, check=False, timeout=120, env=dict(os.environ)
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "all calls work\n", "")
