"""The curves of a profile: names, classes, headlines, selection, and what is said of them.

What may happen here: a profile becomes curves of points that everybody reads in one form; curves
are named as people call them, grouped by the symmetry of the machine, and selected by patterns.

Types to know:

- `Point`: one series with what each process measured of it, its estimate and its bound.
- `Curve`: the points of one path over sizes.
- `Subject`: a profile, read once: its curves and all that it says beside them.
- `Finding` (`curves.answer`): one thing worth knowing, with evidence and remedy. `Answer` holds
  those of one question.
- `Sheet` (`curves.sheet`): a table of an answer or a report.

Never here: a question about a machine (`analysis`), a prediction (`model`), the form of a page
(`render`). `curves.headline` has the groups of headline paths and `curves.terms` the terms that
``--only`` takes: both follow from the ends, the size and the links of a transfer.
"""
