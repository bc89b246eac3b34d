"""A survey of just some series, as the benchmarks of this folder need it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from waywiser.profile import Profile
from waywiser.profile.estimate import Estimate, estimate


def survey(curves: Sequence[str], options: Sequence[str] = ()) -> dict[str, Estimate]:
    """What a fresh ``standard`` survey of just these curves and operations finds, by their texts:
    one size each is expected. Series that could not be measured are left out."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "surveyed.wwp"
        command = [sys.executable, "-m", "waywiser", "survey", "-o", str(file), "--preset",
                   "standard", "--share", *options]  # fmt: skip
        for curve in curves:
            command += ["--workload" if "->" in curve else "--only", curve]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with Profile.open(file) as profile:
            found = {one.workload.curve: estimate(one) for one in profile.series()}
    return {curve: result for curve, result in found.items() if result is not None}
