"""Runs on each node: the agent, and what it does for requests of the coordinator.

May be here: facts, files, processes and counters of this node, its own survey, and the workers of
its rails. Never here: what other nodes measured.
"""
