"""The example notebooks run from top to bottom, without Jupyter, and answer what they ask."""

from __future__ import annotations

import ast
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
FORMS = ("_repr_html_", "_repr_png_")
"""What Jupyter shows of a value, if it has one of these."""
OPTIONAL = ("pandas", "polars", "pyarrow")


def cells(notebook: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(notebook.read_text())["cells"]
    return found


def run(notebook: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Executes the code cells as Jupyter does, in a folder like that of the notebook; what a cell
    ends with is shown. Cells that need a package that is not installed are left out."""
    (folder / "notebooks").mkdir()
    (folder / "results").symlink_to(DOCS / "results")
    (folder / "temporary").mkdir()
    monkeypatch.chdir(folder / "notebooks")
    monkeypatch.setattr("tempfile.tempdir", str(folder / "temporary"))
    names: dict[str, Any] = {}
    for number, cell in enumerate(cells(notebook)):
        code = "".join(cell["source"])
        missing = any(f"to_{each}" in code and find_spec(each) is None for each in OPTIONAL)
        if cell["cell_type"] != "code" or missing:
            continue
        body = ast.parse(code).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        where = f"{notebook.name}, cell {number}"
        exec(compile(ast.Module(body, []), where, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
            forms = [getattr(value, form) for form in FORMS if hasattr(value, form)]
            assert not forms or any(form() for form in forms), where
    return names


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    found = json.loads(notebook.read_text())
    assert found["nbformat"] == 4
    for cell in found["cells"]:
        assert cell["id"] and "".join(cell["source"]).strip()
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
    assert notebook.read_text() == json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def test_the_five_questions_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = DOCS / "notebooks" / "five-questions.ipynb"
    names = run(notebook, tmp_path, monkeypatch)
    said = capsys.readouterr().out
    assert f"H2D: {names['h2d'].gb_per_s:.1f} GB/s (" in said
    assert f"D2H: {names['d2h'].gb_per_s:.1f} GB/s (" in said
    assert set(names["losses"]) == {"H2D", "D2H"}
    assert all(0 <= loss < 0.02 for loss in names["losses"].values())
    for row in names["comparison"].paths:
        assert f"{row.verdict}: {row.path} {row.change_percent:+.1f} % (detectable from " in said
    fastest = {layout: row.executor for layout, row in names["fastest"].items()}
    assert fastest["list[piece=28672]"] == fastest["list[piece=131072]"] == "sm"
    for layout, row in names["fastest"].items():
        alike = [each.gb_per_s for each in names["lists"] if each.layout == layout]
        assert len(alike) > 1 and row.gb_per_s == max(alike)
    if find_spec("pandas"):
        assert names["table"].shape == (4, 4)
        assert names["table"].notna().sum().sum() == 12
