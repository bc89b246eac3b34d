"""Several profiles together: comparisons, checks against a baseline, fleets.

What may happen here: sides are matched path by path, and each difference is decided by the noise
model and the decision of `waywiser.stats`.

Types to know:

- `Node` (`comparison.node`): a profile without its samples. `read_node` reads it.
- `PathChange` (`comparison.path_change`): the change of one path, with interval, verdict and
  detectable effect.
- `Fleet` (`comparison.fleet`): each host against the median of all, on the scale of all
  (`comparison.outliers`).

`comparison.compare(base, new)` takes sequences of nodes, `checkup.check_up(node, baseline)` and
`fleet.assess_fleet(nodes)` likewise.

Never here: samples, layout, exit codes.
"""
