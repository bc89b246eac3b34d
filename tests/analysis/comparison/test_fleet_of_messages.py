"""A fleet of results of OSU: its numbers of GPUs and nodes are those of ranks, and no hardware."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from parts_of_check import PEERS, part_of
from verb_output import Output
from waywiser.cli import run
from waywiser.exchange.imports.profiles import import_files

ENDS = {
    "host": "",
    "GPU": "# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n",
}


def table(memory: str, draws: random.Random, share: float) -> str:
    """The table of one job with ``share`` of the usual bandwidth."""
    library = "MPI" if memory == "host" else "MPI-CUDA"
    rows = [(2**n, 2**n / (2 + 2**n / 12e3) * share * (1 + draws.gauss(0, 0.004)))
            for n in range(6, 25, 2)]  # fmt: skip
    head = f"# OSU {library} Bandwidth Test v7.4\n{ENDS[memory]}# Size  Bandwidth (MB/s)\n"
    return head + "".join(f"{size}  {rate:.2f}\n" for size, rate in rows)


def fleet(folder: Path, seed: int, hosts: int = 8, slow: int = -1, without: int = -1) -> list[str]:
    files = []
    for host in range(hosts):
        draws = random.Random(f"{seed} {host}")
        memories = ["host"] if host == without else [*ENDS]
        share = 0.75 if host == slow else 1.0
        text = "".join(table(each, draws, share) for each in memories for _ in range(3))
        source = folder / f"n{host}.txt"
        source.write_text(text)
        import_files([source], folder / f"n{host}.wwp", machine=f"n{host}")
        files.append(str(folder / f"n{host}.wwp"))
    return files


@pytest.mark.parametrize("seed", range(4))
def test_a_host_without_tables_of_gpus_lacks_none(
    tmp_path: Path, capsys: Output, seed: int
) -> None:
    files = fleet(tmp_path, seed, without=seed)
    assert run(["check", *files]) == 0
    text = "\n".join(part_of(capsys.readouterr().out, PEERS))
    assert text.startswith("8 fine of 8 hosts") and "class: no GPU named; " in text
    others = [file for n, file in enumerate(files) if n != seed]
    assert run(["compare", others[0], files[seed]]) == 0
    assert "gpu:" not in capsys.readouterr().out


def test_a_slow_host_is_named_and_no_hardware(tmp_path: Path, capsys: Output) -> None:
    assert run(["check", *fleet(tmp_path, 9, slow=5)]) == 3
    text = "\n".join(part_of(capsys.readouterr().out, PEERS))
    assert text.startswith("1 suspect, 7 fine of 8 hosts") and "suspect n5" in text
    assert "by mpi[test=bw] is 25" in text or "by mpi[test=bw] is 24" in text
    assert "to do: compare its driver, libraries" in text
    assert "slot" not in text and "gpu:" not in text
