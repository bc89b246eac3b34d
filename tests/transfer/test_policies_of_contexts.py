"""Contexts read the policy of their machine, and warn once about a file that they cannot use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_gpu import GpuArray, random_array

from waywiser import transfer

BYTES = 1 << 20


def row(**changes: Any) -> dict[str, Any]:
    return {
        "from_bytes": 65536,
        "bytes": BYTES,
        "count": 1,
        "threads": 1,
        "executor": "staged",
        "settings": {"chunk": "131072", "slots": "2", "threads": "1"},
        "seconds": 412e-6,
        "low": 405e-6,
        "high": 418e-6,
        "next": None,
        "costs": None,
        **changes,
    }


def write_policy(file: Path, machine: dict[str, Any] | None = None, **changes: Any) -> Path:
    policy = {
        "format": "waywiser-policy",
        "version": 1,
        "machine": machine or {},
        "classes": [
            {
                "from": "pageable",
                "to": "device",
                "relation": "",
                "peers_idle": False,
                "rows": [row(**changes)],
            }
        ],
    }
    file.write_text(json.dumps(policy))
    file.chmod(0o600)
    return file


def run(
    program: str, environment: dict[str, str], folder: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program whose folders of policies are in the folder."""
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", program],
        env={
            **environment,
            "WAYWISER_POLICY": "",
            "XDG_CONFIG_HOME": str(folder),
            **variables,
        },
        capture_output=True,
        text=True,
        check=True,
    )


EXPLAIN = """
import numpy as np
from fake_gpu import GpuArray
from waywiser import transfer
print(transfer.explain(GpuArray(1 << 20), np.zeros(1 << 20, np.uint8)))
"""


def test_a_context_uses_the_policy_of_its_argument(tmp_path: Path) -> None:
    file = write_policy(tmp_path / "machine.json")
    host, gpu = random_array(BYTES), GpuArray(BYTES)
    with transfer.Context(policy=file) as context:
        assert "by the policy" in context.explain(gpu, host)
        assert f"policy {file}: staged took 412 us" in context.explain(gpu, host)
        context.copy(gpu, host)
        np.testing.assert_array_equal(gpu.get(), host)
        assert context.warnings() == []
    with transfer.Context(policy=str(file), plain=True) as context:
        assert "policy" not in context.explain(gpu, host)
    with transfer.Context(policy="off") as context:
        assert "policy" not in context.explain(gpu, host)


@pytest.mark.parametrize("given", ["", "a\0b", 3, b""])
def test_what_is_no_path_is_an_error(given: Any) -> None:
    with pytest.raises(transfer.InvalidOperand, match="policy"):
        transfer.Context(policy=given)


def test_a_policy_that_cannot_be_used_is_one_warning_and_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "damaged.json"
    file.write_text("{")
    host, gpu = random_array(BYTES), GpuArray(BYTES)
    with pytest.warns(UserWarning, match=r"damaged\.json is not used: .*defaults are used") as seen:
        context = transfer.Context(policy=file)
    assert [warning.filename for warning in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        context.copy(gpu, host)
        second = transfer.Context(policy=file)
    np.testing.assert_array_equal(gpu.get(), host)
    assert "policy" not in context.explain(gpu, host)
    for each in (context, second):
        assert len(each.warnings()) == 1
        each.close()


def test_names_that_are_not_utf_8_are_shown_with_question_marks(tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"caf\xe9.json")
    with pytest.warns(UserWarning, match=r"caf\?\.json is not used"):
        transfer.Context(policy=file).close()
    write_policy(file)
    with transfer.Context(policy=file) as context:
        said = context.explain(GpuArray(BYTES), random_array(BYTES))
    assert "caf?.json: staged took" in said


def test_a_policy_of_another_machine_is_a_warning_if_it_is_named(tmp_path: Path) -> None:
    file = write_policy(tmp_path / "other.json", {"cpu": "a CPU that nobody has"})
    with pytest.warns(UserWarning, match="another machine .CPU a CPU that nobody has instead of"):
        transfer.Context(policy=file).close()


def test_a_warning_that_the_program_makes_an_error_is_raised(tmp_path: Path) -> None:
    file = tmp_path / "raised.json"
    file.write_text("")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=r"raised\.json"):
            transfer.Context(policy=file)


def test_the_environment_names_the_policy(
    tmp_path: Path, fake_transfer_environment: dict[str, str]
) -> None:
    file = write_policy(tmp_path / "machine.json")
    ended = run(EXPLAIN, fake_transfer_environment, tmp_path, WAYWISER_POLICY=str(file))
    assert f"policy {file}: staged" in ended.stdout
    assert ended.stderr == ""


def test_the_users_folder_is_searched_in_the_order_of_names(
    tmp_path: Path, fake_transfer_environment: dict[str, str]
) -> None:
    folder = tmp_path / "waywiser"
    folder.mkdir()
    write_policy(folder / "a.json", {"cpu": "a CPU that nobody has"})
    write_policy(folder / "b.json")
    ended = run(EXPLAIN, fake_transfer_environment, tmp_path)
    assert f"policy {folder / 'b.json'}: staged" in ended.stdout
    assert ended.stderr == ""
    ended = run(EXPLAIN, fake_transfer_environment, tmp_path, WAYWISER_POLICY="off")
    assert "policy" not in ended.stdout


def test_a_process_warns_once_about_its_policy_and_a_child_not_again(
    tmp_path: Path, fake_transfer_environment: dict[str, str]
) -> None:
    file = write_policy(tmp_path / "machine.json")
    file.chmod(0o666)
    program = """
import os
from waywiser import transfer
for _ in range(3):
    transfer.copy(bytearray(1), b"x")
    transfer.Context().close()
if os.fork() == 0:
    context = transfer.Context()
    context.copy(bytearray(1), b"x")
    assert len(context.warnings()) == 1
    os._exit(0)
assert os.wait()[1] == 0
assert len(transfer.warnings()) == 1
"""
    ended = run(program, fake_transfer_environment, tmp_path, WAYWISER_POLICY=str(file))
    assert ended.stderr.count("UserWarning") == 1
    assert "others may write it; run chmod go-w on it" in ended.stderr
    assert ended.stderr.startswith("<string>:5: UserWarning")
