"""What the numbers mean: one file per question that people ask of a profile.

Each question's file has one public function, ``answer(subject) -> Answer``; `questions.analyses`
lists them in the order in which a report tells them. An analysis reads estimates, never measures
and never opens files, and says what it could not answer and why.

What is asked of several profiles works on `node.Node`, a profile without its samples, which
`node.read_node` reads and a simulation makes in memory: `comparison.compare(base, new)` of
sequences of nodes, `checkup.check_up(node, baseline)`, `fleet.judge_fleet(nodes)`.
"""
