from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

import profiles
from waywiser.cli import run
from waywiser.curves.overview import overview
from waywiser.curves.series_rows import SERIES_TYPES
from waywiser.exchange.exports import parquet as export_parquet
from waywiser.profile import Profile
from waywiser.profile.sample_rows import COLUMNS, rows_of


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return profiles.write(tmp_path_factory.mktemp("parquet") / "a.wwp")


def test_rows_come_back_as_they_were(
    profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    monkeypatch.setattr(export_parquet, "ROWS", 100)  # several row groups
    target = tmp_path / "a.parquet"
    assert run(["export", str(profile), "--format", "parquet", "-o", str(target)]) == 0
    table = parquet.read_table(target)
    assert tuple(table.column_names) == COLUMNS
    assert parquet.ParquetFile(target).num_row_groups > 1
    with Profile.open(profile) as opened:
        expected = [dict(zip(COLUMNS, row, strict=True)) for row in rows_of(opened)]
    for row in expected:
        row["transfer_seconds"] = list(row["transfer_seconds"])
    assert table.to_pylist() == expected
    assert {str(table.schema.field(name).type) for name in ("void", "summary")} == {"bool"}


def test_a_summary_has_a_row_per_series(profile: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    target = tmp_path / "a.parquet"
    assert run(["export", str(profile), "--summary", "-o", str(target)]) == 0
    table = parquet.read_table(target)
    assert tuple(table.column_names) == tuple(SERIES_TYPES)
    with Profile.open(profile) as opened:
        expected = [line.text for line in overview(opened).series]
    assert table["workload"].to_pylist() == expected
    assert str(table.schema.field("gb_per_s").type) == "double"


def test_without_pyarrow_one_line_says_what_to_install(
    profile: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "pyarrow":
            raise ImportError("No module named 'pyarrow'")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    target = tmp_path / "a.parquet"
    assert run(["export", str(profile), "--format", "parquet", "-o", str(target)]) == 2
    err = capsys.readouterr().err
    assert "pip install pyarrow" in err and err.count("\n") == 1
    assert not target.exists()
