"""``python -m waywiser.analysis.dataset.worker_process``: calls functions for another process."""

from __future__ import annotations

import sys

from waywiser.analysis.dataset.workers import call_for_another

if __name__ == "__main__":
    call_for_another(int(sys.argv[1]), sys.argv[2:])
