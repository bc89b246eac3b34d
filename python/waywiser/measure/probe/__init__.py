"""Runs a plan in worker processes and survives them.

The supervisor (`waywiser.measure.probe.supervisor`) hands orders to a group of workers and gets
visits back; the words between them are in `waywiser.measure.probe.protocol`. Nothing is imported
here, because every worker passes through this file on its way up."""
