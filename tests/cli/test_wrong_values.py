"""Numbers and words that are none are one clear line, whatever option has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from scripted_host import scripted_host
from waywiser import cli

PROFILE = RESULTS / "2026-11-23-surveys" / "h100-check-1.wwp.xz"
H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
COPY = ["--from", "pinned@numa:0", "--to", "device@gpu:0"]

NO_NUMBERS = [
    "9" * 5000, "9" * 400, "9" * 20, "-1", "--1", "٣", "²", "１", "1_0", "0x10", "1e999", "nan",
    "inf", "-inf", "one", "1\x1b[2J", "1,,2", "1 2",
]  # fmt: skip
"""No option takes any of them, as a whole number, a size, a time, a fraction or in a list."""

OF_THE_MACHINE = {
    "sizes": ["survey", "--dry-run", "--sizes", "{}"],
    "end of a range": ["survey", "--dry-run", "--sizes", "8:{}"],
    "points": ["survey", "--dry-run", "--sizes", "8:1MiB:{}"],
    "gpus": ["survey", "--dry-run", "--gpus", "0,{}"],
    "memory": ["survey", "--dry-run", "--memory", "{}"],
    "GiB": ["survey", "--dry-run", "--memory", "{}GiB"],
    "seed": ["survey", "--dry-run", "--seed", "{}"],
    "expected": ["survey", "--dry-run", "--expect-gpus", "{}"],
    "deadline": ["survey", "--dry-run", "--deadline", "{}"],
    "place": ["survey", "--dry-run", "--workload", "pinned@numa:{} -> device@gpu:0 by copy-engine"],
    "bytes": ["survey", "--dry-run", "--workload", f"{H2D} of {{}}"],
    "budget": ["tune", "--dry-run", "new.wwp", "--budget", "{}"],
    "grid": ["tune", "--dry-run", "new.wwp", "--grid", "{}"],
    "sizes to tune": ["tune", "--dry-run", "new.wwp", "--sizes", "{}"],
}
OF_A_PROFILE = {
    "place": ["predict", "FILE", "-w", "pinned@numa:{} -> device@gpu:0 by copy-engine of 1MiB"],
    "bytes": ["predict", "FILE", "-w", f"{H2D} of {{}}"],
    "setting": ["predict", "FILE", "-w", f"{H2D}[stride={{}}] of 1MiB"],
    "layout": ["predict", "FILE", "-w", f"{H2D} as box[width={{}},height=2] of 1MiB"],
    "messages": ["predict", "FILE", "-w", f"{H2D} of 1MiB", "--messages", "{}"],
    "gpus": ["predict", "FILE", "-w", f"{H2D} of 1MiB", "--set", "gpus={}"],
    "set": ["predict", "FILE", "-w", f"{H2D} of 1MiB", "--set", "PCIe to gpu:*={}GB/s"],
    "memory": [
        "advise",
        "FILE",
        "--from",
        "pinned@numa:{}",
        "--to",
        "device@gpu:0",
        "--bytes",
        "8",
    ],
    "bytes of a copy": ["advise", "FILE", *COPY, "--bytes", "{}"],
    "count": ["advise", "FILE", *COPY, "--bytes", "8", "--count", "{}"],
    "threads": ["advise", "FILE", *COPY, "--bytes", "8", "--max-threads", "{}"],
    "only": ["show", "FILE", "--only", "pinned@numa:{}"],
    "piece": ["export", "FILE", "--for", "sglang", "--piece", "{}"],
    "threshold": ["compare", "FILE", "FILE", "--threshold", "{}"],
    "seed": ["simulate", "FILE", "-o", "new.wwp", "--seed", "{}"],
    "simulated gpus": ["simulate", "FILE", "-o", "new.wwp", "--set", "gpus={}"],
}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with scripted_host(monkeypatch):
        yield


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(unpacked(PROFILE, tmp_path_factory.mktemp("kept") / "node.wwp"))


def require_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.run(words)
    found = capsys.readouterr()
    assert (code, found.out) == (2, ""), words
    assert found.err.startswith("waywiser: error: ") and found.err.count("\n") == 1
    assert "mistake" not in found.err and "\x1b" not in found.err and len(found.err) < 3000


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("words", OF_THE_MACHINE.values(), ids=OF_THE_MACHINE)
def test_of_the_machine(
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in NO_NUMBERS:
        require_one_line([word.replace("{}", value) for word in words], capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", OF_A_PROFILE.values(), ids=OF_A_PROFILE)
def test_of_a_profile(
    words: list[str],
    profile: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in NO_NUMBERS:
        given = [profile if word == "FILE" else word.replace("{}", value) for word in words]
        require_one_line(given, capsys)
    assert not list(tmp_path.iterdir())
