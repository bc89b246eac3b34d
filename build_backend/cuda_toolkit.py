"""Finds the CUDA compiler to build with: the system's, else the pinned one from the registry.

Run as a program it answers CMake in JSON:

    python cuda_toolkit.py BUILD_FOLDER [--local]
    {"compiler": ".../bin/nvcc", "root": "...", "version": "13.0", "architectures": "75-real;...",
     "flags": "-L..."}

and exits with 1 and one line on stderr when there is no compiler.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PINNED = "cuda-toolkit[nvcc,crt,nvvm,cudart,cccl]==13.0.2"
"""Pinned as a set: its parts in newer versions do not fit each other (nvvm 13.5 writes PTX that
ptxas 13.0 refuses)."""

PINNED_MACHINES = ("x86_64", "aarch64")

OLDEST = (12, 4)
"""The oldest system toolkit that this is built with."""

USUAL_PLACE = Path("/usr/local/cuda/bin/nvcc")

_OFF = {"OFF", "0", "NO", "FALSE", "N"}


def requirements(config_settings: Mapping[str, Any] | None = None) -> list[str]:
    """What an isolated build must fetch to compile CUDA: nothing, or the pinned toolkit."""
    if switched_off(config_settings) or system_compiler() is not None:
        return []
    if sys.platform != "linux" or platform.machine() not in PINNED_MACHINES:
        return []
    return [PINNED]


def switched_off(config_settings: Mapping[str, Any] | None = None) -> bool:
    """Whether WAYWISER_CUDA is off, said in any of the ways in which CMake will hear it."""
    said = [str((config_settings or {}).get("cmake.define.WAYWISER_CUDA", ""))]
    passed = (config_settings or {}).get("cmake.args", "")
    arguments = shlex.split(os.environ.get("CMAKE_ARGS", ""))
    arguments += passed if isinstance(passed, list) else str(passed).split(";")
    arguments += os.environ.get("SKBUILD_CMAKE_ARGS", "").split(";")
    arguments += os.environ.get("SKBUILD_CMAKE_DEFINE", "").split(";")
    for argument in arguments:
        found = re.fullmatch(r"(?:-D)?WAYWISER_CUDA(?::\w+)?=(\w+)", argument.strip())
        if found:
            said.append(found[1])
    return any(word.upper() in _OFF for word in said)


def system_compiler() -> Path | None:
    """The first nvcc of at least `OLDEST`: CUDACXX, CUDA_HOME, CUDA_PATH, PATH, /usr/local."""
    named = [shutil.which(os.environ.get("CUDACXX") or "nvcc")]
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            named.append(str(Path(os.environ[variable], "bin", "nvcc")))
    named += [shutil.which("nvcc"), str(USUAL_PLACE)]
    for name in filter(None, named):
        found = version(Path(name))
        if found is not None and found >= OLDEST:
            return Path(name)
    return None


def version(compiler: Path) -> tuple[int, int] | None:
    """(major, minor) of an nvcc, None when it does not run."""
    try:
        answer = subprocess.run(
            [compiler, "--version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"release (\d+)\.(\d+)", answer.stdout)
    return (int(found[1]), int(found[2])) if found else None


def registry_root() -> Path | None:
    """The folder of the toolkit that came as Python packages, for the Python that runs this."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        root = Path(folder, "cu13")
        if (root / "bin" / "nvcc").exists():
            return root
    return None


def lay_out(packages: Path, into: Path) -> Path:
    """Shows the packages' files where nvcc and CMake look: in lib64, libcudart.so unversioned."""
    library = into / "lib64"
    library.mkdir(parents=True, exist_ok=True)
    links = {into / name: packages / name for name in ("bin", "include", "nvvm", "lib")}
    links |= {library / file.name: file for file in (packages / "lib").iterdir()}
    for runtime in (packages / "lib").glob("libcudart.so.*"):
        links[library / "libcudart.so"] = runtime
    for link, target in links.items():
        if not link.is_symlink() or link.readlink() != target:
            link.unlink(missing_ok=True)
            link.symlink_to(target)
    return into


_PROFILE = """\
TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib64"
"""
"""What nvcc reads beside itself: Debian's names its own folders."""


CROSS = Path("targets", "sbsa-linux", "lib")
"""Where a toolkit has what it links for aarch64 on another machine."""


def lay_out_debian(package: Path, wheels: Path, cross_wheels: Path, into: Path) -> None:
    """Moves Debian's nvcc to where NVIDIA has it, with the headers and the runtime of wheels, and
    with the runtime for aarch64."""
    tools = package / "usr" / "lib" / "nvidia-cuda-toolkit"
    (into / "nvvm").mkdir(parents=True)
    shutil.copytree(package / "usr" / "bin", into / "bin", symlinks=True)
    for name in ("nvcc", "crt"):
        target = into / "bin" / name
        target.unlink(missing_ok=True)
        (tools / "bin" / name).rename(target)
    (into / "bin" / "nvcc.profile").write_text(_PROFILE)
    (into / "nvvm" / "bin").mkdir()
    (tools / "bin" / "cicc").rename(into / "nvvm" / "bin" / "cicc")
    (tools / "libdevice").rename(into / "nvvm" / "libdevice")
    for part in ("cuda_nvcc", "cuda_cccl", "cuda_runtime"):  # the last has the final say
        shutil.copytree(wheels / "nvidia" / part / "include", into / "include", dirs_exist_ok=True)
    for each, library in ((wheels, into / "lib64"), (cross_wheels, into / CROSS)):
        library.mkdir(parents=True)
        runtime = each / "nvidia" / "cuda_runtime" / "lib"
        shutil.copy2(runtime / "libcudart_static.a", library)
        # CMake names the device runtime, which nothing here uses: an empty archive. It looks for
        # the shared runtime, and nothing links it.
        (library / "libcudadevrt.a").write_bytes(b"!<arch>\n")
        shutil.copy2(next(runtime.glob("libcudart.so.*")), library / "libcudart.so")
    (into / CROSS).with_name("include").symlink_to(Path("..", "..", "include"))


def architectures(toolkit: tuple[int, int]) -> str:
    """Machine code for every generation since Turing (Volta where the toolkit still knows it),
    and PTX of the newest for what comes later; in CMake's spelling."""
    known = [75, 80, 90]
    if toolkit < (13, 0):
        known.insert(0, 70)
    if toolkit >= (12, 8):
        known += [100, 120]
    return ";".join([*(f"{number}-real" for number in known), f"{known[-1]}-virtual"])


RELEASE = "60-real;70-real;75-real;80-real;86-real;89-real;90-real;90-virtual"
"""The architectures of release builds, by the compiler of `lay_out_debian`: each from Pascal to
Hopper has machine code, since PTX that is newer than the driver does not load."""


def local_architectures() -> str:
    """Machine code for the GPUs of this machine, as the driver names them. Without one the build
    only has to compile: PTX, which the driver of any later machine translates when it loads it."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        answer = ""
    found = sorted({int(major + minor) for major, minor in re.findall(r"(\d+)\.(\d)", answer)})
    return ";".join(f"{number}-real" for number in found) or "75-virtual"


def describe(build_folder: Path, local: bool) -> dict[str, str] | None:
    """What CMake has to know, None when there is no CUDA compiler."""
    compiler = system_compiler()
    flags = ""
    if compiler is None:
        packages = registry_root()
        if packages is None:
            return None
        root = lay_out(packages, build_folder / "cuda")
        compiler = root / "bin" / "nvcc"
        # nvcc's own "bin/../lib64" passes through the link of bin, past our lib64.
        flags = f"-L{root / 'lib64'}"
    release = (compiler.parent / "nvcc.profile").exists() and (
        (compiler.parent / "nvcc.profile").read_text() == _PROFILE
    )
    if release:  # nvlink would refuse a newer device runtime, which nothing uses
        flags = "-cudadevrt=none"
    found = version(compiler)
    if found is None:
        return None
    return {
        "compiler": str(compiler),
        "root": str(compiler.parent.parent),
        "version": f"{found[0]}.{found[1]}",
        "architectures": (
            RELEASE if release else local_architectures() if local else architectures(found)
        ),
        "release": "ON" if release else "OFF",
        "flags": flags,
    }


def main() -> int:
    answer = describe(Path(sys.argv[1]), "--local" in sys.argv[2:])
    if answer is None:
        oldest = ".".join(map(str, OLDEST))
        print(
            f"no CUDA compiler: put nvcc {oldest} or later on PATH, or pip install '{PINNED}', "
            "or build for the host alone with -DWAYWISER_CUDA=OFF",
            file=sys.stderr,
        )
        return 1
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
