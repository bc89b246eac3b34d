"""The policy of a machine: which method to use for a copy, decided from what was measured.

- `waywiser.analysis.policy.table`: the file that the transfer library reads (docs/policy.md), as
  values.
- `waywiser.analysis.policy.decision_table`: the decision of one kind of copy over sizes, with all
  methods.
- `waywiser.analysis.policy.build`: makes both from the series of profiles.
"""
