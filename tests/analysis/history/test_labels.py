"""Files of labels as editors and spreadsheets write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from waywiser.analysis.history.labels import LabelsError, has_labels, read_labels

NODES = {"n1": {"rack": "r1"}, "n2": {"rack": "r2"}}


@pytest.mark.parametrize(
    "text",
    [
        "n1 rack=r1\nn2 rack=r2\n",
        "\ufeffn1 rack=r1\nn2 rack=r2\n",
        "host,rack\nn1,r1\nn2,r2\n",
        "\ufeffhost,rack\r\nn1,r1\r\nn2,r2\r\n",
        "\nhost,rack\nn1,r1\nn2,r2\n",
        " \n\nhost,rack\n\nn1,r1\n , \nn2,r2\n",
    ],
)
def test_a_byte_order_mark_and_empty_lines_are_no_labels(tmp_path: Path, text: str) -> None:
    file = tmp_path / "nodes"
    file.write_text(text, encoding="utf-8")
    assert has_labels(str(file))
    assert read_labels(str(file)) == NODES


def test_a_table_of_values_with_a_byte_order_mark_has_no_labels(tmp_path: Path) -> None:
    file = tmp_path / "values.csv"
    file.write_text("gb_per_s,path\n", encoding="utf-8-sig")
    assert not has_labels(str(file))


def test_a_table_without_a_value_has_no_labels(tmp_path: Path) -> None:
    file = tmp_path / "nodes.csv"
    file.write_text(",,\n , \n")
    assert read_labels(str(file)) == {}


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("host,rack\nn1," + "r" * 200_000 + "\n", 2, "is no table: field larger"),
        ("\nhost,rack\n\nn1,r1,r2\n", 4, "3 values for 2 names"),
        ("\nhost,status\n", 2, "'status' is no name of a label"),
    ],
)
def test_a_table_that_is_wrong_is_an_error_with_its_line(
    tmp_path: Path, text: str, where: int, what: str
) -> None:
    file = tmp_path / "nodes.csv"
    file.write_text(text)
    with pytest.raises(LabelsError, match=what) as error:
        read_labels(str(file))
    assert error.value.where == f"{file}:{where}"
