"""Standard surveys plan a matrix product beside large copies, which the fake GPU has too."""

from __future__ import annotations

from pathlib import Path

from own_lock import commands, finish


def test_a_standard_survey_plans_them(
    fake_native_environment: dict[str, str], tmp_path: Path
) -> None:
    with commands(tmp_path, fake_native_environment) as start:
        command = ("survey", "--dry-run", "--only", "*by matrix-product*")
        code, out, err = finish(start(*command, WAYWISER_FAKE="devices=1"))
    assert code == 0, err
    assert "by matrix-product" in out + err
