"""Runs the tests of a round side by side, by MPI or by NCCL.

May be here: launches of ranks, reports of tests, time limits, and which rank was lost first. Never
here: which tests to run (`waywiser.analysis.cluster`), or how long a run takes.
"""
