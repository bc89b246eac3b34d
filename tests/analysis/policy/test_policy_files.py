"""Policy files: what is written is read, and what no program wrote is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import profiles

from kept import RESULTS, unpacked
from waywiser import cli
from waywiser.analysis.policy.errors import NotAPolicy
from waywiser.analysis.policy.file import decoded, read_policy
from waywiser.analysis.policy.table import (
    LIMIT_BYTES,
    Fingerprint,
    MethodCosts,
    NextBest,
    Policy,
    PolicyClass,
    PolicyRow,
)

Output = pytest.CaptureFixture[str]


def row(at: int = 8, **changes: Any) -> PolicyRow:
    fields: dict[str, Any] = {
        "from_bytes": at, "bytes": at, "count": 1, "threads": 16, "executor": "staged",
        "settings": {"chunk": "1048576"}, "seconds": 2e-6, "low": 1e-6, "high": 3e-6,
        "next": NextBest("copy-engine", {}, 4e-6, 1.0),
        "costs": MethodCosts(threads=10, pinned_bytes=2**20, small_copy=1.4),
    }  # fmt: skip
    return PolicyRow(**{**fields, **changes})


def policy(*rows: PolicyRow) -> Policy:
    machine = Fingerprint("Test GPU", "PCIe 5 x16", "Test CPU", 580, "none")
    return Policy(
        machine, (PolicyClass("pageable", "device", rows=rows or (row(),)),), "2026-11-23"
    )


def test_what_is_written_is_read() -> None:
    made = policy(row(), row(64, next=None, settings={}))
    data = made.to_json()
    assert decoded(data) == made
    assert data.startswith(b'{\n  "format": "waywiser-policy",\n  "version": 1,\n')
    assert json.loads(data)["classes"][0]["from"] == "pageable"


def test_keys_of_later_programs_are_ignored() -> None:
    text = policy().to_json().decode()
    later = text.replace('"relation"', '"later": 1, "relation"').replace(
        '"from_bytes"', '"later": [], "from_bytes"'
    )
    assert decoded(later.encode()) == policy()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version": 1', '"version": 2', "of version 2, and this program reads version 1"),
        ('"bytes":8', '"bytes":"8"', "damaged policy"),
        ('"from_bytes":8', '"from_bytes":-8', "a number is negative"),
        ('"high":3e-6', '"high":1e-9', "a time is not within its interval"),
        ('"seconds":2e-6', '"seconds":0', "a time is not within its interval"),
        ('"low":1e-6', '"low":2.5e-6', "a time is not within its interval"),
        ('"low":1e-6', '"low":0', "a time is not within its interval"),
        ('"waywiser-policy"', '"other"', "is not a policy"),
        ('"classes"', '"class"', "damaged policy"),
    ],
)
def test_what_no_program_wrote_is_damage(old: str, new: str, message: str) -> None:
    text = policy().to_json().decode()
    assert old in text
    with pytest.raises(NotAPolicy, match=message):
        decoded(text.replace(old, new).encode(), "m.json")


def test_every_beginning_of_a_file_is_damage_or_no_policy() -> None:
    data = policy().to_json()
    for end in range(0, len(data) - 3, 37):
        with pytest.raises(NotAPolicy):
            decoded(data[:end])


def test_a_file_that_is_too_large_has_changes_of_method_alone() -> None:
    rows = [row(8 + n) for n in range(4000)]
    changed = [row(9000, executor="copy-engine", settings={})]
    data = policy(*rows, *changed).to_json()
    assert len(data) < LIMIT_BYTES
    assert decoded(data).classes[0].rows == (rows[0], *changed)


def test_a_folder_and_a_missing_file_are_no_policies(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(NotAPolicy):
            read_policy(path)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the profile ``node.wwp`` of one H100."""
    monkeypatch.chdir(tmp_path)
    unpacked(RESULTS / "2026-11-23-surveys" / "h100-standard-2.wwp.xz", tmp_path / "node.wwp")
    return tmp_path


def test_a_policy_is_written_and_shown(node: Path, capsys: Output) -> None:
    assert cli.run(["export", "node.wwp", "--for", "waywiser", "-o", "machine.json"]) == 0
    assert "WAYWISER_POLICY=machine.json" in capsys.readouterr().out
    assert read_policy("machine.json").machine.gpu == "NVIDIA H100 80GB HBM3"
    assert (
        cli.run(["export", "node.wwp", "--for", "waywiser", "-o", "machine.json"]) == 0
    )  # a former policy
    capsys.readouterr()
    assert cli.run(["advise", "machine.json"]) == 0
    shown = capsys.readouterr().out
    assert "pageable -> device" in shown and "copy-engine" in shown
    assert cli.run(["advise", "node.wwp", "--json"]) == 0
    assert decoded(capsys.readouterr().out.encode()) == read_policy("machine.json")


def test_files_of_others_are_not_overwritten(node: Path, capsys: Output) -> None:
    (node / "other.json").write_text('{"a": 1}')
    assert cli.run(["export", "node.wwp", "--for", "waywiser", "-o", "other.json"]) == 2
    assert cli.run(["export", "node.wwp", "--for", "waywiser", "-o", "node.wwp"]) == 2
    assert (node / "other.json").read_text() == '{"a": 1}'
    assert capsys.readouterr().err.count("\n") == 2


def test_a_policy_in_the_wrong_place_is_one_line(node: Path, capsys: Output) -> None:
    (node / "machine.json").write_bytes(policy().to_json())
    for words in (
        ["show", "machine.json"],
        ["advise", "machine.json", "--from", "pinned@numa:0", "--to", "device@gpu:0",
         "--bytes", "1MiB"],
    ):  # fmt: skip
        assert cli.run(words) == 2
        error = capsys.readouterr().err
        assert "machine.json: is a policy, and no profile" in error and error.count("\n") == 1
    assert cli.run(["advise", "machine.json", "node.wwp"]) == 2
    assert "machine.json: is a policy already" in capsys.readouterr().err
    assert cli.run(["advise", "node.wwp", "--against", "none.json"]) == 2
    assert "none.json: " in capsys.readouterr().err


def test_two_policies_are_compared(node: Path, capsys: Output) -> None:
    first = policy(row(8, executor="copy-engine", settings={}), row(64), row(128))
    second = policy(
        row(8, executor="copy-engine", settings={}),
        row(64, executor="copy-engine", settings={}, next=NextBest("staged", {}, 1, 0.5)),
        row(128),
    )
    (node / "a.json").write_bytes(first.to_json())
    (node / "b.json").write_bytes(second.to_json())
    assert cli.run(["advise", "b.json", "--against", "a.json", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (each,) = found["differences"]
    assert (found["sizes"], found["equal"]) == (3, 2)
    assert (each["first_bytes"], each["last_bytes"]) == (64, 64)
    assert each["loss_on_first"] == 1.0 and each["loss_on_second"] is None
    assert cli.run(["advise", "node.wwp", "--against", "a.json"]) == 0
    assert "choices differ" in capsys.readouterr().out
    assert cli.run(["advise", "a.json", "--against", "a.json"]) == 0
    assert "0 of 3 choices differ" in capsys.readouterr().out


def test_the_machine_of_tests_has_no_policy_of_another() -> None:
    from waywiser.analysis.policy.build import fingerprint

    assert not fingerprint(profiles.machine()).fits(Fingerprint(gpu="Other"))
