"""Connects the coordinator of a run with the agent of each node.

May be here: who may join, the encrypted connection, the lines that both sides send, and the checks
of what arrives. Never here: what a node does for a request, or which test comes next.
"""
