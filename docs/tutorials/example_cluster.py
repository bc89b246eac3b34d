"""Makes the folder of a cluster survey to read: eight simulated nodes, one of them slow.

    python docs/tutorials/example_cluster.py FOLDER

Nothing is measured: the times are drawn. n3 sends 12 % slower on rail 1, the other nodes are as
fast as one another.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from analysis.cluster.stored_clusters import stored_cluster  # noqa: E402

if __name__ == "__main__":
    stored_cluster(Path(sys.argv[1]), rails=2, slow={(3, 1, 0): 0.12})
