"""What verbs do, for the command line, notebooks and scripts: `waywiser.check`, `compare`, ...

What may happen here: arguments become one call of the packages below, and results become views
with their text, their JSON form, tables for pandas and polars, and figures for notebooks.
docs/python.md is the guide.

Types to know: `VerbResult`, what a verb found; `ProfileView`, `ComparisonView`, `MachineView`.

Never here: an analysis of its own, or a line that is printed. Packages for data frames are
optional, and imported when they are used.
"""
