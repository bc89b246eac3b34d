"""Search of the best settings of copies on this machine, by measurement.

What may happen here: settings are proposed, ordered, measured by the workers of a survey, and
compared.

Types to know:

- `Search` (`tune.search`): the search of one path at one size. It is pure: a generator that yields
  configurations and receives times. Ordered parameters are climbed as unimodal, choices are all
  tried, subsets grow. The climb has several origins, because parameters interact and noise hides
  the best: the defaults with each value of a choice, then the two best contenders.
- `Target` (`tune.targets`): what can be searched, from traits and kinds of parameters alone.
- `Tuner` (`tune.tuner`): makes orders as a schedule does. A round is a process and a block, which
  the searches of all paths and sizes share. The last four processes measure the winner, the
  defaults and the plain copy; only they are reported.

A search depends on nothing but what was measured: the same command replays it with the visits that
are stored, and measures what is missing.

Never here: the native library, or a setting that a policy may not set.
"""
