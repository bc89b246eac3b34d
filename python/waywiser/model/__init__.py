"""Models of a machine: what a transfer costs where nothing was measured, and how sure that is.

A file is one concept. All values are frozen, and those that are kept have a JSON form.
"""
