"""Writes the examples of exported settings from a kept profile.

    python docs/how-to/settings.py

`EXAMPLES` says which file has which command. A test checks that the files are current.
"""

from __future__ import annotations

import lzma
import tempfile
from pathlib import Path

from waywiser.exchange.settings.consumers import settings_text
from waywiser.profile import Profile

HERE = Path(__file__).parent

KEPT = HERE.parent / "results" / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz"

EXAMPLES = {
    "ucx.conf": ("ucx", 0),
    "vllm-constants.txt": ("vllm", 0),
    "sglang.yaml": ("sglang", 32 * 2**10),
    "flexkv.env": ("flexkv", 32 * 2**10),
}
"""The consumer and the bytes of a piece, by file."""


def texts() -> dict[str, str]:
    """The text of each example."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "node.wwp"
        file.write_bytes(lzma.decompress(KEPT.read_bytes()))
        with Profile.open(file) as profile:
            return {
                name: settings_text(profile, consumer, piece)
                for name, (consumer, piece) in EXAMPLES.items()
            }


if __name__ == "__main__":
    for name, text in texts().items():
        (HERE / "examples" / name).write_text(text)
