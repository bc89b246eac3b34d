"""Profiles and comparisons for notebooks and scripts: `waywiser.open` and `waywiser.compare`."""
