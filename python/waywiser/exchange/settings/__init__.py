"""Settings of other programs, made from a profile: one module for each program.

What may happen here: measured crossovers and bandwidths become thresholds and options, as text or
JSON in the form that the program reads, with their origin in a comment.

Types to know: `SettingsError`; `OmittedSetting`, a setting that the profile does not decide, with
the reason. `consumers.settings_text` makes the text for one program.

Never here: settings from a simulated machine, or values that were not measured.
"""
