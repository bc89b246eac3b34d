"""Questions about one machine, each with a function ``answer(subject) -> Answer``.

`questions.answers` answers them in the order of a report. An analysis reads estimates, never
measures and never opens files, and says what it could not answer and why.
"""
