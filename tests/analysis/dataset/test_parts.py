"""A fleet in parts has the verdicts of the whole: in files of an array of jobs, and by the workers
of Dask, of which one is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import waywiser
from kept import RESULTS, unpacked
from waywiser.analysis.dataset import parts, scan
from waywiser.analysis.dataset.files import files_in, write_table
from waywiser.analysis.dataset.parts import (
    PartsError,
    divide,
    drop_read_parts,
    here,
    history_by,
    join_parts,
    nights_of_part,
)
from waywiser.analysis.dataset.profiles import record
from waywiser.analysis.dataset.scan import Scan
from waywiser.analysis.history.night import read_night
from waywiser.cli import run

CHECK = RESULTS / "2026-11-22-check-two-gpus" / "check-3.wwp.xz"

SLOWER = ["--set", "PCIe to gpu:1=44GB/s", "--from-night", "8"]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five nodes on fourteen nights with a data set: the link of gpu:1 of n2 is slower from the
    eighth on."""
    folder = tmp_path_factory.mktemp("parts")
    original = unpacked(CHECK, folder / "node.wwp")
    for host in ("n1", "n2", "n3", "n4", "n5"):
        words = SLOWER if host == "n2" else []
        simulated = ["simulate", str(original), "--host", host, "--nights", "14", *words]
        assert run([*simulated, "-o", str(folder / "nodes")]) == 0
    assert run(["export", str(folder / "nodes"), "--format", "parquet"]) == 0
    return folder / "nodes"


def checked(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    capsys.readouterr()
    code = run([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_parts_in_files_have_the_verdicts_of_the_whole(
    nodes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = checked(["check", str(nodes)], capsys)
    assert whole[0] == 1
    assert run(["check", str(nodes), "--part", "references/3"]) == 0
    for n in (3, 1, 2):
        assert run(["check", str(nodes), "--part", f"{n}/3"]) == 0
    assert checked(["check", str(nodes), "--part", "join"], capsys) == whole


@pytest.mark.parametrize("few_rows", [10**9, -1])
def test_a_data_set_is_checked_without_pandas(nodes: Path, tmp_path: Path, few_rows: int) -> None:
    """pyarrow loads it where it converts values by itself, which takes longer than a small check;
    so do the processes that check parts."""
    module = tmp_path / "pandas.py"
    module.write_text("import os\nopen(__file__ + str(os.getpid()), 'w').close()\n")
    program = (
        "import sys; from waywiser.analysis.dataset import parts; from waywiser.cli import run; "
        f"parts.FEW_ROWS = {few_rows}; sys.exit(run(['check', sys.argv[1]]))"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program, str(nodes)],
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == 1
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["pandas.py"]


def test_parts_that_are_missing_or_of_former_references_are_no_answer(
    nodes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", str(nodes), "--part", "references/2"]) == 0
    assert run(["check", str(nodes), "--part", "1/2"]) == 0
    assert run(["check", str(nodes), "--part", "join"]) == 2
    assert "2-of-2.json: is not there" in capsys.readouterr().err
    assert run(["check", str(nodes), "--part", "1/3"]) == 2
    assert "its references are of 2 parts" in capsys.readouterr().err
    assert run(["check", str(nodes), "--part", "2/2"]) == 0
    assert run(["check", str(nodes), "--part", "references/2"]) == 0
    assert run(["check", str(nodes), "--part", "join"]) == 2
    assert "former references" in capsys.readouterr().err


@pytest.fixture
def copied(nodes: Path, tmp_path: Path) -> Path:
    """The data set without its profiles, of which another part of a test changes files."""
    shutil.copytree(nodes, tmp_path / "set", ignore=shutil.ignore_patterns("*.wwp", "parts"))
    return tmp_path / "set"


def test_a_host_that_records_between_two_parts_moves_no_other(
    copied: Path, nodes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = checked(["check", str(copied)], capsys)[1]["nights"]
    assert run(["check", str(copied), "--part", "references/3"]) == 0
    assert run(["check", str(copied), "--part", "1/3"]) == 0
    original = str(nodes.parent / "node.wwp")
    simulated = ["simulate", original, "--host", "a0", "--nights", "2"]
    assert run([*simulated, "-o", str(tmp_path / "new")]) == 0
    for file in sorted((tmp_path / "new").glob("*.wwp")):
        record(str(file), copied)
    drop_read_parts()
    for n in (2, 3):
        assert run(["check", str(copied), "--part", f"{n}/3"]) == 0
    found = join_parts(str(copied))
    hosts = sorted(node.host for node in found.nodes if node.host != "a0")
    assert (
        hosts == sorted(node["host"] for node in whole["nodes"]) == ["n1", "n2", "n3", "n4", "n5"]
    )
    assert len(found.paths) == len(whole["paths"])


def test_a_large_data_set_is_checked_in_parts_with_the_verdicts_of_the_whole(
    copied: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = checked(["check", str(copied)], capsys)
    looked: list[int] = []
    read = parts._read_part
    monkeypatch.setattr(parts, "_read_part", lambda *a: looked.append(a[1]) or read(*a))
    for runs, cpus in ((14, {0}), (30, {0}), (14, {0, 1})):
        for module in (parts, scan):
            monkeypatch.setattr(module, "AT_ONCE", runs)
        monkeypatch.setattr(parts, "PART_RUNS", runs)
        monkeypatch.setattr(parts, "FEW_ROWS", 0)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cpus=cpus: cpus)
        assert checked(["check", str(copied)], capsys) == whole
    assert looked == [0, 1, 2, 3, 4, 0, 1, 2, 0, 2, 4], "each part once, others in other processes"
    assert not parts._read_divisions, "no night is kept after it"


@pytest.mark.parametrize("is_only_there", [False, True])
def test_a_file_that_another_process_finds_damaged_is_named(
    is_only_there: bool,
    copied: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Damages the file of a night of the last host, or the file of all its nights."""
    packed = [each.path for each in files_in(copied)]
    damaged = packed[3].with_name("all-ffffffffffffffff.parquet")
    for path in packed:
        table = pq.read_table(path, partitioning=None)
        is_last = pc.equal(table["host"], "n5")
        if path == packed[3]:
            write_table(table.filter(is_last), damaged)
        if path == packed[3] or is_only_there:
            write_table(table.filter(pc.invert(is_last)), path)
    content = bytearray(damaged.read_bytes())
    group = pq.ParquetFile(damaged).metadata.row_group(0)
    columns = [group.column(n) for n in range(group.num_columns)]
    (own,) = [each for each in columns if each.path_in_schema == "seconds"]
    first = own.dictionary_page_offset or own.data_page_offset
    for at in range(first, first + own.total_compressed_size):
        content[at] ^= 0xFF
    damaged.write_bytes(content)
    whole = checked(["check", str(copied)], capsys)
    assert all(str(damaged) in whole[1][part]["unreadable"] for part in ("nights", "peers"))
    monkeypatch.setattr(parts, "FEW_ROWS", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert checked(["check", str(copied)], capsys) == whole


def test_profiles_that_a_large_data_set_lacks_are_checked_with_it(
    copied: Path, nodes: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (parts, scan):
        monkeypatch.setattr(module, "AT_ONCE", 14)
    monkeypatch.setattr(parts, "PART_RUNS", 14)
    simulated = ["simulate", str(nodes.parent / "node.wwp"), "--host", "b7", "--nights", "1"]
    assert run([*simulated, "-o", str(copied)]) == 0
    found = checked(["check", str(copied)], capsys)[1]["nights"]
    assert "b7" in {node["host"] for node in found["nodes"]} and len(found["nodes"]) == 6


@pytest.fixture(scope="module")
def sixth_day(nodes: Path) -> str:
    return sorted({each.day for each in files_in(nodes)})[5]


@pytest.mark.parametrize(("has_profiles", "has_data_set"), [(1, 0), (0, 1), (1, 1)])
def test_from_a_day_on_the_verdicts_are_those_of_a_folder_without_earlier_nights(
    has_profiles: int,
    has_data_set: int,
    nodes: Path,
    sixth_day: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = ["parts", *["*.wwp"][has_profiles:], *["day=*"][has_data_set:]]
    folder = shutil.copytree(nodes, tmp_path / "all", ignore=shutil.ignore_patterns(*missing))
    later = shutil.copytree(folder, tmp_path / "later")
    for each in later.iterdir():
        if each.suffix and read_night(str(each)).moment.date().isoformat() < sixth_day:
            each.unlink()
        elif not each.suffix and each.name < f"day={sixth_day}":
            shutil.rmtree(each)
    code, found = checked(["check", str(folder), "--since", f"/{sixth_day}"], capsys)
    assert found["nights"].pop("first_day") == sixth_day
    assert code == 1 and {node["nights"] for node in found["nights"]["nodes"]} == {9}
    of_these = checked(["check", str(later)], capsys)
    of_these[1]["nights"].pop("first_day")
    assert (code, without_folders(found)) == (of_these[0], without_folders(of_these[1]))


def without_folders(found: Any) -> Any:
    """Names files without their folders."""
    if isinstance(found, dict):
        return {os.path.basename(name): without_folders(each) for name, each in found.items()}
    if isinstance(found, list):
        return [without_folders(each) for each in found]
    return os.path.basename(found) if isinstance(found, str) else found


def test_a_day_is_kept_by_references_and_shown(
    copied: Path, sixth_day: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = checked(["check", str(copied), "--since", f"/{sixth_day}"], capsys)
    assert run(["check", str(copied), "--part", "references/2", "--since", f"/{sixth_day}"]) == 0
    for n in (1, 2):
        assert run(["check", str(copied), "--part", f"{n}/2"]) == 0
    assert checked(["check", str(copied), "--part", "join"], capsys) == whole
    assert run(["check", str(copied), "--since", f"/{sixth_day}"]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first == f"1 failed, 4 ok of 5 hosts, by nights from {sixth_day} on"
    assert run(["check", str(copied), "--since", "/2999-01-01"]) == 2
    assert "no host to check from 2999-01-01 on" in capsys.readouterr().err
    packed = [each.path for each in files_in(copied)]
    for path in packed:
        table = pq.read_table(path, partitioning=None)
        write_table(table.filter(pc.equal(table["host"], "n3")), path)
    assert run(["check", str(copied), "--since", f"/{sixth_day}"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(f", by nights from {sixth_day} on")
    assert run(["check", "node.wwp", "--since", f"/{sixth_day}"]) == 2
    assert (
        "the second day of --since has no effect here: no folder is named"
        in capsys.readouterr().err
    )


def test_a_relation_has_the_rows_from_a_day_on(copied: Path, sixth_day: str) -> None:
    rows = waywiser.fleet(copied, since=sixth_day).query("rows", "SELECT DISTINCT day FROM rows")
    days = {day for (day,) in rows.fetchall()}
    assert days == {each.day for each in files_in(copied) if each.day >= sixth_day}
    with pytest.raises(waywiser.WaywiserError, match="--since '2026' is no day"):
        waywiser.fleet(copied, since="2026")


def test_a_large_data_set_is_looked_at_from_a_day_on(
    copied: Path,
    sixth_day: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = checked(["check", str(copied), "--since", f"/{sixth_day}"], capsys)
    for module in (parts, scan):
        monkeypatch.setattr(module, "AT_ONCE", 9)
    monkeypatch.setattr(parts, "PART_RUNS", 9)
    monkeypatch.setattr(parts, "FEW_ROWS", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    shutil.rmtree(copied / f"day={sorted({each.day for each in files_in(copied)})[0]}")
    assert checked(["check", str(copied), "--since", f"/{sixth_day}"], capsys) == whole


def test_a_part_that_is_there_twice_is_no_answer(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in ("references/2", "1/2"):
        assert run(["check", str(copied), "--part", part]) == 0
    shutil.copy(copied / "parts" / "1-of-2.json", copied / "parts" / "2-of-2.json")
    assert run(["check", str(copied), "--part", "join"]) == 2
    assert "a part is there twice" in capsys.readouterr().err


def test_a_machine_that_does_not_see_the_data_set_has_no_answer(
    copied: Path, tmp_path: Path
) -> None:
    division = divide(Scan(copied), 2, 0.05, "")
    for path in copied.glob("day=*"):
        path.rename(tmp_path / path.name)
    drop_read_parts()
    with pytest.raises(PartsError, match="there is no data set in this folder on"):
        history_by(here, division, {})


def test_a_host_whose_files_are_gone_is_named(copied: Path) -> None:
    division = divide(Scan(copied), 2, 0.05, "")
    for file in files_in(copied):
        table = pq.read_table(file.path, partitioning=None)
        write_table(table.filter(pc.field("host") != "n4"), file.path)
    drop_read_parts()
    with pytest.raises(PartsError, match="has no night of n4"):
        history_by(here, division, {})


@pytest.mark.parametrize(
    "part", ["0/3", "4/3", "a/3", "references", "1", "references/" + 4400 * "7", 4400 * "1" + "/3"]
)
def test_a_part_that_is_none_is_one_line(
    nodes: Path, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", str(nodes), "--part", part]) == 2
    said = capsys.readouterr().err
    assert "is no part" in said and len(said) < 300


OF_ONE = ["--baseline a.wwp", "--repeat a.wwp", "--max-hidden 10%", "--keep"]


@pytest.mark.parametrize(
    ("step", "option"),
    [
        *[("--part tcp://127.0.0.1:1", option) for option in OF_ONE],
        *[
            ("--part join", option)
            for option in (*OF_ONE, "--threshold 9%", "--since 14d", "--since /9d")
        ],
        *[("--part 1/2", option) for option in ("--threshold 9%", "--since 14d", "--all")],
        *[("--part 1/2", f"--{form}") for form in ("suspects", "page -", "junit -")],
        ("--part references/2", "--prometheus metrics.prom"),
    ],
)
def test_an_option_without_an_effect_is_an_error(
    nodes: Path, step: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["check", str(nodes), *step.split(), *option.split()]) == 2
    said = capsys.readouterr().err
    assert f"{option.split()[0]} has no effect here" in said and len(said.splitlines()) == 1


def test_the_references_take_the_threshold_and_the_first_day(nodes: Path) -> None:
    limits = ["--threshold", "9%", "--since", "2026-01-01"]
    assert run(["check", str(nodes), "--part", "references/2", *limits]) == 0


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler, and its workers, on this machine alone."""
    file = folder / "scheduler.json"
    python = os.pathsep.join(filter(None, ("python", os.environ.get("PYTHONPATH"))))
    environment = {
        **os.environ,
        "PYTHONPATH": python,
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "5",
    }
    local = ["--host", "127.0.0.1"]
    options = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", *local, "--port", "0"]
    started = [
        subprocess.Popen([*command, "--no-dashboard", "--scheduler-file", str(file)], **options)
    ]
    command = [sys.executable, "-m", "distributed.cli.dask_worker", *local, "--no-dashboard"]
    command += ["--nthreads", "2", "--no-nanny", "--scheduler-file", str(file)]
    try:
        started += [subprocess.Popen(command, cwd=None, **options) for _ in range(workers)]
        client = __import__("distributed").Client(scheduler_file=str(file), timeout=600)
        if workers:
            client.wait_for_workers(workers, timeout=600)
        address = client.scheduler.address
        client.close()
        yield address, started[1:]
    finally:
        for process in started:
            process.kill()
            process.wait()


def kill_one_at_work(address: str, workers: list[subprocess.Popen[bytes]]) -> None:
    """Kills a worker as soon as it has a part."""
    distributed = __import__("distributed")
    client = distributed.Client(address)
    while True:
        busy = {name for name, calls in client.processing().items() if calls}
        if busy:
            pids = client.run(os.getpid, workers=sorted(busy)[:1])
            os.kill(next(iter(pids.values())), signal.SIGKILL)
            break
    client.close()


@pytest.mark.slow
def test_dask_has_the_same_verdicts_though_a_worker_is_killed(
    nodes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    whole = checked(["check", str(nodes)], capsys)
    with dask_cluster(tmp_path, 2) as (address, workers):
        assert checked(["check", str(nodes), "--part", address], capsys) == whole
        command = [sys.executable, "-m", "waywiser", "check", str(nodes), "--part", address]
        environment = {**os.environ, "PYTHONPATH": "python"}
        check = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, env=environment)
        kill_one_at_work(address, workers)
        answer, _ = check.communicate()
        assert (check.returncode, json.loads(answer)) == whole
        assert sorted(worker.poll() is None for worker in workers) == [False, True]


def test_a_scheduler_that_does_not_answer_is_one_line(
    nodes: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    from waywiser.analysis.dataset import dask_parts

    monkeypatch.setattr(dask_parts, "CONNECT_SECONDS", 1)
    assert run(["check", str(nodes), "--part", "tcp://127.0.0.1:1"]) == 2
    assert "no Dask scheduler answers" in capsys.readouterr().err


@pytest.mark.slow
def test_what_dask_cannot_do_is_one_line(
    nodes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    from waywiser.analysis.dataset import dask_parts

    monkeypatch.setattr(dask_parts, "CONNECT_SECONDS", 3)
    for part in ("none", "one"):
        (tmp_path / part).mkdir()
    with dask_cluster(tmp_path / "none", 0) as (address, _):
        assert run(["check", str(nodes), "--part", address]) == 2
    said = capsys.readouterr().err
    assert "has no worker after 3 s" in said and len(said.splitlines()) == 1
    known = divide(Scan(nodes), 1, 0.05, "")
    unseen = msgspec.structs.replace(known, folder=str(tmp_path / "away"))
    with (
        dask_cluster(tmp_path / "one", 1) as (address, _),
        dask_parts.dask_parts(address) as (each_part, _),
    ):
        with pytest.raises(PartsError, match="a part was not checked: ZeroDivisionError"):
            each_part(divmod, [(1, 0)])
        with pytest.raises(PartsError, match="there is no data set in this folder"):
            each_part(nights_of_part, [(known, 0), (unseen, 0)])
