"""Runs a survey of a cluster: its nodes, its rounds, its time, and what is stored.

May be here: the nodes and how their agents start, the transport to use, and the order from the
first agent to the last test. Never here: which node is slow (`waywiser.analysis.cluster`).
"""
