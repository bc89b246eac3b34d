"""Measures this machine: plans, worker processes, surveys and tunings.

- `plan`: which workloads, at which sizes, in which order, at what cost.
- `probe`: worker processes and their supervisor. Every worker imports this file, which imports
  nothing.
- `tune`: the search of the best settings.
"""
