"""What other machines reach: the table, a profile beside it, more values, rows of a profile."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

import profiles
from waywiser import cli
from waywiser.cli import printing
from waywiser.curves.normal_table import COLUMNS, FILE, LARGE_TEXT, ranges, read_values
from waywiser.machine.machine import PcieLink
from waywiser.profile import Profile, WritableProfile
from waywiser.words.records import GpuState

Output = pytest.CaptureFixture[str]


@pytest.fixture
def node(tmp_path: Path) -> str:
    """A machine with 55 GB/s H2D on PCIe 5 x16."""
    return str(profiles.write(tmp_path / "node.wwp"))


def printed(output: Output, *arguments: str, code: int = 0) -> str:
    assert cli.run(arguments) == code
    found = output.readouterr()
    assert found.err == ""
    return found.out


def error(output: Output, *arguments: str) -> str:
    assert cli.run(arguments) == 2
    found = output.readouterr()
    assert found.out == ""
    assert found.err.count("\n") == 1
    return found.err


def table(tmp_path: Path, *rows: str) -> str:
    file = tmp_path / "mine.csv"
    file.write_text("\n".join([",".join(COLUMNS), *rows]) + "\n")
    return str(file)


ROWS = ("export", "--for", "normal-values")


def row(gb_per_s: float, source: int, path: str = "H2D") -> str:
    page = f"https://example.org/{source}"
    return f"PCIe 5 x16,{path},,{gb_per_s},L40S,,stated,{page},2026,nvbandwidth,"


def test_the_table_names_links_ranges_and_numbers_of_sources(capsys: Output) -> None:
    lines = printed(capsys, "survey", "--normal").splitlines()
    (line,) = (line for line in lines if line.startswith("PCIe 4 x16  ") and " H2D " in line)
    assert line.split() == ["PCIe", "4", "x16", "H2D", "24.7–28.4", "7", "7", *LARGE_TEXT.split()]
    assert not any("about 1 MiB" in line for line in lines)
    assert "no baseline" in lines[-2]


def test_every_source_is_named_with_all(capsys: Output) -> None:
    text = printed(capsys, "survey", "--normal", "--all")
    for value in read_values(FILE.read_text(), str(FILE)):
        assert value.source in text
    assert "H2D, about 1 MiB: PCIe 4 x16: 16.3–18.0 (2 sources)" in text


def test_the_table_as_json(capsys: Output) -> None:
    document = json.loads(printed(capsys, "survey", "--normal", "--json"))
    assert document["schema"] == 1
    (found,) = (
        each
        for each in document["ranges"]
        if (each["link"], each["path"], each["size"]) == ("PCIe 4 x16", "H2D", LARGE_TEXT)
    )
    assert (found["low"], found["high"]) == (24.66, 28.411)
    assert len(found["sources"]) == 7
    assert {value["source"] for value in found["values"]} == set(found["sources"])


def test_a_profile_beside_the_table(capsys: Output, node: str) -> None:
    text = printed(capsys, "check", node, "--all")
    assert "\n2 of " in text
    assert "H2D, numa:0 -> gpu:0" in text
    assert "normal" in text
    assert "known causes" not in text.lower()


def test_more_values_count_beside_those_of_this_version(
    capsys: Output, node: str, tmp_path: Path
) -> None:
    def verdict(*arguments: str) -> tuple[str, list[str]]:
        document = json.loads(printed(capsys, "check", node, "--json", *arguments))
        (found,) = (path for path in document["other_machines"] if path["path"] == "bidirectional")
        return found["verdict"], found["range"]["sources"]

    before, sources = verdict()
    assert before == ""
    assert len(sources) == 2
    after, more = verdict("--values", table(tmp_path, row(96, 7, "bidirectional")))
    assert after == "normal"
    assert {*more} == {*sources, "https://example.org/7"}


def test_causes_follow_a_path_that_is_below(
    capsys: Output, node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = table(tmp_path, row(61, 1), row(62, 2), row(62.5, 3))
    monkeypatch.setattr("waywiser.analysis.health.check.shipped_values", lambda: ())
    text = printed(capsys, "check", node, "--values", file, code=3)
    assert "H2D, numa:0 -> gpu:0" in text
    assert "1 below" in text
    assert "Known causes, each with a command that checks it" in text
    assert "nvidia-smi topo -m" in text
    assert "sudo lspci -vv" in text
    assert "ACSCtl" not in text
    assert text.rstrip().endswith("A range of other machines is no baseline: it does not make a "
                                  "node fail.")  # fmt: skip
    document = json.loads(printed(capsys, "check", node, "--values", file, "--json", code=3))
    (below,) = (path for path in document["other_machines"] if path["verdict"] == "below")
    assert below["range"]["low"] == 61
    assert {cause["id"] for cause in below["causes"]} > {"low-state", "numa"}


def test_rows_to_send_name_no_machine_and_are_shown_first(
    capsys: Output, node: str, tmp_path: Path
) -> None:
    file = tmp_path / "rows.csv"
    assert cli.run([*ROWS, node, "-o", str(file)]) == 0
    shown = capsys.readouterr()
    text = file.read_text()
    assert shown.out == "" and shown.err.startswith(text)
    assert f"This is all that {file} has" in shown.err
    rows = read_values(text, "rows")
    assert {value.source for value in rows} == {"sent"}
    with Profile.open(node) as profile:
        gpus = profile.machine.gpus
        named = [profile.machine.hostname, *(each for gpu in gpus for each in (gpu.uuid, gpu.pci))]
    assert len(list(filter(None, named))) >= 3
    assert not any(name in text for name in named if name)


def test_rows_that_were_sent_are_one_source(capsys: Output, node: str, tmp_path: Path) -> None:
    rows = [row(50 + number, number).replace(f"https://example.org/{number}", "sent")
            for number in range(4)]  # fmt: skip
    found = read_values(Path(table(tmp_path, *rows)).read_text(), "rows")
    (known,) = (each for each in ranges(found) if not each.gpu)
    assert known.sources == ("sent",) and not known.decides


def test_rows_of_a_profile_can_be_read_again(capsys: Output, node: str, tmp_path: Path) -> None:
    text = printed(capsys, *ROWS, node, "--source", "me/nodes:node7.wwp")
    rows = read_values(text, "rows")
    assert {value.path for value in rows} >= {"H2D", "D2H"}
    assert {value.source for value in rows} == {"me/nodes:node7.wwp"}
    file = tmp_path / "rows.csv"
    file.write_text(text)
    assert "me/nodes:node7.wwp" in printed(
        capsys, "survey", "--normal", "--all", "--values", str(file)
    )


def test_a_table_that_is_not_in_the_form_names_its_lines(capsys: Output, tmp_path: Path) -> None:
    file = table(tmp_path, row(55, 1), row(900, 2), "PCIe 5 x16,H2D")
    said = error(capsys, "check", "--values", file)
    assert "line 3: 900 GB/s is more than the 63.0 GB/s" in said
    assert "line 4: it has 2 columns of 11" in said
    assert "compare-with-other-machines.md" in said


def test_files_that_are_no_table(capsys: Output, tmp_path: Path) -> None:
    assert "cannot be read" in error(capsys, "check", "--values", str(tmp_path / "none.csv"))
    assert "cannot be read" in error(capsys, "check", "--values", str(tmp_path))
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "no text in UTF-8" in error(capsys, "check", "--values", str(binary))


def test_rows_need_a_profile_and_a_source_in_the_form(
    capsys: Output, node: str, tmp_path: Path
) -> None:
    idle = error(capsys, "export", node, "--source", "me/nodes:x")
    assert "--source has no effect here: it is for --for normal-values" in idle
    assert "names no page" in error(capsys, *ROWS, node, "--source", "my laptop")
    empty = tmp_path / "empty.wwp"
    with profiles.new(empty):
        pass
    assert "no headline path" in error(capsys, *ROWS, str(empty), "--source", "me/nodes:x")
    assert "no headline path" in printed(capsys, "check", str(empty), code=3)


def surveyed(path: Path, h2d: float, seed: int = 1, *, lanes: int = 16) -> str:
    """A profile of eight processes of a machine on PCIe 5 x16; ``h2d`` is in GB/s, and ``lanes``
    were in use under load."""
    state = GpuState(0, 1980, 3201, (), 5, lanes, 40, 120.0)
    rng = random.Random(seed)
    with WritableProfile.create(
        path, profiles.machine(), profiles.ENVIRONMENT, plan_json='{"preset":"check"}'
    ) as profile:
        for block in range(8):
            for curve, rate in ((profiles.H2D, h2d), (profiles.D2H, 55.3), (profiles.PEER, 390)):
                what = profiles.workload(curve, 2**26)
                around = 2**26 / (rate * 1e9) * rng.uniform(0.999, 1.001)
                taken = profiles.samples(rng, around)
                profile.commit_visit(profiles.visit(what, block, taken, gpu_states=(state,)))
    return str(path)


@pytest.fixture
def healthy(tmp_path: Path) -> str:
    return surveyed(tmp_path / "healthy.wwp", 55.3)


@pytest.fixture
def slow(tmp_path: Path) -> str:
    """Ten percent less than the link's usual bandwidth."""
    return surveyed(tmp_path / "slow.wwp", 0.9 * 55.3, seed=2)


def run(output: Output, code: int, *arguments: str) -> str:
    assert cli.run(arguments) == code
    return output.readouterr().out


def test_a_cause_that_the_profile_shows_comes_first(capsys: Output, tmp_path: Path) -> None:
    file = surveyed(tmp_path / "narrow.wwp", 27.5, lanes=8)
    text = printed(capsys, "check", file, code=1)
    _, causes = text.split("Known causes, each with a command that checks it\n")
    first, second = causes.splitlines()[:2]
    assert first.strip().startswith("The PCIe link has trained at fewer lanes (x8)")
    assert second.strip() == "this profile: gpu:0 ran at PCIe 5 x8 of 5 x16 under load"
    assert json.loads(printed(capsys, "check", file, "--json", code=1))["seen"].keys() == {
        "low-state"
    }


class TestShow:
    def test_80_columns_have_the_range_alone(
        self, capsys: Output, node: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(printing, "PIPE_COLUMNS", 80)
        lines = run(capsys, 0, "show", node).splitlines()
        (head,) = (line for line in lines if line.startswith("headline paths"))
        (line,) = (line for line in lines if line.startswith("H2D, "))
        assert "normal" in head.split() and "for" not in head.split()
        assert re.search(r"  [\d.]+–[\d.]+  ", line) and max(len(head), len(line)) <= 80

    def test_json_has_each_headline_path(self, capsys: Output, slow: str) -> None:
        found = json.loads(run(capsys, 0, "show", slow, "--json"))["normal"]
        (own,) = (each for each in found if each["path"] == "H2D")
        assert own["verdict"] == "below" and own["range"]["low"] > own["gb_per_s"]
        same = json.loads(run(capsys, 3, "check", slow, "--json"))["other_machines"]
        assert found == same

    def test_reports_side_by_side_have_the_column(
        self, capsys: Output, healthy: str, slow: str
    ) -> None:
        text = run(capsys, 0, "report", healthy, slow, "--format", "md", "-o", "-")
        table = text.partition("Headline bandwidth")[2].partition("\n## ")[0]
        (line,) = (line for line in table.splitlines() if line.startswith("| H2D, "))
        assert "slow" in line and "below PCIe 5 x16" in line
        (line,) = (line for line in table.splitlines() if line.startswith("| D2H, "))
        assert line.count("PCIe 5 x16: ") == 1

    def test_the_headline_table_has_a_column(self, capsys: Output, node: str) -> None:
        text = run(capsys, 0, "show", node)
        (head,) = (line for line in text.splitlines() if line.startswith("headline paths"))
        assert "normal for" in head
        (line,) = (line for line in text.splitlines() if line.startswith("H2D, "))
        assert re.search(r"PCIe 5 x16: [\d.]+–[\d.]+ \(\d sources\)", line)
        assert "review: " not in text

    def test_a_path_that_is_below_is_said_at_the_top(self, capsys: Output, slow: str) -> None:
        lines = run(capsys, 0, "show", slow).splitlines()
        (review,) = (line for line in lines[:5] if line.startswith("review: "))
        assert review.startswith("review: H2D, numa:0 -> gpu:0 has 49.")
        assert "below what is normal for PCIe 5 x16" in review
        assert f"waywiser check {slow}" in review
        assert review.endswith("it does not make a node fail.")

    def test_a_hidden_link_is_said_in_the_column(self, capsys: Output, tmp_path: Path) -> None:
        base = profiles.machine()
        hidden = replace(base, gpus=tuple(replace(gpu, pcie=PcieLink()) for gpu in base.gpus))
        file = tmp_path / "hidden.wwp"
        with WritableProfile.create(file, hidden, profiles.ENVIRONMENT) as profile:
            for visit in profiles.visits():
                profile.commit_visit(visit)
        text = run(capsys, 0, "show", str(file))
        (line,) = (line for line in text.splitlines() if line.startswith("H2D, "))
        assert "link not known" in line
        assert "review: " not in text


class TestReport:
    def test_a_path_that_is_below_needs_review(self, capsys: Output, slow: str) -> None:
        text = run(capsys, 0, "report", slow, "--format", "md")
        assert "Review: " in text
        assert "below what is normal for PCIe 5 x16" in text
        assert "waywiser check FILE has the command for each" in text
        (row,) = (line for line in text.splitlines() if line.startswith("| H2D, "))
        assert "| below PCIe 5 x16: " in row

    def test_nothing_is_said_of_a_machine_like_others(self, capsys: Output, healthy: str) -> None:
        text = run(capsys, 0, "report", healthy, "--format", "md", "--all")
        assert "below" not in text.partition("## Findings")[0]
        assert "Normal for: what machines of others with such a link reach" in text


class TestCheck:
    def test_it_never_fails_a_node_by_itself(
        self, capsys: Output, slow: str, tmp_path: Path
    ) -> None:
        """The baseline has the same loss: the node did not change."""
        baseline = surveyed(tmp_path / "before.wwp", 0.9 * 55.3)
        text = run(capsys, 0, "check", slow, "--baseline", baseline, "--within", "0")
        assert text.startswith("OK ")
        assert "note: review: H2D, numa:0 -> gpu:0 has 49." in text
        assert "1 below. A range of other machines is no baseline" in text

    def test_drops_show_what_is_normal(self, capsys: Output, slow: str, healthy: str) -> None:
        text = run(capsys, 3, "check", slow, "--baseline", healthy, "--within", "0")
        assert re.search(r"GB/s now at 64 MiB; .*; below what is normal for PCIe 5 x16: ", text)
        document = json.loads(
            run(capsys, 3, "check", slow, "--baseline", healthy, "--within", "0", "--json")
        )
        assert any(note.startswith("review: H2D") for note in document["baseline"]["notes"])

    def test_a_healthy_node_has_one_line_of_it(
        self, capsys: Output, healthy: str, tmp_path: Path
    ) -> None:
        again = surveyed(tmp_path / "again.wwp", 55.3, seed=3)
        text = run(capsys, 0, "check", again, "--baseline", healthy, "--within", "0")
        (line,) = (line for line in text.splitlines() if "beside other machines" in line)
        assert line.strip() == (
            "note: beside other machines 2 of 3 headline paths have a verdict: 2 normal"
        )
