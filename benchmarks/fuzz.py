"""Random copies of several threads over the fake GPU, for as long as asked; all bytes are checked:

    python benchmarks/fuzz.py [--seconds 600] [--faults] [--hangs] [--threads N] [--seed N] [--list]
    python benchmarks/fuzz.py --build tsan --faults
    python benchmarks/fuzz.py --compare plain,default

Builds the program (native/tests/fuzz) with a preset of CMakePresets.json and runs it, with other
seeds each time. Options that are not listed here are those of the program: `--list` has its
operations, kinds of contexts and faults. The first failure ends it, with the command that makes the
same round again. Needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SEEDS_OF_A_PROCESS = 1_000_000


def environment(preset: str) -> dict[str, str]:
    """The environment of the preset's tests."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["testPresets"]
    own = next(each for each in presets if each["name"] == preset).get("environment", {})
    return {**os.environ, **{k: v.replace("${sourceDir}", str(ROOT)) for k, v in own.items()}}


def command(preset: str) -> list[str]:
    """The program; the thread sanitizer of older compilers needs addresses that do not change."""
    program = [str(ROOT / "build" / preset / "native" / "tests" / "transfer_fuzzer")]
    calm = preset == "tsan" and shutil.which("setarch")
    return ["setarch", platform.machine(), "-R", *program] if calm else program


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--build", choices=("dev", "asan", "tsan"), default="dev")
    parser.add_argument("--processes", type=int, default=1, help="at once, with seeds of their own")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**9 * 100)
    options, others = parser.parse_known_args()
    subprocess.run(
        [ROOT / "scripts" / "build", options.build, "transfer_fuzzer"],
        check=True,
        stdout=sys.stderr,
    )
    running = [
        subprocess.Popen(
            [
                *command(options.build),
                *("--seconds", str(options.seconds)),
                *("--seed", str(options.seed + number * SEEDS_OF_A_PROCESS)),
                *others,
            ],
            env=environment(options.build),
        )
        for number in range(options.processes)
    ]
    return max(abs(process.wait()) for process in running)


if __name__ == "__main__":
    sys.exit(main())
