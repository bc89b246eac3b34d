"""Checks whether this machine, or the one of a profile, is fit to be measured.

What may happen here: one function for each check, which reads a `Situation` and returns a finding
with a remedy.

Types to know: `Situation`, what is known of the machine and its environment; `Finding`, what
a check found.

Never here: a change of the machine, or a measurement.
"""
