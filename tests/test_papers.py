"""The pages about papers say what the kept profiles of ranks say."""

from __future__ import annotations

import importlib
import lzma
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from profiles import ENVIRONMENT, machine, samples, visit, workload
from tree import ROOT
from waywiser.machine.machine import PlacedRank
from waywiser.profile import WritableProfile

PAPERS = ROOT / "docs" / "papers"


@pytest.fixture(scope="module")
def pages() -> Iterator[ModuleType]:
    sys.path.insert(0, str(PAPERS))
    try:
        yield importlib.import_module("pages")
    finally:
        sys.path.remove(str(PAPERS))


@pytest.fixture(scope="module")
def profiles(pages: ModuleType) -> Any:
    return list(pages.rank_profiles())


@pytest.mark.parametrize("name", ["data-movement-2021.md", "auto-tuning-2013.md"])
def test_the_pages_are_current(pages: ModuleType, profiles: Any, name: str) -> None:
    text = (PAPERS / name).read_text()
    assert pages.current(text, name, profiles) == text, "run: python docs/papers/pages.py"


def test_what_a_new_profile_has_is_no_longer_missing(pages: ModuleType, tmp_path: Path) -> None:
    ranks = tuple(PlacedRank(n, (n,), 0, n % 2) for n in range(4))
    here = msgspec.structs.replace(machine(), ranks=ranks, messages="MPICH 5.0.2")
    rng = random.Random(5)
    message = "{0}@rank:0 -> {0}@rank:1 by mpi"
    pair = "device@rank:2 -> device@rank:3 by mpi"
    times = {message.format("pinned"): 9e-9, message.format("device"): 8e-9}
    times |= {f"{path}[window={n}]": rate for path, rate in times.items() for n in (4, 16)}
    staged = "device@rank:0 -> device@rank:1 by mpi-staged"
    times |= {staged: 5e-9, f"{staged}[chunk=2097152]": 3e-9}
    times |= {f"{message.format('device')};{pair}": 9e-9, f"{staged};{pair}-staged": 7e-9}
    for per_gpu in (1, 2):
        text = f"device@rank:0-3 -> device@rank:0-3 by alltoall[per-gpu={per_gpu},strategy=3-step]"
        times[text] = 2e-9 * per_gpu
    file = tmp_path / "x-ranks" / "tcp-all.wwp"
    file.parent.mkdir()
    with WritableProfile.create(file, here, ENVIRONMENT) as profile:
        for text, rate in times.items():
            for size in (2**n for n in range(4, 24, 2)):
                for block in range(2):
                    taken = samples(rng, 2e-6 + size * rate, 4, transfers=0)
                    profile.commit_visit(visit(workload(text, size), block, taken, mode="host"))
    file.with_suffix(".wwp.xz").write_bytes(lzma.compress(file.read_bytes()))
    found = list(pages.rank_profiles(tmp_path))
    assert [each.name for each in found] == ["TCP, all"]
    made = "\n".join(pages.data_movement(found))
    missing = [part.splitlines()[0] for part in made.split("## ") if "**Not measured yet" in part]
    assert missing == ["Table III: the injection limit"]  # two pairs show no limit
    assert "| 16 | 4 KiB |" in made and "| 4 | 256 B |" in made
    assert "`mpi-staged[chunk=2MiB]`" in "\n".join(pages.auto_tuning(found))
