"""The page about fleets: its questions give equal answers in DuckDB and in Polars, and its
dashboard shows metrics that exist."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import waywiser
from kept import RESULTS, unpacked
from waywiser.cli import run

EXAMPLES = Path(__file__).parents[1] / "docs" / "how-to" / "examples"
CHECK = RESULTS / "2026-11-22-check-two-gpus" / "check-3.wwp.xz"
RACKS = "host,rack,switch\n" + "".join(f"n{n},r{n // 3},s{n % 2}\n" for n in range(1, 6))

sys.path.insert(0, str(EXAMPLES))
import fleet_questions as in_polars  # noqa: E402

sys.path.pop(0)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five nodes on twelve nights, n5 on four; the link of gpu:1 of n2 is slower from the sixth."""
    folder = tmp_path_factory.mktemp("fleet")
    original = unpacked(CHECK, folder / "node.wwp")
    slower = ["--set", "PCIe to gpu:1=44GB/s", "--from-night", "6"]
    for n in range(1, 6):
        words = ["--nights", "4" if n == 5 else "12", *(slower if n == 2 else [])]
        made = ["simulate", str(original), "--host", f"n{n}", *words, "-o", str(folder / "nodes")]
        assert run(made) == 0
    assert run(["export", str(folder / "nodes"), "--format", "parquet"]) == 0
    (folder / "nodes" / "racks.csv").write_text(RACKS)
    return folder / "nodes"


def statements() -> dict[int, str]:
    """The statements of the page, by the number of their question."""
    text = (EXAMPLES / "fleet-questions.sql").read_text()
    found = (re.search(r"-- (\d)\. ", part) for part in text.split(";\n"))
    return {int(at[1]): at.string for at in found if at is not None}


@pytest.mark.parametrize("question", [1, 2, 3, 4, 5])
def test_duckdb_and_polars_answer_alike(nodes: Path, question: int) -> None:
    answers: Mapping[int, Callable[[pl.DataFrame], pl.DataFrame]] = {
        1: in_polars.slow_beside_class,
        2: in_polars.since_when,
        3: lambda rows: in_polars.by_rack(rows, pl.read_csv(nodes / "racks.csv")),
        4: in_polars.by_driver,
        5: in_polars.not_measured,
    }
    rows = waywiser.fleet(nodes)
    labels = str(nodes / "racks.csv")
    text = statements()[question].replace(
        "JOIN labels USING", f"JOIN read_csv('{labels}') AS labels USING"
    )
    found = rows.query("nights", text).pl()
    expected = answers[question](rows.pl())
    assert len(found)
    assert_frame_equal(found, expected, check_dtypes=False, rel_tol=1e-9)


def test_the_questions_find_what_was_planted(nodes: Path) -> None:
    rows = waywiser.fleet(nodes, labels=nodes / "racks.csv")
    slow = rows.query("nights", statements()[1]).pl()
    assert slow["host"].unique().to_list() == ["n2"] and "H2D gpu:1" in slow["name"].to_list()
    since = rows.query("nights", statements()[2]).pl()
    assert since["host"].unique().to_list() == ["n2"]
    days = rows.query("nights", "SELECT DISTINCT day FROM nights ORDER BY day").pl()["day"]
    assert since["since"].unique().to_list() == [days[5]]
    few = rows.query("nights", statements()[5]).pl()
    assert few.filter(pl.col("what") == "too few nights")["host"].unique().to_list() == ["n5"]
    assert rows.df().shape[0] == rows.pl().shape[0] == rows.to_arrow_table().num_rows
    assert set(rows.pl()["rack"].unique()) == {"r0", "r1"}


def test_other_engines_read_the_files_alone(nodes: Path) -> None:
    own = pl.scan_parquet(f"{nodes}/day=*/*.parquet", hive_partitioning=True).collect()
    assert len(own) == waywiser.fleet(nodes).count("*").fetchall()[0][0]


def test_the_dashboard_shows_metrics_that_exist(nodes: Path, tmp_path: Path) -> None:
    metrics = tmp_path / "fleet.prom"
    run(["check", str(nodes), "--prometheus", str(metrics)])
    known = set(re.findall(r"^# TYPE (\S+)", metrics.read_text(), re.M))
    dashboard = json.loads((EXAMPLES / "fleet-dashboard.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = {name for text in shown for name in re.findall(r"waywiser_\w+", text)}
    assert named and named <= known
