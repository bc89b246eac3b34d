"""What profiles say: questions about one machine, comparisons of several, and policies.

- `questions`: one module for each question about one machine.
- `comparison`: comparisons, checks against a baseline, fleets.
- `policy`: which method to use for a copy.
"""
