"""The same nodes over many nights: the level of each headline path, its changes and drifts.

What may happen here: profiles are reduced to nights, nights are assigned to nodes by the UUIDs of
their GPUs, and changes are decided by `waywiser.stats.level_changes`.

Types to know:

- `Night` (`history.night`): what one profile says of its headline paths.
- `NodeNights` (`history.nodes`): the nights of one node.
- `History` (`history.history`): each path of each node with its changes, the worst first.

Never here: samples, layout, exit codes.
"""
