"""Writes the examples of models and predictions from a kept profile.

    python docs/how-to/predictions.py

`EXAMPLES` says which file has the output of which command. A test checks that the files are
current.
"""

from __future__ import annotations

import contextlib
import io
import lzma
import shlex
import tempfile
from pathlib import Path

from waywiser import cli

HERE = Path(__file__).parent

KEPT = HERE.parent / "results" / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz"

EXAMPLES = {
    "predict-size.txt": "waywiser predict node.wwp "
    "-w 'pinned@numa:0 -> device@gpu:0 by copy-engine of 50MiB'",
    "predict-host-to-all.txt": "waywiser predict node.wwp -w 'host-to-all of 768MiB'",
    "predict-set.txt": "waywiser predict node.wwp --compare "
    "-w 'pinned@numa:0 <-> device@gpu:0 by copy-engine of 64MiB'",
    "predict-unequal.txt": "waywiser predict node.wwp -w 'pinned@numa:0 -> device@gpu:0 by "
    "copy-engine of 256MiB; device@gpu:0 -> pinned@numa:0 by copy-engine of 24MiB; "
    "device@gpu:0 -> device@gpu:1 by copy-engine of 1GiB'",
    "predict-validate.txt": "waywiser predict node.wwp --validate",
}
"""The command, by the file with its output."""


def texts() -> dict[str, str]:
    """The text of each example: the output of its command, with the model kept."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("node.wwp").write_bytes(lzma.decompress(KEPT.read_bytes()))
        _output("waywiser predict node.wwp")
        for name, command in EXAMPLES.items():
            found[name] = _output(command)
    return found


def _output(command: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        code = cli.run(shlex.split(command)[1:])
    if code:
        raise SystemExit(f"{command} ends with {code}")
    return stream.getvalue()


if __name__ == "__main__":
    for name, text in texts().items():
        (HERE / "examples" / name).write_text(text)
