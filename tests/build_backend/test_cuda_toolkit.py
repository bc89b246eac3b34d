from __future__ import annotations

from pathlib import Path

import pytest

import cuda_toolkit


def fake_nvcc(folder: Path, release: str) -> Path:
    """A toolkit's root with an nvcc that only knows its version."""
    compiler = folder / "bin" / "nvcc"
    compiler.parent.mkdir(parents=True)
    compiler.write_text(
        f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.88'\n"
    )
    compiler.chmod(0o755)
    return compiler


@pytest.fixture(autouse=True)
def machine_without_cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("CUDACXX", "CUDA_HOME", "CUDA_PATH", "CMAKE_ARGS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(cuda_toolkit, "USUAL_PLACE", tmp_path / "nowhere" / "nvcc")


def test_the_pinned_toolkit_is_asked_for_only_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_toolkit.platform, "machine", lambda: "x86_64")
    assert cuda_toolkit.requirements() == [cuda_toolkit.PINNED]
    fake_nvcc(tmp_path / "cuda", "12.4")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert cuda_toolkit.requirements() == []


def test_a_machine_for_which_there_is_no_pinned_toolkit_asks_for_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda_toolkit.platform, "machine", lambda: "ppc64le")
    assert cuda_toolkit.requirements() == []


def test_a_toolkit_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_nvcc(tmp_path / "old", "11.8")
    new = fake_nvcc(tmp_path / "new", "13.0")
    monkeypatch.setenv("CUDACXX", str(old))
    assert cuda_toolkit.system_compiler() is None
    monkeypatch.setenv("PATH", f"{new.parent}:/usr/bin:/bin")
    assert cuda_toolkit.system_compiler() == new


def test_the_compiler_that_was_named_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = fake_nvcc(tmp_path / "named", "12.8")
    monkeypatch.setenv("PATH", f"{fake_nvcc(tmp_path / 'other', '13.0').parent}:/usr/bin:/bin")
    monkeypatch.setenv("CUDACXX", str(named))
    assert cuda_toolkit.system_compiler() == named


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        ({"cmake.define.WAYWISER_CUDA": "OFF"}, ""),
        ({"cmake.args": "-DWAYWISER_CUDA=off"}, ""),
        ({}, "-DCMAKE_BUILD_TYPE=Debug -DWAYWISER_CUDA:BOOL=0"),
    ],
)
def test_without_cuda_nothing_is_asked_for(
    settings: dict[str, str], arguments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CMAKE_ARGS", arguments)
    assert cuda_toolkit.switched_off(settings)
    assert cuda_toolkit.requirements(settings) == []


def test_cuda_is_on_unless_said() -> None:
    assert not cuda_toolkit.switched_off({"cmake.define.WAYWISER_CUDA": "ON"})
    assert not cuda_toolkit.switched_off(None)


@pytest.mark.parametrize(
    ("toolkit", "oldest", "newest"),
    [
        ((12, 4), "70-real", "90-virtual"),
        ((12, 8), "70-real", "120-virtual"),
        ((13, 0), "75-real", "120-virtual"),
    ],
)
def test_architectures_are_those_the_toolkit_knows(
    toolkit: tuple[int, int], oldest: str, newest: str
) -> None:
    known = cuda_toolkit.architectures(toolkit).split(";")
    assert known[0] == oldest
    assert known[-1] == newest
    assert newest.replace("virtual", "real") in known


def test_packages_are_shown_where_the_compiler_looks(tmp_path: Path) -> None:
    packages = tmp_path / "cu13"
    for file in ("bin/nvcc", "include/cuda.h", "nvvm/cicc", "lib/libcudart.so.13"):
        (packages / file).parent.mkdir(parents=True, exist_ok=True)
        (packages / file).write_text(file)
    for _ in range(2):  # the second finds its links there
        root = cuda_toolkit.lay_out(packages, tmp_path / "root")
    assert (root / "bin" / "nvcc").read_text() == "bin/nvcc"
    assert (root / "lib64" / "libcudart.so").read_text() == "lib/libcudart.so.13"


def test_debians_compiler_gets_the_layout_and_the_runtime_of_nvidias_packages(
    tmp_path: Path,
) -> None:
    debian, wheels = tmp_path / "debian" / "usr", tmp_path / "wheels" / "nvidia"
    cross = tmp_path / "cross" / "nvidia"
    tools = debian / "lib" / "nvidia-cuda-toolkit"
    for file in (
        *(tools / "bin" / name for name in ("nvcc", "cicc", "crt/link.stub")),
        tools / "libdevice" / "libdevice.10.bc",
        *(debian / "bin" / name for name in ("nvcc", "ptxas")),
        *(wheels / f"cuda_{part}" / "include" / "shared.h" for part in ("nvcc", "cccl", "runtime")),
        wheels / "cuda_nvcc" / "include" / "crt" / "host_config.h",
        *(each / "cuda_runtime" / "lib" / "libcudart_static.a" for each in (wheels, cross)),
        *(each / "cuda_runtime" / "lib" / "libcudart.so.12" for each in (wheels, cross)),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(file.relative_to(tmp_path)))
    root = tmp_path / "root"
    cuda_toolkit.lay_out_debian(tmp_path / "debian", tmp_path / "wheels", tmp_path / "cross", root)
    compiler = root / "bin" / "nvcc"
    assert compiler.read_text() == "debian/usr/lib/nvidia-cuda-toolkit/bin/nvcc"
    assert "$(TOP)/include" in (root / "bin" / "nvcc.profile").read_text()
    assert (
        root / "include" / "shared.h"
    ).read_text() == "wheels/nvidia/cuda_runtime/include/shared.h"
    for name in (
        "bin/ptxas",
        "bin/crt/link.stub",
        "nvvm/bin/cicc",
        "nvvm/libdevice/libdevice.10.bc",
        "include/crt/host_config.h",
        "targets/sbsa-linux/include/shared.h",
    ):
        assert (root / name).exists(), name
    for library, runtime in (("lib64", "wheels"), ("targets/sbsa-linux/lib", "cross")):
        text = (root / library / "libcudart_static.a").read_text()
        assert text == f"{runtime}/nvidia/cuda_runtime/lib/libcudart_static.a"
