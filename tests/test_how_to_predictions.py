"""The guide to predictions: its examples are current, and its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from script_module import script_module
from tree import ROOT
from waywiser import cli

HOW_TO = ROOT / "docs" / "how-to"
PAGE = HOW_TO / "predict-a-set.md"
DATA = ROOT / "tests" / "exchange" / "imports" / "data"


@pytest.fixture(scope="module")
def predictions() -> ModuleType:
    return script_module(HOW_TO / "predictions.py")


def commands() -> list[str]:
    return re.findall(r"^waywiser .*$", PAGE.read_text(), re.MULTILINE)


def test_the_examples_are_of_the_kept_profile(predictions: ModuleType) -> None:
    for name, text in predictions.texts().items():
        shown = (HOW_TO / "examples" / name).read_text()
        assert shown == text, "run: python docs/how-to/predictions.py"


def test_the_page_has_the_commands_of_its_examples(predictions: ModuleType) -> None:
    assert set(predictions.EXAMPLES.values()) <= set(commands())


def test_the_commands_for_messages_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ping_pong", "mult_pong", "maxrate", "memcpy", "memcpy_mult"):
        text = (DATA / f"benchpress_{name}.out").read_text()
        (tmp_path / f"{name}.out").write_text(text)
    found = [command for command in commands() if not re.search("(node|ranks).wwp", command)]
    assert len(found) == 7
    for command in found:
        assert cli.run(shlex.split(command)[1:]) == 0, command
