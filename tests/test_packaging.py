"""The files that make packages have the version and the dependencies of pyproject.toml.

Spack and the channels of conda are not on the machines of tests: their recipes are read. Where
py-rattler-build is installed, it reads that of conda.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import waywiser
from tree import ROOT

PACKAGING = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONDA_NAMES = {"matplotlib-base": "matplotlib"}


def needed(requirements: list[str]) -> set[tuple[str, str]]:
    """The names and the least versions of requirements such as ``numpy>=1.26``."""
    found = [re.fullmatch(r"([\w-]+) ?>= ?([\d.]+)", each) for each in requirements]
    assert all(found), requirements
    return {(each[1], each[2]) for each in found if each}


RUN = needed(PROJECT["project"]["dependencies"])
BUILD = needed(PROJECT["build-system"]["requires"])
PYTHON = ("python", PROJECT["project"]["requires-python"].removeprefix(">="))
HWLOC = re.findall(r"hwloc>=([\d.]+)", (ROOT / "cmake" / "Hwloc.cmake").read_text())[0]
CMAKE = re.findall(r"VERSION ([\d.]+)\.\.\.([\d.]+)\)", (ROOT / "CMakeLists.txt").read_text())[0]


class TestConda:
    RECIPE = PACKAGING / "conda" / "recipe.yaml"

    def test_it_has_the_version_and_the_dependencies(self) -> None:
        yaml = pytest.importorskip("yaml")
        recipe = yaml.safe_load(self.RECIPE.read_text())
        assert recipe["context"]["version"] == waywiser.__version__
        requirements = recipe["requirements"]
        run = needed(requirements["run"])
        assert {(CONDA_NAMES.get(name, name), version) for name, version in run} == RUN | {PYTHON}
        host = [each for each in requirements["host"] if isinstance(each, str) and ">" in each]
        assert needed(host) == BUILD | {("libhwloc", HWLOC)}
        assert f"cmake >={CMAKE[0]}" in requirements["build"]
        assert (self.RECIPE.parent / recipe["source"]["path"]).resolve() == ROOT

    @pytest.mark.skipif(
        importlib.util.find_spec("rattler_build") is None,
        reason="py-rattler-build is not installed",
    )
    @pytest.mark.parametrize(("variant", "cuda"), [({}, "OFF"), (["12.9"], "ON")])
    def test_rattler_build_renders_it(self, variant: Any, cuda: str) -> None:
        from rattler_build import Stage0Recipe, VariantConfig

        keys = {"cuda_compiler_version": variant} if variant else {}
        (rendered,) = Stage0Recipe.from_file(self.RECIPE).render(VariantConfig(keys))
        recipe = rendered.recipe.to_dict()
        assert recipe["package"] == {"name": "waywiser", "version": waywiser.__version__}
        settings = recipe["build"]["script"]["env"]["SKBUILD_CMAKE_ARGS"]
        assert f"-DWAYWISER_CUDA={cuda};" in settings
        compilers = [each for each in recipe["requirements"]["build"] if "cuda" in each]
        assert len(compilers) == len(variant)


class TestSpack:
    @pytest.fixture
    def package(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """What the file calls, and its class."""
        called: dict[str, list[Any]] = {}

        def directive(name: str) -> Any:
            return lambda *given, **named: called.setdefault(name, []).append((given, named))

        directives = ModuleType("spack.package")
        for name in ("license", "version", "variant", "depends_on", "conflicts"):
            setattr(directives, name, directive(name))
        systems = ModuleType("spack_repo.builtin.build_systems.python")
        systems.PythonPackage = object  # type: ignore[attr-defined]
        for module in (directives, systems):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        recipe = PACKAGING / "spack" / "package.py"
        made: dict[str, Any] = {}
        exec(compile(recipe.read_text(), recipe, "exec"), made)  # a loader would write __pycache__
        return SimpleNamespace(called=called, made=made["PyWaywiser"]())

    def test_it_has_the_version_and_the_dependencies(self, package: Any) -> None:
        assert package.called["version"] == [((waywiser.__version__,), {})]
        assert package.called["license"] == [((PROJECT["project"]["license"],), {})]
        of_kind: dict[str, set[str]] = {}
        for (spec,), named in package.called["depends_on"]:
            kinds = named.get("type", "link")
            for kind in [kinds] if isinstance(kinds, str) else kinds:
                of_kind.setdefault(kind, set()).add(spec)
        run = {(f"py-{name}" if name != "python" else name, version) for name, version in RUN}
        assert of_kind["run"] == {f"{name}@{version}:" for name, version in run | {PYTHON}}
        assert {f"py-{name}@{version}:" for name, version in BUILD} <= of_kind["build"]
        assert f"cmake@{CMAKE[0]}:{CMAKE[1]}" in of_kind["build"]
        assert f"hwloc@{HWLOC}:" in of_kind["link"]

    def test_its_settings_are_options_of_the_build(self, package: Any) -> None:
        options = (ROOT / "CMakeLists.txt").read_text()
        for has_cuda in (False, True):
            spec = SimpleNamespace(satisfies=lambda what, has=has_cuda: has)
            settings = package.made.config_settings(spec, None)
            for name in settings:
                assert f"option({name.removeprefix('cmake.define.')} " in options
            assert settings["cmake.define.WAYWISER_CUDA"] == ("ON" if has_cuda else "OFF")


def test_images_are_made_of_the_wheels() -> None:
    lines = (PACKAGING / "Containerfile").read_text().splitlines()
    assert [each for each in lines if each.startswith("FROM")] == [
        "FROM ${BASE} AS cpu",
        "FROM cpu AS gpu",
    ]
    assert any("type=bind,source=dist,target=/wheels" in each for each in lines)
    for target in ("cpu", "gpu"):
        assert any(f"--target {target} " in each for each in lines)


@pytest.mark.skipif(
    importlib.util.find_spec("ensurepip") is None, reason="this Python makes no venv with pip"
)
def test_an_image_has_the_package_of_the_wheels_and_not_of_an_index(tmp_path: Path) -> None:
    """An index has a later package of the same name, and what the wheel needs."""
    wheels, index, venv = (tmp_path / each for each in ("wheels", "index", "venv"))
    write_wheel(wheels, "waywiser", "1.0", "needed>=1.0")
    write_wheel(wheels, "waywiser", "0.9", "needed>=1.0")
    write_wheel(index / "waywiser", "waywiser", "99.0")
    write_wheel(index / "needed", "needed", "1.0")
    for each in index.iterdir():
        names = [file.name for file in each.iterdir()]
        (each / "index.html").write_text("".join(f'<a href="{n}">{n}</a>' for n in names))
    text = (PACKAGING / "Containerfile").read_text().replace("\\\n", " ")
    (command,) = re.findall(r"^RUN --mount=\S+ (.*python.*)$", text, re.MULTILINE)
    here = {
        "/opt/waywiser": venv,
        "/wheels": wheels,
        "/tmp": tmp_path,
        "python3 -m": f"{sys.executable} -m",
    }
    command = re.sub("|".join(here), lambda found: str(here[found[0]]), command)
    environment = {
        **{name: each for name, each in os.environ.items() if not name.startswith("PIP_")},
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index.as_uri(),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    done = subprocess.run(
        ["sh", "-ec", command], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = {each.name for each in venv.glob("lib/*/site-packages/*.dist-info")}
    assert {each for each in made if each.startswith(("waywiser-", "needed-"))} == {
        "waywiser-1.0.dist-info",
        "needed-1.0.dist-info",
    }


def write_wheel(folder: Path, name: str, version: str, *needed: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        requires = "".join(f"Requires-Dist: {each}\n" for each in needed)
        wheel.writestr(
            f"{about}/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        )
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", "")


def test_no_package_names_an_example_registry() -> None:
    files = [
        each for each in PACKAGING.rglob("*")
        if each.is_file() and each.parent.name != "__pycache__"
    ]  # fmt: skip
    assert len(files) == 3
    copied = [*files, ROOT / "docs" / "install.md", ROOT / "README.md"]
    copied += [each for each in (ROOT / "docs" / "how-to").rglob("*") if each.is_file()]
    for each in copied:
        if each.suffix in ("", ".md", ".py", ".yaml", ".yml", ".sh", ".toml"):
            assert "registry.example" not in each.read_text(), each
