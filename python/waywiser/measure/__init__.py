"""Measures this machine: plans, worker processes, surveys and tunings.

- `plan`: which workloads, at which sizes, in which order, at what cost.
- `probe`: worker processes and their supervisor. Every worker imports this file, which imports
  nothing. `supervise` holds their processes, and those of launches and nodes.
- `tune`: the search of the best settings.
- `survey_options`, `tune_options`, `simulate_options`: tables of options, read by the command line,
  Python and `survey_request`, which makes what is planned and stored of them.
"""
