"""Several profiles together: comparisons, checks against a baseline, fleets.

What may happen here: sides are matched path by path, and each difference is decided by the noise
model and the decision of `waywiser.stats`.

Types to know:

- `read_subject` (`comparison.read_subject`): reads a profile as a `waywiser.curves.subject.Subject`
  whose series are in the words by which profiles are joined.
- `SizeChange` and `PartChange` (`comparison.part_change`): one series, and the sizes of a curve in
  one regime, on both sides; first what was measured, then what was decided.
- `PathChange` (`comparison.path_change`): the change of one path, with interval, verdict and
  detectable effect.
- `Fleet` (`comparison.fleet`): each host against the median of all, on the scale of all
  (`comparison.outliers`).

`comparison.compare(base, new)` takes sequences of subjects, `checkup.check_up(subject, baseline)`
and `fleet.assess_fleet(subjects)` likewise.

Never here: samples, layout, exit codes.
"""
