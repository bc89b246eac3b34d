"""``ucx.conf`` against UCX's grammar, and against ``ucx_info`` where it is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.settings import ucx_grammar
from exchange.settings.exported import CHECK, FOUR, H100, comments, made, subject, two_nodes
from waywiser.exchange.settings.origin import SettingsError
from waywiser.exchange.settings.ucx import BUILT_IN, ucx_bandwidth, ucx_conf, ucx_time

KEPT = [H100, FOUR, CHECK]

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine of 1073741824"
D2H = "device@gpu:0 -> pinned@numa:0 by copy-engine of 1073741824"


def test_units_are_binary() -> None:
    assert ucx_bandwidth(55.4e9) == "51.6GBs"
    assert ucx_grammar.bandwidth("8300MBs") == 8300 * 2**20
    assert ucx_time(2.5349e-6) == "2.53us"


@given(st.floats(1e3, 1e14))
def test_a_bandwidth_is_read_back_to_three_digits(rate: float) -> None:
    read = ucx_grammar.bandwidth(ucx_bandwidth(rate))
    assert read is not None and read == pytest.approx(rate, rel=6e-3)


@pytest.mark.parametrize(
    "text", ["51.6XBs", "51.6GB", "51.6G", "51.6", "GBs", "51.6 GBs", "51.6GBm", "", "5,1GBs"]
)
def test_the_grammar_has_no_other_units(text: str) -> None:
    with pytest.raises(ValueError, match="Invalid bandwidth"):
        ucx_grammar.bandwidth(text)


def test_a_list_needs_a_value_for_each_key() -> None:
    with pytest.raises(ValueError, match="No value for d2h, d2d, default"):
        ucx_grammar.keyed("h2d:51.6GBs", ucx_grammar.COPY_KEYS)
    with pytest.raises(ValueError, match="Invalid key"):
        ucx_grammar.keyed("auto,far:1GBs", ucx_grammar.DISTANCE_KEYS)
    assert ucx_grammar.keyed("auto,sys:1GBs", ucx_grammar.DISTANCE_KEYS) == {
        "phb": None,
        "node": None,
        "sys": 2**30,
    }


@pytest.mark.parametrize("packed", KEPT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_value_is_of_the_grammar_and_near_its_measurement(packed: Path) -> None:
    text = ucx_conf(subject(packed))
    found = ucx_grammar.lines(text)
    copies = ucx_grammar.keyed(found["UCX_CUDA_COPY_BW"], ucx_grammar.COPY_KEYS)
    lines = {point.text: point for point in subject(packed).overview.series}
    for key, series in re.findall(r"^# (\w+): measured .*?\): (.*)$", text, re.MULTILINE):
        found_line = lines[series].estimate
        assert found_line is not None and found_line.rate is not None
        assert copies[key] == pytest.approx(found_line.rate.value, rel=6e-3)
    for name in found.keys() & {"UCX_CUDA_IPC_BW"}:
        assert ucx_grammar.bandwidth(found[name])
    for name in found.keys() & {"UCX_CUDA_IPC_LAT"}:
        assert 1e-7 < ucx_grammar.time(found[name]) < 1e-4


def test_each_value_names_its_series_and_samples() -> None:
    text = ucx_conf(subject(FOUR))
    for part in (
        "h2d: measured ",
        "pinned@numa:0 -> device@gpu:",
        "device[from=ipc]@gpu:0 -> device@gpu:1 by copy-engine of 67108864",
        " GB/s, n = ",
        "Assumed: host memory is pinned",
        "Not set: UCX_DISTANCE_BW: the system shows one NUMA node",
    ):
        assert part in comments(text)


def test_one_gpu_has_no_settings_of_peers() -> None:
    text = ucx_conf(subject(H100))
    assert set(ucx_grammar.lines(text)) == {"UCX_CUDA_COPY_BW"}
    assert "Not set: UCX_CUDA_IPC_BW: no copy between two GPUs was measured." in text


def test_a_key_that_was_not_measured_has_the_value_of_ucx() -> None:
    text = ucx_conf(made({H2D: 55.4e9}))
    assert ucx_grammar.lines(text)["UCX_CUDA_COPY_BW"] == (
        f"default:{BUILT_IN['default']},h2d:51.6GBs,d2h:{BUILT_IN['d2h']},d2d:{BUILT_IN['d2d']}"
    )
    assert "d2h: not measured; UCX needs a value: 11660MBs is its built-in one" in text


def test_the_slowest_gpu_counts() -> None:
    text = ucx_conf(made({H2D: 55.4e9, H2D.replace("gpu:0", "gpu:1"): 30e9}))
    assert "h2d:27.9GBs" in text


def test_another_node_gives_the_distance() -> None:
    remote = H2D.replace("numa:0", "numa:1")
    text = ucx_conf(made({H2D: 55.4e9, remote: 32.2e9}, two_nodes()))
    found = ucx_grammar.lines(text)
    assert ucx_grammar.keyed(found["UCX_DISTANCE_BW"], ucx_grammar.DISTANCE_KEYS)["sys"] == (
        pytest.approx(32.2e9, rel=5e-3)
    )
    assert found["UCX_CUDA_COPY_BW"].startswith("default:10000MBs,h2d:51.6GBs")
    assert remote in comments(text)
    near = ucx_conf(made({H2D: 55.4e9}, two_nodes()))
    assert "UCX_DISTANCE_BW" not in ucx_grammar.lines(near)
    assert "Not set: UCX_DISTANCE_BW: no copy between a GPU and pinned memory" in near


def test_reads_of_another_process_come_before_copies_of_one() -> None:
    own = "device@gpu:0 -> device@gpu:1 by copy-engine of 67108864"
    read = own.replace("device@gpu:0", "device[from=ipc]@gpu:0")
    assert "UCX_CUDA_IPC_BW=279GBs" in ucx_conf(made({own: 300e9}))
    both = ucx_conf(made({own: 300e9, read: 250e9}))
    assert "UCX_CUDA_IPC_BW=233GBs" in both
    assert "Not set: UCX_CUDA_IPC_LAT: no copy of 4096 bytes or less" in both


def test_a_profile_without_gpus_has_no_settings() -> None:
    with pytest.raises(SettingsError, match="no copies between host and GPU"):
        ucx_conf(made({"pageable@numa:0 -> pageable@numa:0 by cpu of 1048576": 1e10}))


@pytest.mark.skipif(shutil.which("ucx_info") is None, reason="ucx_info is not installed")
@pytest.mark.parametrize("packed", KEPT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_ucx_takes_the_file(packed: Path, tmp_path: Path) -> None:
    text = ucx_conf(subject(packed))
    answer = _ucx_info(tmp_path, text)
    assert "Invalid value" not in answer
    if "UCX_CUDA_COPY_BW" not in answer:
        pytest.skip("this ucx_info has no CUDA transport (it needs libcuda.so.1)")
    taken = dict(line.partition("=")[::2] for line in answer.splitlines() if "=" in line)
    for name, value in ucx_grammar.lines(text).items():
        if name == "UCX_CUDA_COPY_BW":
            mine = ucx_grammar.keyed(value, ucx_grammar.COPY_KEYS)
            assert ucx_grammar.keyed(taken[name], ucx_grammar.COPY_KEYS) == (
                pytest.approx(mine, rel=1e-3)
            )
        elif name == "UCX_CUDA_IPC_BW":
            mine_alone = ucx_grammar.bandwidth(value)
            assert ucx_grammar.bandwidth(taken[name]) == pytest.approx(mine_alone, rel=1e-3)
        elif name == "UCX_CUDA_IPC_LAT":
            assert ucx_grammar.time(taken[name]) == pytest.approx(ucx_grammar.time(value), rel=0.01)


@pytest.mark.skipif(shutil.which("ucx_info") is None, reason="ucx_info is not installed")
def test_ucx_rejects_what_the_grammar_rejects(tmp_path: Path) -> None:
    assert "Invalid value" in _ucx_info(tmp_path, "UCX_DISTANCE_BW=auto,sys:51.6XBs\n")
    assert "Invalid value" in _ucx_info(tmp_path, "UCX_DISTANCE_BW=sys:51.6GBs\n")
    assert "Invalid value" not in _ucx_info(tmp_path, "UCX_DISTANCE_BW=auto,sys:51.6GBs\n")


def _ucx_info(folder: Path, text: str) -> str:
    (folder / "ucx.conf").write_text(text)
    answer = subprocess.run(
        ["ucx_info", "-c"],
        env={**os.environ, "UCX_CONFIG_DIR": str(folder), "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout + answer.stderr
