"""What the numbers of one machine mean: one file per question that people ask of a profile.

Each question's file has one public function, ``answer(subject) -> Answer``; `questions.analyses`
lists them in the order in which a report tells them. An analysis reads estimates, never measures
and never opens files, and says what it could not answer and why.
"""
