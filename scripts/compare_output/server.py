"""Runs command lines of a tree, each in a fork of one warm interpreter.

    python server.py STORE SANDBOX INPUTS TREE [--warm]

reads commands as JSON lines from standard input and answers each with a JSON line. The environment
of the process is fixed by ``fixed/sitecustomize.py``; that of a command by `_become`.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import pty
import selectors
import shutil
import signal
import sqlite3
import struct
import sys
import termios
import traceback
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # as a program it is in a package that it is not started as
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from compare_output.modes import TWO_GPUS
from compare_output.store import Store

LIMIT_SECONDS = 300
"""A command that takes longer is ended, and is recorded as ended by a signal."""

LINES = 40
_BYTES = 1 << 16
_PROFILE = b"SQLite format 3\0"

FILTERS: dict[str, str] = {
    "folder": "the folder of the commands has a random name, so that two records can be made at "
    "the same time; its random letters are replaced by zeros",
    "tree": "the path of the tree, which a traceback and the folder of CMake name",
}
"""What is changed in an output before it is kept, and why."""


def import_all() -> None:
    """Imports every module of the package, whatever their names are, and what they import late."""
    import waywiser

    for found in pkgutil.walk_packages(waywiser.__path__, "waywiser."):
        name = found.name.rpartition(".")[2]
        # Not native modules, of which a command loads one, __main__, and what would take the place
        # of a builtin in its package.
        if name.startswith("_") or hasattr(builtins, name):
            continue
        with contextlib.suppress(ImportError):
            importlib.import_module(found.name)
    for name in ("matplotlib.backends.backend_svg", "scipy.optimize", "scipy.stats", "pyarrow"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


class Sandbox:
    """The folder in which commands run. Inputs are restored, and all else goes, after each."""

    def __init__(self, folder: Path, inputs: Path) -> None:
        self.folder, self._inputs = folder, inputs
        self._known: dict[str, tuple[int, int]] = {}

    def place(self, names: list[str]) -> None:
        """Puts inputs there that are missing."""
        for name in names:
            if name not in self._known:
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self._inputs / name, path)
                self._known[name] = _state(path)

    def take(self) -> Iterator[tuple[str, bytes]]:
        """The files that a command wrote, or of an input the lines of its rows that changed. Then
        the folder is as before."""
        for path in sorted(self.folder.rglob("*")):
            name = str(path.relative_to(self.folder))
            if path.is_dir() and not path.is_symlink():
                continue
            if name not in self._known:
                if not name.startswith(("tmp/", "home/")):
                    yield name, _readable(path)
                path.unlink()
            elif _state(path) != self._known[name]:
                yield name, _changed(self._inputs / name, path)
                path.unlink()
        for name in [name for name in self._known if not (self.folder / name).exists()]:
            del self._known[name]
            self.place([name])


def _state(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_mtime_ns, found.st_size


def _readable(path: Path) -> bytes:
    """The content; of a profile its rows as text."""
    content = path.read_bytes() if path.is_file() else b"no file"
    if not content.startswith(_PROFILE):
        return content
    return "\n".join(_rows(path)).encode()


def _rows(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.text_factory = lambda text: text.decode(errors="replace")
        try:
            return list(connection.iterdump())
        except sqlite3.Error as error:
            return [f"no rows: {error}"]


def _changed(before: Path, after: Path) -> bytes:
    old, new = _rows(before), _rows(after)
    gone, come = set(old) - set(new), set(new) - set(old)
    lines = [f"-{line}" for line in old if line in gone]
    lines += [f"+{line}" for line in new if line in come]
    return "\n".join(lines).encode()


def run(command: dict[str, Any], sandbox: Sandbox) -> tuple[int, bytes, bytes, float]:
    """(exit code, or minus the signal; standard output; standard error; seconds of CPU time)."""
    masters, ends = zip(*(_channel(command["columns"]) for _ in range(2)), strict=True)
    child = os.fork()
    if child == 0:
        code = 70
        try:
            null = os.open(os.devnull, os.O_RDONLY)
            for number, end in enumerate((null, *ends)):
                os.dup2(end, number)
            for descriptor in (null, *masters, *ends):
                os.close(descriptor)
            signal.alarm(LIMIT_SECONDS)
            code = _become(command, sandbox)
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    for end in ends:
        os.close(end)
    out, err = _read_all(masters)
    _, status, used = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), out, err, used.ru_utime + used.ru_stime


def _channel(columns: int) -> tuple[int, int]:
    """A pipe, or a terminal of that width that leaves the bytes as they are."""
    if not columns:
        return os.pipe()
    master, end = pty.openpty()
    settings = termios.tcgetattr(end)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(end, termios.TCSANOW, settings)
    ioctl(end, termios.TIOCSWINSZ, struct.pack("4H", LINES, columns, 0, 0))
    return master, end


def _read_all(masters: tuple[int, ...]) -> list[bytes]:
    found: dict[int, list[bytes]] = {master: [] for master in masters}
    with selectors.DefaultSelector() as selector:
        for master in masters:
            selector.register(master, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                try:
                    data = os.read(key.fd, _BYTES)
                except OSError:  # so a terminal ends
                    data = b""
                if data:
                    found[key.fd].append(data)
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return [b"".join(parts) for parts in found.values()]


def _become(command: dict[str, Any], sandbox: Sandbox) -> int:
    """Runs the command line as this process, and returns its exit code."""
    os.chdir(sandbox.folder)
    for number, name, errors in ((1, "stdout", "strict"), (2, "stderr", "backslashreplace")):
        buffering = 1 if number == 2 or os.isatty(number) else -1
        stream = open(number, "w", buffering, "utf-8", errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if command["columns"]:
        os.environ["TERM"] = "xterm-256color"
        if not command["colour"]:
            os.environ["NO_COLOR"] = "1"
    gpus = command["machine"] == TWO_GPUS
    os.environ["COMPARE_OUTPUT_NATIVE"] = "waywiser_fake._native" if gpus else "waywiser._native"
    os.environ["WAYWISER_NVML"] = "fixed_nvml" if gpus else "there_is_no_nvml"
    import waywiser.cli

    sys.argv = ["waywiser", *command["words"]]
    try:
        waywiser.cli.main(command["words"])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return 0


def filtered(content: bytes, sandbox: Path, tree: str) -> bytes:
    """The content after `FILTERS`."""
    folder = str(sandbox.parent).encode()
    fixed = folder.rpartition(b"-")[0] + b"-" + b"0" * len(folder.rpartition(b"-")[2])
    return content.replace(str(sandbox).encode(), fixed).replace(tree.encode(), b"TREE")


def main(store: Store, sandbox: Sandbox, tree: str) -> None:
    for line in sys.stdin:
        command = json.loads(line)
        sandbox.place(command["inputs"])
        for words in command["before"]:
            run({**command, "words": words, "columns": 0}, sandbox)
        code, out, err, seconds = run(command, sandbox)
        outputs = {"stdout": out, "stderr": err, **dict(sandbox.take())}
        kept = {
            name: store.keep(filtered(content, sandbox.folder, tree))
            for name, content in outputs.items()
        }
        print(json.dumps({"exit_code": code, "outputs": kept, "cpu_seconds": seconds}), flush=True)


if __name__ == "__main__":
    store, folder, inputs, tree = sys.argv[1:5]
    if "--warm" in sys.argv:
        import_all()
    main(Store(Path(store)), Sandbox(Path(folder), Path(inputs)), tree)
