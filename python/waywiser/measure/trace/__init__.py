"""Runs a user's program while what it copies is recorded, and watches a program that runs.

What may happen here: processes are started, signals are passed on, counters of the driver are read.

Types to know: `TracedCommand`, a program that is run with the tracer.

Never here: what a copy should have taken (`waywiser.analysis.trace`).
"""
