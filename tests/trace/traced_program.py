"""Runs programs with the tracer, over a driver, a runtime and a CUPTI that have no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tree import FAKE_FOLDER, ROOT

FOLDER = FAKE_FOLDER / "waywiser_traced"
TRACER = ROOT / "python" / "waywiser" / "lib" / "libwaywiser_trace.so"
PROGRAM = FOLDER / "waywiser_traced_program"
CUPTIS = {
    "12.0": FOLDER / "cupti-12.0" / "libcupti.so.12",
    "12.9": FOLDER / "cupti-12.9" / "libcupti.so.12",
    "13.5": FOLDER / "cupti-13.5" / "libcupti.so.13",
}

IS_BUILT = TRACER.exists() and PROGRAM.exists()

PRELUDE = """\
import ctypes, json, mmap, os, signal, sys, time
cuda, runtime = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcudart.so.12")
if os.environ.get("LATE_FIRST"):
    late = ctypes.CDLL("liblate_profiler.so")
cuda.fake_device_memory.restype = ctypes.c_void_p
size = ctypes.c_uint64
TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3
KIB = 1 << 10
def device(number, gpu=0):
    return ctypes.c_void_p(cuda.fake_device_memory(size(number), gpu))
def own_copies():
    "Copies that the file of this process has."
    for name in os.listdir(os.environ["WAYWISER_TRACE_FOLDER"]):
        if name.startswith(f"trace-{os.getpid()}-") and name.endswith(".json"):
            with open(os.path.join(os.environ["WAYWISER_TRACE_FOLDER"], name)) as file:
                return sum(group["copies"] for group in json.load(file)["groups"])
    return 0
def until_written(copies):
    while own_copies() < copies:
        time.sleep(0.1)
assert cuda.cuInit(0) == 0
there, host = device(64 * KIB), ctypes.create_string_buffer(64 * KIB)
"""
"""What each program begins with."""


@dataclass
class Traced:
    done: subprocess.CompletedProcess[str]
    processes: list[dict[str, Any]] = field(default_factory=list)
    script: str = ""

    @property
    def only(self) -> dict[str, Any]:
        (process,) = self.processes
        return process

    def line(self, mark: str) -> int:
        """The line of the script that ends with a mark."""
        (number,) = [
            number
            for number, line in enumerate(self.script.splitlines(), 1)
            if line.endswith(f"# {mark}")
        ]
        return number


def environment(folder: Path, cupti: str = "12.9", **more: str) -> dict[str, str]:
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(FOLDER / "lib"),
        "CUDA_INJECTION64_PATH": str(TRACER),
        "FAKE_MUST_INJECT": "1",
        "WAYWISER_CUPTI": str(CUPTIS[cupti]),
        "WAYWISER_TRACE_FOLDER": str(folder),
        **more,
    }


def run(command: list[str], folder: Path, cupti: str = "12.9", **more: str) -> Traced:
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        command,
        env=environment(folder, cupti, **more),
        capture_output=True,
        text=True,
        timeout=120,
    )
    files = sorted(folder.glob("trace-*.json"))
    return Traced(done, [json.loads(file.read_text()) for file in files])


def run_python(
    body: str, tmp_path: Path, cupti: str = "12.9", python: str = sys.executable, **more: str
) -> Traced:
    script = tmp_path / "program.py"
    script.write_text(PRELUDE + body)
    traced = run([python, str(script)], tmp_path / "trace", cupti, **more)
    traced.script = script.read_text()
    return traced


def innermost(process: dict[str, Any], site: int) -> dict[str, Any]:
    frames = process["sites"][site]["frames"]
    return frames[0] if frames else {}


def groups_of_line(process: dict[str, Any], line: int) -> list[dict[str, Any]]:
    return [
        group
        for group in process["groups"]
        if innermost(process, group["site"]).get("line") == line
    ]


def group_of_line(process: dict[str, Any], line: int) -> dict[str, Any]:
    (group,) = groups_of_line(process, line)
    return group


def codes(process: dict[str, Any]) -> set[str]:
    return {note["code"] for note in process["notes"]}
