"""Other tools' result files as profiles: one file per foreign format.

A file becomes a `foreign_file.ForeignFile`: workloads in Waywiser's words with their samples, and
what has no counterpart here, with the reason. `profiles.import_files` makes one profile of them.
"""
