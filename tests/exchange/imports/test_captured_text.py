"""Results are read whatever a shell, a terminal or a launcher made of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from msgspec import json

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.foreign_file import ImportFailed, decoded
from waywiser.exchange.imports.line_prefixes import without_prefixes

DATA = Path(__file__).parent / "data"
FILES = sorted(path for path in DATA.iterdir() if path.suffix in (".txt", ".json", ".out", ".csv"))
PREFIXES = {
    "srun --label": lambda rank: f"{rank:>2}: ",
    "Open MPI": lambda rank: f"[1,{rank}]<stdout>:",
    "PRRTE": lambda rank: f"[prterun-node3-4711@1,{rank}]<stdout>: ",
    "Hydra": lambda rank: f"[{rank}] ",
    "a container's log": lambda rank: "2026-01-05T10:00:00.123456789Z stdout F ",
    "docker compose": lambda rank: "bench-1  | ",
    "pdsh": lambda rank: "rack7-node12.cluster: ",
    "Jenkins": lambda rank: "[2026-01-05T10:00:00.123Z] ",
    "a log": lambda rank: "[2026-01-05 10:00:00,123] ",
    "a clock": lambda rank: "10:00:00 ",
    "ts": lambda rank: "Jan 05 10:00:00 ",
    "a journal": lambda rank: "Jan 05 10:00:00 node3 bench.sh[4711]: ",
    "Open MPI with times": lambda rank: f"Mon Jan  5 10:00:00 2026[1,{rank}]<stdout>:",
    "a container's log of a rank": lambda rank: f"2026-01-05T10:00:00.1Z [1,{rank}]<stdout>: ",
}


def content(path: Path) -> list[bytes]:
    return [json.encode(each.measured) for each in detect.read(path)]


def prefixed(text: str, name: str) -> str:
    return "".join(f"{PREFIXES[name](0)}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize("name", PREFIXES)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_prefix_of_a_launcher_changes_nothing(file: Path, name: str, tmp_path: Path) -> None:
    written = tmp_path / file.name
    written.write_text(prefixed(file.read_text(), name))
    assert content(written) == content(file)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_encoding_changes_nothing(file: Path, encoding: str, tmp_path: Path) -> None:
    written = tmp_path / file.name
    text = file.read_text().replace("\n", "\r\n")
    written.write_bytes(text.encode(encoding))
    assert content(written) == content(file)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_colours_change_nothing(file: Path, tmp_path: Path) -> None:
    rng = random.Random(file.name)
    colours = ["\x1b[0m", "\x1b[1;32m", "\x1b[38;5;196m", "\x1b[K", "\x1b]0;title\x07"]
    lines = [
        f"{rng.choice(colours)}{line}{rng.choice(colours)}" for line in file.read_text().split("\n")
    ]
    written = tmp_path / file.name
    written.write_text("\n".join(lines))
    assert content(written) == content(file)


def plain(text: str) -> str:
    (captured,) = without_prefixes(text)
    return captured.text


def test_lines_keep_their_numbers() -> None:
    lines = ["# OSU MPI Latency Test v7.4", *(f"line {rank}" for rank in range(9))]
    text = "".join(f"{n}: {line}\n" for n, line in enumerate(lines))
    assert plain(text).splitlines() == lines
    assert plain(f"launching\n\n{text}").splitlines()[2] == lines[0]


def test_numbers_of_a_table_are_no_prefix() -> None:
    text = "# OSU MPI Latency Test v7.4\n  0: a\n" + "1 2.0\n" * 20
    assert plain(text) == text


def test_other_bytes_are_no_text() -> None:
    with pytest.raises(ImportFailed, match=r"x:2: is not text"):
        decoded(b"line\n\xff\xfa\n", "x")
