"""Records what the commands of a tree write."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from compare_output import server
from compare_output.inputs import TESTS, Inputs, make_machine
from compare_output.modes import Command
from compare_output.store import Recorded, Store

PROCESSES = 2
"""Commands that run at the same time, at most."""

WORTH_WARMING = 60
"""Commands from which on it pays to import everything first."""

HERE = Path(__file__).resolve().parent


class RecordError(Exception):
    """A tree that cannot be run, or a folder that cannot be written."""


def record(tree: Path, folder: Path, commands: Sequence[Command], processes: int) -> list[Recorded]:
    """Runs the commands in the tree and writes the folder anew. Raises `RecordError`."""
    tree = tree.resolve()
    if not (tree / "python" / "waywiser").is_dir():
        raise RecordError(f"{tree}: no source tree of Waywiser: there is no python/waywiser")
    if not list((tree / "build" / "dev" / "waywiser_fake").glob("_native.*.so")):
        raise RecordError(f"{tree}: the library over the fake GPU is not built (scripts/build dev)")
    store = Store(folder)
    if folder.exists() and any(folder.iterdir()) and not store.is_one:
        raise RecordError(f"{folder}: holds something else, and is not overwritten")
    shutil.rmtree(folder, ignore_errors=True)
    store.begin()
    with tempfile.TemporaryDirectory(prefix="compare-output-") as scratch:
        digests = _prepare(Path(scratch), commands)
        recorded = _run_all(tree, Path(scratch), store, commands, processes)
    store.finish(recorded, {"inputs": digests, "filters": server.FILTERS})
    return recorded


def _prepare(scratch: Path, commands: Sequence[Command]) -> dict[str, str]:
    made = Inputs(scratch / "inputs")
    made.prepare({name for command in commands for name in command.inputs})
    make_machine(scratch / "fixed")
    return made.digests


def _run_all(
    tree: Path, scratch: Path, store: Store, commands: Sequence[Command], processes: int
) -> list[Recorded]:
    # Commands of one profile follow each other, so that few inputs are in use at a time.
    waiting: queue.SimpleQueue[Command] = queue.SimpleQueue()
    for command in commands:
        waiting.put(command)
    recorded: list[Recorded] = []
    failures: list[str] = []
    warm = len(commands) >= WORTH_WARMING

    def work(number: int) -> None:
        try:
            with _server(tree, scratch, store, number, warm) as process:
                assert process.stdin is not None and process.stdout is not None
                while not failures:
                    command = waiting.get_nowait()
                    process.stdin.write(json.dumps(command.as_json()) + "\n")
                    process.stdin.flush()
                    answer = process.stdout.readline()
                    if not answer:
                        raise RecordError(f"the interpreter ended at {command.name}")
                    recorded.append(Recorded(command.name, **json.loads(answer)))
                    _say_progress(len(recorded), len(commands))
        except queue.Empty:
            return
        except Exception as error:
            failures.append(str(error))

    threads = [
        threading.Thread(target=work, args=(number,), daemon=True) for number in range(processes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise RecordError(failures[0])
    return recorded


def _say_progress(done: int, of: int) -> None:
    if sys.stderr.isatty() or done % 500 == 0:
        print(
            f"{done} of {of} commands", end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr
        )


def _server(
    tree: Path, scratch: Path, store: Store, number: int, warm: bool
) -> subprocess.Popen[str]:
    python = tree / ".venv" / "bin" / "python"
    sandbox = scratch / str(number)
    for name in ("home", "tmp"):
        (sandbox / name).mkdir(parents=True)
    words = [HERE / "server.py", store.folder.resolve(), sandbox, scratch / "inputs", tree]
    return subprocess.Popen(
        [python if python.exists() else sys.executable, *words, *(["--warm"] if warm else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(tree, scratch, sandbox),
        cwd=sandbox,
    )


def _environment(tree: Path, scratch: Path, sandbox: Path) -> dict[str, str]:
    paths = (HERE / "fixed", tree / "python", tree / "build" / "dev")
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "COMPARE_OUTPUT_FIXED": str(scratch / "fixed"),
        "COMPARE_OUTPUT_TESTS": str(TESTS),
        "WAYWISER_NATIVE": "fixed_native",
        "WAYWISER_TRANSFER_NATIVE": "waywiser_fake._transfer",
        "WAYWISER_POLICY": "off",
        "HOME": str(sandbox / "home"),
        "TMPDIR": str(sandbox / "tmp"),
        "MPLCONFIGDIR": str(scratch / "matplotlib"),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }
