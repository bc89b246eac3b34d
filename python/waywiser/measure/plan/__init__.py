"""Plans: which workloads, at which sizes, in which order, at what cost.

What may happen here: the registry and the machine become a plan, and the plan becomes orders.

Types to know:

- `Preset`: how thorough a survey is. It has one depth: defaults alone, each setting alone, or every
  two settings together. Operations, layouts, opposite pairs and sets follow from it.
- `Plan`: the series with their processes and priorities: headlines (representative sizes of
  headline paths, and sets), representatives of other curves, the rest, sizes of equivalent paths
  that differ.
- `Schedule`: makes orders from a plan, one at a time. Every process measures the representatives
  and its share of the rest, whole curves at a time; with a deadline, further processes repeat the
  representatives until then. Before each part of a process it decides what has time, higher
  priorities and later processes first.

The schedule knows costs only from visits (`plan.costs`): the cost of a series is its former cost;
that of a new size is a line over bytes, corrected by the other sizes of its curve. So the first
visits are the pilot, executors declare no speed, and ``--dry-run`` runs the same schedule with the
line alone.

Large sizes come last, in ascending order: memory of a virtual machine that grows as it is used is
slower just after its first touch, and a curve that has saturated skips the rest.

Never here: a measurement, a process, a file.
"""
