"""Statistics of plain numbers: order statistics, noise, decisions, fits.

What may happen here: arithmetic on numbers, arrays and frozen values of this package.

Types to know:

- `Interval` (`stats.order`): a 95 % interval; non-parametric for medians.
- `Noise` (`stats.noise_model`): the variance between surveys, processes and samples, measured and
  pooled over paths with the same kind of noise.
- `Effect` and `Decision` (`stats.decision`): the one rule that decides whether two sides differ,
  are equivalent, or show no change, with the detectable effect.

Never here: profiles, machines, names of executors, the native library. A process is the replicate;
nothing is assumed of an executor or of a machine, but one thing: the noise between surveys, if
there are few of them and few paths.
"""
