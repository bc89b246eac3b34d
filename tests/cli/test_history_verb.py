"""``check`` of many nights: the worst first, with date, size and chart; files for others."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kept import RESULTS, unpacked
from waywiser.analysis.history.labels import first_day
from waywiser.cli import run

CHECK = RESULTS / "2026-11-22-check-two-gpus" / "check-3.wwp.xz"

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes on fourteen nights: the link of gpu:1 of n2 is slower from the eighth on."""
    folder = tmp_path_factory.mktemp("history")
    original = unpacked(CHECK, folder / "node.wwp")
    for host, words in (
        ("n1", []),
        ("n2", ["--set", "PCIe to gpu:1=44GB/s", "--from-night", "8"]),
    ):
        simulated = ["simulate", str(original), "--host", host, "--nights", "14", *words]
        assert run([*simulated, "-o", str(folder / "nodes")]) == 0
    return folder / "nodes"


def lines(words: list[str], capsys: Output, code: int = 1) -> list[str]:
    """The lines about nights."""
    capsys.readouterr()
    assert run(words) == code
    said = capsys.readouterr().out.splitlines()
    return said[said.index("Over its nights") + 1 :] if "Over its nights" in said else said


def test_the_changed_path_is_first_with_its_date_and_a_chart(nodes: Path, capsys: Output) -> None:
    said = lines(["check", str(nodes)], capsys)
    assert re.match(r"\d+ slower, \d+ steady of 20 paths of 2 nodes, up to 14 nights", said[0])
    worst = r"n2 +H2D gpu:1 +slower .*[▁▂▃▄▅▆▇█]{14} +\d+ % slower since 2026-11-16"
    assert any(re.match(worst, line) for line in said)
    assert said[2].startswith("n2 ")
    assert not any(line.startswith("n1 ") for line in said)
    assert said[-1] == "note: 2 nodes are simulated"


def test_all_paths_and_those_since_a_day(nodes: Path, capsys: Output) -> None:
    everything = lines(["check", str(nodes), "--all"], capsys)
    assert sum(line.startswith("n1 ") for line in everything) == 10
    since = lines(["check", str(nodes), "--since", "2026-11-20"], capsys)
    assert "20 steady" in since[0] and "slower since an earlier day" in since[0], "not healthy"


def test_a_folder_with_folders_and_other_files_has_its_page(
    nodes: Path, tmp_path: Path, capsys: Output
) -> None:
    folder = shutil.copytree(nodes, tmp_path / "nights")
    for name in ("old", "old/older", "empty"):
        (folder / name).mkdir()
    moved = sorted(folder.glob("*.wwp"))[-1]
    moved.rename(folder / "old" / "older" / moved.name)
    (folder / "notes.txt").write_text("moved the last night")
    said = lines(["check", str(folder), "--page", str(tmp_path / "nights.html")], capsys)
    assert "2 nodes" in said[0] and "</html>" in (tmp_path / "nights.html").read_text()
    assert not any("error" in line for line in said)


def test_json_has_levels_changes_and_nights(nodes: Path, capsys: Output) -> None:
    found = json.loads("\n".join(lines(["check", str(nodes), "--json"], capsys)))["nights"]
    assert found["paths"][0]["node"] == "n2"
    (worst,) = [e for e in found["paths"] if (e["node"], e["path"]) == ("n2", "H2D gpu:1")]
    assert worst["status"] == "slower"
    assert worst["changes"][0]["date"][:10] == "2026-11-16"
    assert len(worst["nights"]) == 14
    assert len(worst["gpus"]) == 1


def test_labels_are_shown_and_in_metrics(nodes: Path, tmp_path: Path, capsys: Output) -> None:
    labels = tmp_path / "labels"
    labels.write_text("# racks\nn2 rack=r12 owner=physics\n")
    metrics = tmp_path / "waywiser.prom"
    said = lines(
        ["check", str(nodes), "--values", str(labels), "--prometheus", str(metrics)], capsys
    )
    assert any("rack=r12 owner=physics" in line for line in said)
    text = metrics.read_text()
    expected = 'host="n2",rack="r12",owner="physics",path="H2D gpu:1",bytes="67108864"'
    assert f'waywiser_history_path_status{{{expected},status="slower"}} 1\n' in text
    names = re.findall("^# TYPE (\\S+)", text, re.M)
    assert len(names) == len(set(names))
    assert run(["check", str(nodes), "--prometheus", str(metrics)]) == 1  # replaced


@pytest.mark.parametrize(
    ("line", "why"),
    [("n1 rack", "no label"), ("n1 host=a", "no label"), ("n1 1a=b", "no label")],
)
def test_wrong_labels_are_one_line(
    nodes: Path, tmp_path: Path, capsys: Output, line: str, why: str
) -> None:
    labels = tmp_path / "labels"
    labels.write_text(f"n1 rack=1\n{line}\n")
    assert run(["check", str(nodes), "--values", str(labels)]) == 2
    said = capsys.readouterr().err
    assert why in said and f"{labels}:2" in said and len(said.splitlines()) == 1


def test_junit_has_a_test_for_each_path(nodes: Path, tmp_path: Path) -> None:
    file = tmp_path / "history.xml"
    broken = tmp_path / "broken.wwp"
    whole = next(iter(sorted(nodes.iterdir()))).read_bytes()
    broken.write_bytes(whole[: len(whole) // 2])
    assert run(["check", str(nodes), str(broken), "--junit", str(file)]) == 1
    root = ElementTree.parse(file).getroot()
    assert root.get("tests") == "23" and root.get("skipped") == "1"
    cases = [case for case in root.iter("testcase") if case.find("failure") is not None]
    failed = [case.get("name") for case in cases]
    assert "n2: H2D gpu:1" in failed and not any("n1" in str(name) for name in failed)


def test_suspects_are_a_host_list(nodes: Path, tmp_path: Path, capsys: Output) -> None:
    """A node is suspected on its first slow night, on which its own equal parts differ too, and not
    on the nights before."""
    for path in nodes.glob("*.wwp"):
        if path.stem[3:] <= "2026-11-16":
            shutil.copy(path, tmp_path / path.name)
    assert lines(["check", str(tmp_path), "--suspects"], capsys, 1) == ["n2"]
    for path in tmp_path.glob("n2-2026-11-16.wwp"):
        path.unlink()
    assert lines(["check", str(tmp_path), "--suspects"], capsys, 0) == []


def test_a_page_has_a_line_and_a_chart_for_the_change(nodes: Path, tmp_path: Path) -> None:
    page = tmp_path / "history.html"
    assert run(["check", str(nodes), "--page", str(page)]) == 1
    text = page.read_text()
    assert "n2: H2D gpu:1" in text and "<svg" in text
    assert text.index("H2D gpu:1") < text.index("All nodes, the worst first")


def test_fleet_shows_the_last_change_of_each_node(
    nodes: Path, tmp_path: Path, capsys: Output
) -> None:
    assert run(["check", str(nodes), "--page", str(tmp_path / "fleet.html")]) == 1
    said = capsys.readouterr().out.splitlines()
    assert any(re.match(r"last change: n2: .* slower since 2026-11-16", line) for line in said)
    assert not any("last change: n1" in line for line in said)
    assert "last change" in (tmp_path / "fleet.html").read_text()


def test_fleet_and_check_write_metrics_and_junit(nodes: Path, tmp_path: Path) -> None:
    files = sorted(map(str, nodes.glob("*.wwp")))
    words = ["--prometheus", str(tmp_path / "f.prom"), "--junit", str(tmp_path / "f.xml")]
    assert run(["check", *files, *words]) == 1
    assert (
        'waywiser_fleet_host_status{host="n1",status="not determined"} 1'
        in (tmp_path / "f.prom").read_text()
    )
    root = ElementTree.parse(tmp_path / "f.xml").getroot()
    hosts = [case for case in root.iter("testcase") if case.get("name") in ("n1", "n2")]
    assert [case.find("failure") is not None for case in hosts] == [True, False]

    first, last = files[-14], files[-1]
    words = ["--within", "0", "--junit", str(tmp_path / "c.xml")]
    code = run(["check", last, "--baseline", first, *words])
    cases = list(ElementTree.parse(tmp_path / "c.xml").getroot().iter("testcase"))
    assert cases[0].get("name") == "n2"
    assert (cases[0].find("failure") is not None) is (code == 1)
    assert {"pinned@numa:0 -> device@gpu:1 by copy-engine"} <= {c.get("name") for c in cases}
    assert code in (1, 3)


def test_nothing_to_follow_and_bad_options(tmp_path: Path, capsys: Output) -> None:
    assert run(["check", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and f"{tmp_path}: no *.wwp is in this folder: no host to" in said.err
    for words in (["--since", "yesterday"], ["--json", "--suspects"], ["--values", "missing"]):
        assert run(["check", str(tmp_path), *words]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_days_are_written_in_two_ways() -> None:
    assert first_day("2026-11-01") == "2026-11-01"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", first_day("14d"))
    assert first_day("") == ""


def test_peers_are_compared_by_the_last_surveys_alone(nodes: Path, capsys: Output) -> None:
    """So a folder of a year of nights is read once, by its index."""
    assert run(["check", str(nodes), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    for host in found["peers"]["hosts"]:
        nights = [Path(file).stem[-10:] for file in host["files"]]
        assert nights[-4:] == [f"2026-11-{day}" for day in range(19, 23)] and len(nights) <= 5
