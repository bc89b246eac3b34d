"""The transfer library without what only surveys and reports need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tree import ROOT

BLOCKED = (
    "numpy", "scipy", "matplotlib", "jinja2", "msgspec", "typer", "rich", "pynvml", "pandas",
    "torch",
)  # fmt: skip

BLOCKER = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
"""


def run_without(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKER + code, *arguments],
        env={"PYTHONPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_copies_need_no_other_package(tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(bytes(range(256)) * 64)
    code = """
from waywiser import transfer
source, destination = memoryview(bytes(range(256)) * 4096), bytearray(2**20)
transfer.copy(destination, source)
assert destination == source
part = bytearray(2**14)
transfer.read(sys.argv[1], part)
assert part == source[: 2**14]
other = bytearray(2**20)
transfer.copy_async(other, source).wait()
assert other == source
print(transfer.machine()["gpus"])
"""
    done = run_without(code, str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[]\n" or done.stdout.startswith("[{")


def test_the_blocker_blocks() -> None:
    done = run_without("import numpy")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'numpy'"


def test_an_old_pytorch_is_reported_with_its_version(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("__version__ = '1.13.1+cu117'\n")
    code = """
import sys
from waywiser.errors import WaywiserError
try:
    import waywiser.transfer.torch
except ImportError as error:
    assert isinstance(error, WaywiserError)
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{ROOT / 'python'}:{tmp_path}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "PyTorch 1.13.1+cu117 is installed, and 2.1 or later is needed" in done.stdout
    assert "pip install" in done.stdout


def test_arrays_of_an_older_pytorch_need_no_size_of_its_types(
    tmp_path: Path,
) -> None:
    # Types have their size since PyTorch 2.1.
    (tmp_path / "torch.py").write_text(
        "class dtype: pass\n"
        "float32 = dtype()\n"
        "class Tensor:\n"
        "    def __init__(self, shape, dtype): self.shape, self.dtype = tuple(shape), dtype\n"
        "    def element_size(self): return 4\n"
        "    def view(self, shape): return Tensor(shape, self.dtype)\n"
        "def empty(shape, dtype): return Tensor(shape, dtype)\n"
        "def frombuffer(memory, dtype, count):\n"
        "    assert len(memoryview(memory)) == 4 * count\n"
        "    return Tensor((count,), dtype)\n"
    )
    code = """
import torch
from waywiser.transfer import arrays
made = arrays._torch_array((3, 5), torch.float32, bytearray)
print(made.shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{ROOT / 'python'}:{tmp_path}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "(3, 5)\n", "")
