"""Owners of files: what a name states, and whether the process has ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.files import file_owner
from waywiser.files.file_owner import Owner

SHOWN = "from waywiser.files.file_owner import Owner; print(Owner.of_this_process(), flush=True)"


def owner_in_a_child(*prefix: str, then: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", f"{SHOWN}\n{then}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def stated(process: subprocess.Popen[str]) -> Owner:
    assert process.stdout is not None
    found = Owner.parse(process.stdout.readline().strip())
    assert found is not None
    return found


@given(
    st.from_regex(r"[0-9a-f]{10}", fullmatch=True),
    st.from_regex(r"[0-9a-f]{8}", fullmatch=True),
    st.from_regex(r"[0-9a-f]{6}", fullmatch=True),
    st.integers(0, 2**22),
    st.integers(0, 2**63),
)
def test_a_text_states_its_owner(
    host: str, boot: str, namespaces: str, process: int, started: int
) -> None:
    made = Owner(host, boot, namespaces, process, started)
    assert Owner.parse(str(made)) == made


@given(st.text(max_size=60))
def test_any_other_text_states_none(text: str) -> None:
    found = Owner.parse(text)
    assert found is None or isinstance(found.has_ended(), bool | None)


def test_a_process_has_ended_when_it_is_killed_though_nobody_has_read_its_end() -> None:
    with owner_in_a_child(then="import sys; sys.stdin.read()") as process:
        found = stated(process)
        assert found.process == process.pid
        assert found.has_ended() is False
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert found.has_ended() is True
    assert found.has_ended() is True


def test_another_process_of_the_same_number_is_another_owner() -> None:
    own = Owner.of_this_process()
    assert own.has_ended() is False
    assert own._replace(started=own.started + 1).has_ended() is True


def test_a_process_of_another_host_is_never_known_to_have_ended() -> None:
    own = Owner.of_this_process()
    for other in (own, own._replace(started=1), own._replace(process=2**22 + 1)):
        assert other._replace(host="0" * 10, boot="0" * 8).has_ended() is False


def test_another_name_of_this_host_is_known_by_its_boot() -> None:
    renamed = Owner.of_this_process()._replace(host="0" * 10)
    assert renamed.has_ended() is False
    assert renamed._replace(process=2**22 + 1).has_ended() is True
    assert renamed._replace(namespaces="0" * 6).has_ended() is None, "of a container"


def test_a_process_of_another_boot_has_ended_only_if_the_host_is_surely_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    former = Owner.of_this_process()._replace(boot="0" * 8)
    read = file_owner._read
    for machine, namespace, expected in (
        ("0" * 32, "pid:[4026531836]", True),
        ("", "pid:[4026531836]", None),
        ("0" * 32, "pid:[4026532000]", None),
    ):

        def found_at(path: str, machine: str = machine) -> str:
            return machine if path == file_owner._MACHINE else read(path)

        monkeypatch.setattr(file_owner, "_read", found_at)
        monkeypatch.setattr(file_owner, "_namespace", lambda name, found=namespace: found)
        assert Owner.of_this_process()._replace(boot=former.boot).has_ended() is expected


def test_a_process_of_another_container_is_not_known() -> None:
    prefix = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
    with owner_in_a_child(*prefix) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
    if not line:
        pytest.skip("namespaces of users are forbidden")
    found = Owner.parse(line)
    assert found is not None and found.process == 1
    assert found.has_ended() is None


def test_without_proc_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Owner.of_this_process()
    monkeypatch.setattr(file_owner._ProcessState, "of", lambda process: None)
    unknown = Owner.of_this_process()
    assert unknown.started == 0
    assert unknown.has_ended() is None and own.has_ended() is None


def test_names_with_an_owner_are_short(tmp_path: Path) -> None:
    longest = Owner("f" * 10, "f" * 8, "f" * 6, 2**22, 2**40)
    assert len(str(longest)) <= 50
    (tmp_path / str(longest)).touch()
