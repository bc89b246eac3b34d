"""Result files of other tools as profiles: one file per foreign format.

What may happen here: a file becomes a `ForeignFile`: workloads in the words of Waywiser with their
samples, and what has no counterpart, with the reason. `profiles.import_files` makes one profile of
them.

Types to know: `ForeignFile` and `ForeignGpu` (`imports.foreign_file`); `ImportFailed`, which names
the file, the line and the remedy.

Never here: a number that the file does not have, or a fact about a machine that it does not state.
"""
