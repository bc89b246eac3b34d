"""Profiles and comparisons for notebooks and scripts: `waywiser.open`, `waywiser.compare`, ...

What may happen here: results become views with tables for pandas and polars, and figures for
notebooks. docs/python.md is the guide.

Types to know: `ProfileView`, `ComparisonView`, `MachineView`.

Never here: an analysis of its own. Packages for data frames are optional, and imported when they
are used.
"""
