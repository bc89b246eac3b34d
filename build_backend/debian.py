"""Unpacks Debian or Ubuntu packages into a folder of the project: no root, no change of the system.

    python debian.py FOLDER PACKAGE...

The packages' files then lie under FOLDER/usr. apt keeps its lists and cache in FOLDER/apt, so this
works with no package list, with an old one, as root and as anybody. Exits with 1 and one line on
stderr when it cannot.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_SETTINGS = """\
Dir::State::Lists "{apt}/lists";
Dir::Cache "{apt}/cache";
APT::Sandbox::User "";
Acquire::Retries "2";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""
"""The system's hooks are cleared: those of container images delete the system's own cache."""

_FOREIGN = """\
APT::Architecture "{0}";
#clear APT::Architectures;
APT::Architectures {{ "{0}"; }};
Dir::State::Status "/dev/null";
"""

_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Unavailable(Exception):
    """The packages cannot be had this way; the text is one line."""


class OtherPackages(Unavailable):
    """This machine's distribution has no such package, or another version of it."""


def fetch(
    folder: Path,
    packages: list[str],
    *,
    dependencies: bool = False,
    hashes: Mapping[str, str] | None = None,
    suite: str = "",
    architecture: str = "",
) -> None:
    """Downloads the packages of this machine's own distribution and unpacks them; with
    ``dependencies`` also what they need and the system has not. A package is ``NAME`` or
    ``NAME=VERSION``; ``hashes`` has the SHA-256 of some of them. ``suite`` names another release of
    Debian and its component (``trixie non-free``), to fetch from where the system fetches its own.
    ``architecture`` names another one (``arm64``), of whose packages the system has none.

    Raises `Unavailable`.
    """
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Unavailable(f"there is no {tool} here")
    folder = folder.resolve()
    apt = folder / "apt"
    for part in ("lists/partial", "cache/archives/partial"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    settings = apt / "apt.conf"
    settings.write_text(
        _SETTINGS.format(apt=apt)
        + (_sources(apt, suite) if suite else "")
        + (_FOREIGN.format(architecture) if architecture else "")
    )
    archives = apt / "packages"
    archives.mkdir(exist_ok=True)
    apt_get = ["apt-get", "-q", "-c", str(settings)]
    _run([*apt_get, "update"], apt)
    if dependencies:
        packages = _with_dependencies(apt_get, packages, apt)
    _run([*apt_get, "download", *packages], archives)
    for package, expected in (hashes or {}).items():
        _check(archives, package.partition("=")[0], expected)
    for archive in sorted(archives.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(archive), str(folder)], apt)
    shutil.rmtree(apt)


def _sources(apt: Path, suite: str) -> str:
    """Settings by which apt reads another release of Debian alone."""
    release = _release()
    if release.get("ID") != "debian":
        raise OtherPackages(f"the packages of {suite} are for Debian, and this is another system")
    known = _run(["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)"], apt)
    own = {release.get("VERSION_CODENAME", ""), "stable", "oldstable"}
    for line in known.splitlines():
        name, _, uri = line.partition(" ")
        if name in own:
            break
    else:
        raise Unavailable("apt has no source of Debian itself: see /etc/apt/sources.list")
    (apt / "sources.list").write_text(f"deb [signed-by={_KEYS}] {uri} {suite}\n")
    (apt / "parts").mkdir(exist_ok=True)
    return f'Dir::Etc::SourceList "{apt}/sources.list";\nDir::Etc::SourceParts "{apt}/parts";\n'


def _release() -> Mapping[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def _check(archives: Path, name: str, expected: str) -> None:
    found = [hashlib.sha256(each.read_bytes()).hexdigest() for each in archives.glob(f"{name}_*")]
    if found != [expected]:
        raise Unavailable(f"{name} has the SHA-256 {', '.join(found)}, not {expected}")


def _with_dependencies(apt_get: list[str], packages: list[str], where: Path) -> list[str]:
    """What apt would install; those asked for are unpacked even where the system has them."""
    simulated = _run([*apt_get, "-s", "--no-install-recommends", "install", *packages], where)
    installed = [line.split()[1] for line in simulated.splitlines() if line.startswith("Inst ")]
    named = {package.partition("=")[0] for package in packages}
    return list(dict.fromkeys([*packages, *(name for name in installed if name not in named)]))


def _run(command: list[str], where: Path) -> str:
    """What it says on standard output."""
    answer = subprocess.run(
        command,
        cwd=where,
        env={**os.environ, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        errors = [line for line in answer.stderr.splitlines() if line.startswith("E:")]
        why = errors[0] if errors else f"exit status {answer.returncode}"
        other = re.match(r"E: (Version .* was not found|Unable to locate|Can't find)", why)
        raise (OtherPackages if other else Unavailable)(
            f"'{' '.join(command[:1] + command[4:])}' failed: {why}"
        )
    return answer.stdout


def main() -> int:
    folder, *packages = sys.argv[1:]
    try:
        fetch(Path(folder), packages)
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
