"""``python -m waywiser.analysis.dataset.entry_process``: reads profiles for another process."""

from __future__ import annotations

import sys

from waywiser.analysis.dataset.profiles import print_entries

if __name__ == "__main__":
    print_entries(sys.argv[1:])
