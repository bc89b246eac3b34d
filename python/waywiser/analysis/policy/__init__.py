"""Policies: which method to use for a copy, decided from what was measured.

What may happen here: methods of one kind of copy are found with their noise (`policy.candidates`),
ordered by what they take from others (`policy.costs`), and decided over sizes (`policy.build`).

Types to know:

- `DecisionTable`: the decision of one kind of copy, with all methods and their times.
- `Policy` (`policy.table`): the content of the file that the transfer library reads
  (docs/policy.md). The file is the only copy; it names the machine, the day and the program.
- `CopyRequest` (`policy.advice`): one copy that a user asks about.

A policy is derived whenever it is read, by one rule (`stats.method_choice`), which the table of
methods in the report has too. Nothing of it is stored in a profile, so that no stored table can be
older than its samples or than the rule.

Never here: a constant of an executor. Values of a file are read, never trusted.
"""
