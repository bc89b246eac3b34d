"""Questions about one machine, each with a function ``answer(subject) -> Answer``.

What may happen here: an analysis reads curves, and says what it found, what it could not answer,
and why. `all_answers.answers` answers all questions in the order of a report.

Types to know: `Subject` (a profile, read once), `Answer` and `Finding`, all in `waywiser.curves`.

Affinity, anisotropy, alternatives, link equivalence and concurrent transfers are pairs of curves:
`curve_pairs` compares two curves, `peer_groups` a path with its equivalents, `pair_answers` makes
findings and tables of them. Placement compares each NUMA node, GPU, pair and set that a program can
choose with each other one.

Never here: a measurement, an open file, a fit of its own (`waywiser.model` fits).
"""
