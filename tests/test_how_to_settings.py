"""The guides to exported settings: their examples are current, and their commands run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from exchange.settings import ucx_grammar
from kept import unpacked
from script_module import script_module
from tree import ROOT
from waywiser import __version__, cli
from waywiser.exchange.settings.consumers import CONSUMERS
from waywiser.words import Transfer

HOW_TO = ROOT / "docs" / "how-to"
PAGES = ("tune-ucx.md", "choose-kv-thresholds.md", "keep-jobs-from-a-sick-node.md")


@pytest.fixture(scope="module")
def settings() -> ModuleType:
    return script_module(HOW_TO / "settings.py")


def test_the_examples_are_of_the_kept_profile(settings: ModuleType) -> None:
    for name, text in settings.texts().items():
        shown = (HOW_TO / "examples" / name).read_text()
        assert shown == text, f"run: python docs/how-to/settings.py ({__version__})"


def test_the_commands_of_the_guides_run(
    settings: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked(settings.KEPT, tmp_path / "node.wwp")
    monkeypatch.chdir(tmp_path)
    consumers = set()
    for page in PAGES:
        for line in re.findall(
            r"^waywiser (export .*)$", (HOW_TO / page).read_text(), re.MULTILINE
        ):
            arguments = shlex.split(line)
            assert cli.run(arguments) == 0
            consumers.add(arguments[arguments.index("--for") + 1])
    assert consumers == set(CONSUMERS)
    for name in settings.EXAMPLES:
        assert (tmp_path / name).read_text() == (HOW_TO / "examples" / name).read_text()
    assert json.loads((tmp_path / "kv-offload.json").read_text())["format"] == "waywiser-kv-offload"
    assert ucx_grammar.lines((tmp_path / "ucx.conf").read_text())


def test_every_setting_of_the_examples_is_explained() -> None:
    explained = "".join((HOW_TO / page).read_text().split("| field |", 1)[1] for page in PAGES)
    ucx = ucx_grammar.lines((HOW_TO / "examples" / "ucx.conf").read_text())
    assert all(f"`{name}`" in explained for name in ucx)
    for name in ("THRESHOLD_BYTES", "hicache-io-backend", "FLEXKV_USE_CE_TRANSFER_H2D"):
        assert f"`{name}`" in explained


def test_the_workloads_of_the_guides_are_transfers() -> None:
    found = [
        Transfer.parse(text)
        for page in PAGES
        for text in re.findall(r"--workload '([^']*)'", (HOW_TO / page).read_text())
    ]
    assert {str(transfer.layout) for transfer in found} == {"list[piece=49152]"}
