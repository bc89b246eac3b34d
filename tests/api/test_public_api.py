"""`import waywiser` loads nothing, what opens a profile measures nothing, and the page is true."""

from __future__ import annotations

import ast
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import waywiser
from api import opened
from scripted_host import scripted_host
from verb_functions import function_of
from waywiser import errors
from waywiser.cli.verb_table import VERBS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python.md"
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
PROFILES = ("h200-standard-1", "h100-check-1", "h100-check-2", "two-h200-check-1")
OPTIONAL = ("pandas", "polars", "pyarrow")

BEFORE_MSGSPEC = ("datetime", "_datetime", "math")
"""The modules that an interrupted import of msgspec must not load itself."""


def loaded_by(script: str) -> set[str]:
    """The modules that a program has imported when it ends."""
    program = (
        "import json, sys; before = set(sys.modules)\n"
        f"{script}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        check=True,
        capture_output=True,
        text=True,
    )
    return set(json.loads(answer.stdout.splitlines()[-1]))


def test_the_import_loads_nothing_else() -> None:
    assert loaded_by("import waywiser") <= {
        "waywiser",
        "waywiser.version",
        "__future__",
        *BEFORE_MSGSPEC,
    }


def test_opening_a_profile_loads_no_driver_and_no_optional_package(tmp_path: Path) -> None:
    file = opened.unpacked(tmp_path, "h100-check-1")
    found = loaded_by(
        f"import waywiser; p = waywiser.open({str(file)!r}); p.headline(); len(p.samples); "
        "p.curve('H2D'); waywiser.topology(p).gpus"
    )
    heavy = {"scipy", "matplotlib", "pynvml", "rich", "typer", *OPTIONAL}
    heavy |= {"waywiser._native", "waywiser._transfer", "waywiser.machine.native", "waywiser.cli"}
    assert found & heavy == set()


FUNCTIONS = {"open", "fleet", *map(function_of, (verb.name for verb in VERBS))}


def test_the_public_names() -> None:
    assert {*waywiser.__all__, "open"} == {"__version__", "WaywiserError", "VerbResult", *FUNCTIONS}
    assert waywiser.WaywiserError is errors.WaywiserError
    with pytest.raises(AttributeError, match="has no attribute 'samples'"):
        _ = waywiser.samples  # type: ignore[attr-defined]
    assert all(inspect.isfunction(getattr(waywiser, name)) for name in FUNCTIONS)


def test_no_module_has_the_name_of_a_function() -> None:
    """The import of such a module would replace the function."""
    modules = {module.name for module in pkgutil.iter_modules(waywiser.__path__)}
    assert {"cli", "transfer"} <= modules
    assert modules & FUNCTIONS == set()


def test_the_page_shows_what_its_examples_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in PROFILES:
        opened.unpacked(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names: dict[str, Any] = {}
    examples = EXAMPLE.findall(PAGE.read_text())
    assert len(examples) >= 5
    with scripted_host(monkeypatch):
        run_examples(examples, names, capsys)
    assert names["profile"].path.startswith(str(tmp_path / "cache"))


def run_examples(
    examples: list[tuple[str, str]], names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs each as a notebook does, and compares what it prints with what the page shows."""
    for code, shown in examples:
        if any(f"to_{each}" in code and find_spec(each) is None for each in OPTIONAL):
            continue
        body = ast.parse(code).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), str(PAGE), "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(PAGE), "eval"), names)
            if value is not None:
                print(repr(value))
        printed = capsys.readouterr().out
        if shown:
            assert [line.rstrip() for line in printed.splitlines()] == shown.splitlines()
