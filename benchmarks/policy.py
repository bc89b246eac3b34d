"""How long a policy takes to load and to look up in the transfer library, and how large its file
is:

    python benchmarks/policy.py [--json FILE] [POLICY.json ...]

Without a policy it makes two: one of 14 kinds of copies with 20 sizes, lists of three lengths and
two numbers of CPUs, and the largest one of contiguous copies that fits into 1 MiB. Needs g++ and
the library (`make survey`), no GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "python" / "waywiser" / "lib"
MOST_BYTES = 1 << 20

KINDS = (
    ("pageable", "device", ""),
    ("device", "pageable", ""),
    ("device", "fresh", ""),
    ("pinned", "device", ""),
    ("device", "pinned", ""),
    ("device", "device", "same"),
    ("device", "device", "peers"),
    ("device", "device", "no-peers"),
    ("pageable", "pageable", ""),
    ("pageable", "pinned", ""),
    ("pinned", "pageable", ""),
    ("file", "device", ""),
    ("file", "pageable", ""),
    ("device", "file", ""),
)


def row(size: int, count: int, threads: int) -> dict[str, Any]:
    settings = {"chunk": "1048576", "slots": "5", "threads": str(threads)}
    executor = "staged" if count == 1 else "sm"
    return {
        "from_bytes": size * 3 // 4,
        "bytes": size,
        "count": count,
        "threads": threads,
        "executor": executor,
        "settings": settings if count == 1 else {"blocks": "2"},
        "seconds": 0.000412,
        "low": 0.000405,
        "high": 0.000418,
        "next": {"executor": "copy-engine", "settings": {}, "seconds": 0.002, "margin": 3.85},
        "costs": {
            "threads": threads,
            "multiprocessors": 0,
            "pinned_bytes": 52428800,
            "relays": 0,
            "small_copy": 1.4,
            "matrix_product": None,
        },
    }


def policy(sizes: int, counts: tuple[int, ...], threads: tuple[int, ...]) -> bytes:
    """A policy with `sizes` sizes from 4 KiB to 4 GiB."""
    bytes_of = [int(4096 * 2 ** (20 * n / (sizes - 1))) for n in range(sizes)]
    classes = [
        {
            "from": source,
            "to": destination,
            "relation": relation,
            "peers_idle": False,
            "rows": [
                row(size, count, number)
                for count in (1, *(counts if source in ("device", "pinned") else ()))
                for number in threads
                for size in bytes_of
            ],
        }
        for source, destination, relation in KINDS
    ]
    whole = {"format": "waywiser-policy", "version": 1, "machine": {}, "classes": classes}
    return json.dumps(whole, separators=(",", ":")).encode()


def largest() -> bytes:
    text = b""
    for sizes in range(2, 1000):
        longer = policy(sizes, (), (4, 16))
        if len(longer) > MOST_BYTES:
            break
        text = longer
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("policies", nargs="*", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = options.policies
        if not files:
            files = [folder / "usual.json", folder / "largest.json"]
            files[0].write_bytes(policy(20, (16, 256, 4096), (4, 16)))
            files[1].write_bytes(largest())
            for file in files:
                file.chmod(0o600)
        program = folder / "policy"
        command = ["g++", "-O2", "-Wall", "-DNDEBUG", "-std=c++20", f"-I{ROOT}/native/include"]
        command += [f"-I{ROOT}/native/src", str(Path(__file__).with_suffix(".cpp"))]
        command += ["-o", str(program), f"-L{LIBRARY}", "-lwaywiser_transfer"]
        subprocess.run([*command, f"-Wl,-rpath,{LIBRARY}"], check=True)
        found = {}
        for file in files:
            ended = subprocess.run([program, file], check=True, capture_output=True, text=True)
            found[file.name] = json.loads(ended.stdout)
    for file_name, times in found.items():
        print(
            f"{file_name}: {times['bytes']:,} bytes, {times['rows']:,} rows; "
            f"read {times['read'] * 1e6:.0f} us, parse {times['parse'] * 1e6:.0f} us, "
            f"bind to a context {times['bind'] * 1e6:.0f} us, identify the machine "
            f"{times['identify'] * 1e6:.0f} us; look-up of a copy {times['copy'] * 1e9:.1f} ns, "
            f"of a list {times['list'] * 1e9:.1f} ns"
        )
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
