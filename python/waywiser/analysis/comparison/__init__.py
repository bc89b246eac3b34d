"""What several profiles say together: comparisons, checks against a baseline, fleets.

All of it works on `node.Node`, a profile without its samples, which `node.read_node` reads and a
simulation makes in memory: `comparison.compare(base, new)` of sequences of nodes,
`checkup.check_up(node, baseline)`, `fleet.assess_fleet(nodes)`.
"""
