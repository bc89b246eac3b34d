"""Compares policies with lists of 2 to 64 pieces that were measured apart.

    python docs/results/2026-11-24-policy/short_lists.py [MODEL POLICY]

Without arguments the policies are those of the profiles beside this page, by the rule of now. MODEL
is h100 or h200. The files of short lists have each list by three methods; that of the H100 is of
another GPU than its policy. The regret is how much longer the policy's method takes than the
fastest one.
"""

from __future__ import annotations

import lzma
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from waywiser.analysis.policy.build import build_policy
from waywiser.analysis.policy.file import read_policy
from waywiser.analysis.policy.table import Policy
from waywiser.curves.subject import Subject
from waywiser.profile import Profile

HERE = Path(__file__).parent
PROFILES = {
    "h100": ("h100-standard.wwp.xz", "h100-tuned.wwp.xz"),
    "h100, with lists of 4 pieces": ("h100-standard-2.wwp.xz",),
    "h200": ("h200-standard.wwp.xz",),
}

Lists = dict[tuple[str, str, int, int], dict[str, float]]
"""Seconds by executor of each list: source, destination, pieces, and bytes of a piece."""


def subject_of(file: Path) -> Subject:
    """A packed profile."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "kept.wwp"
        kept.write_bytes(lzma.decompress(file.read_bytes()))
        with Profile.open(kept) as profile:
            return Subject.of(profile)


def measured(model: str) -> Lists:
    """All short lists of a model, from call to completion."""
    found: Lists = {}
    for curve in subject_of(HERE / f"{model[:4]}-short-lists.wwp.xz").curves:
        transfer = curve.transfer
        if transfer is None or transfer.layout is None:
            continue
        piece = transfer.layout.run
        path = transfer.path
        for point in curve.measured:
            key = path.source.kind, path.destination.kind, point.bytes // piece, piece
            estimate = point.estimate
            if estimate is not None:
                found.setdefault(key, {})[path.executor] = estimate.host_median or estimate.median
    return found


def regrets(policy: Policy, lists: Lists) -> Iterator[tuple[float, str]]:
    """For each list how much longer the chosen method takes than the fastest, and its text."""
    for (source, destination, count, piece), times in lists.items():
        rows = policy.class_of(source, destination)
        row = rows.row(piece, count, 64) if rows is not None else None
        best = min(times, key=lambda executor: times[executor])
        chosen = row.executor if row is not None else "copy-engine"
        text = (
            f"{source} -> {destination}, {count} × {piece // 1024} KiB: {chosen}, "
            f"fastest {best} ({times[best] * 1e6:.1f} µs)"
        )
        yield times[chosen] / times[best] - 1, text


def main() -> None:
    if len(sys.argv) == 3:
        policies = {sys.argv[1]: read_policy(sys.argv[2])}
    else:
        policies = {
            model: build_policy([subject_of(HERE / name) for name in names])
            for model, names in PROFILES.items()
        }
    print("| policy | lists | fastest chosen | mean regret | 95th percentile | largest |")
    print("|---|---|---|---|---|---|")
    worst = []
    for model, policy in policies.items():
        found = sorted(regrets(policy, measured(model)), reverse=True)
        values = [regret for regret, _ in found]
        fastest = sum(regret == 0 for regret in values) / len(values)
        print(
            f"| {model} | {len(values)} | {fastest:.0%} | {np.mean(values):.1%} | "
            f"{np.quantile(values, 0.95):.0%} | {values[0]:.0%} |"
        )
        worst += [f"- {model}: {regret:.0%}, {text}" for regret, text in found[:8] if regret > 0.05]
    print("\n" + "\n".join(worst))


if __name__ == "__main__":
    main()
