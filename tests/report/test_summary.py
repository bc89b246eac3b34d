"""The summary in Markdown, which fits a ticket."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from report import machines
from report.answered import answers
from waywiser.cli import run
from waywiser.render.document import document
from waywiser.render.entry import Entry, entry
from waywiser.render.markdown import ALL, LIMIT_BYTES, markdown, summary
from waywiser.render.parts import Document


def check(text: str) -> None:
    assert len(text.encode()) <= LIMIT_BYTES
    assert text.splitlines()[-1] == ALL and "--all" in ALL


def test_the_largest_recorded_survey_fits_with_its_matrices(recorded: Document) -> None:
    text = summary(recorded)
    check(text)
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Status",
        "## Headline bandwidth and latency",
        "## Findings",
        "## Topology and links",
    ]
    assert "**✓ OK" in text and "| H2D, numa:0 -> gpu:0 | 55.3" in text and "To do: " in text
    assert text.count("\n| gpu:3 |") == 2, "one row of each matrix"
    latencies = text.split("**Latency of")[1].split("\n\n")[1].splitlines()
    cells = [
        cell.strip() for line in latencies if "| gpu:" in line for cell in line.split("|")[2:-1]
    ]
    assert all(re.fullmatch(r"[0-9]\.[0-9]{2}", cell) for cell in cells[-16:]), cells
    assert re.findall(r"^(\d)\. \*\*note:\*\* (\S+)", text, re.MULTILINE) == [
        ("1", "host-and-all"),
        ("2", "all-to-host"),
    ]
    links = "the links of all 4 GPUs to the host are equivalent within 3%."
    assert f"\nLink equivalence: {links}\n" in text
    assert "GPU links to the host" not in text and "GPU links to the host" in markdown(recorded)
    assert "| 55.3 ±0.2 % |" in text
    assert len(markdown(recorded).encode()) > 10 * LIMIT_BYTES


def eight(name: str, key: str = "") -> Entry:
    return entry(machines.subject(machines.eight_gpus(name), blocks=1, count=8), "{}", name, key)


def test_eight_gpus_fit(alone: Document) -> None:
    check(summary(alone))
    text = summary(document([eight("node8")]))
    check(text)
    assert text.count("\n| gpu:7 |") == 2


def test_what_does_not_fit_is_counted() -> None:
    """Long names, many machines, long findings."""
    first = answers()[0]
    finding = msgspec.structs.replace(first.findings[0], statement="µ " * 5000, remedy="x" * 5000)
    many = msgspec.structs.replace(first, findings=(finding,) * 9)
    replace = msgspec.structs.replace
    one = replace(eight(name := f"<b>{'long' * 300}"), answers=(many,))
    found = [
        replace(one, name=f"{n}{name}", links=replace(one.links, key=f"{n}-")) for n in range(5)
    ]
    text = summary(document(found))
    check(text)
    assert re.search(r"\n[1-4] of 45 findings\.\n", text)
    assert "<b>" not in text


def test_the_command_writes_the_summary_and_with_all_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(machines.write(tmp_path / "a.wwp", machines.eight_gpus(), blocks=1, count=8))
    assert run(["report", file, "--format", "md"]) == 0
    check(capsys.readouterr().out)
    assert run(["report", file, "--format", "md", "--all"]) == 0
    assert "## Method and environment" in capsys.readouterr().out
