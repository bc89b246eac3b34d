"""``python -m waywiser.analysis.history.entry_process``: reads profiles for another process."""

from __future__ import annotations

from waywiser.analysis.history.index import print_entries

if __name__ == "__main__":
    print_entries()
