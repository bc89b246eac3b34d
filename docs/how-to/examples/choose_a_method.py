"""Asks a profile how to copy: python choose_a_method.py node.wwp"""

import sys

import waywiser

profile = waywiser.open(sys.argv[1])

advice = profile.advise("pinned@numa:0", "device@gpu:0", "28KiB", count=600)
best = advice.best
print(f"{best.method}: {best.bytes_per_second / 1e9:.1f} GB/s")
for other in advice.alternatives:
    print(f"  {other.method} takes {other.margin:+.0%}")

policy = profile.policy()
row = policy.class_of("device", "pageable").row(64 << 20, count=1, threads=64)
print(f"64 MiB to pageable memory: {row.executor}, {row.seconds * 1e3:.1f} ms")
