from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import debian


def script(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs, besides the system's shell."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_another_distribution_is_reported_in_one_line(tmp_path: Path, programs: Path) -> None:
    with pytest.raises(debian.Unavailable, match="no apt-get"):
        debian.fetch(tmp_path / "deps", ["libhwloc-dev"])


def test_the_packages_own_error_is_passed_on(tmp_path: Path, programs: Path) -> None:
    script(programs, "apt-get", "echo 'W: old' >&2; echo 'E: Unable to locate it' >&2; exit 100")
    script(programs, "dpkg-deb", "exit 0")
    with pytest.raises(debian.Unavailable) as error:
        debian.fetch(tmp_path / "deps", ["libhwloc-dev"])
    assert "E: Unable to locate it" in str(error.value)
    assert "\n" not in str(error.value)


def test_what_a_package_needs_comes_with_it(tmp_path: Path, programs: Path) -> None:
    deps = tmp_path / "deps"
    script(
        programs,
        "apt-get",
        'case "$*" in *" -s "*) echo "Inst liba (1.0 [amd64])"; echo "Inst browser (2.0)";;\n'
        f'*" download "*) echo "$*" > "{tmp_path}/asked"; : > a.deb;; esac',
    )
    script(programs, "dpkg-deb", "exit 0")
    debian.fetch(deps, ["browser", "font"], dependencies=True)
    assert (tmp_path / "asked").read_text().rstrip().endswith(" download browser font liba")


def test_apt_keeps_its_hands_off_the_system(tmp_path: Path, programs: Path) -> None:
    deps = tmp_path / "deps"
    script(
        programs,
        "apt-get",
        f'while read -r line; do echo "$line"; done < "$3" > "{tmp_path}/settings"; '
        'case "$*" in *" download "*) : > a.deb;; esac',
    )
    script(programs, "dpkg-deb", ': > "$3/unpacked"')
    debian.fetch(deps, ["libhwloc-dev"])
    assert (deps / "unpacked").exists()
    assert not (deps / "apt").exists()
    settings = (tmp_path / "settings").read_text()
    assert f'Dir::State::Lists "{deps}/apt/lists";' in settings
    assert f'Dir::Cache "{deps}/apt/cache";' in settings
    assert "#clear APT::Update::Post-Invoke;" in settings


def test_another_release_of_debian_is_fetched_from_where_the_system_fetches_its_own(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deps = tmp_path / "deps"
    script(
        programs,
        "apt-get",
        'show() { while read -r line; do echo "$line"; done < "$1"; }\n'
        'case "$*" in *indextargets*) echo "old-updates http://b"; echo "old http://a/debian/";;\n'
        f'*" download "*) : > a.deb; show "{deps}/apt/sources.list" > "{tmp_path}/sources"; '
        f'show "$3" > "{tmp_path}/settings";;'
        " esac",
    )
    script(programs, "dpkg-deb", "exit 0")
    release = {"ID": "debian", "VERSION_CODENAME": "old"}
    monkeypatch.setattr(debian.platform, "freedesktop_os_release", lambda: release)
    debian.fetch(deps, ["nvcc=1"], suite="new non-free")
    (line,) = (tmp_path / "sources").read_text().splitlines()
    assert line.startswith("deb [signed-by=/") and line.endswith("] http://a/debian/ new non-free")
    assert f'Dir::Etc::SourceList "{deps}/apt/sources.list";' in (tmp_path / "settings").read_text()
    release["ID"] = "fedora"
    with pytest.raises(debian.OtherPackages, match="new non-free are for Debian"):
        debian.fetch(deps, ["nvcc=1"], suite="new non-free")
    release |= {"ID": "debian", "VERSION_CODENAME": "other"}
    with pytest.raises(debian.Unavailable, match="no source of Debian itself"):
        debian.fetch(deps, ["nvcc=1"], suite="new non-free")


def test_another_version_is_no_failure_and_other_content_is_one(
    tmp_path: Path, programs: Path
) -> None:
    deps = tmp_path / "deps"
    script(
        programs,
        "apt-get",
        "case \"$*\" in *' download slurmd=1') echo content > slurmd_1_amd64.deb;;\n"
        "*' download slurmd=2') echo \"E: Version '2' for 'slurmd' was not found\" >&2; exit 100;;"
        " esac",
    )
    script(programs, "dpkg-deb", ': > "$3/unpacked"')
    with pytest.raises(debian.OtherPackages, match="Version '2' for 'slurmd' was not found"):
        debian.fetch(deps, ["slurmd=2"])
    with pytest.raises(debian.Unavailable, match=r"SHA-256 [0-9a-f]{64}, not 00") as e:
        debian.fetch(deps, ["slurmd=1"], hashes={"slurmd=1": "00"})
    assert not isinstance(e.value, debian.OtherPackages)
    assert not (deps / "unpacked").exists()
    digest = hashlib.sha256(b"content\n").hexdigest()
    debian.fetch(deps, ["slurmd=1"], hashes={"slurmd=1": digest})
    assert (deps / "unpacked").exists()
