"""Runs orders in worker processes and survives them.

What may happen here: processes are started, controlled and replaced; a crash, a hang or an error of
a GPU costs one series.

Types to know:

- `Member` (`probe.member`): one worker, which is a `WorkerProcess` and a `LineChannel` to it (two
  pipes or a socket). `probe.protocol` has the messages. A worker answers pings by a thread of its
  own, so that a hang names the right member.
- `Teams` (`probe.teams`) start the members of each `WorkerGroup` (`probe.group`): workers that
  measure from a common start.
- `run_orders` (`probe.supervisor`): hands orders to groups and returns visits. Groups of processes
  that come next start side by side and wait for their turn; while one starts, nothing is measured.

The native worker, the simulation and the replay of a profile in tests speak the same protocol.
Before its first order a worker locates blocks of memory, because that is a property of the process:
it is stored with the visits, and measured again after a resume. What is a property of a process,
such as peer access, is part of the configuration of a worker. The watchdog raises an error and
never switches silently: a path that blocks behind a closed gate becomes host-timed for all later
workers, so that one curve keeps one mode.

Nothing is imported here, because every worker passes through this file on its way up.

Never here: a decision what to measure (`measure.plan`).
"""
