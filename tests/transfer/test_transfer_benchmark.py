"""The benchmark of copies with a policy and without one, with a stand-in for torch's copies."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_gpu import GpuArray
from test_policies_of_contexts import write_policy

from script_module import script_module
from waywiser import transfer

FILE = Path(__file__).parents[2] / "benchmarks" / "transfer.py"
PAGEABLE = "waywiser, pageable"
TURNS = f"{PAGEABLE}, with the policy"


class _Copies:
    """The calls of tensors that the benchmark makes."""

    def copy_(self, other: Any, *, non_blocking: bool = False) -> None:
        transfer.copy(self, other)

    def pin_memory(self) -> Any:
        return self

    def cpu(self) -> Any:
        return transfer.to_host(self)


class OnGpu(_Copies, GpuArray):
    pass


class OnHost(_Copies, np.ndarray):
    pass


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, with torch's tensors on the fake GPU."""
    module = script_module(FILE)
    cuda = SimpleNamespace(
        init=lambda: None, synchronize=lambda: None, empty_cache=lambda: None,
        device_count=lambda: 1, get_device_name=lambda gpu: "fake",
    )  # fmt: skip
    torch: Any = ModuleType("torch")
    vars(torch).update(
        uint8=np.uint8,
        empty=lambda size, dtype, device: OnGpu(size),
        cuda=cuda,
        __version__="stand-in",
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(module, "host_tensor", lambda size, pinned=False: host(size))
    monkeypatch.setattr(module, "others", lambda *given, into: {})
    return module


def host(size: int) -> Any:
    return np.ones(size, np.uint8).view(OnHost)


def test_a_policy_takes_turns_with_the_defaults(
    benchmark: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = "H2D 64 KiB"
    policy = write_policy(tmp_path / "machine.json")
    run = benchmark.replicate(f"^{group}$", 1, policy)
    rows = run["groups"][group]
    names = list(rows)
    assert names.index(TURNS) == names.index(PAGEABLE) + 1
    assert rows[TURNS]["base"] == PAGEABLE and rows[TURNS]["bytes"] == 65536
    assert "by the policy" in rows[TURNS]["method"]
    assert "policy" not in rows[PAGEABLE]["method"]
    benchmark.show([run])
    shown = capsys.readouterr().out
    assert f"of {PAGEABLE} |" in shown and rows[TURNS]["method"] in shown


def test_without_a_policy_there_is_one_row_for_each_copy(benchmark: ModuleType) -> None:
    rows = benchmark.replicate("^D2H 64 KiB$", 1)["groups"]["D2H 64 KiB"]
    assert PAGEABLE in rows and TURNS not in rows and "method" not in rows[PAGEABLE]


def test_a_policy_that_the_library_does_not_use_ends_the_benchmark(
    benchmark: ModuleType, tmp_path: Path
) -> None:
    policy = write_policy(tmp_path / "other.json", {"gpu": "another GPU"})
    with (
        pytest.warns(UserWarning, match="another GPU"),
        pytest.raises(SystemExit, match="the policy is not used"),
    ):
        benchmark.replicate("^H2D 64 KiB$", 1, policy)


def test_ratios_are_of_the_same_process(benchmark: ModuleType) -> None:
    def run(first: float, defaults: float, policy: float) -> dict[str, Any]:
        rows = {
            "torch, pinned": {"seconds": first, "bytes": 100},
            PAGEABLE: {"seconds": defaults, "bytes": 100},
            TURNS: {"seconds": policy, "bytes": 100, "base": PAGEABLE},
            "kvikio": {"seconds": "not installed", "bytes": 0},
        }
        return {"groups": {"H2D": rows}}

    found = benchmark.ratios_to_bases([run(1, 2, 1), run(1, 4, 8), run(2, 3, 2)])["H2D"]
    assert found[PAGEABLE] == {
        "base": "torch, pinned", "ratio": 0.5, "low": 0.25, "high": pytest.approx(2 / 3),
        "processes": 3,
    }  # fmt: skip
    assert found[TURNS] == {
        "base": PAGEABLE, "ratio": 1.5, "low": 0.5, "high": 2.0, "processes": 3
    }  # fmt: skip
    assert "kvikio" not in found
