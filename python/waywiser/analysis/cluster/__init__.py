"""Decides which tests between nodes to run next, and which node, rail, pair or group is slow.

What may happen here: values become values. `next_round` returns the next tests from those that are
finished, so that a run which was interrupted goes on where it was; `verdict` can be made at any
time.

Types to know:

- `PairTests`: the times of finished tests between two nodes, as arrays.
- `ClusterState`: what these tests show so far; the next round and the verdict come from it.
- `ClusterVerdict`: each node, and each finding with its evidence.

Never here: a test is run, a file is read or written.
"""
