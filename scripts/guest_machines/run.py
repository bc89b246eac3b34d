"""Runs a shell script in an emulated machine."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from guest_machines.image import ARM_TESTS, FETCHED, FOLDER, MACHINES, PINNED, ROOT, initramfs
from guest_machines.table import Guest

RESULT_BYTES = 256 << 20
"""What a script may leave in its folder."""

_TAIL_LINES = 12
_EMULATOR = FETCHED / "emulator"
_LIBRARIES = _EMULATOR / "usr" / "lib" / "x86_64-linux-gnu"


class GuestError(Exception):
    """The machine did not come to the end of the script; the text says how far it came."""


@dataclass(frozen=True)
class ScriptResult:
    """What a script ended with."""

    exit_code: int
    output: str
    """Standard output and standard error together."""
    files: dict[str, bytes] = field(repr=False, default_factory=dict)
    """What it left in ``$OUT``, by the path there."""
    console: str = field(repr=False, default="")
    """What the kernel printed."""


def unavailable(processor: str = "x86_64") -> str:
    """Why no machine with this processor can be run here; empty if one can."""
    other = FETCHED / "other"
    if other.exists():
        return other.read_text().strip()
    if not (FETCHED / "packages").exists():
        return f"the emulator is not in {FETCHED}: scripts/set-up --guest"
    if processor == "aarch64":
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        if version != PINNED["python"]:
            return f"machines of ARM have Python {PINNED['python']}, and this is {version}"
        if not ARM_TESTS.exists():
            return f"there is no {ARM_TESTS.relative_to(ROOT)}: scripts/build arm64"
    return ""


def run_script(
    guest: Guest,
    image: Path,
    script: str,
    *,
    files: Mapping[str, bytes] | None = None,
    seconds: float = 300.0,
) -> ScriptResult:
    """Starts the machine, runs the script with `sh`, and switches it off. The script finds
    ``files`` in ``/task``, the source tree at its path, and leaves files in ``$OUT``. Raises
    `GuestError`."""
    with tempfile.TemporaryDirectory(prefix=f"{guest.name}-", dir=FOLDER) as name:
        folder = Path(name)
        given = {"setup": guest.setup.encode() + b"\n", "run": script.encode(), **(files or {})}
        (folder / "task").write_bytes(_packed(given))
        with (folder / "result").open("wb") as result:
            result.truncate(RESULT_BYTES)
        for log in ("console", "output"):
            (folder / log).touch()
        command = _command(guest, folder, image)
        ended = _emulate(command, folder, seconds)
        output = (folder / "output").read_text(errors="replace").replace("\r\n", "\n")
        console = (folder / "console").read_text(errors="replace").replace("\r\n", "\n")
        found = _unpacked(folder / "result")
        if "exit-code" not in found:
            last = "\n".join((console + "\n" + output).splitlines()[-_TAIL_LINES:])
            raise GuestError(f"{guest.name}: {ended}; its last lines:\n{last}")
        return ScriptResult(int(found.pop("exit-code")), output, found, console)


def _command(guest: Guest, folder: Path, image: Path) -> list[str]:
    folders = _EMULATOR / "usr" / "share"
    boot = (FETCHED / MACHINES[guest.processor] / "boot") / PINNED["kernels"][guest.kernel]
    if guest.processor == "aarch64":
        machine = ["-machine", "virt,gic-version=3", "-cpu", "max,pauth=off,sve=off"]
        console, output = "ttyAMA0", "ttyS0"
        serial = ["-device", "pci-serial,chardev=output"]
        initial = initramfs(guest.kernel)
        machine += ["-initrd", str(initial)] if initial else []
    else:
        machine = ["-machine", f"q35,hmat={'on' if guest.rates else 'off'}", "-cpu", "max"]
        console, output = "ttyS0", "ttyS1"
        serial = ["-serial", "chardev:output"]
    # The kernel hands words that it does not know to the first program, as its environment.
    arguments = f"console={console} root=/dev/nvme0n1 rw init=/init panic=1 quiet output={output}"
    # Programs at the same addresses each time: the emulator has translated their code before.
    arguments += " norandmaps"
    disks = ((image, "on"), (folder / "task", "off"), (folder / "result", "off"))
    command = [
        str(_EMULATOR / "usr" / "bin" / f"qemu-system-{guest.processor}"),
        *("-L", str(folders / "seabios"), "-L", str(folders / "qemu")),
        *(*machine, "-accel", "tcg,thread=multi"),
        *guest.options,
        *("-kernel", str(boot), "-append", f"{arguments} guest={guest.name}"),
        *("-display", "none", "-no-reboot", "-nodefaults", "-net", "none"),
        *("-serial", f"file:{folder / 'console'}"),
        *("-chardev", f"file,id=output,path={folder / 'output'}", *serial),
        *("-device", "nvme,serial=disks,id=disks,bus=pcie.0"),
    ]
    for number, (disk, snapshot) in enumerate(disks, start=1):
        drive = f"file={disk},if=none,id=disk{number},format=raw,snapshot={snapshot}"
        command += ["-drive", drive, "-device", f"nvme-ns,drive=disk{number},nsid={number}"]
    return command


def _emulate(command: list[str], folder: Path, seconds: float) -> str:
    """How the emulator ended."""
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{_LIBRARIES}:{_EMULATOR / 'lib' / _LIBRARIES.name}",
        "QEMU_MODULE_DIR": str(_LIBRARIES / "qemu"),
        "TMPDIR": str(folder),
    }
    with (folder / "errors").open("wb") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"it took longer than {seconds:g} s"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    said = " ".join((folder / "errors").read_text(errors="replace").split())
    return f"the emulator ended with status {status}{': ' + said if said else ''}"


def _packed(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def _unpacked(disk: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with suppress(tarfile.TarError), tarfile.open(disk, "r:") as archive:
        for entry in archive:
            opened = archive.extractfile(entry) if entry.isfile() else None
            if opened is not None:
                found[entry.name.removeprefix("./")] = opened.read()
    return found
