"""Other tools' result files as profiles: one file per foreign format.

What a format says becomes `found.Found`: workloads in this house's words with their samples, and
what has no counterpart here, with the reason. `profiles.import_files` makes one profile of them.
"""
