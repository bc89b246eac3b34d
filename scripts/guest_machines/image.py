"""The disk that all emulated machines with one kind of processor start from: the interpreter, the
built tree at its own path, and a first program. It is made again when a file of it has changed."""

from __future__ import annotations

import fcntl
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FETCHED = ROOT / ".deps" / "guest"
FOLDER = ROOT / "build" / "guest"
PINNED = tomllib.loads((ROOT / "scripts" / "guest.toml").read_text())
MACHINES = {"x86_64": "machine", "aarch64": "arm-machine"}
"""The folder of what starts in a machine, by its processor."""

ARM = ROOT / "build" / "arm64"
ARM_TESTS = ARM / "native" / "tests" / "native_tests"

PARTS = (
    ".deps/mpi/mpich",
    ".venv/bin/python",
    ".venv/bin/python3",
    ".venv/bin/waywiser",
    ".venv/pyvenv.cfg",
    "build/dev/waywiser_fake",
    "pyproject.toml",
    "python",
    "scripts/guest_machines",
    "tests/guest",
)
"""What of the source tree is in the image, beside the packages that a user installs."""

LEFT_OUT = re.compile(
    r"/(test|tests|idlelib|lib2to3|tkinter|ensurepip|turtledemo|config-3[^/]*|site-packages"
    r"|[^/]*\.a)(/|$)"
)

COMPILED = re.compile(
    rf"{re.escape(str(ROOT))}/(python|scripts|tests|build_backend)/.*__pycache__/"
)
"""What programs that run meanwhile compile of this tree: the image has its own."""

ARM_PARTS = ("pyproject.toml", "python", "scripts", "tests", "build_backend")
"""The same for ARM, where tests of Python run too; what was compiled for this machine is not."""

APPLETS = (
    "awk cat chmod dirname echo expr grep hostname ifconfig ln mkdir mount poweroff ps sed sh sleep"
    " sync tar"
)

MODULES = "crc16 mbcache crc32c_generic jbd2 ext4 nvme-auth nvme-core nvme"
"""What a kernel needs to mount the disk, in the order in which it can load them."""

_INITRAMFS = """#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t sysfs sys /sys
for module in {modules}; do /bin/busybox insmod /$module.ko; done
until [ -n "$found" ]; do
    for disk in /sys/block/nvme0n*; do
        [ "$(/bin/busybox cat $disk/nsid)" = 1 ] && found=/dev/${{disk##*/}}
    done
    /bin/busybox sleep 0.1
done
/bin/busybox mount -t ext4 $found /root
/bin/busybox umount /sys
exec /bin/busybox switch_root /root /init
"""

_KIB = 1024
_SLACK_KIB = 2 * _KIB * _KIB
"""Free on the disk, as a hole: scratch files leave 1 GiB to others."""
_INODES = 40_000


class ImageError(Exception):
    """The image cannot be made; the text is one line."""


def image(processor: str = "x86_64") -> Path:
    """The image of this tree as it is now, for a processor. Raises `ImageError`."""
    tool = shutil.which("mke2fs", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if tool is None:
        raise ImageError("there is no mke2fs here: install e2fsprogs")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with _alone(processor):
        found = _arm_files() if processor == "aarch64" else _files()
        files = {at: file for at, file in sorted(found) if not COMPILED.match(at)}
        made = FOLDER / f"{processor}-{_state(files)}.ext4"
        if not made.exists():
            for old in FOLDER.glob(f"{processor}-*.ext4"):
                old.unlink()
            _make(made, files, tool)
    return made


@contextmanager
def _alone(processor: str) -> Iterator[None]:
    """Keeps others from making an image for the processor until it ends."""
    lock = os.open(FOLDER / f"{processor}.lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _files() -> Iterator[tuple[str, Path]]:
    """Paths in the machine and the files that they are."""
    base = Path(sys.base_prefix)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    interpreter = Path(sys.executable).resolve()
    sources = [interpreter, base / "lib" / version, *(ROOT / part for part in PARTS)]
    sources += [Path("/bin/bash")]  # mpicc is a script of it
    sources += _installed(ROOT / ".venv" / "lib" / version / "site-packages")
    found: set[Path] = set()
    for source in sources:
        for file in _below(source):
            found.add(file)
            yield str(file), file
    for library in _libraries(found):
        yield str(library), library.resolve()
    yield "/bin/busybox", FETCHED / "machine" / "bin" / "busybox"
    yield "/init", Path(__file__).with_name("init")


def _arm_files() -> Iterator[tuple[str, Path]]:
    """Debian's system with packages of Python, and what the preset arm64 built, where the one of
    this machine would be."""
    system = FETCHED / "arm-system"
    version = f"python{PINNED['python']}"
    packages = f"/usr/lib/{version.partition('.')[0]}/dist-packages"
    package, venv = ROOT / "python" / "waywiser", ROOT / ".venv"
    fake = ARM / "waywiser_fake"
    fingerprints = ROOT / "native/tests/transfer/policy_file_test.cpp"  # finds a file from there
    placed = [
        (system / "lib", "/lib"),
        (system / "usr" / "bin", "/usr/bin"),
        (system / "usr" / "lib", "/usr/lib"),
        (system / "usr" / "bin" / version, f"{venv}/bin/python"),
        (venv / "bin" / "waywiser", f"{venv}/bin/waywiser"),
        (FETCHED / "arm-packages", packages),
        *((file, f"{packages}/{file.name}") for file in venv.glob("lib/*/*/waywiser.pth")),
        *((ROOT / part, str(ROOT / part)) for part in ARM_PARTS),
        *((file, f"{package}/{file.name}") for file in (ARM / "native").glob("_*.so")),
        *((file, f"{package}/lib/{file.name}") for file in (ARM / "native").glob("lib*.so*")),
        (fake, f"{ROOT}/build/dev/{fake.name}"),
        (fake / "nccl", str(fake / "nccl")),
        (ARM_TESTS, str(ARM_TESTS)),
        (fingerprints, str(fingerprints)),
        (FETCHED / "arm-machine" / "bin" / "busybox", "/bin/busybox"),
        (Path(__file__).with_name("init"), "/init"),
    ]
    for source, at in placed:
        for file in _below(source):
            rest = str(file)[len(str(source)) :]
            here = source in (package.parent, ROOT / "tests") and file.suffix == ".so"
            if not here and f"{package}/lib/" not in f"{file}":
                yield f"{at}{rest}", file


def initramfs(kernel: str) -> Path | None:
    """What a kernel starts from that has no driver of the disk built in, else nothing."""
    release = PINNED["kernels"][kernel].removeprefix("vmlinuz-")
    folder = FETCHED / "arm-machine" / "lib" / "modules" / release
    found = {name: next(folder.rglob(f"{name}.ko*"), None) for name in MODULES.split()}
    if not found["ext4"]:
        return None
    made = FOLDER / f"{kernel}.cpio"
    busybox = (FETCHED / "arm-machine" / "bin" / "busybox").read_bytes()
    files = {"bin/busybox": busybox, "init": _INITRAMFS.format(modules=MODULES).encode()}
    for name, module in found.items():
        if module is None:
            raise ImageError(f"the kernel {release} has no module {name}")
        data = module.read_bytes()
        files[f"{name}.ko"] = lzma.decompress(data) if module.suffix == ".xz" else data
    folders = dict.fromkeys(("bin", "dev", "root", "sys"), None)
    entries = {**folders, **files, "TRAILER!!!": b""}
    archive = b"".join(_cpio(name, data) for name, data in entries.items())
    with tempfile.NamedTemporaryFile(dir=FOLDER, delete=False) as half_made:
        half_made.write(archive)
    return Path(half_made.name).rename(made)


def _cpio(name: str, data: bytes | None) -> bytes:
    """A file of an archive, or a folder."""
    mode = 0o040755 if data is None else 0o100755
    sizes = (0, mode, 0, 0, 1, 0, len(data or b""), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % size for size in sizes) + name.encode() + b"\0"
    return b"".join(part + bytes(-len(part) % 4) for part in (head, data or b""))


def _below(source: Path) -> Iterator[Path]:
    if not source.is_dir():
        while source.is_symlink():
            yield source
            source = Path(os.path.normpath(source.parent / os.readlink(source)))
        if source.exists():
            yield source
        return
    for folder, folders, names in os.walk(source):
        folders[:] = [
            n for n in folders if not LEFT_OUT.search(f"{folder}/{n}/"[len(str(source)) :])
        ]
        for name in names:
            file = Path(folder, name)
            if not LEFT_OUT.search(str(file)[len(str(source)) :]):
                yield file


def _installed(site: Path) -> Iterator[Path]:
    """What the packages of scripts/locks/run.txt installed, and the link to this tree."""
    yield from site.glob("waywiser.pth")
    text = (ROOT / "scripts" / "locks" / "run.txt").read_text()
    names = {_plain(name) for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    for record in site.glob("*.dist-info/RECORD"):
        if _plain(record.parent.name.partition("-")[0]) in names:
            rows = (line.partition(",")[0] for line in record.read_text().splitlines())
            yield from (site / row for row in rows if row and not row.startswith(".."))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _libraries(files: set[Path]) -> set[Path]:
    """Shared libraries of the system that programs and modules of the files load."""
    loading = [f for f in files if ".so" in f.name or (os.access(f, os.X_OK) and _is_elf(f))]
    known: set[Path] = set()
    for start in range(0, len(loading), 200):
        answer = subprocess.run(
            ["ldd", *loading[start : start + 200]], capture_output=True, text=True, check=False
        )
        paths = re.findall(r"(?:=> |^\s+)(/\S+) \(", answer.stdout, re.MULTILINE)
        known |= {Path(os.path.normpath(path)) for path in paths}
    return known - files


def _is_elf(file: Path) -> bool:
    with suppress(OSError), file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"
    return False


def _state(files: dict[str, Path]) -> str:
    digest = hashlib.sha256(f"{APPLETS} {_INODES} {_SLACK_KIB}".encode())
    for path, file in files.items():
        at = file.lstat()
        digest.update(f"{path} {at.st_mtime_ns} {at.st_size}\n".encode())
    return digest.hexdigest()[:16]


def _make(made: Path, files: dict[str, Path], tool: str) -> None:
    with tempfile.TemporaryDirectory(prefix="root-", dir=FOLDER) as name:
        root = Path(name)
        for folder in ("bin", "dev", "etc", "proc", "root", "run", "sys", "task", "tmp", "var/tmp"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        for applet in APPLETS.split():
            (root / "bin" / applet).symlink_to("busybox")
        (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        (root / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
        total = 0
        for path, file in files.items():
            total += _place(file, root / path.lstrip("/"))
        total += _compile(root)
        size = (total * 5 // 4 + _SLACK_KIB * _KIB) // _KIB
        half_made = made.with_suffix(".part")
        half_made.unlink(missing_ok=True)
        options = ["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-N", str(_INODES)]
        answer = subprocess.run(
            [tool, *options, "-E", "root_owner=0:0", "-d", root, half_made, f"{size}k"],
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode != 0:
            raise ImageError(f"mke2fs failed: {' '.join(answer.stderr.split())}")
        half_made.rename(made)


def _compile(root: Path) -> int:
    """Compiles the modules of Python, for which an emulated machine takes many times as long, and
    returns the size of the results. Some that nothing imports cannot be compiled."""
    words = [sys.executable, "-m", "compileall", "-q", "-s", root, "-p", "/", root]
    subprocess.run(words, capture_output=True, check=False)
    return sum(file.stat().st_size for file in root.rglob("__pycache__/*.pyc"))


def _place(file: Path, at: Path) -> int:
    """Puts the file there, by a link if it is on the same file system; returns its size."""
    at.parent.mkdir(parents=True, exist_ok=True)
    if file.is_symlink():
        at.symlink_to(os.readlink(file))
        return 0
    try:
        os.link(file, at)
    except OSError:
        shutil.copy2(file, at)
    return file.stat().st_size
