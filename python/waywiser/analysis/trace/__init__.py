"""What a traced program could save: its copies by line, beside what the machine was measured to do.

What may happen here: groups of a trace are merged, and asked of `waywiser.analysis.policy`.

Types to know: `CopyLine`, the copies of one line and path; `Saving`, what else they could take.

Never here: how a program is traced, and how lines are shown.
"""
