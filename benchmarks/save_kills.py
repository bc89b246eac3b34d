"""Kills processes that save checkpoints and take snapshots, at random moments:

    python benchmarks/save_kills.py [--kills 100] [--seed 1] [--folder FOLDER]

One process after the other saves one value after the other: over one file, over a folder of shards,
over a folder that is a mount point (if one can be mounted here), and over one file what it has
copied from a fake GPU by `snapshot`. It reports each save that has returned, and is killed after
the first one. After each kill the checkpoint must be whole, and of the last save that was reported
or of the next one. In the end, after one more save, no other file may be left in the folder, none
in /dev/shm that a killed process had mapped, and no process. Needs the build over the fake GPU
(`make test`), and no GPU. The exit status is 1 if anything is wrong, else 0.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# In the place of the folder of this file, which has a transfer.py of its own.
sys.path[:1] = [str(ROOT / part) for part in ("tests", "tests/transfer", "python", "build/dev")]
os.environ["WAYWISER_TRANSFER_NATIVE"] = "waywiser_fake._transfer"

import numpy as np  # noqa: E402

from files.other_file_systems import mounting  # noqa: E402
from transfer import torch_stand_in  # noqa: E402
from transfer.saving_killed import held, loading, unfinished  # noqa: E402
from transfer.test_snapshots import GpuTensor  # noqa: E402
from waywiser.measure.ranks.leftovers import mapped_files  # noqa: E402

KINDS = ("file", "folder", "mounted", "snapshot")
MOUNTED = "WAYWISER_SAVE_KILLS_MOUNTED"
"""Set in the process whose folder is mounted."""

TENSORS = "abc"  # as many as saving_killed.held expects
NBYTES = 1 << 20
LONGEST_SECONDS = 0.3


def host_tensors(value: int) -> dict[str, Any]:
    return {
        name: torch_stand_in.Tensor(np.full(NBYTES, value, np.uint8), torch_stand_in.uint8)
        for name in TENSORS
    }


def gpu_tensors(value: int) -> dict[str, Any]:
    return {name: GpuTensor(np.full(NBYTES, value, np.uint8)) for name in TENSORS}


def save(kind: str, path: Path, value: int) -> None:
    found = host_tensors(value)
    if kind == "snapshot":
        found = loading.snapshot(gpu_tensors(value), pinned=value % 2 == 0).result()
    loading.save_files(found, path, shard_bytes=None if kind in ("file", "snapshot") else NBYTES)


def started(kind: str, path: Path, value: int, last: int) -> tuple[int, int]:
    """A process that saves from this value to the last one, and the pipe of its reports."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.close(reading)
            while value <= last:
                save(kind, path, value % 256)
                os.write(writing, b"%d\n" % value)
                value += 1
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    return child, reading


def reported(reading: int, first: bytes = b"") -> int:
    """The value of the last save that was reported; -1 if none was."""
    with os.fdopen(reading, "rb") as pipe:
        lines = (first + pipe.read()).split()
    return int(lines[-1]) if lines else -1


def whole_save(kind: str, path: Path, value: int) -> None:
    child, reading = started(kind, path, value, value)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if (status, reported(reading)) != (0, value):
        raise SystemExit(f"{kind}: a save without a kill ended with {status}")


def kill(kind: str, path: Path, kills: int, generator: random.Random) -> list[str]:
    """What was wrong in a campaign; empty if nothing was."""
    wrong = []
    was_reported = was_next = 0
    shared: set[str] = set()
    value = 0
    whole_save(kind, path, value)
    for number in range(kills):
        child, reading = started(kind, path, value + 1, sys.maxsize)
        first = os.read(reading, 4096)  # waits for the first save
        time.sleep(generator.uniform(0, LONGEST_SECONDS))
        shared |= mapped_files(child)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        last = reported(reading, first)
        found = held(path)
        was_reported += found == last % 256
        was_next += found == (last + 1) % 256
        value = last if found == last % 256 else last + 1
        if found not in (last % 256, (last + 1) % 256):
            wrong.append(f"{kind}: kill {number}: {found} after {last}")
        if len(unfinished(path)) > 1 + (kind == "mounted"):
            wrong.append(f"{kind}: kill {number}: {sorted(unfinished(path))} are left")
    whole_save(kind, path, value + 1)
    if held(path) != (value + 1) % 256:
        wrong.append(f"{kind}: the last save is not there")
    left = [*unfinished(path), *filter(os.path.exists, shared)]
    wrong += [f"{kind}: {name} is left" for name in left]
    print(f"{kind}: {kills} kills, {value} saves, {was_reported} times the last one that was "
          f"reported, {was_next} times the next one, {len(wrong)} wrong", flush=True)  # fmt: skip
    return wrong


def in_a_mount(options: argparse.Namespace, folder: Path) -> list[str]:
    """The campaign over a mount point, in a process that may mount."""
    way = mounting()
    if not way:
        print("mounted: skipped, namespaces are not allowed here")
        return []
    path = folder / "model"
    path.mkdir()
    command = [*way, "sh", "-ec", f"mount -t tmpfs none '{path}'; exec \"$@\"", "sh"]
    command += [sys.executable, __file__, "--kills", str(options.kills), "--seed"]
    environment = {**os.environ, MOUNTED: str(path)}
    done = subprocess.run([*command, str(options.seed)], env=environment, check=False)
    return [] if done.returncode == 0 else ["mounted: it failed"]


def processes_in(folder: Path) -> list[str]:
    """The processes that have a file of the folder open."""
    found = []
    for process in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(process).startswith(f"{folder}/"):
                found.append(str(process))
        except OSError:
            continue
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="on the file system to save to; a temporary one")
    options = parser.parse_args()
    generator = random.Random(options.seed)
    if MOUNTED in os.environ:
        wrong = kill("mounted", Path(os.environ[MOUNTED]), options.kills, generator)
        print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
        return 1 if wrong else 0
    wrong = []
    for kind in KINDS:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            folder = Path(name)
            if kind == "mounted":
                wrong += in_a_mount(options, folder)
            else:
                wrong += kill(kind, folder / "model", options.kills, generator)
            wrong += [f"{kind}: process {each} is left" for each in processes_in(folder)]
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
